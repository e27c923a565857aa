#include "layer/x86/gemm_bf16_amx.h"

namespace quoll {

namespace {

// Pairs of k of 16 columns of bf16 values, from k0 and n0 on, zeros beyond the matrix. Where values
// of k are not neighbours, rows are widened and put beside each other, else columns are turned.
void pack_pairs(const SplitPanel& t, size_t k0, size_t n0, __m512i* to) {
    const size_t columns = t.columns - n0, left = t.k - k0;
    const uint16_t* const from = (const uint16_t*)t.src + k0 * t.k_step + n0 * t.n_step;
    if (t.n_step == 1) {
        const __mmask16 mask = first_lanes(columns);
        const auto row = [&](size_t i) {
            const __mmask16 some = i < left ? mask : 0;
            return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, from + i * t.k_step));
        };
#pragma GCC unroll 1
        for (size_t i = 0; i < kSplitK; i += 2)
            _mm512_store_si512(to + i / 2,
                               _mm512_or_si512(row(i), _mm512_slli_epi32(row(i + 1), 16)));
        return;
    }
    const __mmask32 mask = (__mmask32)(left < kSplitK ? (1u << left) - 1 : ~0u);
    __m512 pairs[kSplitK / 2];
#pragma GCC unroll 1
    for (size_t j = 0; j < kSplitK / 2; j++) {
        const __mmask32 some = j < columns ? mask : 0;
        pairs[j] = _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(some, from + j * t.n_step));
    }
    transpose(pairs);
    for (size_t j = 0; j < kSplitK / 2; j++) _mm512_store_ps(to + j, pairs[j]);
}

void pack_bf16_panel(const SplitPanel& t) {
    const size_t vectors = t.columns > 16 ? 2 : 1;
    __m512i* to = (__m512i*)t.dst;
    for (size_t k = 0; k < t.k; k += kSplitK)
        for (size_t v = 0; v < vectors; v++, to += kSplitK / 2) pack_pairs(t, k, v * 16, to);
}

// A is given as terms, so that nothing is split, and only rows are multiplied.
constexpr SplitGemmKernels kernels_of_two() {
    SplitGemmKernels kernels = {};
    kernels.products = kernels.terms = 2;
    kernels.begin = &begin_bf16;
    kernels.end = &end_tiles;
    kernels.tile[0][0] = &split_tile<2, 1, 1>, kernels.tile[0][1] = &split_tile<2, 1, 2>;
    kernels.tile[1][0] = &split_tile<2, 2, 1>, kernels.tile[1][1] = &split_tile<2, 2, 2>;
    kernels.chain[0] = &chain_tile<2, float>;
    kernels.end_chain = &end_chain;
    kernels.to_c = &QUOLL_TILE_NAME(split_store);
    kernels.input[3] = &copy_terms;
    kernels.pack = &pack_panel<1>;
    kernels.pack_bf16 = &pack_bf16_panel;
    kernels.spin_tiles = spin_tiles, kernels.spin_vectors = spin_vectors;
    kernels.softmax = &split_softmax<2>;
    return kernels;
}

}  // namespace

const SplitGemmKernels QUOLL_TILE_NAME(gemm_bf16x2_32x32) = kernels_of_two();

}  // namespace quoll
