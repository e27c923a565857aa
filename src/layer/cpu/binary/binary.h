// Binary kernels: out[i] = f(a[i], b[i]) over contiguous floats.
//
// A pattern (pattern.h) stands for an operand that repeats it. out may be an operand itself, but
// not overlap one otherwise; exactly n values are read and written; no pointer needs alignment.
#ifndef QUOLL_LAYER_CPU_BINARY_BINARY_H
#define QUOLL_LAYER_CPU_BINARY_BINARY_H

#include <stddef.h>

#include "layer/cpu/common/pattern.h"

namespace quoll {

typedef void (*BinaryKernel)(const float* a, const float* b, float* out, size_t n);

struct BinaryVariants {
    BinaryKernel vectors;         // both operands have n values
    BinaryKernel vector_pattern;  // b is a pattern
    BinaryKernel pattern_vector;  // a is a pattern
};

struct BinaryKernels {
#define QUOLL_BINARY(name, functor) BinaryVariants name;
#include "layer/cpu/binary/kernels.inc"
#undef QUOLL_BINARY
#if defined(__x86_64__) || defined(__i386__)
    BinaryKernel add_relu;  // max(0, a + b); not where the library has to be small
#endif
};

}  // namespace quoll

#endif
