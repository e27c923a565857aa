// The scalar references of Convolution and ConvolutionDepthWise, and of the two deconvolutions:
// each pair differs in the number of groups only.
#ifndef QUOLL_LAYER_CONV_REFERENCE_H
#define QUOLL_LAYER_CONV_REFERENCE_H

#include <vector>

#include "conv_window.h"

namespace quoll {

// Fields of the convolutions beyond the window's.
struct ConvolutionFields : ConvFields {
    float pad_value;
    // 0: f32. Otherwise the input is rounded to int8 with its scale, sums are int32; above 100 the
    // output is rounded to int8 too.
    int int8_scale_term;
    Mat weight_data_int8_scales;  // one an output channel or group
    Mat bottom_blob_int8_scales;  // one
    Mat top_blob_int8_scales;     // one, when int8_scale_term > 100
    Mat weight_data_int8;         // s8 weights, made by create_pipeline

    ConvolutionFields() : pad_value(0.f), int8_scale_term(0) {}
    bool int8_output() const { return int8_scale_term > 100; }
};

// The schema lines of ConvolutionFields, save group; int8_terms: allowed int8_scale_term.
void convolution_params(ConvolutionFields& s, ParamVisitor& v, Range int8_terms);
// True for the 1-D input that a 1x1 convolution takes as a single pixel of `w` channels; its output
// is 1-D too.
bool is_flat_input(const ConvFields& s, const Shape& input);
int convolution_geometry(const Layer& layer, const ConvolutionFields& s,
                         const std::vector<Shape>& in, ConvGeometry* g);
int convolution_shape(const Layer& layer, const ConvolutionFields& s, const std::vector<Shape>& in,
                      std::vector<Shape>& out);
// Fills weight_data_int8 when int8_scale_term is set.
int convolution_create_pipeline(const Layer& layer, ConvolutionFields& s);
// f32 or s8 in, f32 out (s8 when int8_output()).
int convolution_forward(const Layer& layer, const ConvolutionFields& s,
                        const std::vector<Mat>& bottoms, Mat& top, const Option& opt);

// Fields of the deconvolutions beyond the window's.
struct DeconvolutionFields : ConvFields {
    int output_pad_right, output_pad_bottom;
    int output_w, output_h;

    DeconvolutionFields() : output_pad_right(0), output_pad_bottom(0), output_w(0), output_h(0) {}
};

// The schema lines of DeconvolutionFields, save group.
void deconvolution_params(DeconvolutionFields& s, ParamVisitor& v);
int deconvolution_geometry(const Layer& layer, const DeconvolutionFields& s,
                           const std::vector<Shape>& in, ConvGeometry* g);
int deconvolution_shape(const Layer& layer, const DeconvolutionFields& s,
                        const std::vector<Shape>& in, std::vector<Shape>& out);
int deconvolution_forward(const Layer& layer, const DeconvolutionFields& s,
                          const std::vector<Mat>& bottoms, Mat& top, const Option& opt);
// The weights of a dynamic deconvolution come as [num_input][num_output / group][h][w]; flat gets
// the order of weight_data.
int transpose_dynamic_weight(const Layer& layer, const Mat& input, int group, const Option& opt,
                             Mat* flat);

}  // namespace quoll

#endif
