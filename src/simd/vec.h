// Portable vectors: vec<T, N> holds N lanes of T, for any power of two N.
//
// A vec wider than the machine's registers is two halves, so code written for 16 lanes is legal on
// every ISA. kLanes is the number of float lanes of one register. Kernel code uses only the names
// of this file; Google Highway (header only, static dispatch) sits behind them, or on RISC-V
// simd/vector_extensions.h.
//
// Contracts
// - load and store take any alignment; load_n and store_n touch exactly the first n lanes (n may
//   exceed N, meaning all) and load_n sets the others to zero.
// - max(a, b) and min(a, b) return b where b is NaN; a NaN in a alone gives either operand.
// - fma(a, b, c) = a * b + c and nfma(a, b, c) = c - a * b: rounded once where the ISA has a fused
//   multiply-add, twice elsewhere (sse4, scalar, neon without VFPv4).
// - round is to nearest, ties to even; to_int rounds the same way and is unspecified outside the
//   range of int32_t; trunc_int drops the fraction.
// Everything lies in an unnamed namespace: each ISA's object file must keep its own copy.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <type_traits>
#include <utility>

#if defined(HWY_COMPILE_ONLY_EMU128)
#include "simd/vector_extensions.h"
#else
#include "hwy/highway.h"
#endif

#define QUOLL_INLINE HWY_INLINE
#define QUOLL_RESTRICT HWY_RESTRICT

// The flags of cmake/isa.cmake and Highway's target must agree: if a flag is missing, Highway
// silently falls back to a lower target.
static_assert(HWY_TARGET == QUOLL_HWY_TARGET, "compiler flags do not select the ISA asked for");
static_assert(HWY_LANES(float) == QUOLL_ISA_LANES, "register width differs from cmake/isa.cmake");

