// Projections of attention as inner products, which have all kinds of weights and of int8 forms.
#ifndef QUOLL_TOOLS_QUANTIZE_ATTENTION_PRODUCTS_H
#define QUOLL_TOOLS_QUANTIZE_ATTENTION_PRODUCTS_H

#include "quantize/quantize.h"

namespace quoll {

// Replaces each MultiHeadAttention that is to be quantised by four InnerProducts, NAME_q, NAME_k,
// NAME_v and NAME_out, around an SDPA of its name. The answers are the same. What the options say
// of the layer then holds for the products. Layers with caches, or with integer weights, stay.
// Returns 0, or a negative code after a message.
int attention_to_products(QuantizeOptions* options, Model* model);

}  // namespace quoll

#endif
