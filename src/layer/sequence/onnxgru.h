#ifndef QUOLL_LAYER_ONNXGRU_H
#define QUOLL_LAYER_ONNXGRU_H

#include "layer/common/onnxrecurrent.h"

namespace quoll {

// ONNX's GRU, with gates z, r, h. With linear_before_reset the reset gate is applied to the product
// of the state and its weights, not to the state. The activations are those of the gates and of h.
// See OnnxRecurrent.
class OnnxGRU : public OnnxRecurrentOperator<OnnxGRU> {
public:
    OnnxGRU();
    static void params(OnnxGRU& s, ParamVisitor& v);

protected:
    void update(const Step& s, const float* last) const override;
    bool keeps_last_bias() const override { return true; }
    bool splits_last_gate() const override { return !variant; }
    void reset(const Step& s, float* state) const override;
};

}  // namespace quoll

#endif
