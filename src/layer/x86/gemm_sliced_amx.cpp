// The kernels of sliced_gemm.h on AMX.
//
// Tiles 0 to 2 are the sums of the first tile of rows, by falling weight, 3 to 5 those of the
// second; 6 holds slices of A, 7 of B. From one multiplication to the next one operand changes, so
// that two tiles of rows take 13 loads for 12 multiplications.
#include <float.h>
#include <math.h>
#include <string.h>

#include "layer/cpu/gemm/sliced_gemm.h"
#include "layer/x86/channel_vectors.h"
#include "layer/x86/split_rows.h"
#include "layer/x86/tile_loop.h"

namespace quoll {

// split_store_amx.cpp
extern const SplitStoreKernels QUOLL_TILE_NAME(split_store);

namespace {

enum { kHi, kMid, kLo };
enum { kTileSums = kUnitRows * kSlicedColumns };

void begin_sliced(int tile_rows) { begin_tiles(tile_rows, kSlicedK, 1); }

// ---------------------------------------------------------------- sums

// Rows of sums as they become C.
struct SlicedRows {
    __m512 low, high, bias, slope, scale;
    bool leaky;
    const float *residual, *row_scales;
    float* c;
    const int32_t *places, *sums;
    int tile_rows;

    QUOLL_TILE_INLINE explicit SlicedRows(const SlicedEpilogue& t)
        : low(_mm512_set1_ps(t.store.low)),
          high(_mm512_set1_ps(t.store.high)),
          bias(t.store.bias ? _mm512_loadu_ps(t.store.bias) : _mm512_setzero_ps()),
          slope(_mm512_set1_ps(t.store.slope)),
          scale(_mm512_setzero_ps()),
          leaky(t.store.slope != 1.f),
          residual((const float*)t.store.residual),
          row_scales(t.row_scales),
          c((float*)t.store.c),
          places(t.store.rows),
          sums(t.sums),
          tile_rows(t.tile_rows) {
        if (t.tiles) scale = _mm512_loadu_ps(t.column_scales);
    }
    QUOLL_TILE_INLINE void finish(int m) const {
        const ptrdiff_t place = places[m];
        if (place < 0) return;
        const int tile = m >= tile_rows;
        const int32_t* s = sums + (tile * (3 * kUnitRows) + m - tile * tile_rows) * kSlicedColumns;
        const auto weight = [&](int i) __attribute__((always_inline)) {
            return _mm512_cvtepi32_ps(_mm512_load_si512(s + i * kTileSums));
        };
        __m512 x = _mm512_fmadd_ps(weight(1), _mm512_set1_ps(256.f), weight(2));
        x = _mm512_fmadd_ps(weight(0), _mm512_set1_ps(65536.f), x);
        x = _mm512_fmadd_ps(_mm512_mul_ps(x, scale), _mm512_set1_ps(row_scales[m]), bias);
        if (residual) x = _mm512_add_ps(x, _mm512_loadu_ps(residual + place));
        if (leaky) x = _mm512_max_ps(_mm512_mul_ps(x, slope), x);
        // A NaN is the second operand of both, which is what they then return.
        _mm512_storeu_ps(c + place, _mm512_min_ps(high, _mm512_max_ps(low, x)));
    }
};

// Sums that are in the tiles when a step begins: each is stored and cleared before the step adds to
// it.
struct StoreSliced {
    int32_t* sums;

    template <int sum>
    QUOLL_TILE_INLINE void turn() const {
        tile_store<sum>(sums + sum * kTileSums, 64);
        tile_zero<sum>();
    }
};

template <int tiles>
void store_sliced(int32_t* sums) {
    tile_store<0>(sums, 64);
    tile_store<1>(sums + kTileSums, 64);
    tile_store<2>(sums + 2 * kTileSums, 64);
    if constexpr (tiles == 1) return;
    tile_store<3>(sums + 3 * kTileSums, 64);
    tile_store<4>(sums + 4 * kTileSums, 64);
    tile_store<5>(sums + 5 * kTileSums, 64);
}

void clear_sliced() {
    tile_zero<0>(), tile_zero<1>(), tile_zero<2>();
    tile_zero<3>(), tile_zero<4>(), tile_zero<5>();
}

// ---------------------------------------------------------------- multiplying

struct SlicedStep {
    const char *a, *b;
    ptrdiff_t a_row, a_tile;

