#include "layer/sequence/onnxgru.h"

namespace quoll {

OnnxGRU::OnnxGRU() : OnnxRecurrentOperator(3, 2, false) {}

void OnnxGRU::params(OnnxGRU& s, ParamVisitor& v) {
    s.onnx_params(v, "linear_before_reset", "1: the reset gate follows the product");
}

// The reset gate times the state.
void OnnxGRU::reset(const Step& s, float* state) const {
    const int n = hidden_size;
    for (int q = 0; q < n; q++) state[q] *= (float)s.f[0]((double)s.x[n + q] + s.h[n + q], clip);
}

void OnnxGRU::update(const Step& s, const float* last) const {
    const int n = hidden_size;
    if (variant) last = s.h + 2 * n;
    for (int q = 0; q < n; q++) {
        const double z = s.f[0]((double)s.x[q] + s.h[q], clip);
        const double r = variant ? s.f[0]((double)s.x[n + q] + s.h[n + q], clip) : 1.0;
        const double next = s.f[1](s.x[2 * n + q] + r * last[q], clip);
        s.hidden[q] = (float)((1 - z) * next + z * s.hidden[q]);
    }
}

QUOLL_DEFINE_LAYER(OnnxGRU)

}  // namespace quoll
