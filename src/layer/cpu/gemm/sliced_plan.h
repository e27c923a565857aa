// Convolutions, and products of matrices as 1x1 convolutions, on the kernels of sliced_gemm.h: a
// TilePlan whose buffers hold the slices of the input. With a 1x1 kernel each pixel has a scale of
// its own; larger kernels add up several pixels, so the input has one scale. With few channels,
// each row of the kernel is one step.
//
// If the input's largest values are so far above the rest that this would lose accuracy, they are
// multiplied separately, in a second run.
#ifndef QUOLL_LAYER_CPU_CONV_SLICED_PLAN_H
#define QUOLL_LAYER_CPU_CONV_SLICED_PLAN_H

#include "layer/cpu/gemm/sliced_gemm.h"
#include "layer/cpu/gemm/tile_store.h"

namespace quoll {

// The kernels for these options on this machine; or null.
const SlicedGemmKernels* built_sliced_kernels(const Option& opt);
inline const SlicedGemmKernels* sliced_kernels_for(const Option& opt) {
    return kHasTileUnits ? built_sliced_kernels(opt) : nullptr;
}

// Blobs are f32.
class SlicedPlan {
public:
    // As SplitPlan::takes, but for planar blobs of many channels and sums that may overflow.
    static bool is_supported(const TileShape& shape);
    // The cycles that one core is expected to need from begin to end.
    static double cycles(const TileShape& shape, const CostTable& costs = host_costs());

    // Floats of packed weights, which are made from [out_channels][in_channels][kernel_h][kernel_w]
    // and aligned to 64 bytes. Of the shape, only the channels and the kernel matter. pack()
    // returns what supports_weights() does.
    static size_t packed_size(const TileShape& shape);
    static bool pack(const SlicedGemmKernels& kernels, const float* weights, const TileShape& shape,
                     float* packed, int threads = 1);
    // The inverse of pack(): the values of the slices. A weight other than zero keeps its sign, and
    // does not become zero.
    static void unpack(const float* packed, const TileShape& shape, float* weights);
    // Whether these weights keep the accuracy of f32: no output has weights with too large a crest
    // factor.
    static bool supports_weights(const SlicedGemmKernels& kernels, const float* weights,
                                 const TileShape& shape);

    SlicedPlan(const SlicedGemmKernels& kernels, const TileShape& shape, int threads);
    // Floats of run()'s workspace, which must be aligned to 64 bytes.
    size_t workspace() const { return plan_.workspace(); }
    // As SplitPlan::run; values that it does not take are those that are not finite.
    bool run(const float* in, const float* weights, const float* bias, float* out,
             const float* residual, ptrdiff_t residual_block, const FusedActivation& activation,
             float* workspace) const;
    const TileShape& shape() const { return shape_; }
    int threads() const { return plan_.threads(); }

private:
    class Work;

    bool has_pixel_scales() const;
    bool is_row() const;  // a single pixel by a 1x1 kernel
    bool run_row(const Work& work, float* workspace) const;
    CrestFactor crest(const float* in, float most) const;

    const SlicedGemmKernels& kernels_;
    const TileShape shape_;
    const int window_rows_;  // of the kernel in a step; 0: none together
    const TilePlan plan_;
};

}  // namespace quoll

#endif
