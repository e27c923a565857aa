// Deconvolutions of 1, 2 and 3 axes, with and without groups. They differ only in numbers.
#ifndef QUOLL_LAYER_DECONVOLUTION_H
#define QUOLL_LAYER_DECONVOLUTION_H

#include <vector>

#include "layer/common/conv_window.h"

namespace quoll {

// Fields of the deconvolutions beyond the window's.
struct DeconvolutionFields : ConvFields {
    int output_pad_right, output_pad_bottom, output_pad_behind;
    int output_w, output_h, output_d;

    DeconvolutionFields(int axes, bool grouped)
        : ConvFields(axes, grouped),
          output_pad_right(0),
          output_pad_bottom(0),
          output_pad_behind(0),
          output_w(0),
          output_h(0),
          output_d(0) {}
};

int deconvolution_geometry(const Layer& layer, const DeconvolutionFields& s,
                           const std::vector<Shape>& in, ConvGeometry* g);

// The weights of a dynamic deconvolution come as [num_input][num_output / group][h][w]; `flat` gets
// them in the order of weight_data. Only the numbers of channels, the group and the kernel of g are
// used.
int transpose_dynamic_weight(const Layer& layer, const ConvGeometry& g, const Mat& input,
                             const Option& opt, Mat* flat);

// The transpose of a convolution: each input value adds weight_data, multiplied by it, to the
// output at (x, y, z) * stride; then the bias is added, the activation applied, and the padding cut
// off. The input is [w, h, d, num_input] and the output [outw, outh, outd, num_output] with outw =
// (w - 1) * stride_w + dilation_w * (kernel_w - 1) + 1 + output_pad_right - pad_left - pad_right;
// outh and outd follow in the same way.
class Deconvolution : public Operator<Deconvolution>, public DeconvolutionFields {
public:
    Deconvolution(int axes, bool grouped);
    static void params(Deconvolution& s, ParamVisitor& v);
    static void weights(Deconvolution& s, WeightVisitor& v);
    static int shape(const Deconvolution& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int load_model(const ModelBin& mb) override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override;
    int forward_empty(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                      const Option& opt) const override;
    int64_t macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const override;
    bool fusion_target(FusionTarget* t) override { return *t = conv_fusion_target(*this, 0), true; }
};

}  // namespace quoll

#endif
