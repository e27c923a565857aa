// What becomes of sums on the way to C: bias, residual, clamp, rounding to bf16.
#ifndef QUOLL_LAYER_X86_SPLIT_STORE_H
#define QUOLL_LAYER_X86_SPLIT_STORE_H

#include "layer/cpu/gemm/split_gemm.h"
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

// The arguments by themselves, for what is stored might be one of them.
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
