// Convolutions, and products of matrices as 1x1 convolutions, on the kernels of split_gemm.h: a
// TilePlan whose buffers hold the input's bf16 terms.
#ifndef QUOLL_LAYER_CPU_CONV_SPLIT_PLAN_H
#define QUOLL_LAYER_CPU_CONV_SPLIT_PLAN_H

#include "layer/cpu/gemm/split_gemm.h"
#include "layer/cpu/gemm/tile_plan.h"

namespace quoll {

// The kernels for what `opt` asks for and this machine has; or null.
const SplitGemmKernels* built_split_kernels(const Option& opt);
inline const SplitGemmKernels* split_kernels_for(const Option& opt) {
    return kHasTileUnits ? built_split_kernels(opt) : nullptr;
}

// The bf16 values of a TileShape are bf16, which kernels of one product alone take.
class SplitPlan {
public:
    // As TilePlan::is_supported; and C is in packs of 1, 2, 4, 8 or multiples of 16, or one of all
    // columns.
    static bool is_supported(const TileShape& shape);
    // Cycles from begin to end that one core is expected to need.
    static double cycles(const SplitGemmKernels& kernels, const TileShape& shape,
                         const CostTable& costs = host_costs());

    // Packed weights: bf16 values, and from [out_channels][in_channels][kernel_h][kernel_w]. Of the
    // shape only the channels, the elempack of the input and the kernel count, with its dilation.
    static size_t packed_size(const SplitGemmKernels& kernels, const TileShape& shape);
    static void pack(const SplitGemmKernels& kernels, const float* weights, const TileShape& shape,
                     uint16_t* packed);
    // The inverse of pack().
    static void unpack(const SplitGemmKernels& kernels, const uint16_t* packed,
                       const TileShape& shape, float* weights);
    // Whether all weights are such as several products take: finite, below 3.38e38 in magnitude.
    static bool supports_weights(const float* weights, size_t count);
    // Floats that the bias must have: zeros beyond the columns.
    static size_t bias_size(size_t n) {
        return (n + kUnitColumns - 1) / kUnitColumns * kUnitColumns;
    }

    SplitPlan(const SplitGemmKernels& kernels, const TileShape& shape, int threads);
    // Whether a plan for a batch of such items does as this one item by item: several products may
    // refuse an item, and a batch has neither windows of few channels nor tiles with taps of their
    // own.
    bool extends_to_batch() const;
    // Floats of run()'s workspace, which must be aligned to 64 bytes.
    size_t workspace() const { return plan_.workspace(); }
    // As ConvPlan::run; the residual is of the output's type. False where blobs or weights have
    // values that several products do not take: the output is then no result, but it is as it was
    // if it is the residual.
    bool run(const void* in, const uint16_t* weights, const float* bias, void* out,
             const void* residual, ptrdiff_t residual_block, const FusedActivation& activation,
             float* workspace) const;
    const TileShape& shape() const { return shape_; }
    int threads() const { return plan_.threads(); }
    int products() const { return kernels_.products; }

private:
    class Work;

    const SplitGemmKernels& kernels_;
    const TileShape shape_;
    const TilePlan plan_;
};

}  // namespace quoll

#endif
