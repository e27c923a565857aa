// What the convolution-like operators share: the parameters of a kernel window that slides over w
// and h, and the geometry that follows from them for an input of a given size.
#ifndef QUOLL_LAYER_CONV_WINDOW_H
#define QUOLL_LAYER_CONV_WINDOW_H

#include "activation.h"
#include "schema.h"

namespace quoll {

// pad_left and its like of "SAME": as many as keep ceil(size / stride) outputs, the odd one at the
// end (upper) or at the beginning (lower).
enum { kPadSameUpper = -233, kPadSameLower = -234 };

// Fields of the format that all of them have.
struct ConvFields {
    int num_output;
    int kernel_w, kernel_h;
    int dilation_w, dilation_h;
    int stride_w, stride_h;
    int pad_left, pad_right, pad_top, pad_bottom;
    int bias_term;
    int weight_data_size;
    int group;  // 1 unless the operator has the parameter
    int activation_type;
    int dynamic_weight;  // weight, and bias if bias_term, come as inputs 1 and 2
    Mat activation_params;

    Mat weight_data;  // 1-D f32 or s8: [group][num_output / group][num_input / group][h][w]
    Mat bias_data;

    ConvFields();
};

// The schema lines of ConvFields, save group and dynamic_weight.
void conv_params(ConvFields& s, ParamVisitor& v);
// weight_data (tagged) and bias_data, unless the weights are dynamic.
void conv_weights(ConvFields& s, WeightVisitor& v, const char* doc);
// After loading: counts that must fit together. Logs and returns a negative code.
int check_conv_params(const Layer& layer, const ConvFields& s);

// One axis of a sliding window; sizes count scalars.
struct WindowAxis {
    int in, out, kernel, dilation, stride;
    int before, after;  // padding (convolution) or what is cut off (deconvolution)

    int extent() const { return dilation * (kernel - 1) + 1; }
};

// A convolution-like operator on an input of known size.
struct ConvGeometry {
    WindowAxis x, y;
    int group;
    int num_input, num_output;  // all groups together

    int maxk() const { return x.kernel * y.kernel; }
};

// Weight counts and kernel sizes of `s`, taken from the weight input when dynamic_weight (for
// deconvolutions its c is num_input and its d is num_output / group, otherwise c is num_output);
// checks the number, axes and dtypes of the inputs. s8_input: the first may be int8. Leaves out the
// sizes of the output.
int conv_geometry(const Layer& layer, const ConvFields& s, const std::vector<Shape>& in,
                  bool deconvolution, bool s8_input, ConvGeometry* g);

// Sets out, before and after of a convolution axis: out = (in + before + after - extent) / stride +
// 1.
int convolve_axis(const Layer& layer, const char* name, int pad_before, int pad_after,
                  WindowAxis* axis);

// The weight of a layer with dynamic weights as a 1-D Mat (a view where possible).
int flat_weight(const Layer& layer, const Mat& input, const Option& opt, Mat* flat);

// f32 weights rounded to int8; each of the scales.w scales goes with an equal share of them. Empty
// when memory runs out.
Mat quantize_weight(const Mat& weight, const Mat& scales);
// The factor that turns an int32 sum into a float.
inline float dequantize_scale(float input_scale, float weight_scale) {
    return weight_scale == 0.f ? 0.f : 1.f / (input_scale * weight_scale);
}

// Refuses int8 weights in a layer that has no scales for them.
int check_weight_dtype(const Layer& layer, const Mat& weight, bool int8_scales);

}  // namespace quoll

#endif
