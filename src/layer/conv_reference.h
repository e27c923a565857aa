// The convolutions and deconvolutions, scalar references included. Those of 1, 2 and 3 axes, and
// those with and without groups, differ in numbers only: each operator is one of the two classes
// below with other numbers.
#ifndef QUOLL_LAYER_CONV_REFERENCE_H
#define QUOLL_LAYER_CONV_REFERENCE_H

#include <vector>

#include "conv_window.h"

namespace quoll {

// Fields of the convolutions beyond the window's.
struct ConvolutionFields : ConvFields {
    float pad_value;
    // 0: f32. Otherwise the input is rounded to int8 with its scale, sums are int32; above 100 the
    // output is rounded to int8 too. With groups 1 and 101 mean a weight scale for each group, 2
    // and 102 one for all.
    int int8_scale_term;
    // 1: int8 values have zero points, as affine8.h describes; the input is s8, its padding 0 (the
    // zero point), and each output channel has a weight scale, with groups, too.
    int int8_affine, bottom_zero_point, top_zero_point;
    Mat weight_data_int8_scales;  // one an output channel or group
    Mat bottom_blob_int8_scales;  // one
    Mat top_blob_int8_scales;     // one, when int8_scale_term > 100
    Mat weight_data_int8;         // s8 weights, made by create_pipeline

    ConvolutionFields(int axes, bool grouped)
        : ConvFields(axes, grouped),
          pad_value(0.f),
          int8_scale_term(0),
          int8_affine(0),
          bottom_zero_point(0),
          top_zero_point(0) {}
    bool int8_output() const { return int8_scale_term > 100; }
    signed char int8_padding() const {
        return int8_affine ? (signed char)bottom_zero_point : int8_pad_value(pad_value);
    }
};

// True for the 1-D input that a 1x1 convolution takes as a single pixel of `w` channels; its output
// is 1-D too.
bool is_flat_input(const ConvFields& s, const Shape& input);
int convolution_geometry(const Layer& layer, const ConvolutionFields& s,
                         const std::vector<Shape>& in, ConvGeometry* g);

// y = activation(correlation of the padded input with weight_data + bias), in `group` groups of
// channels that do not mix. Input [w, h, d, num_input], output [outw, outh, outd, num_output];
// without h and d where the operator has fewer axes. With dynamic_weight the weight, its axes in
// the order of weight_data but one group after another, and the bias are inputs. With add_input so
// is a blob that is added before the activation, as BinaryOp adds, axes that differ included.
class ConvolutionOperator : public Operator<ConvolutionOperator>, public ConvolutionFields {
public:
    ConvolutionOperator(int axes, bool grouped);
    static void params(ConvolutionOperator& s, ParamVisitor& v);
    static void weights(ConvolutionOperator& s, WeightVisitor& v);
    static int shape(const ConvolutionOperator& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int load_model(const ModelBin& mb) override;
    // Makes weight_data_int8 when int8_scale_term is set.
    int create_pipeline(const Option& opt) override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override;
    int64_t macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const override;
    // After add_input, dynamic_weight or int8_scale_term changed: the flags that follow, or an
    // error with a message for what does not go together.
    int check_inputs();
};

// activation(a + b) on f32 blobs whose axes may differ as those of BinaryOp, into `top`, as s8
// where `s` has such output. fast: blobs of any elempack.
int add_and_activate(const Layer& layer, const ConvolutionFields& s, const Mat& a, const Mat& b,
                     bool fast, Mat* top, const Option& opt);

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

// The transpose of a convolution: every input value adds weight_data, scaled by it, to the output
// at (x, y, z) * stride; then + bias, activation, and pads are cut off. Input [w, h, d, num_input],
// output [outw, outh, outd, num_output] with outw = (w - 1) * stride_w + dilation_w * (kernel_w -
// 1) + 1 + output_pad_right - pad_left - pad_right, the others alike.
class DeconvolutionOperator : public Operator<DeconvolutionOperator>, public DeconvolutionFields {
public:
    DeconvolutionOperator(int axes, bool grouped);
    static void params(DeconvolutionOperator& s, ParamVisitor& v);
    static void weights(DeconvolutionOperator& s, WeightVisitor& v);
    static int shape(const DeconvolutionOperator& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int load_model(const ModelBin& mb) override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override;
    int64_t macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const override;
};

}  // namespace quoll

#endif
