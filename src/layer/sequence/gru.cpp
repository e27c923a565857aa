#include "layer/sequence/gru.h"

namespace quoll {

GRU::GRU() : RecurrentOperator(3, 4, false) {}

void GRU::update(const float* x, const float* h, float* hidden, float*) const {
    const int n = hidden_size;
    for (int q = 0; q < n; q++) {
        const double r = sigmoid_of((double)x[q] + h[q]);
        const double u = sigmoid_of((double)x[n + q] + h[n + q]);
        const double next = tanh(x[2 * n + q] + r * h[2 * n + q]);
        hidden[q] = (float)((1 - u) * next + u * hidden[q]);
    }
}

QUOLL_DEFINE_LAYER(GRU)

}  // namespace quoll
