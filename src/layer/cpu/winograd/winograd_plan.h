// 3 x 3 convolutions of stride 1 by Winograd's algorithm.
#ifndef QUOLL_LAYER_CPU_WINOGRAD_WINOGRAD_PLAN_H
#define QUOLL_LAYER_CPU_WINOGRAD_WINOGRAD_PLAN_H

#include "layer/cpu/conv/conv_plan.h"
#include "layer/cpu/winograd/winograd.h"

namespace quoll {

class WinogradPlan {
public:
    // Whether the algorithm fits: 3 x 3, stride and dilation 1, channels in blocks of one register.
    static bool takes(const KernelSet& kernels, const ConvShape& shape);
    // Whether it is also expected to be faster than the direct form.
    static bool prefers(const KernelSet& kernels, const ConvShape& shape, int threads);
    // Cycles from begin to end that so many cores are expected to need, for shapes that it takes.
    static double cycles(const KernelSet& kernels, const ConvShape& shape, int threads);

    // Transformed weights: floats, and from [out_channels][in_channels][3][3].
    static size_t packed_size(const GemmKernels& kernels, size_t in_channels, size_t out_channels);
    static void pack(const KernelSet& kernels, const float* weights, size_t in_channels,
                     size_t out_channels, float* packed, float* scratch);
    // Floats of pack()'s scratch.
    static size_t pack_scratch(const GemmKernels& kernels, size_t in_channels);

    WinogradPlan(const KernelSet& kernels, const ConvShape& shape, int threads);
    // Floats of run()'s workspace.
    size_t workspace() const;
    // As ConvPlan::run. zeros: gemm_bias_size floats of zero.
    void run(const float* in, const float* weights, const float* bias, const float* zeros,
             float* out, const float* residual, size_t residual_step,
             const FusedActivation& activation, float* workspace) const;

private:
    struct Blobs;
    void run_tiles(const Blobs& blobs, float* workspace, int first, int count) const;
    void transform_input(const float* in, int tile, float* to, size_t step) const;
    void transform_output(const Blobs& blobs, const float* from, size_t step, int tile) const;

    const KernelSet& kernels_;
    const ConvShape shape_;
    int threads_;
    int tiles_x_, tiles_;
    int chunks_, chunk_;  // of tiles that are transformed together; tiles of the largest
};

}  // namespace quoll

#endif
