// The functions of Google Highway that simd/*.h use, on the vector types of clang, for
// processors whose vectors Highway lacks or has no sizes for. The compiler picks the instructions.
// Included by vec.h where the flags of cmake/isa.cmake define HWY_COMPILE_ONLY_EMU128.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <type_traits>
#include <utility>

#include "hwy/base.h"
#include "hwy/detect_targets.h"

#define HWY_LANES(T) (16 / sizeof(T))
#define HWY_HAVE_FLOAT64 1

namespace quoll {
namespace simd {
namespace {
namespace hn {

template <class T, size_t N>
struct FixedTag {};

template <class T, size_t N>
struct Vec128 {
    typedef T Raw __attribute__((vector_size(N * sizeof(T))));
    // As it lies in memory: aligned as a single lane.
    typedef T Stored __attribute__((vector_size(N * sizeof(T)), aligned(alignof(T)), may_alias));
    // Whole numbers wrap around, which signed ones do not by the rules of the language.
    using Wrapping =
        typename std::conditional<std::is_integral<T>::value, hwy::MakeUnsigned<T>, T>::type;
    typedef Wrapping Arithmetic __attribute__((vector_size(N * sizeof(T))));
    typedef hwy::MakeSigned<T> Bits __attribute__((vector_size(N * sizeof(T))));
    Raw raw;
};

// All bits of a lane, or none.
template <class T, size_t N>
struct Mask128 {
    typename Vec128<T, N>::Bits raw;
};

template <class Tag>
struct OfTag;
template <class T, size_t N>
struct OfTag<FixedTag<T, N>> {
    using V = Vec128<T, N>;
    using M = Mask128<T, N>;
};
template <class Tag>
using Vec = typename OfTag<Tag>::V;
template <class Tag>
using Mask = typename OfTag<Tag>::M;

// ---------------------------------------------------------------- memory, constants

template <class T, size_t N>
HWY_INLINE Vec128<T, N> LoadU(FixedTag<T, N>, const T* p) {
    return {*reinterpret_cast<const typename Vec128<T, N>::Stored*>(p)};
}
template <class T, size_t N>
HWY_INLINE void StoreU(Vec128<T, N> a, FixedTag<T, N>, T* p) {
    *reinterpret_cast<typename Vec128<T, N>::Stored*>(p) = a.raw;
}
// Declared alone: vec.h calls them only where its has_masking() is true.
template <class T, size_t N>
Mask128<T, N> FirstN(FixedTag<T, N>, size_t n);
template <class T, size_t N>
Vec128<T, N> MaskedLoad(Mask128<T, N>, FixedTag<T, N>, const T* p);
template <class T, size_t N>
void BlendedStore(Vec128<T, N>, Mask128<T, N>, FixedTag<T, N>, T* p);
template <class T, size_t N>
HWY_INLINE Vec128<T, N> Zero(FixedTag<T, N>) {
    return {typename Vec128<T, N>::Raw{}};
}
template <size_t... I, class T, size_t N>
HWY_INLINE Vec128<T, N> Count(std::index_sequence<I...>, FixedTag<T, N>) {
    return {typename Vec128<T, N>::Raw{static_cast<T>(I)...}};
}
template <class T, size_t N>
HWY_INLINE Vec128<T, N> Set(FixedTag<T, N>, T x) {
    return {x - typename Vec128<T, N>::Raw{}};
}
template <class T, size_t N>
HWY_INLINE T GetLane(Vec128<T, N> a) {
    return a.raw[0];
}
template <class U, size_t M, class T, size_t N>
HWY_INLINE Vec128<U, M> BitCast(FixedTag<U, M>, Vec128<T, N> a) {
    return {(typename Vec128<U, M>::Raw)a.raw};
}

// ---------------------------------------------------------------- arithmetic, bits

#define QUOLL_VECTOR_OPERATION(name, type, op)                                          \
    template <class T, size_t N>                                                        \
    HWY_INLINE Vec128<T, N> name(Vec128<T, N> a, Vec128<T, N> b) {                      \
        using V = Vec128<T, N>;                                                         \
        return {(typename V::Raw)((typename V::type)a.raw op(typename V::type) b.raw)}; \
    }
QUOLL_VECTOR_OPERATION(Add, Arithmetic, +)
QUOLL_VECTOR_OPERATION(Sub, Arithmetic, -)
QUOLL_VECTOR_OPERATION(Mul, Arithmetic, *)
QUOLL_VECTOR_OPERATION(Div, Raw, /)
QUOLL_VECTOR_OPERATION(And, Bits, &)
QUOLL_VECTOR_OPERATION(Or, Bits, |)
QUOLL_VECTOR_OPERATION(Xor, Bits, ^)
#undef QUOLL_VECTOR_OPERATION
template <class T, size_t N>
HWY_INLINE Vec128<T, N> Neg(Vec128<T, N> a) {
    return {(typename Vec128<T, N>::Raw)(-(typename Vec128<T, N>::Arithmetic)a.raw)};
}
template <int k, class T, size_t N>
HWY_INLINE Vec128<T, N> ShiftLeft(Vec128<T, N> a) {
    return {(typename Vec128<T, N>::Raw)((typename Vec128<T, N>::Arithmetic)a.raw << k)};
}
template <int k, class T, size_t N>
HWY_INLINE Vec128<T, N> ShiftRight(Vec128<T, N> a) {
    return {a.raw >> k};
}
template <class T, size_t N>
HWY_INLINE Vec128<T, N> Iota(FixedTag<T, N> tag, T first) {
    return Add(Set(tag, first), Count(std::make_index_sequence<N>(), tag));
}

// The pragma makes one operation of the product and the sum before anything can part them.
template <class T, size_t N>
HWY_INLINE Vec128<T, N> MulAdd(Vec128<T, N> a, Vec128<T, N> b, Vec128<T, N> c) {
#pragma clang fp contract(on)
    return {a.raw * b.raw + c.raw};
}
template <class T, size_t N>
HWY_INLINE Vec128<T, N> NegMulAdd(Vec128<T, N> a, Vec128<T, N> b, Vec128<T, N> c) {
#pragma clang fp contract(on)
    return {c.raw - a.raw * b.raw};
}

template <class T, size_t N>
HWY_INLINE Vec128<T, N> Sqrt(Vec128<T, N> a) {
    for (size_t i = 0; i < N; i++)
        a.raw[i] =
            sizeof(T) == 4 ? (T)__builtin_sqrtf((float)a.raw[i]) : (T)__builtin_sqrt(a.raw[i]);
    return a;
}

// ---------------------------------------------------------------- comparisons, choices

#define QUOLL_VECTOR_COMPARISON(name, op)                           \
    template <class T, size_t N>                                    \
    HWY_INLINE Mask128<T, N> name(Vec128<T, N> a, Vec128<T, N> b) { \
        return {(typename Vec128<T, N>::Bits)(a.raw op b.raw)};     \
    }
QUOLL_VECTOR_COMPARISON(Lt, <)
QUOLL_VECTOR_COMPARISON(Le, <=)
QUOLL_VECTOR_COMPARISON(Gt, >)
QUOLL_VECTOR_COMPARISON(Ge, >=)
QUOLL_VECTOR_COMPARISON(Eq, ==)
#undef QUOLL_VECTOR_COMPARISON
template <class T, size_t N>
HWY_INLINE Mask128<T, N> And(Mask128<T, N> a, Mask128<T, N> b) {
    return {a.raw & b.raw};
}
template <class T, size_t N>
HWY_INLINE Mask128<T, N> Or(Mask128<T, N> a, Mask128<T, N> b) {
    return {a.raw | b.raw};
}
template <class T, size_t N>
HWY_INLINE Mask128<T, N> Not(Mask128<T, N> a) {
    return {~a.raw};
}
template <class U, class T, size_t N>
HWY_INLINE Mask128<U, N> RebindMask(FixedTag<U, N>, Mask128<T, N> a) {
    return {a.raw};
}
template <class T, size_t N>
HWY_INLINE bool AllFalse(FixedTag<T, N>, Mask128<T, N> a) {
    return __builtin_reduce_or(a.raw) == 0;
}
template <class T, size_t N>
HWY_INLINE Vec128<T, N> IfThenElse(Mask128<T, N> m, Vec128<T, N> a, Vec128<T, N> b) {
    return {m.raw ? a.raw : b.raw};
}
template <class T, size_t N>
HWY_INLINE Vec128<T, N> Min(Vec128<T, N> a, Vec128<T, N> b) {
    return IfThenElse(Lt(a, b), a, b);
}
template <class T, size_t N>
HWY_INLINE Vec128<T, N> Max(Vec128<T, N> a, Vec128<T, N> b) {
    return IfThenElse(Gt(a, b), a, b);
}
template <class T, size_t N>
HWY_INLINE Vec128<T, N> CopySign(Vec128<T, N> a, Vec128<T, N> b) {
    const Vec128<T, N> sign = Set(FixedTag<T, N>(), static_cast<T>(-0.));
    return {(typename Vec128<T, N>::Raw)(
        ((typename Vec128<T, N>::Bits)a.raw & ~(typename Vec128<T, N>::Bits)sign.raw) |
        ((typename Vec128<T, N>::Bits)b.raw & (typename Vec128<T, N>::Bits)sign.raw))};
}
template <class T, size_t N>
HWY_INLINE Vec128<T, N> Abs(Vec128<T, N> a) {
    if constexpr (std::is_integral<T>::value) {
        return Max(a, Neg(a));
    } else {
        return CopySign(a, Zero(FixedTag<T, N>()));
    }
}

// ---------------------------------------------------------------- rounding

// Beyond `whole` every number is a whole one, and a sum of that size is rounded to one.
template <class T, size_t N>
HWY_INLINE Vec128<T, N> Round(Vec128<T, N> a) {
    const FixedTag<T, N> tag;
    const Vec128<T, N> whole = Set(tag, static_cast<T>(sizeof(T) == 4 ? 0x1p23 : 0x1p52));
    const Vec128<T, N> size = Abs(a);
    const Vec128<T, N> rounded = CopySign(Sub(Add(size, whole), whole), a);
    return IfThenElse(Lt(size, whole), rounded, a);
}
template <class T, size_t N>
HWY_INLINE Vec128<T, N> Floor(Vec128<T, N> a) {
    const FixedTag<T, N> tag;
    const Vec128<T, N> r = Round(a);
    return CopySign(IfThenElse(Gt(r, a), Sub(r, Set(tag, T(1))), r), a);
}
template <class T, size_t N>
HWY_INLINE Vec128<T, N> Ceil(Vec128<T, N> a) {
    return Neg(Floor(Neg(a)));
}
template <class T, size_t N>
HWY_INLINE Vec128<T, N> Trunc(Vec128<T, N> a) {
    return CopySign(Floor(Abs(a)), a);
}

// ---------------------------------------------------------------- between types

template <class To, class From, size_t N>
HWY_INLINE Vec128<To, N> Convert(Vec128<From, N> a) {
    return {__builtin_convertvector(a.raw, typename Vec128<To, N>::Raw)};
}
template <class To, class From, size_t N>
HWY_INLINE Vec128<To, N> ConvertTo(FixedTag<To, N>, Vec128<From, N> a) {
    return Convert<To>(a);
}
template <class To, class From, size_t N>
HWY_INLINE Vec128<To, N> PromoteTo(FixedTag<To, N>, Vec128<From, N> a) {
    return Convert<To>(a);
}
template <class To, class From, size_t N>
HWY_INLINE Vec128<To, N> DemoteTo(FixedTag<To, N>, Vec128<From, N> a) {
    if constexpr (std::is_integral<To>::value) {
        const FixedTag<From, N> tag;
        a = Min(Set(tag, static_cast<From>(hwy::LimitsMax<To>())), a);
        a = Max(Set(tag, static_cast<From>(hwy::LimitsMin<To>())), a);
    }
    return Convert<To>(a);
}
template <size_t N>
HWY_INLINE Vec128<int32_t, N> NearestInt(Vec128<float, N> a) {
    return Convert<int32_t>(Round(a));
}

// ---------------------------------------------------------------- lanes in another order

// Lane i is lane first + step * (i % period) + i / period of a and b, one behind the other.
template <int first, int step, int period, size_t... I, class T, size_t N>
HWY_INLINE auto Shuffle(std::index_sequence<I...>, Vec128<T, N> a, Vec128<T, N> b) {
    return Vec128<T, sizeof...(I)>{__builtin_shufflevector(
        a.raw, b.raw, (first + step * ((int)I % period) + (int)I / period)...)};
}
template <class T, size_t H>
HWY_INLINE Vec128<T, H> LowerHalf(FixedTag<T, H>, Vec128<T, 2 * H> a) {
    return Shuffle<0, 1, (int)H>(std::make_index_sequence<H>(), a, a);
}
template <class T, size_t H>
HWY_INLINE Vec128<T, H> UpperHalf(FixedTag<T, H>, Vec128<T, 2 * H> a) {
    return Shuffle<(int)H, 1, (int)H>(std::make_index_sequence<H>(), a, a);
}
template <class T, size_t N>
HWY_INLINE Vec128<T, N> Combine(FixedTag<T, N>, Vec128<T, N / 2> hi, Vec128<T, N / 2> lo) {
    return Shuffle<0, 1, (int)N>(std::make_index_sequence<N>(), lo, hi);
}
template <class T, size_t N>
HWY_INLINE Vec128<T, N> ConcatEven(FixedTag<T, N>, Vec128<T, N> hi, Vec128<T, N> lo) {
    return Shuffle<0, 2, (int)N>(std::make_index_sequence<N>(), lo, hi);
}
template <class T, size_t N>
HWY_INLINE Vec128<T, N> ConcatOdd(FixedTag<T, N>, Vec128<T, N> hi, Vec128<T, N> lo) {
    return Shuffle<1, 2, (int)N>(std::make_index_sequence<N>(), lo, hi);
}
template <class T, size_t N>
HWY_INLINE Vec128<T, N> InterleaveLower(FixedTag<T, N>, Vec128<T, N> a, Vec128<T, N> b) {
    return Shuffle<0, (int)N, 2>(std::make_index_sequence<N>(), a, b);
}
template <class T, size_t N>
HWY_INLINE Vec128<T, N> InterleaveUpper(FixedTag<T, N>, Vec128<T, N> a, Vec128<T, N> b) {
    return Shuffle<(int)(N / 2), (int)N, 2>(std::make_index_sequence<N>(), a, b);
}

#define QUOLL_VECTOR_REDUCTION(name, fn)                                                      \
    template <class T, size_t N>                                                              \
    HWY_INLINE Vec128<T, N> name(FixedTag<T, N> tag, Vec128<T, N> a) {                        \
        if constexpr (N == 1) {                                                               \
            return a;                                                                         \
        } else {                                                                              \
            const FixedTag<T, N / 2> half;                                                    \
            return Set(tag, GetLane(name(half, fn(LowerHalf(half, a), UpperHalf(half, a))))); \
        }                                                                                     \
    }
QUOLL_VECTOR_REDUCTION(SumOfLanes, Add)
QUOLL_VECTOR_REDUCTION(MaxOfLanes, Max)
QUOLL_VECTOR_REDUCTION(MinOfLanes, Min)
#undef QUOLL_VECTOR_REDUCTION

template <size_t N>
HWY_INLINE Vec128<float, N> GatherIndex(FixedTag<float, N> tag, const float* base,
                                        Vec128<int32_t, N> index) {
    float lanes[N];
    for (size_t i = 0; i < N; i++) lanes[i] = base[index.raw[i]];
    return LoadU(tag, lanes);
}
template <size_t N>
HWY_INLINE Vec128<int32_t, N> SetTableIndices(FixedTag<float, N>, const int32_t* indexes) {
    return LoadU(FixedTag<int32_t, N>(), indexes);
}
template <size_t N>
HWY_INLINE Vec128<float, N> TableLookupLanes(Vec128<float, N> a, Vec128<int32_t, N> table) {
    const FixedTag<float, N> tag;
    float lanes[N];
    StoreU(a, tag, lanes);
    return GatherIndex(tag, lanes, table);
}
template <size_t N>
HWY_INLINE Vec128<uint8_t, N> TableLookupBytesOr0(Vec128<uint8_t, N> a, Vec128<uint8_t, N> from) {
    static_assert(N == 16, "one register");
    const FixedTag<uint8_t, N> tag;
    uint8_t bytes[N], out[N];
    StoreU(a, tag, bytes);
    for (size_t i = 0; i < N; i++) out[i] = from.raw[i] & 0x80 ? 0 : bytes[from.raw[i] & 15];
    return LoadU(tag, out);
}

}  // namespace hn
}  // namespace
}  // namespace simd
}  // namespace quoll
