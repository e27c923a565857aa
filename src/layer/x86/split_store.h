// What is done to sums when they are stored in C: bias, residual, clamp, rounding to bf16.
#ifndef QUOLL_LAYER_X86_SPLIT_STORE_H
#define QUOLL_LAYER_X86_SPLIT_STORE_H

#include "layer/cpu/gemm/split_gemm.h"
#include "layer/x86/channel_vectors.h"
#include "layer/x86/split_rows.h"

namespace quoll {

namespace {

// 16 values in groups of `group` that lie `step` apart, the first `count` of them. They are joined
// in registers: a vector that is read from what was just stored in pieces waits until all earlier
// stores have reached the cache, those to C too.
template <int group>
struct Groups {
    static QUOLL_TILE_INLINE __m512 load(const uint16_t* from, ptrdiff_t step, int count) {
        const auto at = [&](int i) __attribute__((always_inline)) { return from + i * step; };
        const auto there = [&](int i) __attribute__((always_inline)) { return i * group < count; };
        if constexpr (group == 8) {
            return widen(
                _mm256_set_m128i(read_16_bytes(at(1), there(1)), read_16_bytes(at(0), there(0))));
        } else if constexpr (group == 4) {
            const auto p = [&](int i) __attribute__((always_inline)) {
                return read_piece<int64_t>(at(i), there(i));
            };
            return widen(_mm256_setr_epi64x(p(0), p(1), p(2), p(3)));
        } else if constexpr (group == 2) {
            const auto p = [&](int i) __attribute__((always_inline)) {
                return read_piece<int32_t>(at(i), there(i));
            };
            return widen(_mm256_setr_epi32(p(0), p(1), p(2), p(3), p(4), p(5), p(6), p(7)));
        } else {
            const auto p = [&](int i) __attribute__((always_inline)) {
                return read_piece<int16_t>(at(i), there(i));
            };
            return widen(_mm256_setr_epi16(p(0), p(1), p(2), p(3), p(4), p(5), p(6), p(7), p(8),
                                           p(9), p(10), p(11), p(12), p(13), p(14), p(15)));
        }
    }
    static QUOLL_TILE_INLINE __m512 load(const float* from, ptrdiff_t step, int count) {
        const auto at = [&](int i) __attribute__((always_inline)) { return from + i * step; };
        const auto there = [&](int i) __attribute__((always_inline)) { return i * group < count; };
        __m512i x;
        if constexpr (group == 8) {
            const __m256i low = _mm256_loadu_si256((const __m256i*)from);
            const __m256i high =
                there(1) ? _mm256_loadu_si256((const __m256i*)at(1)) : _mm256_setzero_si256();
            x = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
        } else if constexpr (group == 4) {
            x = _mm512_castsi128_si512(read_16_bytes(from, true));
            x = _mm512_inserti32x4(x, read_16_bytes(at(1), there(1)), 1);
            x = _mm512_inserti32x4(x, read_16_bytes(at(2), there(2)), 2);
            x = _mm512_inserti32x4(x, read_16_bytes(at(3), there(3)), 3);
        } else if constexpr (group == 2) {
            const auto p = [&](int i) __attribute__((always_inline)) {
                return read_piece<int64_t>(at(i), there(i));
            };
            x = _mm512_setr_epi64(p(0), p(1), p(2), p(3), p(4), p(5), p(6), p(7));
        } else {
            const auto p = [&](int i) __attribute__((always_inline)) {
                return read_piece<int32_t>(at(i), there(i));
            };
            x = _mm512_setr_epi32(p(0), p(1), p(2), p(3), p(4), p(5), p(6), p(7), p(8), p(9), p(10),
                                  p(11), p(12), p(13), p(14), p(15));
        }
        return _mm512_castsi512_ps(x);
    }
    template <class Value>
    static QUOLL_TILE_INLINE void store(Value* to, ptrdiff_t step, int count, __m512 x) {
        alignas(64) Value values[16];
        store_all(values, x);
        for (int i = 0; i < 16 && i < count; i += group)
            __builtin_memcpy(to + i / group * step, values + i, group * sizeof(Value));
    }
    static QUOLL_TILE_INLINE void store_all(float* to, __m512 x) { _mm512_storeu_ps(to, x); }
    static QUOLL_TILE_INLINE void store_all(uint16_t* to, __m512 x) {
        _mm256_storeu_si256((__m256i*)to, to_bf16(x));
    }
};

// Of the first values. Half a vector, as of blobs of 8 channels, is stored by itself: a store with
// a mask takes many times as long on Zen 4.
template <>
struct Groups<16> {
    static QUOLL_TILE_INLINE __mmask16 mask(int count) { return (__mmask16)((1u << count) - 1); }
    static QUOLL_TILE_INLINE __m512 load(const float* from, ptrdiff_t, int count) {
        return count >= 16 ? _mm512_loadu_ps(from) : _mm512_maskz_loadu_ps(mask(count), from);
    }
    static QUOLL_TILE_INLINE __m512 load(const uint16_t* from, ptrdiff_t, int count) {
        return widen(count >= 16 ? _mm256_loadu_si256((const __m256i*)from)
                                 : _mm256_maskz_loadu_epi16(mask(count), from));
    }
    static QUOLL_TILE_INLINE void store(float* to, ptrdiff_t, int count, __m512 x) {
        if (count >= 16)
            _mm512_storeu_ps(to, x);
        else if (count == 8)
            _mm256_storeu_ps(to, _mm512_castps512_ps256(x));
        else
            _mm512_mask_storeu_ps(to, mask(count), x);
    }
    static QUOLL_TILE_INLINE void store(uint16_t* to, ptrdiff_t, int count, __m512 x) {
        if (count >= 16)
            _mm256_storeu_si256((__m256i*)to, to_bf16(x));
        else if (count == 8)
            _mm_storeu_si128((__m128i*)to, _mm256_castsi256_si128(to_bf16(x)));
        else
            _mm256_mask_storeu_epi16(to, mask(count), to_bf16(x));
    }
};

template <class Value>
void finish_full(const SplitStore& t, float* sums, int rows) {
    FullRows<Value>(t).finish(sums, 0, rows);
}

// The arguments are copied, as a store might change them.
template <class Value, int group, bool to_sums>
void finish_rows(const SplitStore& t, float* sums, int rows) {
    constexpr int groups = 16 / group;
    const int vectors = t.width / 16, columns = t.columns;
    const __m512 low = _mm512_set1_ps(t.low), high = _mm512_set1_ps(t.high);
    const ptrdiff_t c_group = t.c_group, r_group = t.r_group;
    const Value* residual = (const Value*)t.residual;
    const int32_t* offsets = t.rows;
    Value* c = (Value*)t.c;
    const __m512 bias[] = {
        t.bias ? _mm512_loadu_ps(t.bias) : _mm512_setzero_ps(),
        t.bias && vectors > 1 ? _mm512_loadu_ps(t.bias + 16) : _mm512_setzero_ps()};
    const auto finish = [&](ptrdiff_t offset, int v) __attribute__((always_inline)) {
        const int count = columns - v * 16;
        __m512 x = _mm512_add_ps(_mm512_load_ps(sums + v * 16), bias[v]);
        if (residual)
            x = _mm512_add_ps(
                x, Groups<group>::load(residual + offset + v * groups * r_group, r_group, count));
        // A NaN is the second operand of both, which is what they then return.
        x = _mm512_min_ps(high, _mm512_max_ps(low, x));
        if constexpr (to_sums)
            _mm512_store_ps(sums + v * 16, x);
        else
            Groups<group>::store(c + offset + v * groups * c_group, c_group, count, x);
    };
    for (int m = 0; m < rows; m++, sums += vectors * 16) {
        const ptrdiff_t offset = offsets[m];
        if (offset < 0) continue;
        finish(offset, 0);
        if (vectors > 1) finish(offset, 1);
    }
}

// 8 or 4 values, and as many that begin `second` behind them, as the first lanes of a vector: two
// pieces that overlap take the place of a mask.
template <int piece>
struct TwoPieces {
    static QUOLL_TILE_INLINE __m512 load(const float* from, int second) {
        if constexpr (piece == 8)
            return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(from)),
                                      _mm256_loadu_ps(from + second), 1);
        else
            return _mm512_castps256_ps512(
                _mm256_set_m128(_mm_loadu_ps(from + second), _mm_loadu_ps(from)));
    }
    static QUOLL_TILE_INLINE __m512 load(const uint16_t* from, int second) {
        const __m128i a = half(from), b = half(from + second);
        return widen(piece == 8 ? _mm256_set_m128i(b, a)
                                : _mm256_castsi128_si256(_mm_unpacklo_epi64(a, b)));
    }
    static QUOLL_TILE_INLINE void store(float* to, int second, __m512 x) {
        if constexpr (piece == 8) {
            _mm256_storeu_ps(to, _mm512_castps512_ps256(x));
            _mm256_storeu_ps(to + second, _mm512_extractf32x8_ps(x, 1));
        } else {
            _mm_storeu_ps(to, _mm512_castps512_ps128(x));
            _mm_storeu_ps(to + second, _mm512_extractf32x4_ps(x, 1));
        }
    }
    static QUOLL_TILE_INLINE void store(uint16_t* to, int second, __m512 x) {
        const __m256i both = to_bf16(x);
        const __m128i low = _mm256_castsi256_si128(both);
        if constexpr (piece == 8) {
            _mm_storeu_si128((__m128i*)to, low);
            _mm_storeu_si128((__m128i*)(to + second), _mm256_extracti128_si256(both, 1));
        } else {
            _mm_storel_epi64((__m128i*)to, low);
            _mm_storel_epi64((__m128i*)(to + second), _mm_unpackhi_epi64(low, low));
        }
    }

private:
    static QUOLL_TILE_INLINE __m128i half(const uint16_t* from) {
        return piece == 8 ? _mm_loadu_si128((const __m128i*)from)
                          : _mm_loadl_epi64((const __m128i*)from);
    }
};

