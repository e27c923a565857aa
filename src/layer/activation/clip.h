#ifndef QUOLL_LAYER_CLIP_H
#define QUOLL_LAYER_CLIP_H

#include "layer/common/activation.h"
#include "layer/common/elementwise.h"

namespace quoll {

// y = x clamped to [min, max]; NaN stays NaN.
class Clip : public ElementwiseOperator<Clip> {
public:
    static void params(Clip& s, ParamVisitor& v);
    float value(float x) const { return evaluate<activations::Clip>(x, min, max); }
    Activation as_activation() const override { return {kActivationClip, min, max}; }

    float min = 0.f, max = 0.f;
};

}  // namespace quoll

#endif
