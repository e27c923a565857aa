#ifndef QUOLL_LAYER_GRU_H
#define QUOLL_LAYER_GRU_H

#include "layer/common/recurrent.h"

namespace quoll {

// Gates r, u, n: h = (1 - u) tanh(n) + u h with n = W x + b + r (R h + b'), where r and u are
// sigmoids. The biases are those of r, u, n and b'. See Recurrent.
class GRU : public RecurrentOperator<GRU> {
public:
    GRU();

protected:
    void update(const float* x, const float* h, float* hidden, float* cell) const override;
};

}  // namespace quoll

#endif
