#ifndef QUOLL_LAYER_ROTARYEMBED_H
#define QUOLL_LAYER_ROTARYEMBED_H

#include "layer/common/schema.h"

namespace quoll {

// Rotary position embedding of [heads][positions][size] (or [positions][size]), size even: pairs of
// values are turned by the angles of their position, whose cosines and sines are the inputs 1 and
// 2, [positions or more][size / 2]. Pair i: values 2i and 2i + 1 (interleaved), or i and
// i + size / 2; the latter may have cosines and sines of [size], own ones for the second half:
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
