// Laying out A and B of split_gemm.h on AVX-512.
#ifndef QUOLL_LAYER_X86_SPLIT_OPERANDS_H
#define QUOLL_LAYER_X86_SPLIT_OPERANDS_H

#include "layer/cpu/gemm/split_gemm.h"
#include "layer/x86/channel_vectors.h"
#include "layer/x86/split_rows.h"

namespace quoll {
namespace {

// B in a step: 64 bytes of k by 16 columns.
constexpr int kPanelBytes = 1024;

template <int products>
constexpr int kTerms = products == 6                    ? 3
                       : products == 3 || products == 2 ? 2
                                                        : 1;

// The terms of 32 channels of a pixel.
template <int products>
QUOLL_TILE_INLINE void split_pixel(__m512 x, __m512 y, uint16_t* to) {
    for (int term = 0; term < kTerms<products>; term++) {
        const __m512i half = to_bf16(x, y);
        _mm512_store_si512(to + term * kSplitK, half);
        x = _mm512_sub_ps(x, first_of_bf16(half));
        y = _mm512_sub_ps(y, second_of_bf16(half));
    }
}

// Up to 16 pixels of one channel.
QUOLL_TILE_INLINE __m512 load_pixels(const float* from, __mmask16 mask) {
    return _mm512_maskz_loadu_ps(mask, from);
}
QUOLL_TILE_INLINE __m512 load_pixels(const uint16_t* from, __mmask16 mask) {
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from)), 16));
}

// From this many neighbouring pixels of planar channels on, transposing 16 of them is faster than
// gathering the channels of each.
enum { kTurnedPixels = 4 };

// Planar channels of neighbouring pixels, 16 at a time; the pixels that are done.
template <int products>
size_t split_planar(const SplitInput& t) {
    size_t p = 0;
    for (; t.pixels - p >= kTurnedPixels; p += 16) {
        const size_t count = t.pixels - p < 16 ? t.pixels - p : 16;
        const __mmask16 mask = first_lanes(count);
        const float* from = (const float*)t.src + p;
        __m512 x[2][16];
        for (int c = 0; c < kSplitK; c++)
            x[c / 16][c % 16] =
                c < t.channels ? load_pixels(from + c * t.src_block, mask) : _mm512_setzero_ps();
        transpose(x[0]);
        transpose(x[1]);
        for (size_t i = 0; i < count; i++)
            split_pixel<products>(x[0][i], x[1][i], t.dst + (p + i) * t.dst_pixel);
        if (count < 16) return t.pixels;
    }
    return p;
}

template <int products, int pack>
void split_input(const SplitInput& t) {
    const float* from = (const float*)t.src;
    uint16_t* to = t.dst;
    size_t done = 0;
    if constexpr (pack == 1) {
        if (t.src_pixel == 1) done = split_planar<products>(t);
        from += done * t.src_pixel, to += done * t.dst_pixel;
    }
    for (size_t p = done; p < t.pixels; p++, from += t.src_pixel, to += t.dst_pixel) {
        const __m512 x = load_channels<pack>(from, t.src_block, 0, t.channels);
        const __m512 y = load_channels<pack>(from, t.src_block, 16, t.channels - 16);
        split_pixel<products>(x, y, to);
    }
}

// 32 channels of one pixel, zeros from `channels` on; loads nothing beyond them but within a block
// of 4 or 8.
template <int pack>
QUOLL_TILE_INLINE __m512i join_blocks(const uint16_t* from, ptrdiff_t block, int channels) {
    const auto there = [&](int i) __attribute__((always_inline)) { return i * pack < channels; };
    if constexpr (pack == 16) {
        const __m256i low = _mm256_maskz_loadu_epi16(first_lanes(channels), from);
        const __m256i high =
            there(1) ? _mm256_maskz_loadu_epi16(first_lanes(channels - 16), from + block)
                     : _mm256_setzero_si256();
        return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    } else if constexpr (pack == 8) {
        __m512i x = _mm512_castsi128_si512(read_16_bytes(from, true));
        x = _mm512_inserti32x4(x, read_16_bytes(from + block, there(1)), 1);
        x = _mm512_inserti32x4(x, read_16_bytes(from + 2 * block, there(2)), 2);
        return _mm512_inserti32x4(x, read_16_bytes(from + 3 * block, there(3)), 3);
    } else {
        static_assert(pack == 4, "packs of channels");
        const auto four = [&](int i) __attribute__((always_inline)) {
            return read_piece<int64_t>(from + i * block, there(i));
        };
        return _mm512_setr_epi64(four(0), four(1), four(2), four(3), four(4), four(5), four(6),
                                 four(7));
    }
}

