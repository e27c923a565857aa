#ifndef QUOLL_LAYER_PSROIPOOLING_H
#define QUOLL_LAYER_PSROIPOOLING_H

#include "layer/common/roi.h"

namespace quoll {

// The position-sensitive average of each bin of a region: bin (x, y) of output channel q is taken
// from a channel of its own, (q * pooled_height + y) * pooled_width + x. A bin outside the map
// gives 0.
class PSROIPooling : public Operator<PSROIPooling>, public RoiFields {
public:
    PSROIPooling();
    static void params(PSROIPooling& s, ParamVisitor& v);
    static void weights(PSROIPooling& s, WeightVisitor& v);
    static int shape(const PSROIPooling& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int output_dim = 0;
};

}  // namespace quoll

#endif
