#ifndef QUOLL_LAYER_LSTM_H
#define QUOLL_LAYER_LSTM_H

#include "layer/common/recurrent.h"

namespace quoll {

// Gates i, f, o, g: c = sigmoid(f) c + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c), or its
// projection if hidden_size is not num_output. See Recurrent.
class LSTM : public RecurrentOperator<LSTM> {
public:
    LSTM();

protected:
    void update(const float* x, const float* h, float* hidden, float* cell) const override;
};

}  // namespace quoll

#endif
