#include "layer/x86/gemm_bf16_amx.h"

namespace quoll {

namespace {

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
