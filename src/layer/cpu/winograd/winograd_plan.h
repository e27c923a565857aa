// 3 x 3 convolutions of stride 1 by Winograd's algorithm.
#ifndef QUOLL_LAYER_CPU_WINOGRAD_WINOGRAD_PLAN_H
#define QUOLL_LAYER_CPU_WINOGRAD_WINOGRAD_PLAN_H

#include "layer/cpu/gemm/conv_plan.h"
#include "layer/cpu/winograd/winograd.h"

namespace quoll {

class WinogradPlan {
public:
    // Whether the algorithm fits: 3 x 3, stride and dilation 1, channels in blocks of one register.
    static bool is_supported(const KernelSet& kernels, const ConvShape& shape);
    // Whether it is also expected to be faster than the direct algorithm.
    static bool is_profitable(const KernelSet& kernels, const ConvShape& shape);
    // Cycles that one core is expected to need, for shapes that it takes.
    static double cycles(const KernelSet& kernels, const ConvShape& shape,
                         const CostTable& costs = host_costs());

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
    // What a thread does at once: some tiles, and of their outputs some channels.
    struct Part {
        int first, tiles;
        size_t n0, columns;
    };
    size_t panel_columns() const;
    Part part(int index) const;
    double part_cycles(int tiles, size_t columns, double bytes) const;
    double choose_chunks();
    void choose_parts(double most);
    // Transformed inputs lie at [point][tile][channel], points step floats apart.
    void transform_inputs(const float* in, float* to, size_t step, int partition,
                          int partitions) const;
    void transform_tile(const float* in, int tile, int c0, int c1, float* to, size_t step) const;
    void multiply_part(const Blobs& blobs, const float* inputs, size_t step, const Part& part,
                       float* sums) const;
    void multiply(const Blobs& blobs, const float* inputs, size_t step, const Part& part,
                  float* sums) const;
    void transform_output(const Blobs& blobs, const float* from, size_t step, int tile,
                          const Part& part) const;
    void run_chunk(const Blobs& blobs, float* workspace, const Part& part) const;

    const KernelSet& kernels_;
    const ConvShape shape_;
    int threads_;
    int workers_;  // threads that have a part
    int tiles_x_, tiles_;
    int chunks_;  // of tiles
    // Groups of output channels. One: a thread transforms the inputs of a chunk, and has all to
    // itself. More: first all threads transform all inputs, then each takes chunks and groups.
    int groups_;
    size_t columns_;  // output channels whose sums stay in cache until they are transformed
};

}  // namespace quoll

#endif
