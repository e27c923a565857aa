// Transposing squares of 16 rows of 16 bytes, and storing their blocks separately.
#pragma once

#include "simd/vec.h"

namespace quoll {
namespace simd {
namespace {

#if HWY_TARGET == HWY_AVX3
constexpr bool kHasByteSquares = true;
constexpr size_t kSquare = 16;

using Sixteen = __m128i;  // bytes
QUOLL_INLINE Sixteen set_sixteen(int byte) { return _mm_set1_epi8((char)byte); }
QUOLL_INLINE Sixteen exclusive_or(Sixteen a, Sixteen b) { return _mm_xor_si128(a, b); }
QUOLL_INLINE Sixteen load_sixteen(const void* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
QUOLL_INLINE void store_sixteen(Sixteen x, void* p) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), x);
}

// row(m): the m-th; column(n, x): takes the n-th. n is a std::integral_constant.
template <class Row, class Column>
QUOLL_INLINE void turn_square(Row row, Column column) {
    const __m512i words = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i bytes =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    // Of four rows: in block i, word j column 4 i + j.
    const auto four_rows = [&](int m) QUOLL_INLINE_LAMBDA {
        __m512i x = _mm512_castsi128_si512(row(m));
        x = _mm512_inserti32x4(x, row(m + 1), 1);
        x = _mm512_inserti32x4(x, row(m + 2), 2);
        x = _mm512_inserti32x4(x, row(m + 3), 3);
        return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(words, x), bytes);
    };
    const __m512i a = four_rows(0), b = four_rows(4), c = four_rows(8), d = four_rows(12);
    const __m512i ab[2] = {_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b)};
    const __m512i cd[2] = {_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d)};
    const auto columns = [&](auto j) QUOLL_INLINE_LAMBDA {
        constexpr size_t half = j() / 2;
        const __m512i x = j() % 2 ? _mm512_unpackhi_epi64(ab[half], cd[half])
                                  : _mm512_unpacklo_epi64(ab[half], cd[half]);
        unroll<4>([&](auto i) QUOLL_INLINE_LAMBDA {
            constexpr int block = (int)i();
            column(std::integral_constant<size_t, 4 * i() + j()>(),
                   _mm512_extracti32x4_epi32(x, block));
        });
    };
    unroll<4>(columns);
}

// The first `words` words of a register, 1 to 4.
QUOLL_INLINE void store_first_words(Sixteen x, size_t words, uint8_t* p) {
    if (words == 4) return store_sixteen(x, p);
    if (words > 1) _mm_storel_epi64(reinterpret_cast<__m128i*>(p), x);
    const int word = words == 1 ? _mm_cvtsi128_si32(x) : _mm_extract_epi32(x, 2);
    if (words != 2) memcpy(p + (words == 1 ? 0 : 8), &word, 4);
}

// The blocks of four rows at `from` of 8 or 4 bytes, those of a block one after another at c +
// columns[its first byte], as many as begin before `count`.
template <int block>
QUOLL_INLINE void store_blocks(const int8_t* from, int8_t* c, const ptrdiff_t* columns,
                               size_t count) {
    static_assert(block == 8 || block == 4);
    const __m512i rows = _mm512_loadu_si512(from);
    if constexpr (block == 8) {
        const __m512i x = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), rows);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(c + columns[0]), _mm512_castsi512_si256(x));
        if (count > 8)
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(c + columns[8]),
                                _mm512_extracti64x4_epi64(x, 1));
    } else {
        const __m512i words =
            _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        const __m512i x = _mm512_permutexvar_epi32(words, rows);
        unroll<4>([&](auto i) QUOLL_INLINE_LAMBDA {
            constexpr int part = (int)i();
            if (4 * i() < count)
                store_sixteen(_mm512_extracti32x4_epi32(x, part), c + columns[4 * i()]);
        });
    }
}
#else
constexpr bool kHasByteSquares = false;
#endif

}  // namespace
}  // namespace simd
}  // namespace quoll
