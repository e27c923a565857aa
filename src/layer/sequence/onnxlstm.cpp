#include "layer/sequence/onnxlstm.h"

namespace quoll {

OnnxLSTM::OnnxLSTM() : OnnxRecurrentOperator(4, 3, true) {}

void OnnxLSTM::params(OnnxLSTM& s, ParamVisitor& v) {
    s.onnx_params(v, "input_forget", "1: the forget gate is 1 - the input gate");
}

void OnnxLSTM::update(const Step& s, const float*) const {
    const int n = hidden_size;
    for (int q = 0; q < n; q++) {
        const auto sum = [&](int gate) { return (double)s.x[gate * n + q] + s.h[gate * n + q]; };
        const auto peep = [&](int gate, double c) {
            return s.peephole ? s.peephole[gate * n + q] * c : 0.0;
        };
        const double before = s.cell[q];
        const double i = s.f[0](sum(0) + peep(0, before), clip);
        const double f = variant ? 1 - i : s.f[0](sum(2) + peep(2, before), clip);
        const double c = f * before + i * s.f[1](sum(3), clip);
        const double o = s.f[0](sum(1) + peep(1, c), clip);
        s.cell[q] = (float)c;
        // ONNX clips "the input of activations". ONNX Runtime, whose answers models are made for,
        // clips only the gates'.
        s.hidden[q] = (float)(o * s.f[2](c, 0.f));
    }
}

QUOLL_DEFINE_LAYER(OnnxLSTM)

}  // namespace quoll