namespace quoll {
namespace simd {
namespace {

#if !defined(HWY_COMPILE_ONLY_EMU128)
namespace hn = hwy::HWY_NAMESPACE;
#endif

constexpr size_t kLanes = HWY_LANES(float);

// True where loads and stores of a part of a register are one masked instruction.
// Not for less than 128 bits: Highway's masks are then set beyond the last lane too.
template <class T, size_t N>
constexpr bool has_masking() {
    return (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3) && sizeof(T) >= 4 &&
           N * sizeof(T) >= 16;
}

// True where fma rounds once.
#if defined(QUOLL_NO_ARM_FMA) && defined(__arm__)
constexpr bool kHasFma = false;
#else
constexpr bool kHasFma = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 ||
                         HWY_TARGET == HWY_NEON || HWY_TARGET == HWY_EMU128;
#endif
// True where vectors are divided and have square roots, rounded as they should be. 32-bit ARM lacks
// the instructions, and Highway's replacements are less exact.
constexpr bool kHasDivision = HWY_HAVE_FLOAT64 || HWY_TARGET != HWY_NEON;

template <class T>
constexpr size_t native_lanes() {
    return HWY_HAVE_FLOAT64 || !std::is_same<T, double>::value ? HWY_LANES(T) : 1;
}

template <class T, size_t N, bool native = (N <= native_lanes<T>())>
struct vec;
template <class T, size_t N, bool native = (N <= native_lanes<T>())>
struct mask;

QUOLL_INLINE constexpr size_t min_size(size_t a, size_t b) { return a < b ? a : b; }

// Calls f(integral_constant 0), ..., f(integral_constant N - 1). An array of vectors that is
// indexed only inside such calls stays in registers; in a `for` loop gcc 12 spills it. Write the
// lambda as
// [&](auto i) QUOLL_INLINE_LAMBDA { ... }.
#define QUOLL_INLINE_LAMBDA __attribute__((always_inline))
template <size_t... I, class F>
QUOLL_INLINE void unroll_sequence(std::index_sequence<I...>, [[maybe_unused]] F f) {
    (f(std::integral_constant<size_t, I>()), ...);
}
template <size_t N, class F>
QUOLL_INLINE void unroll(F f) {
    unroll_sequence(std::make_index_sequence<N>(), f);
}

// ---------------------------------------------------------------- masks

template <class T, size_t N>
struct mask<T, N, true> {
    hn::Mask<hn::FixedTag<T, N>> m;
    friend QUOLL_INLINE mask operator&(mask a, mask b) { return {hn::And(a.m, b.m)}; }
    friend QUOLL_INLINE mask operator|(mask a, mask b) { return {hn::Or(a.m, b.m)}; }
    friend QUOLL_INLINE mask operator!(mask a) { return {hn::Not(a.m)}; }
    friend QUOLL_INLINE bool any(mask a) { return !hn::AllFalse(hn::FixedTag<T, N>(), a.m); }
};

template <class T, size_t N>
struct mask<T, N, false> {
    mask<T, N / 2> lo, hi;
    friend QUOLL_INLINE mask operator&(mask a, mask b) { return {a.lo & b.lo, a.hi & b.hi}; }
    friend QUOLL_INLINE mask operator|(mask a, mask b) { return {a.lo | b.lo, a.hi | b.hi}; }
    friend QUOLL_INLINE mask operator!(mask a) { return {!a.lo, !a.hi}; }
    friend QUOLL_INLINE bool any(mask a) { return any(a.lo | a.hi); }
};

// ---------------------------------------------------------------- min and max of the contract
// above

#if HWY_TARGET == HWY_SCALAR
template <class R>
QUOLL_INLINE R min_of(R a, R b) {
    return a.raw < b.raw ? a : b;
}
template <class R>
QUOLL_INLINE R max_of(R a, R b) {
    return a.raw > b.raw ? a : b;
}
#else
template <class R>
QUOLL_INLINE R min_of(R a, R b) {
    return hn::Min(a, b);
}
template <class R>
QUOLL_INLINE R max_of(R a, R b) {
    return hn::Max(a, b);
}
#if HWY_TARGET == HWY_NEON  // Highway takes fminnm and fmaxnm, which drop NaN
template <size_t N>
QUOLL_INLINE hn::Vec128<float, N> min_of(hn::Vec128<float, N> a, hn::Vec128<float, N> b) {
    if constexpr (N == 4) {
        return hn::Vec128<float, N>(vminq_f32(a.raw, b.raw));
    } else {
        return hn::Vec128<float, N>(vmin_f32(a.raw, b.raw));
    }
}
template <size_t N>
QUOLL_INLINE hn::Vec128<float, N> max_of(hn::Vec128<float, N> a, hn::Vec128<float, N> b) {
    if constexpr (N == 4) {
        return hn::Vec128<float, N>(vmaxq_f32(a.raw, b.raw));
    } else {
        return hn::Vec128<float, N>(vmax_f32(a.raw, b.raw));
    }
}
#endif
#endif

// ---------------------------------------------------------------- fused multiply-adds

template <class R>
QUOLL_INLINE R fma_of(R a, R b, R c) {
    return hn::MulAdd(a, b, c);
}
template <class R>
QUOLL_INLINE R nfma_of(R a, R b, R c) {
    return hn::NegMulAdd(a, b, c);
}
// 32-bit ARM, where Highway rounds twice.
#if HWY_TARGET == HWY_NEON && !HWY_HAVE_FLOAT64 && !defined(QUOLL_NO_ARM_FMA)
template <size_t N>
QUOLL_INLINE hn::Vec128<float, N> fma_of(hn::Vec128<float, N> a, hn::Vec128<float, N> b,
                                         hn::Vec128<float, N> c) {
    if constexpr (N == 4) {
        return hn::Vec128<float, N>(vfmaq_f32(c.raw, a.raw, b.raw));
    } else {
        return hn::Vec128<float, N>(vfma_f32(c.raw, a.raw, b.raw));
    }
}
template <size_t N>
QUOLL_INLINE hn::Vec128<float, N> nfma_of(hn::Vec128<float, N> a, hn::Vec128<float, N> b,
                                          hn::Vec128<float, N> c) {
    if constexpr (N == 4) {
        return hn::Vec128<float, N>(vfmsq_f32(c.raw, a.raw, b.raw));
    } else {
        return hn::Vec128<float, N>(vfms_f32(c.raw, a.raw, b.raw));
    }
}
#endif

// ---------------------------------------------------------------- one register or part of one

#if HWY_TARGET == HWY_AVX2
// Stores the first n % N lanes, half by half: AVX2's masked stores take AMD's processors as long as
// a dozen others.
template <class T, size_t N>
QUOLL_INLINE void store_halves(hn::FixedTag<T, N>, hn::Vec<hn::FixedTag<T, N>> v, T* p, size_t n) {
    if constexpr (N > 1) {
        const hn::FixedTag<T, N / 2> half;
        auto part = hn::LowerHalf(half, v);
        if (n & N / 2) {
            hn::StoreU(part, half, p);
            p += N / 2;
            part = hn::UpperHalf(half, v);
        }
        store_halves<T, N / 2>(half, part, p, n);
    }
}
#endif

template <class T, size_t N>
struct vec<T, N, true> {
    using Tag = hn::FixedTag<T, N>;
    using Mask = mask<T, N>;
    static constexpr size_t kSize = N;
    hn::Vec<Tag> v;

