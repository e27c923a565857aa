#ifndef QUOLL_LAYER_ROTARYEMBED_H
#define QUOLL_LAYER_ROTARYEMBED_H

#include "layer/common/schema.h"

namespace quoll {

// Rotary position embedding of [heads][positions][size] (or [positions][size]) with an even size:
// pairs of values are rotated by the angles of their position, whose cosines and sines are the
// inputs 1 and 2, [positions or more][size / 2]. Pair i is the values 2i and 2i + 1 (interleaved),
// or i and i + size / 2; in the latter case rows of cosines and sines may have `size` values, with
// separate ones for the second half:
//     y0 = x0 cos0 - x1 sin0, y1 = x0 sin1 + x1 cos1.
class RotaryEmbed : public Operator<RotaryEmbed> {
public:
    RotaryEmbed();
    static void params(RotaryEmbed& s, ParamVisitor& v);
    static void weights(RotaryEmbed& s, WeightVisitor& v);
    static int shape(const RotaryEmbed& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int interleaved;
};

}  // namespace quoll

#endif
