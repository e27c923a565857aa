#include "layer/nn/convolution.h"

#include <limits.h>

#include <algorithm>
#include <memory>

#include "layer/common/affine8.h"
#include "layer/common/built_layers.h"
#include "layer/common/elementwise.h"
#include "layer/common/sublayer.h"

namespace quoll {

namespace {

// The x of an axis for which x * stride + offset lies in [0, in): [first, last).
void inside(const WindowAxis& axis, int64_t offset, int* first, int* last) {
    const int64_t low = offset >= 0 ? 0 : (-offset + axis.stride - 1) / axis.stride;
    const int64_t high = axis.in > offset ? (axis.in - 1 - offset) / axis.stride + 1 : 0;
    *first = (int)std::min<int64_t>(low, axis.out);
    *last = (int)std::max<int64_t>(*first, std::min<int64_t>(high, axis.out));
}

// sums[x] += weight * row[x * stride + offset], with pad_value outside the row; a null row is
// outside altogether. Sum: double for f32, int64_t for s8.
template <class T, class Sum>
void add_row(const WindowAxis& axis, int64_t offset, const T* row, T weight, T pad_value,
             Sum* sums) {
    int first = axis.out, last = axis.out;
    if (row) inside(axis, offset, &first, &last);
    const Sum border = (Sum)weight * pad_value;
    for (int x = 0; x < first; x++) sums[x] += border;
    for (int x = first; x < last; x++)
        sums[x] += (Sum)weight * row[x * (int64_t)axis.stride + offset];
    for (int x = last; x < axis.out; x++) sums[x] += border;
}

// All sums of output row (y, z) of channel p, without bias.
template <class T, class Sum>
void convolve_row(const Mat& in, const ConvGeometry& g, const T* weights, T pad_value, int p, int z,
                  int y, Sum* sums) {
    const int inputs = g.num_input / g.group, outputs = g.num_output / g.group;
    const T* weight = weights + (size_t)p * inputs * g.maxk();
    std::fill(sums, sums + g.x.out, Sum(0));
    for (int q = 0; q < inputs; q++) {
        const Mat channel = in.channel(p / outputs * inputs + q);
        for (int kz = 0; kz < g.z.kernel; kz++) {
            const int64_t sz = g.z.position(z, kz);
            for (int ky = 0; ky < g.y.kernel; ky++) {
                const int64_t sy = g.y.position(y, ky);
                const bool within = g.z.holds(sz) && g.y.holds(sy);
                const T* row = within ? channel.depth((int)sz).template row<T>((int)sy) : nullptr;
                for (int kx = 0; kx < g.x.kernel; kx++)
                    add_row(g.x, g.x.position(0, kx), row, *weight++, pad_value, sums);
            }
        }
    }
}

// finish(p, sum, out): writes one result of channel p.
template <class T, class Sum, class Out, class Finish>
int convolve(const Mat& in, const ConvGeometry& g, const T* weights, T pad_value, Mat& top,
             const Option& opt, Finish finish) {
    Mat sums(g.x.out, sizeof(Sum), opt.workspace_allocator);
    if (sums.empty()) return kOutOfMemory;
    for (int p = 0; p < g.num_output; p++) {
        for (int z = 0; z < g.z.out; z++) {
            for (int y = 0; y < g.y.out; y++) {
                convolve_row<T, Sum>(in, g, weights, pad_value, p, z, y, (Sum*)sums.data);
                Out* out = top.channel(p).depth(z).template row<Out>(y);
                for (int x = 0; x < g.x.out; x++) finish(p, ((const Sum*)sums.data)[x], out + x);
            }
        }
    }
    return kOk;
}

int convolve_f32(const ConvolutionFields& s, const ConvGeometry& g, const Mat& in,
                 const Mat& weight, const Mat& bias, const Activation& activation, Mat& top,
                 const Option& opt) {
    return convolve<float, double, float>(
        in, g, weight, s.pad_value, top, opt, [&](int p, double sum, float* out) {
            *out = activate((float)(sum + (bias.empty() ? 0.f : bias[p])), activation);
        });
}

// Sums of 16-bit inputs by int8 weights are exact in double.
int convolve_int16(const ConvolutionFields& s, const ConvGeometry& g, const Mat& bottom, Mat& top,
                   const Option& opt) {
    const float input_scale = s.bottom_blob_int8_scales[0];
    const signed char* const weights = s.weight_data_int8;
    Mat in = bottom.clone(opt.workspace_allocator);
    Mat wide(Shape(s.weight_data_size), 1, opt.workspace_allocator);
    if (in.empty() || wide.empty()) return kOutOfMemory;
    for_each_value(in, [&](float x) { return (float)int16_value(x, input_scale); });
    for (int i = 0; i < wide.w; i++) wide[i] = (float)weights[i];
    QUOLL_RETURN_IF_ERROR(convolve_f32(s, g, in, wide, Mat(), Activation(), top, opt));
    const Activation activation(s.activation_type, s.activation_params);
    for (int p = 0; p < g.num_output; p++) {
        Mat channel = top.channel(p);
        const float scale = dequantize_scale(input_scale, s.weight_data_int8_scales[p]);
        const float bias = s.bias_data.empty() ? 0.f : s.bias_data[p];
        for_each_value(channel,
                       [&](float sum) { return activate(sum * scale + bias, activation); });
    }
    return kOk;
}

// top: s8 or f32.
int convolve_s8(const ConvolutionFields& s, const ConvGeometry& g, const Mat& bottom, Mat& top,
                const Option& opt) {
    const Activation activation =
        s.add_input ? Activation() : Activation(s.activation_type, s.activation_params);
    const float input_scale = s.bottom_blob_int8_scales[0];
    const int scales = s.weight_data_int8_scales.w;
    const signed char* weights = s.weight_data_int8;
    std::vector<int64_t> moved(g.num_output, 0);  // of the sums by the zero point
    const int each = s.weight_data_size / g.num_output;
    for (int i = 0; i < each * g.num_output; i++)
        moved[i / each] += (int64_t)weights[i] * s.bottom_zero_point;
    const auto value = [&](int p, int64_t sum) {
        sum -= moved[p];
        const float scale = s.weight_data_int8_scales[(int64_t)p * scales / g.num_output];
        const float x = (float)sum * dequantize_scale(input_scale, scale);
        return activate(s.bias_data.empty() ? x : x + s.bias_data[p], activation);
    };
    Mat in = bottom;
    if (bottom.dtype == DType::f32) {
        Shape shape = bottom.logical_shape();
        shape.dtype = DType::s8;
        in.create(shape, 1, opt.workspace_allocator);
        if (in.empty()) return kOutOfMemory;
        for (int q = 0; q < in.c; q++) {
            const float* from = bottom.channel(q);
            signed char* to = in.channel(q);
            for (int i = 0; i < in.w * in.h * in.d; i++) to[i] = float2int8(from[i] * input_scale);
        }
    }
    const signed char pad_value = s.int8_padding();
    if (top.dtype != DType::s8)
        return convolve<signed char, int64_t, float>(
            in, g, weights, pad_value, top, opt,
            [&](int p, int64_t sum, float* out) { *out = value(p, sum); });
    const float top_scale = s.top_blob_int8_scales[0];
    return convolve<signed char, int64_t, signed char>(
        in, g, weights, pad_value, top, opt, [&](int p, int64_t sum, signed char* out) {
            const float y = value(p, sum) * top_scale;
            *out = s.int8_affine ? affine_int8(y, s.top_zero_point) : float2int8(y);
        });
}

}  // namespace

static std::unique_ptr<Layer> make_sum(const Layer& of, bool fast) {
    return make_binaryop(of, "add_input (29)", 0, fast);
}

int add_and_activate(const Layer& layer, const ConvolutionFields& s, const Mat& a, const Mat& b,
                     bool fast, Mat* top, const Option& opt) {
    const std::unique_ptr<Layer> sum = make_sum(layer, fast);
    if (!sum) return kError;
    QUOLL_RETURN_IF_ERROR(sum->create_pipeline(opt));
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(sum->forward({a, b}, tops, opt));
    *top = tops[0];
    const Activation activation(s.activation_type, s.activation_params);
    if (activation.type != kActivationNone)
        for_each_value(*top, [&](float x) { return activate(x, activation); });
    if (!s.int8_output()) return kOk;
    quantize_to_int8(tops[0], *top, s.top_blob_int8_scales, opt);
    return top->empty() ? (int)kOutOfMemory : (int)kOk;
}

bool is_flat_input(const ConvFields& s, const Shape& input) {
    return s.axes == 2 && input.dims == 1 && !s.dynamic_weight && s.group == 1 && s.maxk() == 1 &&
           input.w == s.weight_data_size / s.num_output;
}

// What is added must have the output's size; dims 0: not known.
static int check_added(const Layer& layer, const ConvolutionFields& s, const std::vector<Shape>& in,
                       const ConvGeometry& g) {
    if (!kIsBuilt<Eltwise> || !s.adds_alike || in.size() != 2 || in[1].dims == 0) return kOk;
    Shape sums =
        is_flat_input(s, in[0]) ? Shape(g.num_output) : conv_output_shape(s, g, in[1].dtype);
    sums.dtype = in[1].dtype, sums.n = in[1].n;
    if (sums == in[1]) return kOk;
    return layer.fail("the sum behind it: expected an input of %s, got %s",
                      shape_text(sums).c_str(), shape_text(in[1]).c_str());
}

int convolution_geometry(const Layer& layer, const ConvolutionFields& s,
                         const std::vector<Shape>& in, ConvGeometry* g) {
    const bool s8_input = s.is_int8() && !s.int16_input();
    if (s8_input && s.int8_affine && !in.empty() && in[0].dtype != DType::s8)
        return layer.fail("int8_affine (26): expected an input of s8, got %s",
                          dtype_name(in[0].dtype));
    if (!s.dynamic_weight && !in.empty() && is_flat_input(s, in[0])) {
        std::vector<Shape> pixel = in;
        pixel[0] = Shape(1, 1, in[0].w, in[0].dtype);
        QUOLL_RETURN_IF_ERROR(conv_geometry(layer, s, pixel, false, s8_input, g));
        g->x.out = g->y.out = 1;
        return check_added(layer, s, in, *g);
    }
    QUOLL_RETURN_IF_ERROR(conv_geometry(layer, s, in, false, s8_input, g));
    QUOLL_RETURN_IF_ERROR(convolve_axis(layer, "width", s.pad_left, s.pad_right, &g->x));
    QUOLL_RETURN_IF_ERROR(convolve_axis(layer, "height", s.pad_top, s.pad_bottom, &g->y));
    // Along d ncnn pads as SAME_UPPER in both modes.
    const bool lower = s.pad_front == kPadSameLower && s.pad_behind == kPadSameLower;
    QUOLL_RETURN_IF_ERROR(convolve_axis(layer, "depth", lower ? (int)kPadSameUpper : s.pad_front,
                                        lower ? (int)kPadSameUpper : s.pad_behind, &g->z));
    return check_added(layer, s, in, *g);
}

Convolution::Convolution(int axes, bool grouped) : ConvolutionFields(axes, grouped) {
    one_blob_only = true;
}

void Convolution::params(Convolution& s, ParamVisitor& v) {
    conv_params(s, v);
    v(18, "pad_value", s.pad_value, 0.f, "value of the padding");
    if (s.has_int8_form()) {
        v(8, "int8_scale_term", s.int8_scale_term, 0,
          "not 0: int8 arithmetic; above 100: int8 output",
          s.grouped ? between(0, 102) : at_least(0));
        v(26, "int8_affine", s.int8_affine, 0,
          s.grouped ? "1: int8 values have zero points and are rounded half to even; not in ncnn"
                    : "1: int8 values have zero points and are rounded half to even; 3: an f32 "
                      "input is rounded to 16 bits; not in ncnn",
          between(0, s.grouped ? 1 : (int)kInt16Input));
        v(27, "bottom_zero_point", s.bottom_zero_point, 0, "int8_affine: of the input",
          between(-128, 127));
        v(28, "top_zero_point", s.top_zero_point, 0, "int8_affine: of an int8 output",
          between(-128, 127));
    }
    v(19, "dynamic_weight", s.dynamic_weight, 0, "1: weight (and bias) are inputs", between(0, 1));
    if (!s.grouped)
        v(29, "add_input", s.add_input, 0,
          "1: another input is added before the activation; not in ncnn", between(0, 1));
}

void Convolution::weights(Convolution& s, WeightVisitor& v) {
    conv_weights(s, v);
    if (!s.has_int8_form()) return;
    const bool int8 = s.is_int8() && !s.dynamic_weight;
    const int scales = !s.grouped || s.int8_affine    ? s.num_output
                       : s.int8_scale_term % 100 == 1 ? s.group
                                                      : 1;
    v(int8, "weight_data_int8_scales", s.weight_data_int8_scales, scales, WeightKind::kRaw,
      s.grouped ? "[group] or [1], with int8_affine [num_output]" : "[num_output]");
    v(int8, "bottom_blob_int8_scales", s.bottom_blob_int8_scales, 1, WeightKind::kRaw, "[1]");
    v(int8 && s.int8_output(), "top_blob_int8_scales", s.top_blob_int8_scales, 1, WeightKind::kRaw,
      "[1]");
}

int Convolution::shape(const Convolution& s, const std::vector<Shape>& in,
                       std::vector<Shape>& out) {
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(convolution_geometry(s, s, in, &g));
    const DType dtype = s.int8_output()            ? DType::s8
                        : in[0].dtype == DType::s8 ? DType::f32
                                                   : in[0].dtype;
    const bool flat = is_flat_input(s, in[0]);
    out.assign(1, flat ? Shape(g.num_output, dtype) : conv_output_shape(s, g, dtype));
    out[0].n = in[0].n;
    if (!s.add_input) return kOk;
    const DType added = in.back().dtype;
    if (!accepts_float(s, added) || (s.int8_scale_term == 0 && added != in[0].dtype))
        return s.fail("add_input (29): %s to %s", dtype_name(added), dtype_name(in[0].dtype));
    Shape sums = out[0];
    sums.dtype = added;
    if (sums == in.back()) return kOk;
    const std::unique_ptr<Layer> sum = make_sum(s, false);
    if (!sum) return kError;
    QUOLL_RETURN_IF_ERROR(sum->infer_empty_shapes({sums, in.back()}, out));
    out[0].dtype = dtype;
    return kOk;
}

int Convolution::check_inputs() {
    one_blob_only = !dynamic_weight && !add_input;
    if (add_input && (dynamic_weight || int8_affine))
        return fail("add_input (29) with dynamic_weight (19) or int8_affine (26)");
    return kOk;
}

int Convolution::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    QUOLL_RETURN_IF_ERROR(check_inputs());
    QUOLL_RETURN_IF_ERROR(check_int8_term(*this, int8_scale_term));
    const int term = int8_scale_term % 100;
    if (grouped && int8_scale_term != 0 && term != 1 && term != 2)
        return fail("int8_scale_term (8): expected 0, 1, 2, 101 or 102, got %d", int8_scale_term);
    if (int8_affine && (int8_scale_term == 0 || pad_value != 0.f))
        return fail("int8_affine (26) with int8_scale_term (8) %d, pad_value (18) %g",
                    int8_scale_term, pad_value);
    if (int8_affine != 1 && (bottom_zero_point || top_zero_point))
        return fail("zero points (27, 28): expected int8_affine (26) 1, got %d", int8_affine);
    if (int8_affine > 1 && (int8_affine != kInt16Input || int8_scale_term > 100))
        return fail("int8_affine (26) %d with int8_scale_term (8) %d", int8_affine,
                    int8_scale_term);
    if (dynamic_weight && int8_scale_term)
        return fail("int8_scale_term (8) %d with dynamic_weight (19)", int8_scale_term);
    return check_conv_params(*this, *this);
}

