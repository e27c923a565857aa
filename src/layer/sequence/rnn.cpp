#include "layer/sequence/rnn.h"

namespace quoll {

RNN::RNN() : RecurrentOperator(1, 1, false) {}

void RNN::update(const float* x, const float* h, float* hidden, float*) const {
    for (int q = 0; q < hidden_size; q++) hidden[q] = (float)tanh((double)x[q] + h[q]);
}

QUOLL_DEFINE_LAYER(RNN)

}  // namespace quoll
