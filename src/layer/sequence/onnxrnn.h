#ifndef QUOLL_LAYER_ONNXRNN_H
#define QUOLL_LAYER_ONNXRNN_H

#include "layer/common/onnxrecurrent.h"

namespace quoll {

// ONNX's RNN, with one gate and one activation. See OnnxRecurrent.
class OnnxRNN : public OnnxRecurrentOperator<OnnxRNN> {
public:
    OnnxRNN();
    static void params(OnnxRNN& s, ParamVisitor& v);

protected:
    void update(const Step& s, const float* last) const override;
};

}  // namespace quoll

#endif
