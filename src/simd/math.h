// Elementary functions on float vectors.
//
// Polynomial coefficients are minimax fits (Remez exchange, scripts/fit_math.py) of the function
// named, rounded to float one after another with the rest refitted. Errors below are against the
// exact result, in units in the last place, on the whole finite range unless said otherwise;
// infinite arguments, NaN, zeros and denormals give what libm gives. tests/simd holds these bounds.
//   exp 1   log 1   log1p 2   log10 2   expm1 2   pow 2
//   sin, cos 2   tan 3   asin 3   acos 2   atan 2   atan2 5
//   sinh, cosh 3   asinh, acosh, atanh 4   tanh 2   sigmoid 2.1   erf 2
#pragma once

#include <math.h>

#include "simd/vec.h"

namespace quoll {
namespace simd {
namespace {

// c[0] + c[1] x + c[2] x^2 + ..., coefficients given from the highest power down.
template <class V>
QUOLL_INLINE V polynomial(V, V sum) {
    return sum;
}
template <class V, class... Rest>
QUOLL_INLINE V polynomial(V x, V sum, float next, Rest... rest) {
    return polynomial(x, fma(sum, x, V::set(next)), rest...);
}
template <class V, class... Rest>
QUOLL_INLINE V horner(V x, float highest, Rest... rest) {
    return polynomial(x, V::set(highest), rest...);
}

// The greater and the lesser, NaN if either is: on NEON what max() and min() give.
constexpr bool kNanFromEither = HWY_TARGET == HWY_NEON;
template <class V>
QUOLL_INLINE V maximum(V a, V b) {
    if constexpr (kNanFromEither) {
        return max(a, b);
    } else {
        return select(is_nan(a), a, max(a, b));
    }
}
template <class V>
QUOLL_INLINE V minimum(V a, V b) {
    if constexpr (kNanFromEither) return min(a, b);
    return select(is_nan(a), a, min(a, b));
}

// 2^n for n in [-126, 127].
template <class V, class I>
QUOLL_INLINE V power_of_two(I n) {
    return bit_cast<float>((n + I::set(127)).template shift_left<23>());
}

// p 2^n for whole n in [-150, 128].
template <class V>
QUOLL_INLINE V scale_exponent(V p, V n) {
#if HWY_TARGET == HWY_AVX3
    if constexpr (V::kSize == kLanes) {
        return {hn::Vec512<float>{_mm512_maskz_scalef_ps(0xffff, p.v.raw, n.v.raw)}};
    }
#endif
    // Two factors, because n exceeds what one exponent field holds.
    const auto whole = small_int(n);
    const auto half = whole.template shift_right<1>();
    return p * power_of_two<V>(half) * power_of_two<V>(whole - half);
}

// e^r - 1 for |r| <= ln(2) / 2, error 2^-28 e^r before rounding.
template <class V>
QUOLL_INLINE V expm1_reduced(V r) {
    const V p =
        horner(r, 0x1.6ad158p-10f, 0x1.123f3p-7f, 0x1.55584ep-5f, 0x1.55548ap-3f, 0x1.fffffcp-2f);
    return fma(r * r, p, r);
}

// x = n ln(2) + r with |r| <= ln(2) / 2; ln(2) in two parts, the first exact times any n here.
template <class V>
QUOLL_INLINE V exp_reduce(V x, V* n) {
    *n = round(x * V::set(0x1.715476p+0f));
    const V r = nfma(*n, V::set(0x1.62e4p-1f), x);
    return nfma(*n, V::set(0x1.7f7d1cp-20f), r);
}

template <class V>
QUOLL_INLINE V exp(V x) {
    // Beyond these e^x is zero or infinite in float; NaN passes both.
    x = max(V::set(-104.f), min(V::set(89.f), x));
    V n;
    const V p = expm1_reduced(exp_reduce(x, &n)) + V::set(1.f);
    return scale_exponent(p, n);
}

// e^x in sums with 1 or more, which values below e^-80 do not change.
template <class V>
QUOLL_INLINE V exp_in_sum(V x) {
    V n;
    const V r = exp_reduce(max(V::set(-80.f), min(V::set(89.f), x)), &n);
    const V p = expm1_reduced(r) + V::set(1.f);
#if HWY_TARGET == HWY_AVX3
    return scale_exponent(p, n);
#else
    // 2^n may be infinite, 2^(n - 1) not.
    return (p + p) * power_of_two<V>(small_int(n - V::set(1.f)));
#endif
}

// e^x - 1, exact for small x, too: 2^n (e^r - 1) + (2^n - 1).
template <class V>
QUOLL_INLINE V expm1(V x) {
    // Below -20 the result is -1 in float, from 20 on the 1 is lost.
    V n;
    const V p = expm1_reduced(exp_reduce(max(V::set(-20.f), min(V::set(20.f), x)), &n));
    const V scale = power_of_two<V>(small_int(n));
    const V y = fma(scale, p, scale - V::set(1.f));
    return select(x == V::zero(), x, select(x > V::set(20.f), exp(x), y));
}

// log(m) for m in [sqrt(1/2), sqrt(2)): f - f^2 / 2 + f^3 P(f), f = m - 1; plus e ln(2).
template <class V>
QUOLL_INLINE V log_parts(V f, V e) {
    const V p =
        horner(f, 0x1.97e4c4p-5f, -0x1.b9167ap-4f, 0x1.f35ac6p-4f, -0x1.01a968p-3f, 0x1.22e0cep-3f,
               -0x1.5524dap-3f, 0x1.99a684p-3f, -0x1.000088p-2f, 0x1.555546p-2f);
    const V f2 = f * f;
    V tail = fma(f2 * f, p, e * V::set(0x1.7f7d1cp-20f));
    tail = nfma(f2, V::set(.5f), tail);
    return fma(e, V::set(0x1.62e4p-1f), f + tail);
}

template <class V>
QUOLL_INLINE V log(V x) {
    const auto tiny = x < V::set(0x1p-126f);
    const V scaled = select(tiny, x * V::set(0x1p23f), x);
    // Exponent such that the mantissa lies around 1: subtract the bits of sqrt(1/2).
    const auto bits = bit_cast<int32_t>(scaled);
    using I = decltype(bit_cast<int32_t>(x));
    const auto shifted = bits - I::set(0x3f3504f3);
    const auto exponent = shifted.template shift_right<23>();
    const V m = bit_cast<float>(bits - exponent.template shift_left<23>());
    const V e = to_float(exponent) - select(tiny, V::set(23.f), V::zero());
    V y = log_parts(m - V::set(1.f), e);
    const V inf = V::set(INFINITY);
    y = select(x == inf, inf, y);
    y = select(x == V::zero(), -inf, y);
    return select(x >= V::zero(), y, V::set(NAN));
}

// log(1 + x); exact for small x through the error of the sum.
template <class V>
QUOLL_INLINE V log1p(V x) {
    const V u = V::set(1.f) + x;
    const V lost = x - (u - V::set(1.f));
    const V y = log(u) + lost / u;
    return select((u == V::set(INFINITY)) | (u <= V::zero()), log(u), y);
}

template <class V>
QUOLL_INLINE V log10(V x) {
    return log(x) * V::set(0x1.bcb7b2p-2f);
}

// ---------------------------------------------------------------- trigonometry

// Reduction by pi / 2 below is accurate up to here; larger arguments go through libm.
constexpr float kTrigLimit = 8192.f;

// x = n pi / 2 + r, |r| <= pi / 4. The first three parts have so few bits that n times them is
// exact without a fused multiply-add.
template <class V>
QUOLL_INLINE V trig_reduce(V x, V* n) {
    *n = round(x * V::set(0x1.45f306p-1f));
    V r = nfma(*n, V::set(0x1.92p+0f), x);
    r = nfma(*n, V::set(0x1.fb4p-12f), r);
    // What this difference loses is added to the last part, so that there is one rounding in all.
    const V third = *n * V::set(0x1.444p-24f), rest = r - third;
    return rest + nfma(*n, V::set(0x1.68c234p-39f), (r - rest) - third);
}

template <class V>
QUOLL_INLINE V sin_poly(V r) {
    const V z = r * r;
    const V p = horner(z, 0x1.7b587ap-19f, -0x1.a056a2p-13f, 0x1.111172p-7f, -0x1.555556p-3f);
    return fma(r * z, p, r);
}

template <class V>
QUOLL_INLINE V cos_poly(V r) {
    const V z = r * r;
    const V p = horner(z, 0x1.99de6ap-16f, -0x1.6c0c14p-10f, 0x1.55554ap-5f);
    const V half = z * V::set(.5f);
    const V w = V::set(1.f) - half;
    // What the subtraction lost, then the rest of the series.
    return w + fma(z * z, p, (V::set(1.f) - w) - half);
}

// Lanes whose magnitude exceeds kTrigLimit, one by one; infinite and NaN ones too.
template <class V, class F>
QUOLL_INLINE V trig_large(V x, V y, F scalar) {
    float in[V::kSize], out[V::kSize];
    x.store(in);
    y.store(out);
    for (size_t i = 0; i < V::kSize; i++) {
        if (!(in[i] <= kTrigLimit && in[i] >= -kTrigLimit)) out[i] = scalar(in[i]);
    }
    return V::load(out);
}

// quadrant 0: sin(x), quadrant 1: cos(x) = sin(x + pi / 2).
template <int quadrant, class V>
QUOLL_INLINE V sin_or_cos(V x) {
    V n;
    const V r = trig_reduce(x, &n);
    auto q = to_int(n);
    using I = decltype(q);
    q = q + I::set(quadrant);
    const V s = sin_poly(r), c = cos_poly(r);
    const V y = select(mask_cast<float>((q & I::set(1)) == I::zero()), s, c);
    const auto sign = (q & I::set(2)).template shift_left<30>();
    return bit_cast<float>(bit_cast<int32_t>(y) ^ sign);
}

template <class V>
QUOLL_INLINE V sin(V x) {
    const V y = sin_or_cos<0>(x);
    if (!any(!(abs(x) <= V::set(kTrigLimit)))) return y;
    return trig_large(x, y, [](float v) { return ::sinf(v); });
}

template <class V>
QUOLL_INLINE V cos(V x) {
    const V y = sin_or_cos<1>(x);
    if (!any(!(abs(x) <= V::set(kTrigLimit)))) return y;
    return trig_large(x, y, [](float v) { return ::cosf(v); });
}

template <class V>
QUOLL_INLINE V tan(V x) {
    V n;
    const V r = trig_reduce(x, &n);
    const V z = r * r;
    const V p = horner(z, 0x1.25b40cp-8f, -0x1.f226f2p-14f, 0x1.684d62p-7f, 0x1.5bb61p-6f,
                       0x1.baf31p-5f, 0x1.110d12p-3f, 0x1.555562p-2f);
    const V t = fma(r * z, p, r);
    using I = decltype(to_int(n));
    const auto even = mask_cast<float>((to_int(n) & I::set(1)) == I::zero());
    const V y = select(even, t, V::set(-1.f) / t);
    if (!any(!(abs(x) <= V::set(kTrigLimit)))) return y;
    return trig_large(x, y, [](float v) { return ::tanf(v); });
}

// asin(x) for |x| <= 1 / 2.
template <class V>
QUOLL_INLINE V asin_poly(V x) {
    const V z = x * x;
    const V p =
        horner(z, 0x1.595c92p-5f, 0x1.8c3e28p-6f, 0x1.747bbap-5f, 0x1.330204p-4f, 0x1.5555c8p-3f);
    return fma(x * z, p, x);
}

// Beyond 1 / 2: asin(x) = pi / 2 - 2 asin(sqrt((1 - x) / 2)). Outside [-1, 1] the root is NaN.
template <class V>
QUOLL_INLINE V asin(V x) {
    const V a = abs(x);
    const auto large = a > V::set(.5f);
    const V root = sqrt((V::set(1.f) - a) * V::set(.5f));
    const V y = asin_poly(select(large, root, a));
    const V folded = V::set(0x1.921fb6p+0f) - fma(V::set(2.f), y, V::set(0x1.777a5cp-25f));
    return copysign(select(large, folded, y), x);
}

template <class V>
QUOLL_INLINE V acos(V x) {
    const V a = abs(x);
    const auto large = a > V::set(.5f);
    const V root = sqrt((V::set(1.f) - a) * V::set(.5f));
    const V y = asin_poly(select(large, root, x));
    const V twice = y + y;
    const V from_pi = V::set(0x1.921fb6p+1f) - (twice + V::set(0x1.777a5cp-24f));
    const V small = V::set(0x1.921fb6p+0f) - (y + V::set(0x1.777a5cp-25f));
    return select(large, select(x < V::zero(), from_pi, twice), small);
}

// atan(t) for |t| <= 1.
template <class V>
QUOLL_INLINE V atan_poly(V t) {
    const V z = t * t;
    const V p =
        horner(z, -0x1.d72ddp-10f, 0x1.65e8fep-7f, -0x1.fec884p-6f, 0x1.daa30cp-5f, -0x1.58203p-4f,
               0x1.c09098p-4f, -0x1.2420acp-3f, 0x1.9991e4p-3f, -0x1.55553ep-2f);
    return fma(t * z, p, t);
}

template <class V>
QUOLL_INLINE V atan(V x) {
    const V a = abs(x);
    const auto large = a > V::set(1.f);
    const V y = atan_poly(select(large, V::set(1.f) / a, a));
    const V folded = V::set(0x1.921fb6p+0f) - (y + V::set(0x1.777a5cp-25f));
    return copysign(select(large, folded, y), x);
}

// The angle of the point (x, y).
template <class V>
QUOLL_INLINE V atan2(V y, V x) {
    const V ay = abs(y), ax = abs(x);
    const auto steep = ay > ax;
    const V low = select(steep, ax, ay), high = select(steep, ay, ax);
    V t = low / high;
    t = select(high == V::zero(), V::zero(), t);                             // 0 / 0
    t = select((low == high) & (high == V::set(INFINITY)), V::set(1.f), t);  // inf / inf
    V a = atan_poly(t);
    a = select(steep, V::set(0x1.921fb6p+0f) - (a + V::set(0x1.777a5cp-25f)), a);
    const auto left = copysign(V::set(1.f), x) < V::zero();
    a = select(left, V::set(0x1.921fb6p+1f) - (a + V::set(0x1.777a5cp-24f)), a);
    a = copysign(a, y);
    return select(is_nan(x) | is_nan(y), x + y, a);
}

// ---------------------------------------------------------------- activations

template <class V>
QUOLL_INLINE V tanh(V x) {
    const V a = abs(x);
    const V z = x * x;
    const V p = horner(z, -0x1.750ce4p-8f, 0x1.51f8cep-6f, -0x1.b835a4p-5f, 0x1.1106f6p-3f,
                       -0x1.555532p-2f);
    const V small = fma(x * z, p, x);
    const V large = V::set(1.f) - V::set(2.f) / (exp_in_sum(a + a) + V::set(1.f));
    return select(a < V::set(.625f), small, copysign(large, x));
}

// e^x / (1 + e^x) where e^-x would overflow.
template <class V>
QUOLL_INLINE V sigmoid(V x) {
    const V one = V::set(1.f), e = exp(-abs(x));
    return select(x < V::zero(), e, one) / (one + e);
}

// e^a / 2 for a >= 0, also where e^a overflows but its half does not.
template <class V>
QUOLL_INLINE V half_exp(V a) {
    const V half = V::set(.5f), y = half * exp(a);
    const auto large = a > V::set(88.f);
    if (!any(large)) return y;
    const V root = exp(half * a);
    return select(large, half * root * root, y);
}

template <class V>
QUOLL_INLINE V sinh(V x) {
    const V a = abs(x), one = V::set(1.f);
    const V e = expm1(min(V::set(2.f), a));
    const V small = V::set(.5f) * (e + e / (e + one));
    const V h = half_exp(a);
    return copysign(select(a < one, small, h - V::set(.25f) / h), x);
}

template <class V>
QUOLL_INLINE V cosh(V x) {
    const V h = half_exp(abs(x));
    return h + V::set(.25f) / h;
}

// sign(x) log1p(a + a^2 / (1 + sqrt(a^2 + 1))), a = |x|; log(2 a) where a^2 + 1 is a^2.
template <class V>
QUOLL_INLINE V asinh(V x) {
    const V a = abs(x), one = V::set(1.f);
    const auto large = a > V::set(0x1p13f);
    const V b = select(large, one, a);
    const V y = log1p(b + b * b / (one + sqrt(fma(b, b, one))));
    return copysign(select(large, log(a) + V::set(0x1.62e43p-1f), y), x);
}

template <class V>
QUOLL_INLINE V acosh(V x) {
    const V one = V::set(1.f);
    const auto large = x > V::set(0x1p13f);
    const V t = select(large, one, x - one);
    const V y =
        select(large, log(x) + V::set(0x1.62e43p-1f), log1p(t + sqrt(t * (t + V::set(2.f)))));
    return select(x < one, V::set(NAN), y);
}

template <class V>
QUOLL_INLINE V atanh(V x) {
    const V a = abs(x);
    const V y = V::set(.5f) * log1p((a + a) / (V::set(1.f) - a));
    return copysign(y, x);
}

// x (1 + x^2 P(x^2)) below 0.9, 1 - e^Q(|x|) above; Q is a fit of log(erfc), which is 1 - erf.
template <class V>
QUOLL_INLINE V erf(V x) {
    const V z = x * x;
    const V p = horner(z, -0x1.3ba9cap-11f, 0x1.479c9ep-8f, -0x1.b69b96p-6f, 0x1.ce1b86p-4f,
                       -0x1.8126ecp-2f, 0x1.06eba6p-3f);
    const V small = fma(x, p, x);
    const V a = min(V::set(3.95f), abs(x));  // erf is 1 in float from 3.92 on
    const V q = horner(a, -0x1.5d6032p-16f, 0x1.c44df8p-12f, -0x1.105f7ap-8f, 0x1.9aea32p-6f,
                       -0x1.bb44dcp-4f, -0x1.444d26p-1f, -0x1.212626p+0f, 0x1.62d988p-13f);
    const V large = copysign(V::set(1.f) - exp(q), x);
    return select(abs(x) < V::set(.9f), small, select(is_nan(x), x, large));
}

// (1 + erf(x / sqrt(2))) / 2 = 1/2 + x P(x^2) / Q(x^2), fitted to x in [-5.5, 5.5], with an error
// of 1.3 units of 2^-24 (so not a relative one). Half the work of erf.
template <class V>
QUOLL_INLINE V normal_distribution(V x) {
    const V z = x * x;
    const V p = horner(z, 0x1.86d4e8p-26f, 0x1.aa2538p-18f, 0x1.61d1p-13f, 0x1.327bf6p-8f,
                       0x1.153ddep-5f, 0x1.988450p-2f);
    const V q = horner(z, 0x1.41693cp-20f, 0x1.34b7f8p-14f, 0x1.edd52ep-10f, 0x1.d53d48p-6f,
                       0x1.01889cp-2f, 1.f);
    const V y = select(x > V::set(5.5f), V::set(1.f), fma(x, p / q, V::set(.5f)));
    return select(x < V::set(-5.5f), V::zero(), y);
}

// ---------------------------------------------------------------- powers

// log2(x) in double for positive finite float x: e + 2 atanh((m - 1) / (m + 1)) / ln(2); relative
// error 2^-43.
template <class VD, class V>
QUOLL_INLINE VD log2_double(V x) {
    const auto tiny = x < V::set(0x1p-126f);
    const V scaled = select(tiny, x * V::set(0x1p23f), x);
    const auto bits = bit_cast<int32_t>(scaled);
    using I = decltype(bit_cast<int32_t>(x));
    const auto shifted = bits - I::set(0x3f3504f3);
    const auto exponent = shifted.template shift_right<23>();
    const VD m = to_double(bit_cast<float>(bits - exponent.template shift_left<23>()));
    const VD e = to_double(to_float(exponent) - select(tiny, V::set(23.f), V::zero()));
    const VD s = (m - VD::set(1.)) / (m + VD::set(1.));
    const VD z = s * s;
    VD p = fma(VD::set(0x1.919812d8071d7p-3), z, VD::set(0x1.c6208ce0d7a91p-3));
    p = fma(p, z, VD::set(0x1.24943960460ffp-2));
    p = fma(p, z, VD::set(0x1.99999628a5eeep-2));
    p = fma(p, z, VD::set(0x1.5555555672df2p-1));
    p = fma(p, z, VD::set(0x1.fffffffffff10p+0));
    return fma(p * s, VD::set(0x1.71547652b82fep+0), e);
}

// 2^t for t in [-160, 160], relative error 2^-37; the last scaling rounds to float.
template <class V, class VD>
QUOLL_INLINE V exp2_double(VD t) {
    const VD n = round(t);
    const VD r = t - n;
    VD p = fma(VD::set(0x1.618b89b2435f8p-20), r, VD::set(0x1.00dbb7e1b3d3cp-16));
    p = fma(p, r, VD::set(0x1.430acfe50ec93p-13));
    p = fma(p, r, VD::set(0x1.5d87483892c91p-10));
    p = fma(p, r, VD::set(0x1.3b2ab5c52a45bp-7));
    p = fma(p, r, VD::set(0x1.c6b08dd46d011p-5));
    p = fma(p, r, VD::set(0x1.ebfbdff9319d0p-3));
    p = fma(p, r, VD::set(0x1.62e42fef86160p-1));
    p = fma(p, r, VD::set(0x1.ffffffffff7a3p-1));
    const auto whole = to_int(to_single(n));
    const auto half = whole.template shift_right<1>();
    return to_single(p * to_double(power_of_two<V>(half)) *
                     to_double(power_of_two<V>(whole - half)));
}

template <class V>
QUOLL_INLINE V pow(V x, V y) {
    using VD = decltype(to_double(x));
    const V one = V::set(1.f), zero = V::zero(), inf = V::set(INFINITY);
    const V a = abs(x);
    // Lanes where the logarithm is not finite get 1 here and are decided below.
    const auto regular = (a > zero) & (a < inf) & (abs(y) < inf);
    const VD t = to_double(select(regular, y, zero)) * log2_double<VD>(select(regular, a, one));
    V r = exp2_double<V>(max(VD::set(-160.), min(VD::set(160.), t)));

    const auto y_integer = trunc(y) == y;
    const V half = y * V::set(.5f);
    const auto y_odd = y_integer & (trunc(half) != half) & (abs(y) < inf);
    // Zero or infinite base, infinite exponent.
    const auto large = a > one, up = y > zero;
    r = select(regular, r, select((large & up) | !(large | up), inf, zero));
    r = select((abs(y) == inf) & (a == one), one, r);
    r = select((x < zero) & regular & !y_integer, V::set(NAN), r);
    const auto negative = copysign(one, x) < zero;
    r = select(negative & y_odd, -r, r);
    r = select(is_nan(x) | is_nan(y), x + y, r);
    return select((y == zero) | (x == one), one, r);
}

// ---------------------------------------------------------------- what division leaves

// a - b q for whole q = nearest(a / b), exact; the sign of a where it is zero. Quotients up to 2^29
// are whole in double and times b still exact; `scalar` serves the lanes beyond.
template <class V, class Q, class F>
QUOLL_INLINE V division_rest(V a, V b, Q nearest, F scalar) {
    using VD = decltype(to_double(a));
    const VD da = to_double(a), db = to_double(b);
    const VD q = nearest(da / db);
    V y = to_single(da - q * db);
    const V inf = V::set(INFINITY), ax = abs(a);
    y = select((abs(b) == inf) & (ax < inf), a, y);
    y = select(y == V::zero(), copysign(V::zero(), a), y);
    const auto beyond = (ax < inf) & (ax > abs(b) * V::set(0x1p29f)) & (b != V::zero());
    if (!any(beyond)) return y;
    const V which = select(beyond, V::set(1.f), V::zero());
    float x[V::kSize], by[V::kSize], out[V::kSize], is_beyond[V::kSize];
    a.store(x), b.store(by), y.store(out), which.store(is_beyond);
    for (size_t i = 0; i < V::kSize; i++)
        if (is_beyond[i] != 0.f) out[i] = scalar(x[i], by[i]);
    return V::load(out);
}

template <class V>
QUOLL_INLINE V fmod(V a, V b) {
    return division_rest(
        a, b, [](auto q) QUOLL_INLINE_LAMBDA { return trunc(q); },
        [](float x, float y) { return ::fmodf(x, y); });
}

// a - b q with q the whole number nearest to a / b, the even one of two.
template <class V>
QUOLL_INLINE V remainder(V a, V b) {
    return division_rest(
        a, b, [](auto q) QUOLL_INLINE_LAMBDA { return round(q); },
        [](float x, float y) { return ::remainderf(x, y); });
}

}  // namespace
}  // namespace simd
}  // namespace quoll