    template <int tile, int term>
    QUOLL_TILE_INLINE void load_a() const {
        tile_load<6>(a + tile * a_tile + term * kSlicedK, a_row);
    }
    template <int term>
    QUOLL_TILE_INLINE void load_b() const {
        tile_load<7>(b + term * kTileBytes, 64);
    }
    template <int sum>
    QUOLL_TILE_INLINE void dot() const {
        tile_dot_s8s8<sum, 6, 7>();
    }
    template <class Before>
    QUOLL_TILE_INLINE void first_tile(const Before& before) const {
        before.template turn<2>(), load_a<0, kLo>(), load_b<kHi>(), dot<2>();
        before.template turn<1>(), load_a<0, kMid>(), dot<1>();
        load_b<kMid>(), dot<2>();
        load_a<0, kHi>(), dot<1>();
        before.template turn<0>(), load_b<kHi>(), dot<0>();
        load_b<kLo>(), dot<2>();
    }
    // B's low slices are there.
    template <class Before>
    QUOLL_TILE_INLINE void second_tile(const Before& before) const {
        before.template turn<5>(), load_a<1, kHi>(), dot<5>();
        before.template turn<3>(), load_b<kHi>(), dot<3>();
        before.template turn<4>(), load_b<kMid>(), dot<4>();
        load_a<1, kMid>(), dot<5>();
        load_b<kHi>(), dot<4>();
        load_a<1, kLo>(), dot<5>();
    }
};

template <int tiles>
void chain_sliced(const TileOperands& t, const SlicedEpilogue& epilogue) {
    SlicedStep step = {t.a + t.steps[0], t.b, t.a_row, t.a_tile};
    Fetcher fetcher(t);
    const SlicedRows rows(epilogue);
    const int all = epilogue.tiles * epilogue.tile_rows;
    const int calls = 2 * (int)t.num_steps - 1;
    const int share = (all + calls - 1) / calls;
    int done = 0;
    const auto part = [&] {
        for (const int end = done + share < all ? done + share : all; done < end; done++)
            rows.finish(done);
    };
    if (tiles == 2 && epilogue.tiles == 2) {
        const StoreSliced before = {epilogue.sums};
        step.first_tile(before);
        if constexpr (tiles == 2) step.second_tile(before);
    } else {
        if (epilogue.tiles == 2) store_sliced<2>(epilogue.sums);
        if (epilogue.tiles == 1) store_sliced<1>(epilogue.sums);
        clear_sliced();
        step.first_tile(KeepSums());
        if constexpr (tiles == 2) step.second_tile(KeepSums());
    }
    for (size_t s = 1;; s++) {
        fetcher.fetch();
        part();
        if (s >= t.num_steps) break;
        step.a = t.a + t.steps[s];
        step.b += kSlicedTerms * kTileBytes;
        step.first_tile(KeepSums());
        part();
        if constexpr (tiles == 2) step.second_tile(KeepSums());
    }
}

void end_sliced_chain(const SlicedEpilogue& epilogue) {
    epilogue.tiles == 2 ? store_sliced<2>(epilogue.sums) : store_sliced<1>(epilogue.sums);
    const SlicedRows rows(epilogue);
    for (int m = 0; m < epilogue.tiles * epilogue.tile_rows; m++) rows.finish(m);
}

// ---------------------------------------------------------------- slices

// 64 numbers: 64 bytes of each slice, in an order of their own. Adding 0x808080 makes slices of 0
// to 255 of those from -128 on.
QUOLL_TILE_INLINE void store_slices(const __m512i* numbers, int8_t* to) {
    const __m512i by_slices =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    __m512i x[4];
    for (int i = 0; i < 4; i++)
        x[i] = _mm512_shuffle_epi8(_mm512_add_epi32(numbers[i], _mm512_set1_epi32(0x808080)),
                                   by_slices);
    const __m512i low0 = _mm512_unpacklo_epi32(x[0], x[1]);
    const __m512i low1 = _mm512_unpacklo_epi32(x[2], x[3]);
    const __m512i hi0 = _mm512_unpackhi_epi32(x[0], x[1]);
    const __m512i hi1 = _mm512_unpackhi_epi32(x[2], x[3]);
    const __m512i bias = _mm512_set1_epi8(-128);
    const auto store = [&](int term, __m512i slices) __attribute__((always_inline)) {
        _mm512_store_si512(to + term * kSlicedK, _mm512_xor_si512(slices, bias));
    };
    store(kHi, _mm512_unpacklo_epi64(hi0, hi1));
    store(kMid, _mm512_unpackhi_epi64(low0, low1));
    store(kLo, _mm512_unpacklo_epi64(low0, low1));
}

QUOLL_TILE_INLINE __m512 magnitude(__m512 x) { return _mm512_abs_ps(x); }

// A value that is not finite becomes the number 0x80000000, which has no slices.
template <bool parts, int pack>
void sliced_input(const SlicedInput& t) {
    const float* from = t.src;
    int8_t* to = t.dst;
    const __m512 least = _mm512_set1_ps(t.least), most = _mm512_set1_ps(t.most);
    for (size_t p = 0; p < t.pixels; p++, from += t.src_pixel, to += t.dst_pixel) {
        const __m512 inverse = _mm512_set1_ps(1.f / t.scales[(ptrdiff_t)p * t.scale_step]);
        __m512i numbers[4];
        for (int i = 0; i < 4; i++) {
            __m512 x = load_channels<pack>(from, t.src_block, i * 16, t.channels - i * 16);
            if constexpr (parts) {
                const __mmask16 above = _mm512_cmp_ps_mask(magnitude(x), least, _CMP_GT_OQ);
                x = _mm512_maskz_mov_ps(
                    _mm512_mask_cmp_ps_mask(above, magnitude(x), most, _CMP_LE_OQ), x);
            }
            numbers[i] = _mm512_cvtps_epi32(_mm512_mul_ps(x, inverse));
        }
        store_slices(numbers, to);
    }
}

// Pixels of a row as kSlicedWindowPixel bytes each, of each term a line `term` bytes apart.
void slice_line(const SlicedWindows& t, const float* row, ptrdiff_t first, ptrdiff_t count,
                uint8_t* to, ptrdiff_t term) {
    const __m512 inverse = _mm512_set1_ps(1.f / t.scale);
    const __m512 least = _mm512_set1_ps(t.least), most = _mm512_set1_ps(t.most);
    for (ptrdiff_t p = 0; p < count; p += 16, to += 16 * kSlicedWindowPixel) {
        const __mmask16 mask = first_lanes(count - p);
        __m512i slices[kSlicedTerms];
        for (__m512i& d : slices) d = _mm512_setzero_si512();
        for (int c = 0; c < t.channels; c++) {
            __m512 x = _mm512_maskz_loadu_ps(mask, row + first + p + c * t.src_block);
            const __mmask16 above = _mm512_cmp_ps_mask(magnitude(x), least, _CMP_GT_OQ);
            x = _mm512_maskz_mov_ps(_mm512_mask_cmp_ps_mask(above, magnitude(x), most, _CMP_LE_OQ),
                                    x);
            const __m512i number =
                _mm512_xor_si512(_mm512_add_epi32(_mm512_cvtps_epi32(_mm512_mul_ps(x, inverse)),
                                                  _mm512_set1_epi32(0x808080)),
                                 _mm512_set1_epi32(0x808080));
            for (int i = 0; i < kSlicedTerms; i++) {
                const __m512i slice = _mm512_and_si512(
                    _mm512_srli_epi32(number, (unsigned)(16 - 8 * i)), _mm512_set1_epi32(0xff));
                slices[i] = _mm512_or_si512(slices[i], _mm512_slli_epi32(slice, (unsigned)(8 * c)));
            }
        }
        for (int i = 0; i < kSlicedTerms; i++)
            _mm512_mask_storeu_epi32(to + i * term, mask, slices[i]);
    }
}

void sliced_windows(const SlicedWindows& t) {
    // Pixels of a run; fewer of many rows, so that all fit on small stacks.
    enum { kPixels = 256, kFewRows = 5, kFewPixels = 80 };
    static_assert(kFewPixels * kSlicedWindowRows <= kPixels * kFewRows, "rows do not fit");
    alignas(64) uint8_t lines[kFewRows * kSlicedTerms * kPixels * kSlicedWindowPixel];
    const int pixels = t.num_rows <= kFewRows ? kPixels : kFewPixels;
    const int line = pixels * kSlicedWindowPixel, row_bytes = kSlicedTerms * line;
    const int width = t.row.kernel * kSlicedWindowPixel;
    const __mmask64 mask = ~(__mmask64)0 >> (kSlicedK - width);
    for_windows(t.row, t.x, t.count, pixels, [&](size_t done, const WindowRun& run) {
        for (int r = 0; r < t.num_rows; r++) {
            uint8_t* const to = lines + r * row_bytes;
            memset(to, 0, row_bytes);
            if (t.rows[r] && run.left < run.right)
                slice_line(t, t.rows[r], run.first + run.left, run.right - run.left,
                           to + run.left * kSlicedWindowPixel, line);
        }
        int8_t* to = t.dst + done * kSlicedTerms * kSlicedK;
        for (size_t w = 0; w < run.windows; w++, to += kSlicedTerms * kSlicedK) {
            const size_t at = w * t.row.stride * kSlicedWindowPixel;
            for (int i = 0; i < kSlicedTerms; i++) {
                __m512i all = _mm512_setzero_si512();
                for (int r = 0; r < t.num_rows; r++)
                    all = _mm512_or_si512(
                        all,
                        _mm512_maskz_loadu_epi8(mask << (r * width),
                                                lines + r * row_bytes + i * line + at - r * width));
                _mm512_store_si512(to + i * kSlicedK, all);
            }
        }
    });
}

// The bits of magnitudes are ordered like the magnitudes, with infinity and NaN above all.
QUOLL_TILE_INLINE __m512i larger(__m512i peak, __m512 x) {
    return _mm512_max_epu32(peak, _mm512_castps_si512(magnitude(x)));
}
QUOLL_TILE_INLINE float largest(__m512i peak) {
    return _mm512_cvtss_f32(
        _mm512_castsi512_ps(_mm512_set1_epi32((int)_mm512_reduce_max_epu32(peak))));
}

// Of neighbouring pixels: what they have of a channel block lies together.
template <int pack, int pixels>
QUOLL_TILE_INLINE void peaks_of(const SlicedPeaks& t, const float* from, float* scales) {
    __m512i peaks[pixels];
    for (__m512i& peak : peaks) peak = _mm512_setzero_si512();
    for (int c = 0; c < t.channels; c += 16)
#pragma GCC unroll 8
        for (int p = 0; p < pixels; p++)
            peaks[p] = larger(peaks[p], load_channels<pack>(from + p * t.src_pixel, t.src_block, c,
                                                            t.channels - c));
    for (int p = 0; p < pixels; p++) scales[p] = slice_scale(largest(peaks[p]));
}

template <int pack>
void sliced_peaks(const SlicedPeaks& t) {
    constexpr size_t together = pack == 16 ? 8 : 2;
    size_t p = 0;
    for (; p + together <= t.pixels; p += together)
        peaks_of<pack, together>(t, t.src + (ptrdiff_t)p * t.src_pixel, t.scales + p);
    for (; p < t.pixels; p++)
        peaks_of<pack, 1>(t, t.src + (ptrdiff_t)p * t.src_pixel, t.scales + p);
}

// Of `factor` times the values up to `limit`.
float sum_of_squares(const float* values, size_t count, __m512 limit, float factor) {
    __m512 sum = _mm512_setzero_ps();
    for (size_t i = 0; i < count; i += 16) {
        __m512 x = _mm512_maskz_loadu_ps(first_lanes(count - i), values + i);
        x = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(magnitude(x), limit, _CMP_LE_OQ), x);
        x = _mm512_mul_ps(x, _mm512_set1_ps(factor));
        sum = _mm512_fmadd_ps(x, x, sum);
    }
    return _mm512_reduce_add_ps(sum);
}

CrestFactor crest_factor(const float* values, size_t count, float most) {
    const __m512 limit = _mm512_set1_ps(most < FLT_MAX ? most : FLT_MAX);
    __m512i peaks[2] = {}, counts[2] = {}, all = _mm512_setzero_si512();
    __m512 squares[2] = {};
    const auto add = [&](int i, __m512 x) __attribute__((always_inline)) {
        all = larger(all, x);
        x = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(magnitude(x), limit, _CMP_LE_OQ), x);
        peaks[i] = larger(peaks[i], x);
        counts[i] = _mm512_mask_sub_epi32(counts[i],
                                          _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_OQ),
                                          counts[i], _mm512_set1_epi32(-1));
        squares[i] = _mm512_fmadd_ps(x, x, squares[i]);
    };
    size_t i = 0;
    for (; i + 32 <= count; i += 32)
        add(0, _mm512_loadu_ps(values + i)), add(1, _mm512_loadu_ps(values + i + 16));
    for (; i < count; i += 16) add(0, _mm512_maskz_loadu_ps(first_lanes(count - i), values + i));
    CrestFactor crest;
    crest.peak = largest(_mm512_max_epu32(peaks[0], peaks[1]));
    crest.squares = _mm512_reduce_add_ps(_mm512_add_ps(squares[0], squares[1]));
    crest.count = _mm512_reduce_add_epi32(_mm512_add_epi32(counts[0], counts[1]));
    crest.finite = _mm512_reduce_max_epu32(all) < 0x7f800000u;
    // Squares of these are beyond what floats hold.
    if (crest.peak > 0x1p50f || (crest.peak > 0 && crest.peak < 0x1p-50f)) {
        const float factor = crest.peak > 1 ? 0x1p-80f : 0x1p80f;
        const double sum = sum_of_squares(values, count, limit, factor);
        crest.squares = sum / ((double)factor * factor);
    }
    return crest;
}