// As split_planar; a lane is a pair of channels.
size_t copy_planar(const SplitInput& t) {
    size_t p = 0;
    for (; t.pixels - p >= kTurnedPixels; p += 16) {
        const size_t count = t.pixels - p < 16 ? t.pixels - p : 16;
        const __mmask16 mask = first_lanes(count);
        const uint16_t* from = (const uint16_t*)t.src + p;
        const auto channel = [&](int c) __attribute__((always_inline)) {
            return c < t.channels ? _mm512_castps_si512(load_pixels(from + c * t.src_block, mask))
                                  : _mm512_setzero_si512();
        };
        __m512 x[16];
        for (int i = 0; i < 16; i++)
            x[i] = _mm512_castsi512_ps(
                _mm512_or_si512(_mm512_srli_epi32(channel(2 * i), 16), channel(2 * i + 1)));
        transpose(x);
        for (size_t i = 0; i < count; i++)
            _mm512_store_ps((float*)(t.dst + (p + i) * t.dst_pixel), x[i]);
        if (count < 16) return t.pixels;
    }
    return p;
}

template <int pack>
void copy_input(const SplitInput& t) {
    const uint16_t* from = (const uint16_t*)t.src;
    uint16_t* to = t.dst;
    size_t done = 0;
    if constexpr (pack == 1) {
        if (t.src_pixel == 1) done = copy_planar(t);
        from += done * t.src_pixel, to += done * t.dst_pixel;
    }
    for (size_t p = done; p < t.pixels; p++, from += t.src_pixel, to += t.dst_pixel) {
        if constexpr (pack == 1) {
            for (int c = 0; c < kSplitK; c++) to[c] = c < t.channels ? from[c * t.src_block] : 0;
        } else {
            _mm512_store_si512(to, join_blocks<pack>(from, t.src_block, t.channels));
        }
    }
}

// Pixels of a row: of each term a line of kSplitPixel values per pixel, `term` values apart.
template <int terms, class Value>
void split_line(const SplitWindows& t, ptrdiff_t first, ptrdiff_t count, uint16_t* to,
                ptrdiff_t term) {
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    for (ptrdiff_t p = 0; p < count; p += 16, to += 16 * kSplitPixel) {
        const __mmask16 mask = first_lanes(count - p);
        __m512 x[kSplitPixel];
        for (int c = 0; c < kSplitPixel; c++)
            x[c] = c < t.channels
                       ? load_pixels((const Value*)t.src + first + p + c * t.src_block, mask)
                       : _mm512_setzero_ps();
        for (int i = 0; i < terms; i++) {
            __m512i halves[kSplitPixel];
            for (int c = 0; c < kSplitPixel; c++) {
                halves[c] = _mm512_cvtepu16_epi32(to_bf16(x[c]));
                x[c] = _mm512_sub_ps(x[c], _mm512_castsi512_ps(_mm512_slli_epi32(halves[c], 16)));
            }
            const __m512i a = _mm512_or_si512(halves[0], _mm512_slli_epi32(halves[1], 16));
            const __m512i b = _mm512_or_si512(halves[2], _mm512_slli_epi32(halves[3], 16));
            uint16_t* line = to + i * term;
            _mm512_mask_storeu_epi64(line, (__mmask8)mask, _mm512_permutex2var_epi32(a, low, b));
            _mm512_mask_storeu_epi64(line + 8 * kSplitPixel, (__mmask8)(mask >> 8),
                                     _mm512_permutex2var_epi32(a, high, b));
        }
    }
}

