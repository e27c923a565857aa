// Kernels of blobs of half floats, with arithmetic of half floats.
//
// To drivers such a blob is one of floats with half as many channels: each float is a pair of half
// floats, neighbouring channels, so that elempack 8 is elempack 4 (common/pairs.h). These kernels
// take the arguments of the kernels of floats, in pairs: whoever moves values need not know. Biases
// and weights are half floats too; limits, factors and the value of padding are floats.
#ifndef QUOLL_LAYER_CPU_HALF_F16_KERNELS_H
#define QUOLL_LAYER_CPU_HALF_F16_KERNELS_H

#include <stdint.h>

#include "layer/cpu/dwconv/dwconv.h"
#include "layer/cpu/gemm/gemm.h"
#include "layer/cpu/pool/pool.h"
#include "layer/cpu/unary/unary.h"
#include "layer/cpu/winograd/winograd.h"

namespace quoll {

struct F16Kernels {
    // KernelSet::narrow_f16_blocks.
    void (*narrow_blocks)(const float* lower, const float* upper, size_t count, uint16_t* to);
    GemmInitKernel gemm_init;  // of blocks of 4 pairs
    // Of blocks of 4 pairs.
#define QUOLL_DWCONV_ROW(name, kernel, stride) DwconvRowKernel dwconv_##name;
#include "layer/cpu/dwconv/kernels.inc"
#undef QUOLL_DWCONV_ROW
    DwconvPlanarKernel dwconv_planar[2];  // [stride - 1]
    UnaryKernel relu;                     // of n pairs
    WinogradInput winograd_input;
    WinogradOutput winograd_output;
    WinogradTileInput winograd_tile_input;
    WinogradTileOutput winograd_tile_output;
    WinogradStridedInput winograd_strided_input;
    WinogradStridedOutput winograd_strided_output;
    // Sums of averages are fp32.
#define QUOLL_POOL(name, operation, columns, stride) PoolWindowsKernel pool_##name;
#include "layer/cpu/pool/kernels.inc"
#undef QUOLL_POOL
};

}  // namespace quoll

#endif
