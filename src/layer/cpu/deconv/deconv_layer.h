#ifndef QUOLL_LAYER_CPU_DECONV_DECONV_LAYER_H
#define QUOLL_LAYER_CPU_DECONV_DECONV_LAYER_H

#include "layer/cpu/common/packing.h"
#include "layer/cpu/deconv/deconv_patches.h"
#include "layer/cpu/unary/fused_activation.h"
#include "layer/nn/deconvolution.h"

namespace quoll {

// Outputs whose positions agree modulo the strides form a phase. A phase meets the same taps of
// the kernel everywhere, one input pixel a tap, so it is a convolution of stride 1 that the gemm
// kernels run without intermediate sums. With so few output channels that most of a register would
// be idle, the channels and taps are the rows of a product with the input pixels instead, and its
// rows are added to the output. Dynamic weights run on the reference.
class DeconvolutionCpu : public Deconvolution {
public:
    explicit DeconvolutionCpu(int axes);
    int create_pipeline(const Option& opt) override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;
    unsigned traits() const override { return Deconvolution::traits() | kCreatesOutput; }

private:
    int pack_phases(const Option& opt);
    int pack_few_channels();
    int forward_phases(const Mat& bottom, const ConvGeometry& g, Mat& top, const Option& opt) const;
    int forward_few_channels(const Mat& bottom, const ConvGeometry& g, Mat& top,
                             const Option& opt) const;

    const KernelSet* kernels_;  // null: the reference runs
    int in_pack_, out_pack_;
    bool narrow_;
    Mat packed_weight_;       // panels of [kernel_h][kernel_w][num_input]
    Mat few_channel_weight_;  // [num_output][kernel_h][kernel_w][num_input]
    Mat packed_bias_;         // gemm_bias_size floats, zeros without bias
    FusedActivation activation_;
    PatchDeconv patches_;
};

}  // namespace quoll

#endif
