#include "layer/sequence/onnxrnn.h"

namespace quoll {

OnnxRNN::OnnxRNN() : OnnxRecurrentOperator(1, 1, false) {}

void OnnxRNN::params(OnnxRNN& s, ParamVisitor& v) { s.onnx_params(v, "", ""); }

void OnnxRNN::update(const Step& s, const float*) const {
    for (int q = 0; q < hidden_size; q++)
        s.hidden[q] = (float)s.f[0]((double)s.x[q] + s.h[q], clip);
}

QUOLL_DEFINE_LAYER(OnnxRNN)

}  // namespace quoll
