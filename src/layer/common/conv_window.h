// Common to the convolution-like operators: the parameters of a kernel window that slides over w, h
// and d, and the geometry that follows from them for an input of a given size.
//
// The 1-D operators slide over w alone, and the rows of their blobs are the channels; the 3-D ones
// slide over the d of 4-D blobs too. Everything behind the geometry sees three axes, the unused
// ones of size 1.
#ifndef QUOLL_LAYER_CONV_WINDOW_H
#define QUOLL_LAYER_CONV_WINDOW_H

#include "layer/common/activation.h"
#include "layer/common/schema.h"

namespace quoll {

// Values of pad_left and the other pads for "SAME": as much padding as gives ceil(size / stride)
// outputs, an odd one at the end (upper) or at the beginning (lower).
enum { kPadSameUpper = -233, kPadSameLower = -234 };

// The fields that all of them have in the format, for the axes that they have.
struct ConvFields {
    int axes;      // 1 to 3: w, h, d
    bool grouped;  // the operator has the parameter group

    int num_output;
    int kernel_w, kernel_h, kernel_d;
    int dilation_w, dilation_h, dilation_d;
    int stride_w, stride_h, stride_d;
    int pad_left, pad_right, pad_top, pad_bottom, pad_front, pad_behind;
    int bias_term;
    int weight_data_size;
    int group;  // 1 unless grouped
    int activation_type;
    int dynamic_weight;  // weight, and bias if bias_term, come as inputs 1 and 2
    int add_input;       // the last input is added before the activation; convolutions only
    Mat activation_params;

    Mat weight_data;  // 1-D f32 or s8: [group][num_output / group][num_input / group][d][h][w]
    Mat bias_data;

    ConvFields(int axes, bool grouped);
    int maxk() const { return kernel_w * kernel_h * kernel_d; }
    // One kernel for each channel.
    bool depthwise() const { return group == num_output && weight_data_size / maxk() == group; }
};

// The schema lines of ConvFields except dynamic_weight.
void conv_params(ConvFields& s, ParamVisitor& v);
// weight_data (tagged) and bias_data, unless the weights are dynamic.
void conv_weights(ConvFields& s, WeightVisitor& v);
// Layer::fusion_target.
FusionTarget conv_fusion_target(ConvFields& s, int int8_scale_term);
// Layer::macs of a convolution.
int64_t conv_macs(const ConvFields& s, const std::vector<Shape>& in, const std::vector<Shape>& out);
// After loading: checks that the counts fit together. Logs and returns a negative code if not.
int check_conv_params(const Layer& layer, const ConvFields& s);

// One axis of a sliding window; sizes count scalars.
struct WindowAxis {
    int in, out, kernel, dilation, stride;
    int before, after;  // padding (convolution) or what is cut off (deconvolution)

    static WindowAxis none() { return WindowAxis{1, 1, 1, 1, 1, 0, 0}; }
    int extent() const { return dilation * (kernel - 1) + 1; }
    // The position of tap k of window i, in input coordinates (for a deconvolution: where tap k of
    // input i goes, in output coordinates).
    int64_t position(int i, int k) const {
        return (int64_t)i * stride + (int64_t)k * dilation - before;
    }
    bool holds(int64_t position) const { return position >= 0 && position < in; }
    // The input whose tap k goes to output i of a deconvolution, -1 if there is none.
    int64_t source(int i, int k) const {
        const int64_t reached = (int64_t)i + before - (int64_t)k * dilation;
        return reached >= 0 && reached % stride == 0 && holds(reached / stride) ? reached / stride
                                                                                : -1;
    }
};

// A convolution-like operator on an input of known size.
struct ConvGeometry {
    WindowAxis x, y, z;
    int group;
    int num_input, num_output;  // all groups together

    int maxk() const { return x.kernel * y.kernel * z.kernel; }
};

// Fills in weight counts and kernel sizes from `s`, or with dynamic_weight from the weight input:
// its outermost axis is num_output (deconvolutions: num_input), and the next one the other count
// divided by group (3-D operators have both on one axis). Checks the number, axes and dtypes of the
// inputs. s8_input: the first may be int8. Leaves out the sizes of the output.
int conv_geometry(const Layer& layer, const ConvFields& s, const std::vector<Shape>& in,
                  bool deconvolution, bool s8_input, ConvGeometry* g);

// Sets out, before and after of a convolution axis: out = (in + before + after - extent) / stride +
// 1.
int convolve_axis(const Layer& layer, const char* name, int pad_before, int pad_after,
                  WindowAxis* axis);

// The output that follows from g, of a batch item.
Shape conv_output_shape(const ConvFields& s, const ConvGeometry& g, DType dtype);
// An input or output with its channels in c: for 1-D operators by rows_as_channels, for others the
// blob itself, which has one axis more than they convolve.
Mat conv_channels(const ConvFields& s, const Mat& blob);
// Creates `top` as conv_output_shape says, and its conv_channels.
int create_conv_top(const ConvFields& s, const ConvGeometry& g, DType dtype, int elempack,
                    const Option& opt, Mat* top, Mat* channels);
// forward_empty of convolutions, on one item: windows lie on padding of 0, so that all values are
// activation(bias), in f32.
// Layers with dynamic weights or a summand refuse outputs that have values.
int fill_with_bias(const Layer& layer, const ConvFields& s, const std::vector<Mat>& bottoms,
                   std::vector<Mat>& tops, const Option& opt);

// The weight of a layer with dynamic weights as a 1-D Mat (a view where possible).
int flat_weight(const Layer& layer, const Mat& input, const Option& opt, Mat* flat);

// f32 weights rounded to int8; each of the scales.w scales is for an equal share of them. Empty if
// memory runs out.
Mat quantize_weight(const Mat& weight, const Mat& scales);
// pad_value as an int8 value: truncated, as in ncnn's padding, not rounded as the values are.
inline signed char int8_pad_value(float v) {
    return (signed char)(v > -128.f ? v < 127.f ? v : 127.f : -128.f);
}
// The factor that turns an int32 sum into a float.
inline float dequantize_scale(float input_scale, float weight_scale) {
    return weight_scale == 0.f ? 0.f : 1.f / (input_scale * weight_scale);
}

// Whether int8 convolutions and inner products are part of the build (CMake's QUOLL_INT8).
#if defined(QUOLL_NO_INT8)
constexpr bool kHasInt8 = false;
#else
constexpr bool kHasInt8 = true;
#endif
// Refuses an int8_scale_term (8) other than 0 if they are not.
int check_int8_term(const Layer& layer, int int8_scale_term);
// Refuses int8 weights in a layer that has no scales for them.
int check_weight_dtype(const Layer& layer, const Mat& weight, bool int8_scales);

}  // namespace quoll

#endif
