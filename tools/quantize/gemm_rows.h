// Gemm layers with constant weights, which have no static int8 arithmetic, as inner products.
#ifndef QUOLL_TOOLS_QUANTIZE_GEMM_ROWS_H
#define QUOLL_TOOLS_QUANTIZE_GEMM_ROWS_H

#include "layer/nn/gemm.h"
#include "quantize/quantize.h"

namespace quoll {

// The constant B of a Gemm, f32, as rows [N][K] of one output each; empty after a message.
Mat gemm_rows(const Gemm& op, const ModelLayer& layer);

// Replaces Gemm layers that are to become int8 or affine by InnerProduct layers, if these are the
// same function: B constant and without a factor, C missing or constant by column, and an input
// that is known to be a matrix of K columns. The others stay. Returns 0, or a negative code after a
// message.
int gemm_to_inner_product(const QuantizeOptions& options, Model* model);

}  // namespace quoll

#endif
