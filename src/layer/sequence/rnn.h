#ifndef QUOLL_LAYER_RNN_H
#define QUOLL_LAYER_RNN_H

#include "layer/common/recurrent.h"

namespace quoll {

// h = tanh(W x + R h + b). See Recurrent.
class RNN : public RecurrentOperator<RNN> {
public:
    RNN();

protected:
    void update(const float* x, const float* h, float* hidden, float* cell) const override;
};

}  // namespace quoll

#endif
