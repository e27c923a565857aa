// Convolutions of 1, 2 and 3 axes, with and without groups. They differ only in numbers.
#ifndef QUOLL_LAYER_CONVOLUTION_H
#define QUOLL_LAYER_CONVOLUTION_H

#include <vector>

#include "layer/common/conv_window.h"
#include "layer/common/int16_input.h"

namespace quoll {

// Fields of the convolutions beyond the window's.
struct ConvolutionFields : ConvFields {
    float pad_value;
    // 0: f32. Otherwise the input is rounded to int8 with its scale, sums are int32; above 100 the
    // output is rounded to int8 too. With groups, 1 and 101 mean a weight scale for each group, 2
    // and 102 one for all.
    int int8_scale_term;
    // 1: int8 values have zero points, as affine8.h describes; the input is s8, its padding 0 (the
    // zero point), and each output channel has a weight scale, with groups, too. kInt16Input: the
    // input is f32, which is rounded to 16 bits with its scale (int16_input.h).
    int int8_affine, bottom_zero_point, top_zero_point;
    bool adds_alike = false;      // with add_input: add_input has the output's size, as for Eltwise
    Mat weight_data_int8_scales;  // one per output channel or group
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
    bool has_int8_form() const { return axes <= 2 || !grouped; }
    bool is_int8() const { return kHasInt8 && int8_scale_term != 0; }
    bool int16_input() const { return is_int8() && int8_affine == kInt16Input; }
    bool int8_output() const { return is_int8() && int8_scale_term > 100; }
    signed char int8_padding() const {
        return int8_affine ? (signed char)bottom_zero_point : int8_pad_value(pad_value);
    }
};

// True for the 1-D input that a 1x1 convolution takes as a single pixel of `w` channels; its output
// is 1-D too.
bool is_flat_input(const ConvFields& s, const Shape& input);
int convolution_geometry(const Layer& layer, const ConvolutionFields& s,
                         const std::vector<Shape>& in, ConvGeometry* g);

// y = activation(correlation of the padded input with weight_data + bias), where the channels of
// each of `group` groups are convolved separately. The input is [w, h, d, num_input] and the output
// [outw, outh, outd, num_output], without d or h where the operator has fewer axes. With
// dynamic_weight the weight and the bias are inputs; the axes of the weight are in the order of
// weight_data, one group after another. With add_input a further input is added before the
// activation, broadcast as in BinaryOp.
class Convolution : public Operator<Convolution>, public ConvolutionFields {
public:
    Convolution(int axes, bool grouped);
    static void params(Convolution& s, ParamVisitor& v);
    static void weights(Convolution& s, WeightVisitor& v);
    static int shape(const Convolution& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int load_model(const ModelBin& mb) override;
    // Makes weight_data_int8 when int8_scale_term is set.
    int create_pipeline(const Option& opt) override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override;
    int forward_empty(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                      const Option& opt) const override;
    int64_t macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const override;
    bool fusion_target(FusionTarget* t) override {
        return *t = conv_fusion_target(*this, int8_scale_term), true;
    }
    // After add_input, dynamic_weight or int8_scale_term changed: the flags that follow, or an
    // error with a message for what does not go together.
    int check_inputs();
};

// activation(a + b) on f32 blobs whose axes may differ as those of BinaryOp, into `top`, as s8
// where `s` has such output. fast: blobs of any elempack.
int add_and_activate(const Layer& layer, const ConvolutionFields& s, const Mat& a, const Mat& b,
                     bool fast, Mat* top, const Option& opt);

}  // namespace quoll

#endif
