#include "layer/sequence/lstm.h"

namespace quoll {

LSTM::LSTM() : RecurrentOperator(4, 4, true) {}

void LSTM::update(const float* x, const float* h, float* hidden, float* cell) const {
    const int n = hidden_size;
    for (int q = 0; q < n; q++) {
        const double i = sigmoid_of((double)x[q] + h[q]);
        const double f = sigmoid_of((double)x[n + q] + h[n + q]);
        const double o = sigmoid_of((double)x[2 * n + q] + h[2 * n + q]);
        const double g = tanh((double)x[3 * n + q] + h[3 * n + q]);
        const double next = f * cell[q] + i * g;
        cell[q] = (float)next;
        hidden[q] = (float)(o * tanh(next));
    }
}

QUOLL_DEFINE_LAYER(LSTM)

}  // namespace quoll