// Rows m to m + count, at least `piece` and at most twice as many, whose places follow each other:
// what they have of a planar channel is stored at once.
template <class Value, int piece>
__attribute__((noinline)) void finish_run(const SplitStore& t, const float* sums, int m,
                                          int count) {
    const int second = count - piece;
    const __m512 low = _mm512_set1_ps(t.low), high = _mm512_set1_ps(t.high);
    for (int first = 0; first < t.columns; first += 16) {
        const __m512 bias = t.bias ? _mm512_loadu_ps(t.bias + first) : _mm512_setzero_ps();
        __m512 x[16];
        for (int i = 0; i < 16; i++) {
            const int row = m + i % piece + (i / piece % 2 ? second : 0);
            x[i] = _mm512_add_ps(_mm512_load_ps(sums + row * t.width + first), bias);
        }
        transpose(x);
        const int channels = t.columns - first < 16 ? t.columns - first : 16;
        Value* to = (Value*)t.c + t.rows[m] + first * t.c_group;
        const Value* residual = (const Value*)t.residual;
        if (residual) residual += t.rows[m] + first * t.r_group;
        for (int j = 0; j < channels; j++, to += t.c_group) {
            __m512 y = x[j];
            if (residual) y = _mm512_add_ps(y, TwoPieces<piece>::load(residual, second));
            if (residual) residual += t.r_group;
            // As in finish_rows.
            y = _mm512_min_ps(high, _mm512_max_ps(low, y));
            TwoPieces<piece>::store(to, second, y);
        }
    }
}

