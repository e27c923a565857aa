#ifndef QUOLL_LAYER_CPU_DWCONV_DWDECONV_LAYER_H
#define QUOLL_LAYER_CPU_DWCONV_DWDECONV_LAYER_H

#include <memory>
#include <vector>

#include "layer/cpu/common/packing.h"
#include "layer/cpu/deconv/deconv_layer.h"
#include "layer/cpu/dwconv/dwconv.h"
#include "layer/cpu/unary/fused_activation.h"
#include "layer/nn/deconvolution.h"

namespace quoll {

// One window a channel on channel-blocked data. Outputs whose positions agree modulo the stride see
// the same taps of the window, one input step apart: each such phase is a depthwise convolution of
// stride 1, for the dwconv kernels. Groups of several channels are deconvolutions of their own.
// Dynamic weights, three axes of single channels, and channels in numbers that no elempack divides
// run on the reference.
class DeconvolutionDepthWiseCpu : public Deconvolution {
public:
    explicit DeconvolutionDepthWiseCpu(int axes);
    int create_pipeline(const Option& opt) override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;
    unsigned traits() const override { return Deconvolution::traits() | kCreatesOutput; }

    // The taps k, k + step, ... of one axis that reach the positions with residue k * dilation
    // modulo stride.
    struct TapClass {
        int residue, first_tap, count;
        int before;  // taps of the classes before it in the packed weights
    };
    struct AxisClasses {
        int step;
        std::vector<TapClass> classes;  // in the order of residues
        const TapClass* find(int residue) const;
    };
    // The outputs of an axis with one residue, as a convolution.
    struct Phase {
        WindowAxis axis;
        const TapClass* taps;  // null: none reaches them
        int first_output;
    };

private:
    static AxisClasses classes_of(int kernel, int dilation, int stride);
    // The phase that begins with output `first`, which is less than the stride.
    static Phase phase_of(const AxisClasses& classes, const WindowAxis& axis, int first);
    int repack_weights();
    int make_groups(const Option& opt);
    int forward_groups(const Mat& bottom, Mat& top, const Option& opt) const;
    void run(const Mat& in, const ConvGeometry& g, Mat& top, int threads) const;

    const KernelSet* kernels_;
    int pack_;  // of input and output; 0: the reference runs
    AxisClasses x_, y_;
    Mat packed_weight_;  // [channels / pack][y class][x class][tap y][tap x][pack], taps from the
                         // last
    Mat packed_bias_;    // [channels], zeros without bias
    FusedActivation activation_;
    std::vector<std::unique_ptr<DeconvolutionCpu>> groups_;
};

}  // namespace quoll

#endif
