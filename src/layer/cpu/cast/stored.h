// The storage types as parameters of kernels: vectors of floats from and to memory.
#pragma once

#include "simd/convert.h"

namespace quoll {
namespace {

#define QUOLL_STORED(name, type)                                                   \
    struct name {                                                                  \
        template <size_t N>                                                        \
        static QUOLL_INLINE simd::vecf<N> load(const uint16_t* p) {                \
            return simd::load_##type<N>(p);                                        \
        }                                                                          \
        template <size_t N>                                                        \
        static QUOLL_INLINE simd::vecf<N> load_n(const uint16_t* p, size_t n) {    \
            return simd::load_##type##_n<N>(p, n);                                 \
        }                                                                          \
        template <size_t N>                                                        \
        static QUOLL_INLINE void store(simd::vecf<N> x, uint16_t* p) {             \
            simd::store_##type(x, p);                                              \
        }                                                                          \
        template <size_t N>                                                        \
        static QUOLL_INLINE void store_n(simd::vecf<N> x, uint16_t* p, size_t n) { \
            simd::store_##type##_n(x, p, n);                                       \
        }                                                                          \
    };
QUOLL_STORED(StoredF16, f16)
QUOLL_STORED(StoredBf16, bf16)
#undef QUOLL_STORED

}  // namespace
}  // namespace quoll