// As finish_run for 8 rows and more without a residual: rounded first, half as much is turned.
__attribute__((noinline)) void finish_rounded_run(const SplitStore& t, const float* sums, int m,
                                                  int count) {
    const int second = count - 8;
    const __m512 low = _mm512_set1_ps(t.low), high = _mm512_set1_ps(t.high);
    for (int first = 0; first < t.columns; first += 16) {
        const __m512 bias = t.bias ? _mm512_loadu_ps(t.bias + first) : _mm512_setzero_ps();
        const auto finish = [&](int row) __attribute__((always_inline)) {
            const __m512 x = _mm512_add_ps(_mm512_load_ps(sums + row * t.width + first), bias);
            return _mm512_min_ps(high, _mm512_max_ps(low, x));
        };
        // Quarters of a vector: columns 0 to 7 and 8 to 15 of a row, the same of one of the last 8.
        __m512i x[8], y[8];
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) x[i] = to_bf16(finish(m + i), finish(m + i + second));
            // Each step moves the highest bit of a value's row and column, taken as one number, to
            // its end: after three the two have changed places.
#pragma GCC unroll 3
        for (int step = 0; step < 3; step++) {
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                y[2 * i] = _mm512_unpacklo_epi16(x[i], x[i + 4]);
                y[2 * i + 1] = _mm512_unpackhi_epi16(x[i], x[i + 4]);
            }
#pragma GCC unroll 8
            for (int i = 0; i < 8; i++) x[i] = y[i];
        }
        uint16_t* to = (uint16_t*)t.c + t.rows[m] + first * t.c_group;
        const int columns = t.columns - first;
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++, to += t.c_group) {
            uint16_t* const other = to + 8 * t.c_group;
            if (j < columns) {
                _mm_storeu_si128((__m128i*)to, _mm512_castsi512_si128(x[j]));
                _mm_storeu_si128((__m128i*)(to + second), _mm512_extracti32x4_epi32(x[j], 2));
            }
            if (j + 8 < columns) {
                _mm_storeu_si128((__m128i*)other, _mm512_extracti32x4_epi32(x[j], 1));
                _mm_storeu_si128((__m128i*)(other + second), _mm512_extracti32x4_epi32(x[j], 3));
            }
        }
    }
}

