// Projections of attention as inner products, which have all kinds of weights and of int8 forms.
#ifndef QUOLL_TOOLS_QUANTIZE_ATTENTION_PRODUCTS_H
#define QUOLL_TOOLS_QUANTIZE_ATTENTION_PRODUCTS_H

#include "quantize/quantize.h"

namespace quoll {

// Makes of each MultiHeadAttention that is to be more than stored otherwise four InnerProducts,
// NAME_q, NAME_k, NAME_v and NAME_out, around an SDPA of its name. The answers are the same. What
// options say of the layer they then say of the products. Layers with caches stay, as those with
// weights of integers do. 0, or a negative code after a message.
int attention_to_products(QuantizeOptions* options, Model* model);

}  // namespace quoll

#endif