    static QUOLL_INLINE vec load(const T* p) { return {hn::LoadU(Tag(), p)}; }
    static QUOLL_INLINE vec set(T x) { return {hn::Set(Tag(), x)}; }
    static QUOLL_INLINE vec zero() { return {hn::Zero(Tag())}; }
    // first, first + 1, first + 2, ...
    static QUOLL_INLINE vec iota(T first) { return {hn::Iota(Tag(), first)}; }
    QUOLL_INLINE void store(T* p) const { hn::StoreU(v, Tag(), p); }

    static QUOLL_INLINE vec load_n(const T* p, size_t n) {
        if (n >= N) return load(p);
        if constexpr (has_masking<T, N>()) {
            return {hn::MaskedLoad(hn::FirstN(Tag(), n), Tag(), p)};
        }
        alignas(64) T part[N] = {};
        for (size_t i = 0; i < n; i++) part[i] = p[i];
        return load(part);
    }
    QUOLL_INLINE void store_n(T* p, size_t n) const {
        if (n >= N) return store(p);
        if constexpr (has_masking<T, N>()) {
#if HWY_TARGET == HWY_AVX2
            return store_halves<T, N>(Tag(), v, p, n);
#endif
            return hn::BlendedStore(v, hn::FirstN(Tag(), n), Tag(), p);
        }
        alignas(64) T part[N];
        store(part);
        for (size_t i = 0; i < n; i++) p[i] = part[i];
    }

#define QUOLL_VEC_OP(op, fn) \
    friend QUOLL_INLINE vec operator op(vec a, vec b) { return {hn::fn(a.v, b.v)}; }
    QUOLL_VEC_OP(+, Add)
    QUOLL_VEC_OP(-, Sub)
    QUOLL_VEC_OP(*, Mul)
    QUOLL_VEC_OP(&, And)
    QUOLL_VEC_OP(|, Or)
    QUOLL_VEC_OP(^, Xor)
#undef QUOLL_VEC_OP
#define QUOLL_VEC_COMPARE(op, fn) \
    friend QUOLL_INLINE Mask operator op(vec a, vec b) { return {hn::fn(a.v, b.v)}; }
    QUOLL_VEC_COMPARE(<, Lt)
    QUOLL_VEC_COMPARE(>, Gt)
    QUOLL_VEC_COMPARE(==, Eq)
#undef QUOLL_VEC_COMPARE
    friend QUOLL_INLINE vec operator/(vec a, vec b) {
        if constexpr (kHasDivision) {
            return {hn::Div(a.v, b.v)};
        } else {
            return by_lanes(a, b, [](T x, T y) QUOLL_INLINE_LAMBDA { return x / y; });
        }
    }
    friend QUOLL_INLINE vec sqrt(vec a) {
        if constexpr (kHasDivision) {
            return {hn::Sqrt(a.v)};
        } else {
            return by_lanes(a, a, [](T x, T) QUOLL_INLINE_LAMBDA { return __builtin_sqrtf(x); });
        }
    }
    template <class F>
    static QUOLL_INLINE vec by_lanes(vec a, vec b, F f) {
        T x[N], y[N];
        a.store(x), b.store(y);
        for (size_t i = 0; i < N; i++) x[i] = f(x[i], y[i]);
        return load(x);
    }
    // SSE4 lacks these for integers.
    friend QUOLL_INLINE Mask operator<=(vec a, vec b) {
        if constexpr (std::is_integral<T>::value) {
            return !(a > b);
        } else {
            return {hn::Le(a.v, b.v)};
        }
    }
    friend QUOLL_INLINE Mask operator>=(vec a, vec b) {
        if constexpr (std::is_integral<T>::value) {
            return !(a < b);
        } else {
            return {hn::Ge(a.v, b.v)};
        }
    }
    // True where either is NaN, which Highway leaves open.
    friend QUOLL_INLINE Mask operator!=(vec a, vec b) { return !(a == b); }
    friend QUOLL_INLINE vec operator-(vec a) { return {hn::Neg(a.v)}; }