// ---------------------------------------------------------------- one row

// a's slices have an offset of 128, which is subtracted again by way of B's sums. Intermediate sums
// wrap around 32 bits; the results do not.
template <int panels>
QUOLL_TILE_INLINE void row_by_panels(const SlicedRow& t, int first) {
    enum { kStep = kSlicedTerms * kTileBytes, kAhead = 2 * kStep };
    const int8_t* b = t.b + first * t.steps * kStep;
    __m512i sums[panels][kSlicedTerms], offsets[panels][kSlicedTerms];
#pragma GCC unroll 4
    for (int p = 0; p < panels; p++)
        for (int i = 0; i < kSlicedTerms; i++) sums[p][i] = offsets[p][i] = _mm512_setzero_si512();
    const __m512i offset = _mm512_set1_epi8(-128);
    const int8_t* a = t.a;
    for (size_t s = 0; s < t.steps; s++, a += kSlicedTerms * kSlicedK, b += kStep) {
        for (int k = 0; k < kSlicedK; k += 4) {
            __m512i slices[kSlicedTerms];
            for (int i = 0; i < kSlicedTerms; i++) {
                int32_t word;
                memcpy(&word, a + i * kSlicedK + k, sizeof(word));
                slices[i] = _mm512_xor_si512(_mm512_set1_epi32(word), offset);
            }
#pragma GCC unroll 4
            for (int p = 0; p < panels; p++) {
                const int8_t* line = b + p * t.steps * kStep + k * kSlicedColumns;
                __m512i terms[kSlicedTerms];
                for (int i = 0; i < kSlicedTerms; i++) {
                    terms[i] = _mm512_load_si512(line + i * kTileBytes);
                    // It does no harm behind the end.
                    _mm_prefetch(line + i * kTileBytes + kAhead, _MM_HINT_T0);
                    offsets[p][i] = dot_u8s8(offsets[p][i], offset, terms[i]);
                }
                sums[p][0] = dot_u8s8(sums[p][0], slices[kHi], terms[kHi]);
                sums[p][1] = dot_u8s8(sums[p][1], slices[kHi], terms[kMid]);
                sums[p][1] = dot_u8s8(sums[p][1], slices[kMid], terms[kHi]);
                sums[p][2] = dot_u8s8(sums[p][2], slices[kMid], terms[kMid]);
                sums[p][2] = dot_u8s8(sums[p][2], slices[kHi], terms[kLo]);
                sums[p][2] = dot_u8s8(sums[p][2], slices[kLo], terms[kHi]);
            }
        }
    }
#pragma GCC unroll 4
    for (int p = 0; p < panels; p++) {
        const __m512i hi = offsets[p][kHi], two = _mm512_add_epi32(hi, offsets[p][kMid]);
        const __m512i all = _mm512_add_epi32(two, offsets[p][kLo]);
        const auto weight = [&](int i, __m512i less) __attribute__((always_inline)) {
            return _mm512_cvtepi32_ps(_mm512_sub_epi32(sums[p][i], less));
        };
        __m512 x = _mm512_fmadd_ps(weight(1, two), _mm512_set1_ps(256.f), weight(2, all));
        x = _mm512_fmadd_ps(weight(0, hi), _mm512_set1_ps(65536.f), x);
        const int at = (first + p) * kSlicedColumns;
        x = _mm512_mul_ps(x, _mm512_loadu_ps(t.column_scales + at));
        _mm512_storeu_ps(t.results + at, _mm512_mul_ps(x, _mm512_set1_ps(t.row_scale)));
    }
}