int Convolution::load_model(const ModelBin& mb) {
    QUOLL_RETURN_IF_ERROR(load_weights_by_schema(*this, mb));
    return check_weight_dtype(*this, weight_data, int8_scale_term != 0);
}

int Convolution::create_pipeline(const Option&) {
    if (!is_int8() || dynamic_weight) return kOk;
    weight_data_int8 = weight_data.dtype == DType::s8
                           ? weight_data
                           : quantize_weight(weight_data, weight_data_int8_scales);
    if (!weight_data_int8.empty()) return kOk;
    fail("out of memory for %d int8 weights", weight_data_size);
    return kOutOfMemory;
}

int Convolution::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(Convolution::forward(std::vector<Mat>(1, bottom_blob), tops, opt));
    top_blob = tops[0];
    return kOk;
}

int Convolution::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                         const Option& opt) const {
    const std::vector<Shape> in = shapes_of(bottoms);
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(convolution_geometry(*this, *this, in, &g));
    const bool flat = is_flat_input(*this, in[0]);
    Mat bottom = conv_channels(*this, bottoms[0]), channels;
    if (flat) bottom = bottom.reshape(1, 1, bottom.w, opt.workspace_allocator);
    tops.resize(1);
    const DType dtype = int8_output() && !add_input ? DType::s8 : DType::f32;
    QUOLL_RETURN_IF_ERROR(create_conv_top(*this, g, dtype, 1, opt, &tops[0], &channels));
    if (bottom.empty()) return kOutOfMemory;

    if (is_int8()) {
        QUOLL_RETURN_IF_ERROR(int16_input() ? convolve_int16(*this, g, bottom, channels, opt)
                                            : convolve_s8(*this, g, bottom, channels, opt));
    } else {
        Mat weight = weight_data, bias = bias_data;
        if (dynamic_weight) {
            QUOLL_RETURN_IF_ERROR(flat_weight(*this, bottoms[1], opt, &weight));
            if (bias_term) QUOLL_RETURN_IF_ERROR(flat_weight(*this, bottoms[2], opt, &bias));
        }
        // What is added comes before the activation.
        const Activation activation =
            add_input ? Activation() : Activation(activation_type, activation_params);
        QUOLL_RETURN_IF_ERROR(
            convolve_f32(*this, g, bottom, weight, bias, activation, channels, opt));
    }
    if (flat) tops[0] = tops[0].reshape(g.num_output, opt.blob_allocator);
    if (tops[0].empty()) return kOutOfMemory;
    if (!add_input) return kOk;
    return add_and_activate(*this, *this, tops[0], bottoms.back(), false, &tops[0], opt);
}

// Padding with values other than 0 adds nothing to the sums, and the bias is not rounded to int8.
int Convolution::forward_empty(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                               const Option& opt) const {
    if (pad_value != 0.f || int8_output()) return Layer::forward_empty(bottoms, tops, opt);
    return fill_with_bias(*this, *this, bottoms, tops, opt);
}

int64_t Convolution::macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const {
    return conv_macs(*this, in, out);
}

}  // namespace quoll
