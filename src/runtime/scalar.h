// Scalar conversions between f32, IEEE half, bfloat16 and s8 without branches, so that loops over
// them vectorise; not installed. They hold with denormals flushed to zero too. Static: files
// compiled for one ISA include this, and the linker must not share their copies.
#ifndef QUOLL_SCALAR_PRIVATE_H
#define QUOLL_SCALAR_PRIVATE_H

#include <stdint.h>
#include <string.h>

namespace quoll {

static inline uint32_t bits_of(float v) {
    uint32_t u;
    memcpy(&u, &v, 4);
    return u;
}

static inline float float_of(uint32_t u) {
    float v;
    memcpy(&v, &u, 4);
    return v;
}

// test ? yes : no, from values that both are computed: the compiler must not hide floating-point
// work behind a branch.
static inline int32_t pick(bool test, int32_t yes, int32_t no) {
    const int32_t mask = -(int32_t)test;
    return (yes & mask) | (no & ~mask);
}

// Rounds to nearest even; NaN stays NaN, made quiet, as processors do it.
static inline unsigned short half_from_float(float value) {
    const uint32_t u = bits_of(value), sign = u >> 16 & 0x8000, odd = u >> 13 & 1;
    const int32_t magnitude = (int32_t)(u & 0x7fffffff);
    // a half denormal: the FPU rounds in units of 2^-24, the ulp of [0.5, 1)
    const int32_t denormal =
        (int32_t)(bits_of(float_of((uint32_t)magnitude) + 0.5f) - bits_of(0.5f));
    const int32_t normal = (int32_t)((uint32_t)magnitude - 0x38000000 + 0xfff + odd) >> 13;
    int32_t half = pick(magnitude < 0x38800000, denormal, normal);
    half = pick(magnitude >= 0x477ff000, 0x7c00, half);  // rounds to infinity
    half = pick(magnitude > 0x7f800000, 0x7e00 | (magnitude >> 13 & 0x1ff), half);  // NaN
    return (unsigned short)(sign | (uint32_t)half);
}

// A NaN is made quiet.
static inline float float_from_half(unsigned short value) {
    const uint32_t sign = (uint32_t)(value & 0x8000) << 16;
    const int32_t magnitude = value & 0x7fff;
    const int32_t denormal = (int32_t)bits_of((float)magnitude * (1.f / 16777216.f));  // exact
    const int32_t rebias = pick(magnitude < 0x7c00, 0x38000000, 0x70000000);
    const int32_t normal =
        (magnitude << 13) + rebias + pick(magnitude > 0x7c00, (~magnitude & 0x200) << 13, 0);
    return float_of(sign | (uint32_t)pick(magnitude < 0x400, denormal, normal));
}

// Rounds to nearest even; NaN stays NaN, made quiet.
static inline unsigned short bfloat_from_float(float value) {
    const uint32_t u = bits_of(value), rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    const bool nan = (int32_t)(u & 0x7fffffff) > 0x7f800000;
    return (unsigned short)(nan ? u >> 16 | 0x40 : rounded);
}

static inline float float_from_bfloat(unsigned short value) {
    return float_of((uint32_t)value << 16);
}

// Rounds half away from zero and clamps to [-127, 127]; NaN gives 0.
static inline signed char int8_from_float(float value) {
    const int32_t bits = (int32_t)bits_of(value), low = (int32_t)bits_of(-127.f),
                  high = (int32_t)bits_of(127.f);
    const int32_t clamped = pick(value < 127.f, pick(value > -127.f, bits, low), high);
    const float inside = float_of((uint32_t)clamped);
    const int32_t whole = (int32_t)inside;
    const float rest = inside - (float)whole;  // exact, so that 0.49999997 stays below one half
    const int32_t rounded = whole + (rest >= 0.5f) - (rest <= -0.5f);
    return (signed char)pick(value == value, rounded, 0);
}

}  // namespace quoll

#endif
