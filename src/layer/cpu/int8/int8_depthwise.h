// int8 convolution with one window a channel, on the f32 kernels for that: products and sums of
// whole numbers are exact in f32 while they stay within 2^24. Rows are rounded as the windows reach
// them, and scaled while they are in cache.
#ifndef QUOLL_LAYER_CPU_INT8_INT8_DEPTHWISE_H
#define QUOLL_LAYER_CPU_INT8_INT8_DEPTHWISE_H

#include "layer/conv_reference.h"
#include "layer/cpu/dwconv/dwconv.h"
#include "layer/cpu/int8/int8.h"
#include "layer/cpu/packing.h"

namespace quoll {

class Int8Depthwise {
public:
    // Takes the int8 weights and scales of `s`, which is depthwise() and has two axes. Leaves
    // created() false when sums might not be exact or vectors have a single lane. Logs and returns
    // a negative code.
    int create(const Layer& layer, const ConvolutionFields& s, const Option& opt);
    bool created() const { return pack_ != 0; }
    // bottom: as convolution_geometry accepted it for `g`, 3-D, any elempack, f32 or s8. top is
    // created.
    int forward(const ConvolutionFields& s, const ConvGeometry& g, const Mat& bottom, Mat& top,
                const Option& opt) const;

private:
    // On blobs in whole channel blocks.
    int run(const ConvolutionFields& s, const ConvGeometry& g, const Mat& in, Mat& channels,
            const Option& opt) const;
    // Channels that do not divide into blocks: completed in copies of the blobs.
    int forward_completed(const ConvolutionFields& s, const ConvGeometry& g, const Mat& bottom,
                          Mat& top, const Option& opt) const;
    void finish_row(int q, float* sums, size_t count, void* out) const;

    const KernelSet* kernels_ = nullptr;
    const Int8Kernels* int8_ = nullptr;
    int pack_ = 0;
    DwconvRowKernel row_ = nullptr;
    Mat weight_;        // f32 [channels / pack][kernel_h][kernel_w][pack]
    Mat scale_, bias_;  // [channels / pack][16]: those of a block, repeated
    Mat start_;         // [channels]: of the sums, what the zero point leaves
    bool narrow_ = false, affine_ = false;
    int top_zero_ = 0;
    float input_scale_ = 1.f, top_scale_ = 0.f;
    FusedActivation activation_;
};

}  // namespace quoll

#endif
