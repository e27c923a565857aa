#ifndef QUOLL_LAYER_RELU_H
#define QUOLL_LAYER_RELU_H

#include "layer/common/activation.h"
#include "layer/common/schema.h"

namespace quoll {

// y = x if x > 0, else slope * x, of f32 or of s8 (rounded).
class ReLU : public Operator<ReLU> {
public:
    ReLU();
    static void params(ReLU& s, ParamVisitor& v);
    static void weights(ReLU& s, WeightVisitor& v);
    static int shape(const ReLU& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward_inplace(Mat& blob, const Option& opt) const override;
    unsigned traits() const override { return slope == 0.f ? kChoosesValues : 0; }
    Activation as_activation() const override {
        return slope == 0.f ? Activation::plain(kActivationReLU)
                            : Activation(kActivationLeakyReLU, slope);
    }

    float slope;
};

}  // namespace quoll

#endif
