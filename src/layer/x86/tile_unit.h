// The tile unit (AMX) as a few functions, tile numbers being template arguments.
//
// With QUOLL_EMULATE_TILES they are plain code with the unit's arithmetic, so that the kernels
// above are tested on machines without one. Assembly rather than the compiler's intrinsics: gcc
// 12's tileload declares no memory operand, so that stores before it may be moved behind it.
#ifndef QUOLL_LAYER_X86_TILE_UNIT_H
#define QUOLL_LAYER_X86_TILE_UNIT_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

namespace quoll {
namespace {

// The external name of a table or function of this folder.
#if !defined(QUOLL_EMULATE_TILES)
#define QUOLL_TILE_NAME(name) name##_amx
#else
#define QUOLL_TILE_NAME(name) name##_emulated
#endif

#define QUOLL_TILE_INLINE inline __attribute__((always_inline))

// Palette 1 (Intel SDM vol. 1, 18.2): bytes 16 to 31 hold the bytes per row of each tile, 48 to 55
// the rows.
struct alignas(64) TileConfig {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

#if !defined(QUOLL_EMULATE_TILES)

QUOLL_TILE_INLINE void tile_configure(const TileConfig& config) {
    asm volatile("ldtilecfg %0" ::"m"(config) : "memory");
}
QUOLL_TILE_INLINE void tile_release() { asm volatile("tilerelease" ::: "memory"); }
template <int tile>
QUOLL_TILE_INLINE void tile_load(const void* from, ptrdiff_t row_bytes) {
    asm volatile("tileloadd (%1,%2,1), %%tmm%c0" ::"i"(tile), "r"(from), "r"(row_bytes) : "memory");
}
template <int tile>
QUOLL_TILE_INLINE void tile_store(void* to, ptrdiff_t row_bytes) {
    asm volatile("tilestored %%tmm%c0, (%1,%2,1)" ::"i"(tile), "r"(to), "r"(row_bytes) : "memory");
}
template <int tile>
QUOLL_TILE_INLINE void tile_zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(tile));
}
// sum += a b for bf16 a [row][k], b [k / 2][column][k % 2].
template <int sum, int a, int b>
QUOLL_TILE_INLINE void tile_dot_bf16() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sum), "i"(a), "i"(b));
}
// sum += a b for u8 a [row][k], s8 b [k / 4][column][k % 4], s32 sums that wrap around.
template <int sum, int a, int b>
QUOLL_TILE_INLINE void tile_dot_u8s8() {
    asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sum), "i"(a), "i"(b));
}
// The same for s8 a.
template <int sum, int a, int b>
QUOLL_TILE_INLINE void tile_dot_s8s8() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sum), "i"(a), "i"(b));
}
// sum + a b, for u8 a and s8 b in words of four.
QUOLL_TILE_INLINE __m512i dot_u8s8(__m512i sum, __m512i a, __m512i b) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "vm"(b));
    return sum;
}
// 32 values to bf16, to nearest.
QUOLL_TILE_INLINE __m512i to_bf16(__m512 first, __m512 second) {
    return (__m512i)_mm512_cvtne2ps_pbh(second, first);
}
QUOLL_TILE_INLINE __m256i to_bf16(__m512 x) { return (__m256i)_mm512_cvtneps_pbh(x); }

#else

thread_local TileConfig t_config;
thread_local float t_tiles[8][16][16];