void sliced_row(const SlicedRow& t) {
    if (t.panels == kSlicedRowPanels) return row_by_panels<kSlicedRowPanels>(t, 0);
    for (int p = 0; p < t.panels; p++) row_by_panels<1>(t, p);
}

// ---------------------------------------------------------------- B

CrestFactor pack_sliced(const SlicedPanel& t) {
    __m512 rows[kSlicedTerms][kSlicedColumns];
    for (auto& slices : rows)
        for (__m512& row : slices) row = _mm512_setzero_ps();
    float scales[kSlicedColumns];
    CrestFactor widest;
    for (int n = 0; n < kSlicedColumns; n++) {
        CrestFactor crest;
        if (n < t.columns) crest = crest_factor(t.src + n * t.ld, t.ld, INFINITY);
        widest.widen(crest);
        scales[n] = crest.finite ? slice_scale(crest.peak) : NAN;
        t.scales[n] = scales[n] * 65536.f;
    }
    for (size_t s = 0; s < t.steps; s++) {
        const int* order = t.order + s * kSlicedK;
        for (int n = 0; n < t.columns; n++) {
            const __m512 inverse = _mm512_set1_ps(1.f / scales[n]);
            __m512i numbers[4];
            for (int i = 0; i < 4; i++) {
                const __m512i at = _mm512_loadu_si512(order + i * 16);
                const __mmask16 there = _mm512_cmpge_epi32_mask(at, _mm512_setzero_si512());
                const __m512 x =
                    _mm512_mask_i32gather_ps(_mm512_setzero_ps(), there, at, t.src + n * t.ld, 4);
                const __m512i number = _mm512_cvtps_epi32(_mm512_mul_ps(x, inverse));
                const __mmask16 vanished = _mm512_testn_epi32_mask(number, number) &
                                           _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_OQ);
                const __m512i sign = _mm512_srai_epi32(_mm512_castps_si512(x), 31);
                numbers[i] = _mm512_mask_mov_epi32(number, vanished,
                                                   _mm512_or_si512(sign, _mm512_set1_epi32(1)));
            }
            alignas(64) int8_t slices[kSlicedTerms * kSlicedK];
            store_slices(numbers, slices);
            for (int term = 0; term < kSlicedTerms; term++)
                rows[term][n] = _mm512_load_ps(slices + term * kSlicedK);
        }
        for (int term = 0; term < kSlicedTerms; term++) {
            __m512 columns[kSlicedColumns];
            memcpy(columns, rows[term], sizeof(columns));
            transpose(columns);
            memcpy(t.dst + (s * kSlicedTerms + term) * kTileBytes, columns, kTileBytes);
        }
    }
    return widest;
}

constexpr SlicedGemmKernels kKernels = {
    &begin_sliced,
    &end_tiles,
    {&chain_sliced<1>, &chain_sliced<2>},
    &end_sliced_chain,
    {{&sliced_input<false, 4>, &sliced_input<false, 8>, &sliced_input<false, 16>},
     {&sliced_input<true, 4>, &sliced_input<true, 8>, &sliced_input<true, 16>}},
    &sliced_windows,
    {&sliced_peaks<4>, &sliced_peaks<8>, &sliced_peaks<16>},
    &crest_factor,
    &pack_sliced,
    &sliced_row,
    &QUOLL_TILE_NAME(split_store)};

}  // namespace

extern const SlicedGemmKernels QUOLL_TILE_NAME(gemm_sliced_32x16);
const SlicedGemmKernels QUOLL_TILE_NAME(gemm_sliced_32x16) = kKernels;

}  // namespace quoll
