#ifndef QUOLL_LAYER_ONNXLSTM_H
#define QUOLL_LAYER_ONNXLSTM_H

#include "layer/common/onnxrecurrent.h"

namespace quoll {

// ONNX's LSTM; gates i, o, f, c and peepholes i, o, f. input_forget: f = 1 - i. Activations: of the
// gates, of c, of the output. See OnnxRecurrent.
class OnnxLSTM : public OnnxRecurrentOperator<OnnxLSTM> {
public:
    OnnxLSTM();
    static void params(OnnxLSTM& s, ParamVisitor& v);

protected:
    void update(const Step& s, const float* last) const override;
};

}  // namespace quoll

#endif
