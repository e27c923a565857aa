// The kernels of split_gemm.h for one product on vectors: VDPBF16PS multiplies 32 values per
// vector, twice as many as a multiply-add of floats.
#include <type_traits>

#include "layer/x86/fetcher.h"
#include "layer/x86/split_operands.h"
#include "layer/x86/split_softmax.h"
#include "layer/x86/split_store.h"

namespace quoll {

namespace {

// Values of k in half a step.
constexpr int kHalfPairs = kSplitK / 4;

// Rows whose sums of 32 columns stay in registers, beside two vectors of B and a value of A.
constexpr int kRows = 14;

QUOLL_TILE_INLINE __m512 add_products(__m512 sum, __m512i a, __m512i b) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

// Where sums of 32 columns go: those of SplitDirectKernel if `store` is not null.
struct Target {
    float* sums;
    const SplitStore* store;
    const int32_t* places;
};

// As FullRows, but from registers.
template <class Value, int rows>
QUOLL_TILE_INLINE void store_rows(const SplitStore& store, const int32_t* places,
                                  __m512 (&sum)[rows][2]) {
    const __m512 bias0 = store.bias ? _mm512_loadu_ps(store.bias) : _mm512_setzero_ps();
    const __m512 bias1 = store.bias ? _mm512_loadu_ps(store.bias + 16) : _mm512_setzero_ps();
    const __m512 low = _mm512_set1_ps(store.low), high = _mm512_set1_ps(store.high);
    Value* const c = (Value*)store.c;
    const ptrdiff_t group = store.c_group;
#pragma GCC unroll 16
    for (int m = 0; m < rows; m++) {
        const ptrdiff_t place = places[m];
        if (place < 0) continue;
        const __m512 x = _mm512_add_ps(sum[m][0], bias0), y = _mm512_add_ps(sum[m][1], bias1);
        write_values(c + place, group, _mm512_min_ps(high, _mm512_max_ps(low, x)),
                     _mm512_min_ps(high, _mm512_max_ps(low, y)));
    }
}

// Rows from `a` on, in order, by a panel. Every third has a pointer.
template <int rows, int vectors>
__attribute__((noinline)) void multiply_rows(const SplitTile& t, const char* a,
                                             const Target& target, Fetcher* fetcher) {
    constexpr int pointers = (rows + 2) / 3;
    const ptrdiff_t row = t.a_row;
    __m512 sum[rows][vectors];
#pragma GCC unroll 16
    for (int m = 0; m < rows; m++)
        for (int v = 0; v < vectors; v++) sum[m][v] = _mm512_setzero_ps();
    for (size_t s = 0; s < t.num_steps; s++) {
        const char* b = t.b + (t.b_steps ? (size_t)t.b_steps[s] : s) * (vectors * kPanelBytes);
        const int pairs = s < t.full_steps ? kSplitK / 2 : t.last_pairs;
        for (int half = 0; half < pairs; half += kHalfPairs) {
            const char* from[pointers];
            for (int p = 0; p < pointers; p++)
                from[p] = a + t.steps[s] + (half ? t.half : 0) + 3 * p * row;
            const int count = pairs - half < kHalfPairs ? pairs - half : kHalfPairs;
#pragma GCC unroll 1
            for (int k = 0; k < count; k += 2) {
#pragma GCC unroll 2
                for (int i = 0; i < 2; i++, b += 64) {
                    __m512i columns[vectors];
                    for (int v = 0; v < vectors; v++)
                        columns[v] = _mm512_load_si512(b + v * kPanelBytes);
#pragma GCC unroll 16
                    for (int m = 0; m < rows; m++) {
                        int32_t pair;
                        __builtin_memcpy(&pair, from[m / 3] + m % 3 * row + i * 4, sizeof(pair));
                        const __m512i x = _mm512_set1_epi32(pair);
                        for (int v = 0; v < vectors; v++)
                            sum[m][v] = add_products(sum[m][v], x, columns[v]);
                    }
                }
#pragma GCC unroll 8
                for (int p = 0; p < pointers; p++) from[p] += 8;
            }
        }
        fetcher->fetch();
    }
    if constexpr (vectors == 2) {
        if (const SplitStore* const store = target.store)
            return store->bf16 ? store_rows<uint16_t>(*store, target.places, sum)
                               : store_rows<float>(*store, target.places, sum);
    }
    float* const sums = target.sums;
#pragma GCC unroll 16
    for (int m = 0; m < rows; m++)
        for (int v = 0; v < vectors; v++) _mm512_store_ps(sums + (m * vectors + v) * 16, sum[m][v]);
}

typedef void (*RowsKernel)(const SplitTile& tile, const char* a, const Target& target,
                           Fetcher* fetcher);
template <int vectors>
constexpr RowsKernel kRowsKernels[kRows] = {
    &multiply_rows<1, vectors>,  &multiply_rows<2, vectors>,  &multiply_rows<3, vectors>,
    &multiply_rows<4, vectors>,  &multiply_rows<5, vectors>,  &multiply_rows<6, vectors>,
    &multiply_rows<7, vectors>,  &multiply_rows<8, vectors>,  &multiply_rows<9, vectors>,
    &multiply_rows<10, vectors>, &multiply_rows<11, vectors>, &multiply_rows<12, vectors>,
    &multiply_rows<13, vectors>, &multiply_rows<14, vectors>};

constexpr int parts_of(int rows) { return (rows + kRows - 1) / kRows; }

// In nearly equal parts.
template <int vectors>
void multiply_run(const SplitTile& t, const char* a, int rows, Target target, Fetcher* fetcher) {
    for (int parts = parts_of(rows); parts > 0; parts--) {
        const int part = (rows + parts - 1) / parts;
        kRowsKernels<vectors>[part - 1](t, a, target, fetcher);
        a += part * t.a_row, rows -= part;
        if (target.store)
            target.places += part;
        else
            target.sums += part * vectors * 16;
    }
}

template <int tiles, int vectors>
void multiply_tiles(const SplitTile& t) {
    const bool one_run = tiles == 1 || t.a_tile == t.tile_rows * t.a_row;
    const int rows = one_run ? tiles * t.tile_rows : t.tile_rows, runs = one_run ? 1 : tiles;
    Fetcher fetcher(t, t.num_steps * (runs * parts_of(rows)));
    for (int i = 0; i < runs; i++)
        multiply_run<vectors>(t, t.a + i * t.a_tile, rows,
                              {t.sums + i * rows * vectors * 16, nullptr, nullptr}, &fetcher);
}

void multiply_to_c(const SplitTile& t, const SplitStore& store) {
    Fetcher fetcher(t, t.num_steps * parts_of(t.tile_rows));
    multiply_run<2>(t, t.a, t.tile_rows, {nullptr, &store, store.rows}, &fetcher);
}

}  // namespace

extern const SplitStoreKernels split_store_avx512bf16;
const SplitStoreKernels split_store_avx512bf16 = kSplitStore;

extern const SplitGemmKernels gemm_bf16x1_32x32_avx512bf16;
const SplitGemmKernels gemm_bf16x1_32x32_avx512bf16 = {
    1,
    1,
    nullptr,
    nullptr,
    {{&multiply_tiles<1, 1>, &multiply_tiles<1, 2>},
     {&multiply_tiles<2, 1>, &multiply_tiles<2, 2>}},
    {nullptr, nullptr},
    nullptr,
    &split_store_avx512bf16,
    {&split_input<1, 1>, &split_input<1, 4>, &split_input<1, 8>, &split_input<1, 16>},
    {&copy_input<1>, &copy_input<4>, &copy_input<8>, &copy_input<16>},
    &split_windows<1, float>,
    &split_windows<1, uint16_t>,
    &pack_panel<1>,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    false,
    64,
    false,
    &multiply_to_c,
    &split_softmax<1>,
    nullptr,
    false};

}  // namespace quoll
