// Vectors of 16 f32 values from blobs of any elempack, for the kernels on AMX.
#ifndef QUOLL_LAYER_X86_CHANNEL_VECTORS_H
#define QUOLL_LAYER_X86_CHANNEL_VECTORS_H

#include "layer/x86/tile_unit.h"

namespace quoll {
namespace {

// The first `count` lanes of 16.
QUOLL_TILE_INLINE __mmask16 first_lanes(size_t count) {
    return count >= 16 ? 0xffff : (__mmask16)((1u << count) - 1);
}

// 16 channels of one pixel from channel c on, zeros from `left` channels on. Loads nothing beyond
// them.
template <int pack>
QUOLL_TILE_INLINE __m512 load_channels(const float* pixel, ptrdiff_t block, int c, int left) {
    const __mmask16 mask = left >= 16 ? 0xffff : left <= 0 ? 0 : (__mmask16)((1u << left) - 1);
    if constexpr (pack == 16) {
        return _mm512_maskz_loadu_ps(mask, mask ? pixel + c / 16 * block : pixel);
    } else if constexpr (pack == 1) {
        const __m512i lane =
            _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        const __m512i index = _mm512_mullo_epi32(lane, _mm512_set1_epi32((int)block));
        return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, index,
                                        mask ? pixel + c * block : pixel, 4);
    } else {
        const auto part = [&](int i) { return pixel + (c + i) / pack * block; };
        if constexpr (pack == 8) {
            const __m256 low = left > 0 ? _mm256_loadu_ps(part(0)) : _mm256_setzero_ps();
            const __m256 high = left > 8 ? _mm256_loadu_ps(part(8)) : _mm256_setzero_ps();
            return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
        } else {
            const auto four = [&](int i) {
                return left > i ? _mm_loadu_ps(part(i)) : _mm_setzero_ps();
            };
            __m512 x = _mm512_castps128_ps512(four(0));
            x = _mm512_insertf32x4(x, four(4), 1);
            x = _mm512_insertf32x4(x, four(8), 2);
            return _mm512_insertf32x4(x, four(12), 3);
        }
    }
}

// Rows become columns: in each step the halves of neighbouring groups of `distance` are exchanged.
QUOLL_TILE_INLINE void transpose(__m512* rows) {
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (int distance = 8; distance; distance /= 2) {
        const __m512i d = _mm512_set1_epi32(distance), sixteen = _mm512_set1_epi32(16);
        const __mmask16 upper = _mm512_test_epi32_mask(lane, d);
        const __m512i first =
            _mm512_mask_add_epi32(lane, upper, _mm512_sub_epi32(lane, d), sixteen);
        const __m512i second =
            _mm512_mask_add_epi32(_mm512_add_epi32(lane, d), upper, lane, sixteen);
        for (int i = 0; i < 16; i++) {
            if (i & distance) continue;
            const __m512 a = rows[i], b = rows[i + distance];
            rows[i] = _mm512_permutex2var_ps(a, first, b);
            rows[i + distance] = _mm512_permutex2var_ps(a, second, b);
        }
    }
}

}  // namespace
}  // namespace quoll

#endif