    friend QUOLL_INLINE vec fma(vec a, vec b, vec c) { return {fma_of(a.v, b.v, c.v)}; }
    friend QUOLL_INLINE vec nfma(vec a, vec b, vec c) { return {nfma_of(a.v, b.v, c.v)}; }
    friend QUOLL_INLINE vec select(Mask m, vec a, vec b) { return {hn::IfThenElse(m.m, a.v, b.v)}; }
    friend QUOLL_INLINE vec min(vec a, vec b) { return {min_of(a.v, b.v)}; }
    friend QUOLL_INLINE vec max(vec a, vec b) { return {max_of(a.v, b.v)}; }
    friend QUOLL_INLINE vec abs(vec a) { return {hn::Abs(a.v)}; }
    friend QUOLL_INLINE vec round(vec a) { return {hn::Round(a.v)}; }
    friend QUOLL_INLINE vec floor(vec a) { return {hn::Floor(a.v)}; }
    friend QUOLL_INLINE vec ceil(vec a) { return {hn::Ceil(a.v)}; }
    friend QUOLL_INLINE vec trunc(vec a) { return {hn::Trunc(a.v)}; }
    // Magnitude of a, sign of b.
    friend QUOLL_INLINE vec copysign(vec a, vec b) { return {hn::CopySign(a.v, b.v)}; }
    template <int k>
    QUOLL_INLINE vec shift_left() const {
        return {hn::ShiftLeft<k>(v)};
    }
    template <int k>
    QUOLL_INLINE vec shift_right() const {
        return {hn::ShiftRight<k>(v)};
    }

    friend QUOLL_INLINE T reduce_add(vec a) { return hn::GetLane(hn::SumOfLanes(Tag(), a.v)); }
    friend QUOLL_INLINE T reduce_max(vec a) { return hn::GetLane(hn::MaxOfLanes(Tag(), a.v)); }
    friend QUOLL_INLINE T reduce_min(vec a) { return hn::GetLane(hn::MinOfLanes(Tag(), a.v)); }
};

#if !HWY_HAVE_FLOAT64
}  // namespace
}  // namespace simd
}  // namespace quoll
#include "simd/scalar_double.h"
namespace quoll {
namespace simd {
namespace {
#endif

// ---------------------------------------------------------------- two halves

template <class T, size_t N>
struct vec<T, N, false> {
    using Half = vec<T, N / 2>;
    using Mask = mask<T, N>;
    static constexpr size_t kSize = N;
    static constexpr size_t kHalf = N / 2;
    Half lo, hi;

