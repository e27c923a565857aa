// Sums of full panels on their way to C.
#ifndef QUOLL_LAYER_X86_SPLIT_ROWS_H
#define QUOLL_LAYER_X86_SPLIT_ROWS_H

#include "layer/cpu/gemm/split_gemm.h"
#include "layer/x86/tile_unit.h"

namespace quoll {
namespace {

QUOLL_TILE_INLINE __m512 widen(__m256i x) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}
QUOLL_TILE_INLINE __m512 read_values(const float* from) { return _mm512_loadu_ps(from); }
QUOLL_TILE_INLINE __m512 read_values(const uint16_t* from) {
    return widen(_mm256_loadu_si256((const __m256i*)from));
}
QUOLL_TILE_INLINE void write_values(float* to, ptrdiff_t group, __m512 x, __m512 y) {
    _mm512_storeu_ps(to, x);
    _mm512_storeu_ps(to + group, y);
}
// The conversion of two vectors takes as long as that of one.
QUOLL_TILE_INLINE void write_values(uint16_t* to, ptrdiff_t group, __m512 x, __m512 y) {
    const __m512i both = to_bf16(x, y);
    _mm256_storeu_si256((__m256i*)to, _mm512_castsi512_si256(both));
    _mm256_storeu_si256((__m256i*)(to + group), _mm512_extracti64x4_epi64(both, 1));
}

// What lies at `from`, or zero.
template <class Piece>
QUOLL_TILE_INLINE Piece read_piece(const void* from, bool there) {
    Piece piece = 0;
    if (there) __builtin_memcpy(&piece, from, sizeof(piece));
    return piece;
}
QUOLL_TILE_INLINE __m128i read_16_bytes(const void* from, bool there) {
    return there ? _mm_loadu_si128((const __m128i*)from) : _mm_setzero_si128();
}

// Rows of a SplitStore of 32 columns with a pass, which works in the sums' place.
template <class Value>
__attribute__((noinline)) void finish_by_pass(const SplitStore& t, float* sums, int m, int count) {
    const __m512 bias0 = t.bias ? _mm512_loadu_ps(t.bias) : _mm512_setzero_ps();
    const __m512 bias1 = t.bias ? _mm512_loadu_ps(t.bias + 16) : _mm512_setzero_ps();
    const Value* residual = (const Value*)t.residual;
    const int32_t* places = t.rows + m;
    float* const rows = sums + m * 32;
    for (int i = 0; i < count; i++) {
        float* const row = rows + i * 32;
        __m512 x = _mm512_add_ps(_mm512_load_ps(row), bias0);
        __m512 y = _mm512_add_ps(_mm512_load_ps(row + 16), bias1);
        if (residual && places[i] >= 0) {
            x = _mm512_add_ps(x, read_values(residual + places[i]));
            y = _mm512_add_ps(y, read_values(residual + places[i] + t.r_group));
        }
        _mm512_store_ps(row, x);
        _mm512_store_ps(row + 16, y);
    }
    t.pass(rows, rows, (size_t)count * 32, t.pass_params);
    for (int i = 0; i < count; i++)
        if (places[i] >= 0)
            write_values((Value*)t.c + places[i], t.c_group, _mm512_load_ps(rows + i * 32),
                         _mm512_load_ps(rows + i * 32 + 16));
}

// A SplitStore of 32 columns in groups of 16. The arguments by themselves, for what is stored might
// be one of them.
template <class Value>
struct FullRows {
    __m512 low, high, bias0, bias1, slope;
    bool leaky;
    ptrdiff_t c_group, r_group;
    const Value* residual;
    const int32_t* places;
    Value* c;
    const SplitStore* passing;  // null: without a pass

    QUOLL_TILE_INLINE explicit FullRows(const SplitStore& t)
        : low(_mm512_set1_ps(t.low)),
          high(_mm512_set1_ps(t.high)),
          bias0(t.bias ? _mm512_loadu_ps(t.bias) : _mm512_setzero_ps()),
          bias1(t.bias ? _mm512_loadu_ps(t.bias + 16) : _mm512_setzero_ps()),
          slope(_mm512_set1_ps(t.slope)),
          leaky(t.slope != 1.f),
          c_group(t.c_group),
          r_group(t.r_group),
          residual((const Value*)t.residual),
          places(t.rows),
          c((Value*)t.c),
          passing(t.pass ? &t : nullptr) {}
    // Rows m to m + count.
    QUOLL_TILE_INLINE void finish(float* sums, int m, int count) const {
        if (passing) return finish_by_pass<Value>(*passing, sums, m, count);
        for (int i = m; i < m + count; i++) finish(sums, i);
    }

private:
    QUOLL_TILE_INLINE void finish(const float* sums, int m) const {
        const ptrdiff_t place = places[m];
        if (place < 0) return;
        __m512 x = _mm512_add_ps(_mm512_load_ps(sums + m * 32), bias0);
        __m512 y = _mm512_add_ps(_mm512_load_ps(sums + m * 32 + 16), bias1);
        if (residual) {
            x = _mm512_add_ps(x, read_values(residual + place));
            y = _mm512_add_ps(y, read_values(residual + place + r_group));
        }
        if (leaky) {
            x = _mm512_max_ps(_mm512_mul_ps(x, slope), x);
            y = _mm512_max_ps(_mm512_mul_ps(y, slope), y);
        }
        // A NaN is the second operand of all, which is what they then return.
        write_values(c + place, c_group, _mm512_min_ps(high, _mm512_max_ps(low, x)),
                     _mm512_min_ps(high, _mm512_max_ps(low, y)));
    }
};

}  // namespace
}  // namespace quoll

#endif
