// The functions of the binary family, on vectors of any width, and the loops over arrays.
#pragma once

#include "layer/cpu/binary/binary.h"
#include "simd/math.h"

namespace quoll {
namespace {

namespace s = simd;

#define QUOLL_BINARY_FUNCTOR(name, expression)  \
    struct name {                               \
        template <class V>                      \
        static QUOLL_INLINE V apply(V a, V b) { \
            return expression;                  \
        }                                       \
    };
QUOLL_BINARY_FUNCTOR(Add, a + b)
QUOLL_BINARY_FUNCTOR(Sub, a - b)
QUOLL_BINARY_FUNCTOR(Mul, a* b)
QUOLL_BINARY_FUNCTOR(Div, a / b)
QUOLL_BINARY_FUNCTOR(Max, s::maximum(a, b))
QUOLL_BINARY_FUNCTOR(Min, s::minimum(a, b))
QUOLL_BINARY_FUNCTOR(Pow, s::pow(a, b))
QUOLL_BINARY_FUNCTOR(Atan2, s::atan2(a, b))
QUOLL_BINARY_FUNCTOR(FloorDivide, floor(a / b))
QUOLL_BINARY_FUNCTOR(Fmod, s::fmod(a, b))
QUOLL_BINARY_FUNCTOR(Remainder, s::remainder(a, b))
// Equal operands may be infinite, whose difference is NaN.
QUOLL_BINARY_FUNCTOR(Logaddexp, max(a, b) + select(a == b, V::set(0x1.62e43p-1f),
                                                   s::log1p(s::exp(-abs(a - b)))))
QUOLL_BINARY_FUNCTOR(AddRelu, select(a + b < V::zero(), V::zero(), a + b))
#undef QUOLL_BINARY_FUNCTOR

template <class F>
void binary_vectors(const float* a, const float* b, float* out, size_t n) {
    using V = s::vecf<s::kLanes>;
    size_t i = 0;
    // Two registers per turn, to overlap the latency of long functions.
    for (; i + 2 * s::kLanes <= n; i += 2 * s::kLanes) {
        const V a0 = V::load(a + i), a1 = V::load(a + i + s::kLanes);
        const V b0 = V::load(b + i), b1 = V::load(b + i + s::kLanes);
        F::apply(a0, b0).store(out + i);
        F::apply(a1, b1).store(out + i + s::kLanes);
    }
    for (; i < n; i += s::kLanes)
        F::apply(V::load_n(a + i, n - i), V::load_n(b + i, n - i)).store_n(out + i, n - i);
}

// Register by register, not on a vector of the whole pattern: that would instantiate every function
// of the family once per register of the pattern, which is 16 times at the scalar level.
static_assert(kPatternSize % s::kLanes == 0, "a pattern is whole registers");

template <class F>
void binary_vector_pattern(const float* a, const float* b, float* out, size_t n) {
    using V = s::vecf<s::kLanes>;
    size_t i = 0;
    for (; i + kPatternSize <= n; i += kPatternSize)
        for (size_t j = 0; j < kPatternSize; j += s::kLanes)
            F::apply(V::load(a + i + j), V::load(b + j)).store(out + i + j);
    for (size_t j = 0; i < n; i += s::kLanes, j += s::kLanes)
        F::apply(V::load_n(a + i, n - i), V::load(b + j)).store_n(out + i, n - i);
}

template <class F>
void binary_pattern_vector(const float* a, const float* b, float* out, size_t n) {
    using V = s::vecf<s::kLanes>;
    size_t i = 0;
    for (; i + kPatternSize <= n; i += kPatternSize)
        for (size_t j = 0; j < kPatternSize; j += s::kLanes)
            F::apply(V::load(a + j), V::load(b + i + j)).store(out + i + j);
    for (size_t j = 0; i < n; i += s::kLanes, j += s::kLanes)
        F::apply(V::load(a + j), V::load_n(b + i, n - i)).store_n(out + i, n - i);
}

}  // namespace
}  // namespace quoll
