#ifndef QUOLL_LAYER_CPU_DWCONV_DWCONV_LAYER_H
#define QUOLL_LAYER_CPU_DWCONV_DWCONV_LAYER_H

#include "layer/common/built_layers.h"
#include "layer/cpu/common/few_kernels.h"
#include "layer/cpu/common/packing.h"
#include "layer/cpu/conv/conv_layer.h"
#include "layer/cpu/dwconv/dwconv.h"
#include "layer/cpu/dwconv/tile_groups.h"
#include "layer/cpu/int8/int8_depthwise.h"
#include "layer/cpu/unary/fused_activation.h"

namespace quoll {

// Convolutions with one window per channel run on dwconv kernels: on channel blocks if the channels
// divide into them, otherwise on planar rows. With a few windows per channel they run on an input
// whose channels are repeated (in a small library as the following). Other groupings are a matrix
// product per group. int8 convolutions have kernels of their own. 3-D windows per channel, and
// dynamic weights, run on the reference.
class ConvolutionDepthWiseCpu : public Convolution {
public:
    explicit ConvolutionDepthWiseCpu(int axes);
    int create_pipeline(const Option& opt) override;
    // For groups that are matrix products; otherwise there is nothing to decide.
    int plan(const std::vector<Shape>& bottoms, const Option& opt,
             std::shared_ptr<const LayerPlan>* plan) const override;
    int forward_planned(const LayerPlan& plan, std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                        bool inplace, const Option& opt) const override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;
    unsigned traits() const override { return Convolution::traits() | kCreatesOutput; }

private:
    int make_plan(const std::vector<Shape>& bottoms, const Option& opt, ConvolutionPlan* p) const;
    int forward_groups(const ConvolutionPlan& p, const Mat& bottom, Mat& top,
                       const Option& opt) const;
    bool on_tiles(const Shape& in) const {
        return tile_groups_.takes(in.dtype) && !is_flat_input(*this, in);
    }
    int forward_reference(const Mat& bottom, Mat& top, const Option& opt) const;
    int forward_repacked(const Mat& bottom, int pack, Mat& top, const Option& opt) const;
    // Runs f32, f16 or bf16 with one window per channel.
    int forward_float(const Mat& bottom, const ConvGeometry& g, Mat& top, const Option& opt) const;

    // dwconv_weights.cpp
    int pack_planar_weights(const Option& opt);
    bool has_narrow_groups() const;
    int repack_weights();
    bool has_several_windows() const;
    int create_repeated(const Option& opt);
    int repeat_channels(const Mat& bottom, const Option& opt, Mat* repeated) const;

    // dwconv_blocked.cpp
    DwconvPairKernel pair_kernel(const ConvGeometry& g, DType dtype) const;
    int forward_f16(const Mat& bottom, const ConvGeometry& g, Mat& top, const Option& opt) const;
    int forward_blocked(const Mat& bottom, const ConvGeometry& g, Mat& top,
                        const Option& opt) const;
    // in, out: of the same type, elempack pack_, channels in c.
    int run_blocked(const Mat& in, const ConvGeometry& g, const Mat& out, const Option& opt) const;

    // dwconv_planar.cpp
    DwconvPlanarKernel planar_kernel(const ConvGeometry& g) const;
    int forward_planar(DwconvPlanarKernel kernel, const Mat& bottom, const ConvGeometry& g,
                       Mat& top, const Option& opt) const;

    // dwconv_few_channels.cpp
    int forward_few_channels(const Mat& bottom, const ConvGeometry& g, Mat& top,
                             const Option& opt) const;

    // dwconv_slices.cpp
    int forward_slices(const Mat& bottom, const ConvGeometry& g, Mat& top, const Option& opt) const;
    void gather_rows(const ConvGeometry& g, const float* channel, int y, int z, float* memory,
                     DwconvRow* row) const;

    bool has_slices() const { return kIsBuilt<ConvolutionDepthWise3D> && axes == 3; }
    static double work_of(const ConvGeometry& g) {
        return (double)g.x.out * g.y.out * g.maxk() * g.num_output;
    }
    enum { kUnsuitable = 1 };  // the laid out input would dwarf what is in it
    // Whether several outputs share a register: blocks of channels are so narrow that this is worth
    // laying out the input.
    bool few_channels() const {
        return !has_slices() && (!row_ || (4 * pack_ <= kernels_->lanes && stride_w == 1));
    }

    const KernelSet* kernels_;
    Int8Depthwise int8_;
    Int8Conv int8_groups_;                               // other int8 ones
    ConvRunner groups_;                                  // created for other groupings
    TileGroups tile_groups_;                             // some of these on tile units, in bf16
    std::unique_ptr<ConvolutionDepthWiseCpu> repeated_;  // of several windows a channel
    int pack_;             // of input and output of one window a channel; otherwise 0
    int pair_;             // channels that are one to the kernels: 2 of f16, else 1
    DwconvRowKernel row_;  // for pack_ > 1
    int width_;            // channels of a group, on the kernels for narrow groups; otherwise 1
    // [channels / pack][kernel_d][kernel_h][kernel_w][width_][pack, or lanes if few_channels()]
    Mat packed_weight_;
    Mat planar_weight_;  // [channels][kDwconvPlanarWeights], where blobs may be planar half floats
    Mat packed_bias_;    // [channels / pack][the same], zeros without bias
    FusedActivation activation_;
};

}  // namespace quoll

#endif
