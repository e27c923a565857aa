#ifndef QUOLL_LAYER_ONNXLSTM_H
#define QUOLL_LAYER_ONNXLSTM_H

#include "layer/common/onnxrecurrent.h"

namespace quoll {

// ONNX's LSTM, with gates i, o, f, c and peepholes i, o, f. With input_forget, f = 1 - i. The
// activations are those of the gates, of c, and of the output. See OnnxRecurrent.
class OnnxLSTM : public OnnxRecurrentOperator<OnnxLSTM> {
public:
    OnnxLSTM();
    static void params(OnnxLSTM& s, ParamVisitor& v);

protected:
    void update(const Step& s, const float* last) const override;
};

}  // namespace quoll

#endif
