// int8 matrices whose scales are found at run time, for the int8 implementations of Gemm and the
// attentions.
#ifndef QUOLL_LAYER_INT8_ROWS_H
#define QUOLL_LAYER_INT8_ROWS_H

#include "quoll/mat.h"

namespace quoll {

// The factor that maps the largest magnitude of `rows` x `count` values to 127; rows are `step`
// floats apart.
float int8_scale(const float* x, int rows, size_t step, int count);

void to_int8(const float* x, int count, float scale, signed char* out);

int64_t int8_dot(const signed char* a, const signed char* b, int count);

}  // namespace quoll

#endif