// Planar channels.
template <class Value>
void finish_planar(const SplitStore& t, float* sums, int rows) {
    for (int m = 0, count; m < rows; m += count) {
        for (count = 1; count < 16 && m + count < rows && t.rows[m] >= 0 &&
                        t.rows[m + count] == t.rows[m] + count;)
            count++;
        if (count >= 8 && sizeof(Value) == 2 && !t.residual) {
            finish_rounded_run(t, sums, m, count);
        } else if (count >= 8) {
            finish_run<Value, 8>(t, sums, m, count);
        } else if (count >= 4) {
            finish_run<Value, 4>(t, sums, m, count);
        } else {
            SplitStore few = t;
            few.rows += m;
            finish_rows<Value, 1, false>(few, sums + m * t.width, count);
        }
    }
}

template <class Value, bool to_sums>
void for_groups(const SplitStore& t, float* sums, int rows) {
    switch (t.group) {
        case 16:
            if (!to_sums && t.columns == 32) return finish_full<Value>(t, sums, rows);
            return finish_rows<Value, 16, to_sums>(t, sums, rows);
        case 8:
            return finish_rows<Value, 8, to_sums>(t, sums, rows);
        case 4:
            return finish_rows<Value, 4, to_sums>(t, sums, rows);
        case 2:
            return finish_rows<Value, 2, to_sums>(t, sums, rows);
        default:
            if (!to_sums) return finish_planar<Value>(t, sums, rows);
            return finish_rows<Value, 1, to_sums>(t, sums, rows);
    }
}

template <bool to_sums>
void for_values(const SplitStore& t, float* sums, int rows) {
    t.bf16 ? for_groups<uint16_t, to_sums>(t, sums, rows)
           : for_groups<float, to_sums>(t, sums, rows);
}

constexpr SplitStoreKernels kSplitStore = {&for_values<false>, &for_values<true>};

}  // namespace
}  // namespace quoll

#endif
