#ifndef QUOLL_LAYER_DECONVOLUTION_H
#define QUOLL_LAYER_DECONVOLUTION_H

#include "conv_reference.h"
#include "schema.h"

namespace quoll {

// The transpose of a convolution: every input pixel adds weight_data, scaled by it, to the output
// at (x, y) * stride; then + bias, activation, and pads are cut off. Input [w, h, num_input],
// output [outw, outh, num_output] with outw = (w - 1) * stride_w + dilation_w * (kernel_w - 1) + 1
// + output_pad_right - pad_left - pad_right.
class Deconvolution : public Operator<Deconvolution>, public DeconvolutionFields {
public:
    Deconvolution();
    static void params(Deconvolution& s, ParamVisitor& v);
    static void weights(Deconvolution& s, WeightVisitor& v);
    static int shape(const Deconvolution& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int load_model(const ModelBin& mb) override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override;
};

}  // namespace quoll

#endif