    static QUOLL_INLINE vec load(const T* p) { return {Half::load(p), Half::load(p + kHalf)}; }
    static QUOLL_INLINE vec set(T x) { return {Half::set(x), Half::set(x)}; }
    static QUOLL_INLINE vec zero() { return {Half::zero(), Half::zero()}; }
    static QUOLL_INLINE vec iota(T first) {
        return {Half::iota(first), Half::iota(static_cast<T>(first + static_cast<T>(kHalf)))};
    }
    QUOLL_INLINE void store(T* p) const {
        lo.store(p);
        hi.store(p + kHalf);
    }
    static QUOLL_INLINE vec load_n(const T* p, size_t n) {
        if (n <= kHalf) return {Half::load_n(p, n), Half::zero()};
        return {Half::load(p), Half::load_n(p + kHalf, n - kHalf)};
    }
    QUOLL_INLINE void store_n(T* p, size_t n) const {
        if (n <= kHalf) return lo.store_n(p, n);
        lo.store(p);
        hi.store_n(p + kHalf, n - kHalf);
    }

#define QUOLL_VEC_OP(op) \
    friend QUOLL_INLINE vec operator op(vec a, vec b) { return {a.lo op b.lo, a.hi op b.hi}; }
    QUOLL_VEC_OP(+)
    QUOLL_VEC_OP(-)
    QUOLL_VEC_OP(*)
    QUOLL_VEC_OP(/)
    QUOLL_VEC_OP(&)
    QUOLL_VEC_OP(|)
    QUOLL_VEC_OP(^)
#undef QUOLL_VEC_OP
#define QUOLL_VEC_COMPARE(op) \
    friend QUOLL_INLINE Mask operator op(vec a, vec b) { return {a.lo op b.lo, a.hi op b.hi}; }
    QUOLL_VEC_COMPARE(<)
    QUOLL_VEC_COMPARE(<=)
    QUOLL_VEC_COMPARE(>)
    QUOLL_VEC_COMPARE(>=)
    QUOLL_VEC_COMPARE(==)
    QUOLL_VEC_COMPARE(!=)
#undef QUOLL_VEC_COMPARE
    friend QUOLL_INLINE vec operator-(vec a) { return {-a.lo, -a.hi}; }

#define QUOLL_VEC_FN1(fn) \
    friend QUOLL_INLINE vec fn(vec a) { return {fn(a.lo), fn(a.hi)}; }
    QUOLL_VEC_FN1(abs)
    QUOLL_VEC_FN1(sqrt)
    QUOLL_VEC_FN1(round)
    QUOLL_VEC_FN1(floor)
    QUOLL_VEC_FN1(ceil)
    QUOLL_VEC_FN1(trunc)
#undef QUOLL_VEC_FN1
#define QUOLL_VEC_FN2(fn) \
    friend QUOLL_INLINE vec fn(vec a, vec b) { return {fn(a.lo, b.lo), fn(a.hi, b.hi)}; }
    QUOLL_VEC_FN2(min)
    QUOLL_VEC_FN2(max)
    QUOLL_VEC_FN2(copysign)
#undef QUOLL_VEC_FN2
    friend QUOLL_INLINE vec fma(vec a, vec b, vec c) {
        return {fma(a.lo, b.lo, c.lo), fma(a.hi, b.hi, c.hi)};
    }
    friend QUOLL_INLINE vec nfma(vec a, vec b, vec c) {
        return {nfma(a.lo, b.lo, c.lo), nfma(a.hi, b.hi, c.hi)};
    }
    friend QUOLL_INLINE vec select(Mask m, vec a, vec b) {
        return {select(m.lo, a.lo, b.lo), select(m.hi, a.hi, b.hi)};
    }
    template <int k>
    QUOLL_INLINE vec shift_left() const {
        return {lo.template shift_left<k>(), hi.template shift_left<k>()};
    }
    template <int k>
    QUOLL_INLINE vec shift_right() const {
        return {lo.template shift_right<k>(), hi.template shift_right<k>()};
    }
    friend QUOLL_INLINE T reduce_add(vec a) { return reduce_add(a.lo + a.hi); }
    friend QUOLL_INLINE T reduce_max(vec a) { return reduce_max(max(a.lo, a.hi)); }
    friend QUOLL_INLINE T reduce_min(vec a) { return reduce_min(min(a.lo, a.hi)); }
};

#if defined(QUOLL_FLOAT_PAIRS)
}  // namespace
}  // namespace simd
}  // namespace quoll
#include "simd/half_pairs.h"
namespace quoll {
namespace simd {
namespace {
#else
template <size_t N>
using vecf = vec<float, N>;
#endif
template <size_t N>
using veci = vec<int32_t, N>;

// ---------------------------------------------------------------- halves

#if HWY_TARGET != HWY_SCALAR  // there one lane has no halves
template <class T, size_t N>
QUOLL_INLINE vec<T, N / 2> lower(vec<T, N, true> a) {
    return {hn::LowerHalf(hn::FixedTag<T, N / 2>(), a.v)};
}
template <class T, size_t N>
QUOLL_INLINE vec<T, N / 2> upper(vec<T, N, true> a) {
    return {hn::UpperHalf(hn::FixedTag<T, N / 2>(), a.v)};
}
#endif
template <class T, size_t N>
QUOLL_INLINE vec<T, N / 2> lower(vec<T, N, false> a) {
    return a.lo;
}
template <class T, size_t N>
QUOLL_INLINE vec<T, N / 2> upper(vec<T, N, false> a) {
    return a.hi;
}
// The inverse of lower and upper.
template <class T, size_t H>
QUOLL_INLINE vec<T, 2 * H> combine(vec<T, H> lo, vec<T, H> hi) {
#if HWY_TARGET != HWY_SCALAR
    if constexpr (2 * H <= native_lanes<T>()) {
        return {hn::Combine(hn::FixedTag<T, 2 * H>(), hi.v, lo.v)};
    } else
#endif
    {
        return {lo, hi};
    }
}

// ---------------------------------------------------------------- transposition

#if HWY_TARGET != HWY_SCALAR
// Transposes each 4 x 4 block of 128 bits: lane j of block q of r[i] becomes lane i of block q of
// r[j].
template <size_t N>
QUOLL_INLINE void transpose_blocks(vec<float, N, true>* r) {
    const hn::FixedTag<float, N> tag;
    const auto a0 = hn::InterleaveLower(tag, r[0].v, r[1].v);
    const auto a1 = hn::InterleaveUpper(tag, r[0].v, r[1].v);
    const auto a2 = hn::InterleaveLower(tag, r[2].v, r[3].v);
    const auto a3 = hn::InterleaveUpper(tag, r[2].v, r[3].v);
#if HWY_HAVE_FLOAT64
    const hn::FixedTag<double, N / 2> pairs;
    const auto d0 = hn::BitCast(pairs, a0), d1 = hn::BitCast(pairs, a1);
    const auto d2 = hn::BitCast(pairs, a2), d3 = hn::BitCast(pairs, a3);
    r[0].v = hn::BitCast(tag, hn::InterleaveLower(pairs, d0, d2));
    r[1].v = hn::BitCast(tag, hn::InterleaveUpper(pairs, d0, d2));
    r[2].v = hn::BitCast(tag, hn::InterleaveLower(pairs, d1, d3));
    r[3].v = hn::BitCast(tag, hn::InterleaveUpper(pairs, d1, d3));
#else  // registers of one block
    r[0].v = hn::ConcatLowerLower(tag, a2, a0);
    r[1].v = hn::ConcatUpperUpper(tag, a2, a0);
    r[2].v = hn::ConcatLowerLower(tag, a3, a1);
    r[3].v = hn::ConcatUpperUpper(tag, a3, a1);
#endif
}
#endif

// r as an N x N matrix, row i in r[i], becomes its transpose. N is 1, 2, 4, 8 or 16.
template <size_t N>
QUOLL_INLINE void transpose(vecf<N> (&r)[N]) {
    if constexpr (N == 1) {
        return;
    } else if constexpr (N > kLanes || N == 2) {
        vecf<N / 2> a[N / 2], b[N / 2], c[N / 2], d[N / 2];  // a b over c d
        for (size_t i = 0; i < N / 2; i++) {
            a[i] = lower(r[i]);
            b[i] = upper(r[i]);
            c[i] = lower(r[N / 2 + i]);
            d[i] = upper(r[N / 2 + i]);
        }
        transpose(a);
        transpose(b);
        transpose(c);
        transpose(d);
        for (size_t i = 0; i < N / 2; i++) {
            r[i] = combine(a[i], c[i]);
            r[N / 2 + i] = combine(b[i], d[i]);
        }
    } else {
#if HWY_TARGET != HWY_SCALAR
        for (size_t i = 0; i < N; i += 4) transpose_blocks<N>(r + i);
#if HWY_TARGET == HWY_AVX3
        if constexpr (N == 16) {
            for (size_t i = 0; i < 4; i++) {
                const __m512 r0 = r[i].v.raw, r1 = r[i + 4].v.raw;
                const __m512 r2 = r[i + 8].v.raw, r3 = r[i + 12].v.raw;
                const __m512 t0 = _mm512_shuffle_f32x4(r0, r1, 0x44);
                const __m512 t1 = _mm512_shuffle_f32x4(r0, r1, 0xee);
                const __m512 t2 = _mm512_shuffle_f32x4(r2, r3, 0x44);
                const __m512 t3 = _mm512_shuffle_f32x4(r2, r3, 0xee);
                r[i].v.raw = _mm512_shuffle_f32x4(t0, t2, 0x88);
                r[i + 4].v.raw = _mm512_shuffle_f32x4(t0, t2, 0xdd);
                r[i + 8].v.raw = _mm512_shuffle_f32x4(t1, t3, 0x88);
                r[i + 12].v.raw = _mm512_shuffle_f32x4(t1, t3, 0xdd);
            }
        }
#endif
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
        if constexpr (N == 8) {
            for (size_t i = 0; i < 4; i++) {
                const auto lo = combine(lower(r[i]), lower(r[i + 4]));
                const auto hi = combine(upper(r[i]), upper(r[i + 4]));
                r[i] = lo;
                r[i + 4] = hi;
            }
        }
#endif
#endif
    }
}

// ---------------------------------------------------------------- between types

// The same bits as lanes of U, which has the size of T.
template <class U, class T, size_t N>
QUOLL_INLINE vec<U, N> bit_cast(vec<T, N, true> a) {
    static_assert(sizeof(U) == sizeof(T), "lane sizes differ");
    return {hn::BitCast(hn::FixedTag<U, N>(), a.v)};
}
template <class U, class T, size_t N>
QUOLL_INLINE vec<U, N> bit_cast(vec<T, N, false> a) {
    return {bit_cast<U>(a.lo), bit_cast<U>(a.hi)};
}

template <size_t N>
QUOLL_INLINE veci<N> to_int(vec<float, N, true> a) {
    return {hn::NearestInt(a.v)};
}
template <size_t N>
QUOLL_INLINE veci<N> to_int(vec<float, N, false> a) {
    return {to_int(a.lo), to_int(a.hi)};
}
// to_int of numbers far inside the range of int32_t: the conversion alone, without what Highway
// does for larger ones.
template <size_t N>
QUOLL_INLINE veci<N> small_int(vec<float, N, true> a) {
#if HWY_TARGET == HWY_AVX2
    if constexpr (N == 8) return {hn::Vec256<int32_t>{_mm256_cvtps_epi32(a.v.raw)}};
#endif
    return to_int(a);
}
template <size_t N>
QUOLL_INLINE veci<N> small_int(vec<float, N, false> a) {
    return {small_int(a.lo), small_int(a.hi)};
}
template <size_t N>
QUOLL_INLINE veci<N> trunc_int(vec<float, N, true> a) {
    return {hn::ConvertTo(hn::FixedTag<int32_t, N>(), a.v)};
}
template <size_t N>
QUOLL_INLINE veci<N> trunc_int(vec<float, N, false> a) {
    return {trunc_int(a.lo), trunc_int(a.hi)};
}
template <size_t N>
QUOLL_INLINE vecf<N> to_float(vec<int32_t, N, true> a) {
    return {hn::ConvertTo(hn::FixedTag<float, N>(), a.v)};
}
template <size_t N>
QUOLL_INLINE vecf<N> to_float(vec<int32_t, N, false> a) {
    return {to_float(a.lo), to_float(a.hi)};
}

template <size_t N>
QUOLL_INLINE vec<double, N> to_double(vecf<N> a) {
    if constexpr (N <= native_lanes<double>()) {
#if HWY_HAVE_FLOAT64
        return {hn::PromoteTo(hn::FixedTag<double, N>(), a.v)};
#else
        return {(double)hn::GetLane(a.v)};
#endif
    } else {
        return {to_double(lower(a)), to_double(upper(a))};
    }
}
template <size_t N>
QUOLL_INLINE vecf<N> to_single(vec<double, N> a) {
    if constexpr (N <= native_lanes<double>()) {
#if HWY_TARGET == HWY_SCALAR  // whose DemoteTo saturates
        return vecf<N>::set(static_cast<float>(a.v.raw));
#elif !HWY_HAVE_FLOAT64
        return vecf<N>::set((float)a.v);
#else
        return {hn::DemoteTo(hn::FixedTag<float, N>(), a.v)};
#endif
    } else {
        return combine(to_single(a.lo), to_single(a.hi));
    }
}

// base[i] for each lane i of the index.
template <size_t N>
QUOLL_INLINE vecf<N> gather(const float* base, vec<int32_t, N, true> index) {
    return {hn::GatherIndex(hn::FixedTag<float, N>(), base, index.v)};
}
template <size_t N>
QUOLL_INLINE vecf<N> gather(const float* base, vec<int32_t, N, false> index) {
    return {gather(base, index.lo), gather(base, index.hi)};
}

// A mask for lanes of U from one for lanes of T, which has the same size.
template <class U, class T, size_t N>
QUOLL_INLINE mask<U, N> mask_cast(mask<T, N, true> a) {
    static_assert(sizeof(U) == sizeof(T), "lane sizes differ");
    return {hn::RebindMask(hn::FixedTag<U, N>(), a.m)};
}
template <class U, class T, size_t N>
QUOLL_INLINE mask<U, N> mask_cast(mask<T, N, false> a) {
    return {mask_cast<U>(a.lo), mask_cast<U>(a.hi)};
}

template <class V>
QUOLL_INLINE typename V::Mask is_nan(V a) {
    return a != a;
}

}  // namespace
}  // namespace simd
}  // namespace quoll
