// The names of simd/vec.h, math.h and convert.h as plain functions, one set for each ISA.
#ifndef QUOLL_TESTS_SIMD_WRAPPERS_H
#define QUOLL_TESTS_SIMD_WRAPPERS_H

#include <stddef.h>
#include <stdint.h>

namespace quoll {

// Vectors of 2, 4, 8, 16 and 32 lanes.
enum { kSimdWidths = 5 };
typedef void (*SimdOp)(const float* a, const float* b, const float* c, float* out);

struct SimdWidth {
    size_t lanes;
#define QUOLL_SIMD_OP(name, expression, reference, ulp) SimdOp name;
#include "wrappers.inc"
#undef QUOLL_SIMD_OP
    void (*load_n)(const float* in, size_t n, float* out);              // out: all lanes
    void (*store_n)(const float* in, size_t n, float* out);             // in: all lanes
    void (*int_ops)(const int32_t* a, const int32_t* b, int32_t* out);  // see kSimdIntOps
    void (*store_f16)(const float* in, uint16_t* out);
    void (*load_f16)(const uint16_t* in, float* out);
    void (*store_bf16)(const float* in, uint16_t* out);
    void (*load_bf16)(const uint16_t* in, float* out);
    void (*store_s8)(const int32_t* in, int8_t* out);
    void (*load_s8)(const int8_t* in, int32_t* out);
    void (*store_u8)(const int32_t* in, uint8_t* out);
    void (*load_u8)(const uint8_t* in, int32_t* out);
};
// a + b, a - b, a * b, a & b, a | b, a ^ b, a << 3, a >> 3 (arithmetic), min, max; `lanes` results
// of each.
enum { kSimdIntOps = 10 };

struct SimdWrappers {
    SimdWidth widths[kSimdWidths];
    bool fused;  // fma rounds once
    // Rows of n x n matrices, n = 1, 2, 4, 8, 16.
    void (*transpose[5])(const float* in, float* out);
};

}  // namespace quoll

#endif
