// Elementary functions for results that are rounded to bf16 afterwards, which costs up to 2^-8 of
// them: relative errors below an eighth of that (held by tests/kernel/test_unary.cpp,
// test_norm.cpp), where the machine has instructions that make this cheap (kHasBf16Math).
#pragma once

#include <float.h>

#include "simd/math.h"

namespace quoll {
namespace simd {
namespace {

constexpr bool kHasBf16Math = HWY_TARGET == HWY_AVX3;

#if HWY_TARGET == HWY_AVX3
using Bf16Math = vecf<16>;

constexpr float kLog2E = 0x1.715476p+0f;

// 2^x, 0 and infinity where it is beyond a float; c: of 2^r for 0 <= r < 1.
template <class... C>
QUOLL_INLINE Bf16Math exp2_by(Bf16Math x, C... c) {
    // x minus the next whole number below it; 0 for infinities.
    const Bf16Math r = {hn::Vec512<float>{_mm512_maskz_reduce_ps(0xffff, x.v.raw, 9)}};
    const Bf16Math p = horner(r, c...);
    return {hn::Vec512<float>{_mm512_maskz_scalef_ps(0xffff, p.v.raw, x.v.raw)}};
}
// Error 2^-13.7.
QUOLL_INLINE Bf16Math exp2_bf16(Bf16Math x) {
    return exp2_by(x, 0x1.3f96a4p-4f, 0x1.cefc4cp-3f, 0x1.64444cp-1f, 0x1.fff632p-1f);
}
// e^x for x <= 0, error 2^-22: for terms of a sum to which 0 belongs.
QUOLL_INLINE Bf16Math exp_of_difference(Bf16Math x) {
    return exp2_by(x * Bf16Math::set(kLog2E), 0x1.ec320ap-10f, 0x1.26900cp-7f, 0x1.c95446p-5f,
                   0x1.ebd5a8p-3f, 0x1.62e4f6p-1f, 0x1.fffffep-1f);
}
QUOLL_INLINE Bf16Math exp_bf16(Bf16Math x) { return exp2_bf16(x * Bf16Math::set(kLog2E)); }
// 1 / x, error 2^-14.
QUOLL_INLINE Bf16Math reciprocal_bf16(Bf16Math x) {
    return {hn::Vec512<float>{_mm512_maskz_rcp14_ps(0xffff, x.v.raw)}};
}
// 1 / (1 + 2^x)
QUOLL_INLINE Bf16Math falling_sigmoid_bf16(Bf16Math x) {
    return reciprocal_bf16(Bf16Math::set(1.f) + exp2_bf16(x));
}
// tanh by x P(x^2) / Q(x^2), error 2^-14.5 up to 4.8, where it is 1 but for 2^-12.8.
QUOLL_INLINE Bf16Math tanh_bf16(Bf16Math x) {
    const Bf16Math most = Bf16Math::set(4.8f);
    const Bf16Math a = min(most, max(-most, x)), z = a * a;
    const Bf16Math p = horner(z, 0x1.69b658p-11f, 0x1.a600aep-4f, 0x1.fffa9ap-1f);
    return a * p * reciprocal_bf16(horner(z, 0x1.aa47b0p-7f, 0x1.be9118p-2f, 1.f));
}
// x times a share that is 0 for infinite ones of that sign, too.
QUOLL_INLINE Bf16Math share_bf16(Bf16Math x, Bf16Math share) {
    return max(Bf16Math::set(-FLT_MAX), x) * share;
}

// x (1 + erf(x / sqrt(2))) / 2. log2 of what the share lacks to 1 over the share is nearly a
// straight line: x P(x^2), fitted so that the error is below 2^-12.5 times the result or 2^-8,
// whichever is larger.
QUOLL_INLINE Bf16Math gelu_bf16(Bf16Math x) {
    const Bf16Math p = horner(x * x, -0x1.ae3fcep-20f, 0x1.7f88e8p-15f, 0x1.75c996p-11f,
                              -0x1.b34696p-4f, -0x1.268e68p+1f);
    return share_bf16(x, falling_sigmoid_bf16(x * p));
}
// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
QUOLL_INLINE Bf16Math gelu_fast_bf16(Bf16Math x) {
    constexpr float kFirst = -2 * 0.7978845608f * kLog2E;
    const Bf16Math p = horner(x * x, 0.044715f * kFirst, kFirst);
    return share_bf16(x, falling_sigmoid_bf16(x * p));
}
// x tanh(log(1 + e^x)), see activations::Mish.
QUOLL_INLINE Bf16Math mish_bf16(Bf16Math x) {
    const Bf16Math two = Bf16Math::set(2.f);
    const Bf16Math e = exp_bf16(min(Bf16Math::set(20.f), x));
    const Bf16Math p = e * (e + two);
    return share_bf16(x, p * reciprocal_bf16(p + two));
}
#else
template <class V>
QUOLL_INLINE V exp_bf16(V x) {
    return exp(x);
}
template <class V>
QUOLL_INLINE V exp_of_difference(V x) {
    return exp(x);
}
#endif

}  // namespace
}  // namespace simd
}  // namespace quoll
