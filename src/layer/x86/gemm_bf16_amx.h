// The kernels of split_gemm.h on AMX, for any number of products.
#ifndef QUOLL_LAYER_X86_GEMM_BF16_AMX_H
#define QUOLL_LAYER_X86_GEMM_BF16_AMX_H

#include "layer/cpu/gemm/split_gemm.h"
#include "layer/x86/split_operands.h"
#include "layer/x86/split_rows.h"
#include "layer/x86/split_softmax.h"
#include "layer/x86/split_taps.h"
#include "layer/x86/tile_loop.h"

namespace quoll {

// split_store_amx.cpp
extern const SplitStoreKernels QUOLL_TILE_NAME(split_store);
extern const SplitGemmKernels QUOLL_TILE_NAME(gemm_bf16x2_32x32);

namespace {

// The panels of split_gemm.h: tiles one after another.
struct Bf16 {
    template <int vectors>
    static constexpr ptrdiff_t kRowBytesOfB = 64;
    template <int vectors>
    static constexpr ptrdiff_t b_place(int term, int vector) {
        return (term * vectors + vector) * kTileBytes;
    }
    template <int sum, int a, int b>
    QUOLL_TILE_INLINE static void dot() {
        tile_dot_bf16<sum, a, b>();
    }
};

void begin_bf16(int tile_rows) { begin_tiles(tile_rows, kUnitRowBytes, 2); }

template <int products>
constexpr int kTermsOfB = products == 2 ? 1 : kTerms<products>;

// What the sums of a tile begin with.
template <int products, int tiles, int vectors>
QUOLL_TILE_INLINE void begin_sums(const SplitTile& t) {
    if (products == 1 && t.adds)
        load_sums<tiles, vectors>(t.sums, t.tile_rows);
    else
        clear_sums();
}

template <int products, int tiles, int vectors>
void split_tile(const SplitTile& t) {
    // One product has 8 bits of precision, so that adding in several chains gains nothing.
    const size_t longest = products == 1 ? t.num_steps : (size_t)kSplitSection;
    const size_t sections = (t.num_steps + longest - 1) / longest;
    Step<Bf16, tiles, vectors> step = {nullptr, t.b, t.a_row, t.a_tile};
    Fetcher fetcher(t);
    size_t s = 0;
    for (size_t section = 0; section < sections; section++) {
        const size_t end = t.num_steps * (section + 1) / sections;
        begin_sums<products, tiles, vectors>(t);
        for (; s < end; s++) {
            step.a = t.a + t.steps[s];
            step.template run<products>();
            step.b += kTermsOfB<products> * vectors * kTileBytes;
            fetcher.fetch();
        }
        if (section == 0) {
            store_sums<tiles, vectors>(t.sums, t.tile_rows);
            continue;
        }
        alignas(64) float part[tiles * kUnitRows * vectors * 16];
        store_sums<tiles, vectors>(part, t.tile_rows);
        for (int i = 0; i < tiles * t.tile_rows * vectors * 16; i += 16)
            _mm512_store_ps(t.sums + i,
                            _mm512_add_ps(_mm512_load_ps(t.sums + i), _mm512_load_ps(part + i)));
    }
}

// Value: the type of C, to which the previous sums go.
template <int products, class Value>
void chain_tile(const SplitTile& t, const SplitEpilogue& epilogue) {
    Step<Bf16, 2, 2> step = {t.a + t.steps[0], t.b, t.a_row, t.a_tile};
    Fetcher fetcher(t);
    const int rows = epilogue.rows, calls = 2 * (int)t.num_steps - 1;
    const int share = (rows + calls - 1) / calls;
    const FullRows<Value> full(epilogue.store);
    float* const sums = epilogue.sums;
    int done = 0;
    const auto work = [&]() __attribute__((always_inline)) {
        if (done == rows) return;
        const int count = share < rows - done ? share : rows - done;
        full.finish(sums, done, count);
        done += count;
    };
    if (rows > 0) {
        const char* from = products == 1 && t.adds ? (const char*)t.sums : nullptr;
        step.template run<products>(
            StoreBefore{(char*)epilogue.sums, t.tile_rows * (ptrdiff_t)128, from});
    } else {
        begin_sums<products, 2, 2>(t);
        step.template run<products>();
    }
    fetcher.fetch();
    work();
    for (size_t s = 1; s < t.num_steps; s++) {
        step.a = t.a + t.steps[s];
        step.b += kTermsOfB<products> * 2 * kTileBytes;
        step.template run<products>(KeepSums(), work);
        fetcher.fetch();
        work();
    }
}

void end_chain(const SplitEpilogue& epilogue) {
    store_sums<2, 2>(epilogue.sums, epilogue.rows / 2);
    QUOLL_TILE_NAME(split_store).store(epilogue.store, epilogue.sums, epilogue.rows);
}

template <int products>
constexpr SplitChainKernel bf16_chain() {
    if constexpr (products == 1) return &chain_tile<1, uint16_t>;
    return nullptr;
}

#if !defined(QUOLL_EMULATE_TILES)
// Any normal values: units that multiply zeros may run at a higher clock than with real data.
void spin_tiles(int count) {
    alignas(64) uint16_t values[kTileBytes / 2];
    for (int i = 0; i < kTileBytes / 2; i++)
        values[i] = (uint16_t)(0x3e80 + i * 97 % 256 + (i * 61 % 7 > 3 ? 0x8000 : 0));
    tile_zero<0>(), tile_zero<1>(), tile_zero<2>(), tile_zero<3>();
    tile_load<4>(values, 64), tile_load<5>(values, 64);
    tile_load<6>(values, 64), tile_load<7>(values, 64);
    for (int i = 0; i < count; i += 4) {
        tile_dot_bf16<0, 4, 6>();
        tile_dot_bf16<1, 4, 7>();
        tile_dot_bf16<2, 5, 6>();
        tile_dot_bf16<3, 5, 7>();
    }
}

void spin_vectors(int count) {
    __m512 sum[8], x = _mm512_set1_ps(.5f);
    for (__m512& s : sum) s = x;
    for (int i = 0; i < count; i += 8) {
        asm volatile("" : "+v"(x));
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++) sum[j] = _mm512_fmadd_ps(sum[j], x, x);
    }
    for (__m512& s : sum) asm volatile("" ::"v"(s));
}
#else
constexpr void (*spin_tiles)(int) = nullptr;
constexpr void (*spin_vectors)(int) = nullptr;
#endif

template <int products>
constexpr SplitSoftmaxKernel softmax_kernel() {
    if constexpr (products <= 2) return &split_softmax<products>;
    return nullptr;
}

template <int products>
constexpr const SplitGemmKernels* two_products() {
    return products == 1 ? &QUOLL_TILE_NAME(gemm_bf16x2_32x32) : nullptr;
}

template <int products>
constexpr SplitGemmKernels split_kernels() {
    return {products,
            kTerms<products>,
            &begin_bf16,
            &end_tiles,
            {{&split_tile<products, 1, 1>, &split_tile<products, 1, 2>},
             {&split_tile<products, 2, 1>, &split_tile<products, 2, 2>}},
            {&chain_tile<products, float>, bf16_chain<products>()},
            &end_chain,
            &QUOLL_TILE_NAME(split_store),
            {&split_input<products, 1>, &split_input<products, 4>, &split_input<products, 8>,
             &split_input<products, 16>},
            {copy_kernel<products, 1>(), copy_kernel<products, 4>(), copy_kernel<products, 8>(),
             copy_kernel<products, 16>()},
            &split_windows<kTerms<products>, float>,
            copy_windows_kernel<products>(),
            &pack_panel<products>,
            spin_tiles,
            spin_vectors,
            nullptr,
            nullptr,
            false,
            0,
            false,
            nullptr,
            softmax_kernel<products>(),
            two_products<products>(),
            products == 1,
            products == 1 ? &kSplitTaps : nullptr};
}

}  // namespace
}  // namespace quoll

#endif
