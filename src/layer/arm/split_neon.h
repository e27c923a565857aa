// Values of the kernels of split_gemm.h on NEON, floats or bf16, four at a time.
#ifndef QUOLL_LAYER_ARM_SPLIT_NEON_H
#define QUOLL_LAYER_ARM_SPLIT_NEON_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>

#include "layer/cpu/gemm/split_gemm.h"

namespace quoll {

// split_store_neon.cpp; the second narrows by an instruction of FEAT_BF16.
extern const SplitStoreKernels split_store_neon, split_store_bf16;

inline float32x4_t load4(const float* from) { return vld1q_f32(from); }
inline float32x4_t load4(const uint16_t* from) {
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(from), 16));
}
inline float load1(const float* from) { return *from; }
inline float load1(const uint16_t* from) {
    const uint32_t bits = (uint32_t)*from << 16;
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

// bf16 in the upper halves, to nearest, ties to even; a NaN stays one.
inline uint32x4_t round_to_bf16(float32x4_t x) {
    const uint32x4_t bits = vreinterpretq_u32_f32(x);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
    return vbslq_u32(vceqq_f32(x, x), rounded, vorrq_u32(bits, vdupq_n_u32(0x400000)));
}

inline void store4(float* to, float32x4_t x) { vst1q_f32(to, x); }
inline void store4(uint16_t* to, float32x4_t x) { vst1_u16(to, vshrn_n_u32(round_to_bf16(x), 16)); }
inline void store1(float* to, float x) { *to = x; }
inline void store1(uint16_t* to, float x) {
    *to = (uint16_t)(vgetq_lane_u32(round_to_bf16(vdupq_n_f32(x)), 0) >> 16);
}

inline void transpose(float32x4_t (&x)[4]) {
    const float32x4x2_t a = vtrnq_f32(x[0], x[1]), b = vtrnq_f32(x[2], x[3]);
    x[0] = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
    x[1] = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
    x[2] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
    x[3] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
}

// Four pixels of four channels, of which so many are there, in vectors of pixels.
template <class Value>
void load_block(const Value* from, ptrdiff_t pixel, int channels, int pixels,
                float32x4_t (&values)[4]) {
    if (channels >= 4 && pixels >= 4) {
        for (int i = 0; i < 4; i++) values[i] = load4(from + i * pixel);
        return transpose(values);
    }
    float some[4][4] = {};
    for (int c = 0; c < std::min(channels, 4); c++)
        for (int p = 0; p < std::min(pixels, 4); p++) some[c][p] = load1(from + p * pixel + c);
    for (int c = 0; c < 4; c++) values[c] = vld1q_f32(some[c]);
}

// Four pixels of up to four channels that lie `channel` apart.
template <class Value>
void load_planes(const Value* from, ptrdiff_t pixel, ptrdiff_t channel, int channels, int pixels,
                 float32x4_t (&values)[4]) {
    for (int c = 0; c < 4; c++) {
        float some[4] = {};
        if (c < channels && pixel == 1 && pixels >= 4) {
            values[c] = load4(from + c * channel);
            continue;
        }
        for (int p = 0; c < channels && p < std::min(pixels, 4); p++)
            some[p] = load1(from + c * channel + p * pixel);
        values[c] = vld1q_f32(some);
    }
}

}  // namespace quoll

#endif
