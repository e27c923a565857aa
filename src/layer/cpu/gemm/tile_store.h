// Where the sums of a TilePlan's tiles go, for plans whose results are f32 or bf16.
#ifndef QUOLL_LAYER_CPU_CONV_TILE_STORE_H
#define QUOLL_LAYER_CPU_CONV_TILE_STORE_H

#include "layer/cpu/gemm/split_gemm.h"
#include "layer/cpu/gemm/tile_plan.h"

namespace quoll {

// How many columns of C are contiguous; 0: their number varies, which no SplitStore describes.
int tile_group(const TileShape& shape);

// The output, and the residual, which may be null or the output itself. Both have the same type and
// elempack; the residual's channel blocks are residual_block values apart.
struct TileTarget {
    void* out;
    const void* residual;
    ptrdiff_t residual_block;
};

// Of the columns from n0 on, `width` of which or fewer are a panel. bias: of all columns, or null.
// An activation with a pass of its own is a leaky one in `slope` or not in the store at all. Rows
// are left open.
SplitStore tile_store(const TileShape& shape, size_t n0, int width, const float* bias,
                      const TileTarget& target, const FusedActivation& activation);
// Whether a pixel's first channel or the first pixel has a value that is not finite: tile units
// give such for all channels of a window, or all pixels of a column of B, with a value that they
// cannot take. An infinite one of B gives NaN or infinity by the signs of the terms of A.
bool has_non_finite(const TileShape& shape, const float* out);
// Whether the store is the whole way of so many columns in groups of 16.
bool is_whole(const SplitStore& store, int columns, const FusedActivation& activation);
// Stores the sums of a tile to C, with the activation's pass.
void finish_tile_sums(const SplitStoreKernels& kernels, const SplitStore& store,
                      const FusedActivation& activation, float* sums, int rows);

}  // namespace quoll

#endif