inline void tile_configure(const TileConfig& config) { t_config = config; }
inline void tile_release() { t_config = TileConfig(); }
template <int tile>
void tile_load(const void* from, ptrdiff_t row_bytes) {
    for (int r = 0; r < t_config.rows[tile]; r++)
        __builtin_memcpy(t_tiles[tile][r], (const char*)from + r * row_bytes,
                         t_config.row_bytes[tile]);
}
template <int tile>
void tile_store(void* to, ptrdiff_t row_bytes) {
    for (int r = 0; r < t_config.rows[tile]; r++)
        __builtin_memcpy((char*)to + r * row_bytes, t_tiles[tile][r], t_config.row_bytes[tile]);
}
template <int tile>
void tile_zero() {
    __builtin_memset(t_tiles[tile], 0, sizeof(t_tiles[tile]));
}
// A pair's low or high bf16 value as f32, denormals as zero.
inline __m512 half_of_pair(__m512i pairs, bool high) {
    const __m512i bits =
        high ? _mm512_and_si512(pairs, _mm512_set1_epi32(-65536)) : _mm512_slli_epi32(pairs, 16);
    const __mmask16 normal = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x7f800000));
    return _mm512_maskz_mov_ps(normal, _mm512_castsi512_ps(bits));
}
// TDPBF16PS (Intel SDM vol. 2): the even and the odd k are added up from zero, then both sums to
// the tile.
template <int sum, int a, int b>
void tile_dot_bf16() {
    const int pairs = t_config.row_bytes[a] / 4;
    for (int r = 0; r < t_config.rows[sum]; r++) {
        __m512 even = _mm512_setzero_ps(), odd = even;
        for (int k = 0; k < pairs; k++) {
            const __m512i x = _mm512_castps_si512(_mm512_set1_ps(t_tiles[a][r][k]));
            const __m512i y = _mm512_loadu_si512(t_tiles[b][k]);
            even = _mm512_fmadd_ps(half_of_pair(x, false), half_of_pair(y, false), even);
            odd = _mm512_fmadd_ps(half_of_pair(x, true), half_of_pair(y, true), odd);
        }
        float* out = t_tiles[sum][r];
        _mm512_storeu_ps(out, _mm512_add_ps(_mm512_loadu_ps(out), _mm512_add_ps(even, odd)));
    }
}
// sum + a b in words of four bytes: nothing saturates.
template <bool signed_a>
__m512i dot_bytes(__m512i sum, __m512i a, __m512i b) {
    const auto even = [](__m512i x) { return _mm512_srai_epi16(_mm512_slli_epi16(x, 8), 8); };
    const auto odd = [](__m512i x) { return _mm512_srai_epi16(x, 8); };
    const __m512i a0 = signed_a ? even(a) : _mm512_and_si512(a, _mm512_set1_epi16(0xff));
    const __m512i a1 = signed_a ? odd(a) : _mm512_srli_epi16(a, 8);
    return _mm512_add_epi32(
        sum, _mm512_add_epi32(_mm512_madd_epi16(a0, even(b)), _mm512_madd_epi16(a1, odd(b))));
}
inline __m512i dot_u8s8(__m512i sum, __m512i a, __m512i b) { return dot_bytes<false>(sum, a, b); }
// TDPBUSD and TDPBSSD (Intel SDM vol. 2).
template <bool signed_a, int sum, int a, int b>
void tile_dot_bytes() {
    const int words = t_config.row_bytes[a] / 4;
    for (int r = 0; r < t_config.rows[sum]; r++) {
        __m512i total = _mm512_loadu_si512(t_tiles[sum][r]);
        for (int k = 0; k < words; k++) {
            const __m512i x = _mm512_castps_si512(_mm512_set1_ps(t_tiles[a][r][k]));
            total = dot_bytes<signed_a>(total, x, _mm512_loadu_si512(t_tiles[b][k]));
        }
        _mm512_storeu_si512(t_tiles[sum][r], total);
    }
}
template <int sum, int a, int b>
void tile_dot_u8s8() {
    tile_dot_bytes<false, sum, a, b>();
}
template <int sum, int a, int b>
void tile_dot_s8s8() {
    tile_dot_bytes<true, sum, a, b>();
}
inline __m256i to_bf16(__m512 x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    const __m512i result = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(result, 16));
}
inline __m512i to_bf16(__m512 first, __m512 second) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(to_bf16(first)), to_bf16(second), 1);
}

#endif

// The first or second 16 of 32 bf16 values as f32.
QUOLL_TILE_INLINE __m512 first_of_bf16(__m512i x) {
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(x)), 16));
}
QUOLL_TILE_INLINE __m512 second_of_bf16(__m512i x) {
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(x, 1)), 16));
}

}  // namespace
}  // namespace quoll

#endif
