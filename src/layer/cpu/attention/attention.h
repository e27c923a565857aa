// Kernels of attention: products of one row with a matrix that is read where it lies (a cache of
// keys or values that grows by a row per step would have to be packed anew each time), and rotary
// embedding. No pointer needs alignment.
#ifndef QUOLL_LAYER_CPU_ATTENTION_ATTENTION_H
#define QUOLL_LAYER_CPU_ATTENTION_ATTENTION_H

#include <stddef.h>

namespace quoll {

// out[j] = scale * sum over i < n of x[i] * rows[j * step + i], for j < count.
typedef void (*DotRows)(const float* x, size_t n, const float* rows, size_t step, size_t count,
                        float scale, float* out);
// out[i] = scale * sum over j < count of x[j] * rows[j * step + i], for i < n.
typedef void (*SumRows)(const float* x, size_t count, const float* rows, size_t step, size_t n,
                        float scale, float* out);

// out[y * width + x] = rows[y] + columns[x], for y < height and x < width.
typedef void (*SumGrid)(const float* rows, size_t height, const float* columns, size_t width,
                        float* out);

// Pairs (x0, x1) become (x0 c - x1 s, x0 s + x1 c). turn_halves: pair i is x[i] and x[half + i],
// and the second result takes c and s from `second` on; turn_pairs: it is x[2 i] and x[2 i + 1],
// and second is 0. out is not x.
typedef void (*TurnRow)(const float* x, const float* c, const float* s, size_t half, size_t second,
                        float* out);

struct AttentionKernels {
#define QUOLL_ATTENTION(name, type) type name;
#include "layer/cpu/attention/kernels.inc"
#undef QUOLL_ATTENTION
};

}  // namespace quoll

#endif