template <int terms, class Value>
void split_windows(const SplitWindows& t) {
    enum { kPixels = 512, kLine = kPixels * kSplitPixel };
    alignas(64) uint16_t lines[terms * kLine];
    const __mmask32 mask = (__mmask32)((1ull << t.row.kernel * kSplitPixel) - 1);
    for_windows(t.row, t.x, t.count, kPixels, [&](size_t done, const WindowRun& run) {
        for (int i = 0; i < terms; i++) {
            uint16_t* line = lines + i * kLine;
            __builtin_memset(line, 0, run.left * kSplitPixel * sizeof(*line));
            __builtin_memset(line + run.right * kSplitPixel, 0,
                             (run.pixels - run.right) * kSplitPixel * sizeof(*line));
        }
        if (run.left < run.right)
            split_line<terms, Value>(t, run.first + run.left, run.right - run.left,
                                     lines + run.left * kSplitPixel, kLine);
        uint16_t* to = t.dst + (ptrdiff_t)done * t.dst_window;
        const uint16_t* from = lines;
        for (size_t w = 0; w < run.windows; w++, to += t.dst_window) {
            for (int i = 0; i < terms; i++)
                _mm512_store_si512(to + i * kSplitK,
                                   _mm512_maskz_loadu_epi16(mask, from + i * kLine));
            from += t.row.stride * kSplitPixel;
        }
    });
}

// Rows k0 to k0 + 31 of 16 columns of B from column n0 on, zeros beyond the matrix.
QUOLL_TILE_INLINE void load_columns(const SplitPanel& t, size_t k0, size_t n0, __m512* rows) {
    const size_t columns = t.columns - n0, left = t.k - k0;
    const float* from = t.src + k0 * t.k_step + n0 * t.n_step;
    if (t.n_step == 1) {
        for (size_t i = 0; i < kSplitK; i++)
            rows[i] = i < left ? _mm512_maskz_loadu_ps(first_lanes(columns), from + i * t.k_step)
                               : _mm512_setzero_ps();
        return;
    }
    for (size_t half = 0; half < 2; half++, rows += 16) {
        const __mmask16 mask = half * 16 < left ? first_lanes(left - half * 16) : 0;
        for (size_t j = 0; j < 16; j++)
            rows[j] = mask && j < columns
                          ? _mm512_maskz_loadu_ps(mask, from + j * t.n_step + half * 16)
                          : _mm512_setzero_ps();
        transpose(rows);
    }
}

template <int products>
void pack_panel(const SplitPanel& t) {
    const size_t vectors = t.columns > 16 ? 2 : 1, tile = kPanelBytes / sizeof(uint16_t);
    alignas(64) uint16_t pairs[kSplitK];
    for (int i = 0; i < kSplitK; i++) pairs[i] = (uint16_t)(i / 2 + i % 2 * 16);
    const __m512i by_pairs = _mm512_load_si512(pairs);
    uint16_t* to = t.dst;
    for (size_t k = 0; k < t.k; k += kSplitK, to += kTerms<products> * vectors * tile) {
        for (size_t v = 0; v < vectors; v++) {
            __m512 rows[kSplitK];
            load_columns(t, k, v * 16, rows);
            for (int i = 0; i < kSplitK; i += 2) {
                __m512 x = rows[i], y = rows[i + 1];
                for (int term = 0; term < kTerms<products>; term++) {
                    const __m512i half = to_bf16(x, y);
                    _mm512_store_si512(to + (term * vectors + v) * tile + i * 16,
                                       _mm512_permutexvar_epi16(by_pairs, half));
                    x = _mm512_sub_ps(x, first_of_bf16(half));
                    y = _mm512_sub_ps(y, second_of_bf16(half));
                }
            }
        }
    }
}

// Rows of two terms, as the kernels of two products take them.
inline void copy_terms(const SplitInput& t) {
    const float* from = (const float*)t.src;
    uint16_t* to = t.dst;
    for (size_t p = 0; p < t.pixels; p++, from += t.src_pixel, to += t.dst_pixel) {
        _mm512_store_si512(to, _mm512_loadu_si512(from));
        _mm512_store_si512(to + kSplitK, _mm512_loadu_si512(from + 16));
    }
}

template <int products, int pack>
constexpr SplitInputKernel copy_kernel() {
    if constexpr (products == 1) return &copy_input<pack>;
    return nullptr;
}

template <int products>
constexpr SplitWindowKernel copy_windows_kernel() {
    if constexpr (products == 1) return &split_windows<1, uint16_t>;
    return nullptr;
}

}  // namespace
}  // namespace quoll

#endif
