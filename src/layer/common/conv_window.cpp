#include "layer/common/conv_window.h"

#include <limits.h>

#include <algorithm>

#include "layer/common/row_channels.h"
#include "layer/common/tensor.h"

namespace quoll {

// Larger kernels, strides, dilations or pads can only be mistakes; the bound keeps products within
// 64 bits.
static const double kMaxWindow = 1 << 24;

ConvFields::ConvFields(int axes, bool grouped)
    : axes(axes),
      grouped(grouped),
      num_output(0),
      kernel_w(0),
      kernel_h(1),
      kernel_d(1),
      dilation_w(1),
      dilation_h(1),
      dilation_d(1),
      stride_w(1),
      stride_h(1),
      stride_d(1),
      pad_left(0),
      pad_right(0),
      pad_top(0),
      pad_bottom(0),
      pad_front(0),
      pad_behind(0),
      bias_term(0),
      weight_data_size(0),
      group(1),
      activation_type(0),
      dynamic_weight(0),
      add_input(0) {}

void conv_params(ConvFields& s, ParamVisitor& v) {
    const bool has_h = s.axes >= 2, has_d = s.axes == 3;
    const Range positive = between(1, kMaxWindow), pad = between(kPadSameLower, kMaxWindow);
    const Range kernel = between(0, kMaxWindow);
    v(0, "num_output", s.num_output, 0, "output channels", at_least(0));
    v(1, "kernel_w", s.kernel_w, 0, "kernel width", kernel);
    if (has_h) v(11, "kernel_h", s.kernel_h, s.kernel_w, "kernel height", kernel);
    if (has_d) v(21, "kernel_d", s.kernel_d, s.kernel_w, "kernel depth", kernel);
    v(2, "dilation_w", s.dilation_w, 1, "step between kernel columns", positive);
    if (has_h)
        v(12, "dilation_h", s.dilation_h, s.dilation_w, "step between kernel rows", positive);
    if (has_d)
        v(22, "dilation_d", s.dilation_d, s.dilation_w, "step between kernel slices", positive);
    v(3, "stride_w", s.stride_w, 1, "step of the window", positive);
    if (has_h) v(13, "stride_h", s.stride_h, s.stride_w, "step of the window down", positive);
    if (has_d) v(23, "stride_d", s.stride_d, s.stride_w, "step of the window in depth", positive);
    v(4, "pad_left", s.pad_left, 0, "columns; -233 SAME_UPPER, -234 SAME_LOWER (all pads)", pad);
    v(15, "pad_right", s.pad_right, s.pad_left, "columns", pad);
    if (has_h) v(14, "pad_top", s.pad_top, s.pad_left, "rows", pad);
    if (has_h) v(16, "pad_bottom", s.pad_bottom, s.pad_top, "rows", pad);
    if (has_d) v(24, "pad_front", s.pad_front, s.pad_left, "slices", pad);
    if (has_d) v(17, "pad_behind", s.pad_behind, s.pad_front, "slices", pad);
    v(5, "bias_term", s.bias_term, 0, "1: bias_data is there", between(0, 1));
    v(6, "weight_data_size", s.weight_data_size, 0, "scalars of weight_data", at_least(0));
    if (s.grouped) v(7, "group", s.group, 1, "groups of channels that do not mix", at_least(1));
    activation_lines(s.activation_type, s.activation_params, v);
}

// The axes of weight_data, for the docs.
static const char* weight_doc(const ConvFields& s) {
    static const char* const plain[] = {
        "[num_output][num_input][kernel_w]",
        "[num_output][num_input][kernel_h][kernel_w]",
        "[num_output][num_input][kernel_d][kernel_h][kernel_w]",
    };
    static const char* const grouped[] = {
        "[group][num_output / group][num_input / group][kernel_w]",
        "[group][num_output / group][num_input / group][kernel_h][kernel_w]",
        "[group][num_output / group][num_input / group][kernel_d][kernel_h][kernel_w]",
    };
    return (s.grouped ? grouped : plain)[s.axes - 1];
}

void conv_weights(ConvFields& s, WeightVisitor& v) {
    v(!s.dynamic_weight, "weight_data", s.weight_data, s.weight_data_size, WeightKind::kTagged,
      weight_doc(s));
    v(!s.dynamic_weight && s.bias_term, "bias_data", s.bias_data, s.num_output, WeightKind::kRaw,
      "[num_output]");
}

int check_conv_params(const Layer& layer, const ConvFields& s) {
    QUOLL_RETURN_IF_ERROR(check_activation(layer, s.activation_type, s.activation_params));
    if (s.dynamic_weight) return kOk;
    if (s.num_output < 1) return layer.fail("num_output (0): expected at least 1, got 0");
    if (s.kernel_w < 1 || s.kernel_h < 1 || s.kernel_d < 1)
        return layer.fail("kernel: expected at least 1 on every axis, got %d x %d x %d", s.kernel_w,
                          s.kernel_h, s.kernel_d);
    if (s.num_output % s.group != 0)
        return layer.fail("group (7): num_output %d is not a multiple of %d", s.num_output,
                          s.group);
    // Two axes suffice to find kernels of more than 2^31 values.
    const int64_t area = (int64_t)s.kernel_w * s.kernel_h;
    const int64_t volume = area > INT_MAX ? area : area * s.kernel_d;
    const int64_t unit = volume > INT_MAX ? volume : volume * s.num_output;
    if (s.weight_data_size < 1 || s.weight_data_size % unit != 0)
        return layer.fail(
            "weight_data_size (6): expected a multiple of the kernel's size * num_output = %lld, "
            "got %d",
            (long long)unit, s.weight_data_size);
    return kOk;
}

// The weight input: the kernel's axes, then two channel counts, which share an axis where the
// kernel has three; num_output then says how many of each there are.
static int dynamic_geometry(const Layer& layer, const ConvFields& s, const std::vector<Shape>& in,
                            bool deconvolution, ConvGeometry* g) {
    const Shape& weight = in[1];
    const int dims = std::min(s.axes + 2, 4);
    if (weight.dims != dims || weight.dtype != DType::f32)
        return layer.fail("input 1, the weight: expected %d axes of f32, got %s of %s", dims,
                          shape_text(weight).c_str(), dtype_name(weight.dtype));
    g->x.kernel = weight.w, g->y.kernel = s.axes == 1 ? 1 : weight.h;
    int64_t outer = weight.size(0), inner = (int64_t)weight.size(1) * s.group;
    if (s.axes == 3) {
        g->z.kernel = weight.d;
        outer = deconvolution ? g->num_input : s.num_output;
        inner = outer < 1 || weight.c % outer != 0 ? 0 : (int64_t)weight.c / outer * s.group;
    }
    const int64_t inputs = deconvolution ? outer : inner, outputs = deconvolution ? inner : outer;
    if (inputs != g->num_input || outputs < 1 || outputs > INT_MAX || outer % s.group != 0)
        return layer.fail("input 1, the weight %s in %d groups: does not fit %d input channels",
                          shape_text(weight).c_str(), s.group, g->num_input);
    g->num_output = (int)outputs;
    if (s.bias_term && ((int64_t)in[2].total() != outputs || in[2].dtype != DType::f32))
        return layer.fail("input 2, the bias: expected %lld values of f32, got %s of %s",
                          (long long)outputs, shape_text(in[2]).c_str(), dtype_name(in[2].dtype));
    return kOk;
}

int conv_geometry(const Layer& layer, const ConvFields& s, const std::vector<Shape>& in,
                  bool deconvolution, bool s8_input, ConvGeometry* g) {
    const size_t weights = s.dynamic_weight ? s.bias_term ? 2 : 1 : 0;
    const size_t inputs = 1 + weights + (s.add_input ? 1 : 0);
    if (in.size() != inputs) return layer.fail("expected %zu inputs, got %zu", inputs, in.size());
    if (in[0].dims < 1 || in[0].dims > s.axes + 1)
        return layer.fail("expected at most %d axes, got %s", s.axes + 1,
                          shape_text(in[0]).c_str());
    if (!accepts_float(layer, in[0].dtype) && !(s8_input && in[0].dtype == DType::s8))
        return layer.fail("expected an input of %s, got %s", s8_input ? "f32 or s8" : "f32",
                          dtype_name(in[0].dtype));
    g->group = s.group;
    g->num_input = s.axes == 1 ? in[0].h : in[0].c;
    g->x = WindowAxis{in[0].w, 0, s.kernel_w, s.dilation_w, s.stride_w, 0, 0};
    g->y = g->z = WindowAxis::none();
    if (s.axes >= 2) g->y = WindowAxis{in[0].h, 0, s.kernel_h, s.dilation_h, s.stride_h, 0, 0};
    if (s.axes == 3) g->z = WindowAxis{in[0].d, 0, s.kernel_d, s.dilation_d, s.stride_d, 0, 0};
    if (s.dynamic_weight) return dynamic_geometry(layer, s, in, deconvolution, g);
    g->num_output = s.num_output;
    const int64_t expected = (int64_t)s.weight_data_size / g->maxk() / (s.num_output / s.group);
    if (g->num_input != expected)
        return layer.fail("expected %lld input channels, got %d: the input is %s",
                          (long long)expected, g->num_input, shape_text(in[0]).c_str());
    return kOk;
}

Shape conv_output_shape(const ConvFields& s, const ConvGeometry& g, DType dtype) {
    if (s.axes == 1) return Shape(g.x.out, g.num_output, dtype);
    if (s.axes == 2) return Shape(g.x.out, g.y.out, g.num_output, dtype);
    return Shape(g.x.out, g.y.out, g.z.out, g.num_output, dtype);
}

Mat conv_channels(const ConvFields& s, const Mat& blob) {
    if (s.axes == 1) return rows_as_channels(blob);
    Mat view = blob;
    view.dims = s.axes + 1;  // fewer axes mean one slice, one row, one channel
    return view;
}

int create_conv_top(const ConvFields& s, const ConvGeometry& g, DType dtype, int elempack,
                    const Option& opt, Mat* top, Mat* channels) {
    top->create(conv_output_shape(s, g, dtype), elempack, opt.blob_allocator);
    *channels = conv_channels(s, *top);
    return top->empty() ? (int)kOutOfMemory : (int)kOk;
}

int fill_with_bias(const Layer& layer, const ConvFields& s, const std::vector<Mat>& bottoms,
                   std::vector<Mat>& tops, const Option& opt) {
    if (s.dynamic_weight || s.add_input) return layer.Layer::forward_empty(bottoms, tops, opt);
    QUOLL_RETURN_IF_ERROR(create_from_nothing(layer, bottoms, tops, true, opt));
    const Mat& top = tops[0];
    const size_t step = s.axes == 1 ? top.w : top.cstep;
    const Activation activation(s.activation_type, s.activation_params);
    for (int p = 0; p < s.num_output && !top.empty(); p++)
        std::fill_n((float*)top.data + p * step, step,
                    activate(s.bias_data.empty() ? 0.f : s.bias_data[p], activation));
    return kOk;
}

int convolve_axis(const Layer& layer, const char* name, int pad_before, int pad_after,
                  WindowAxis* axis) {
    const int64_t extent = (int64_t)axis->dilation * (axis->kernel - 1) + 1;
    const bool same = pad_before == pad_after && pad_before <= kPadSameUpper;
    int64_t before = std::max(pad_before, 0), after = std::max(pad_after, 0);
    if (same) {
        const int64_t covered = (int64_t)(axis->in - 1) / axis->stride * axis->stride;
        const int64_t pad = std::max<int64_t>(0, extent + covered - axis->in);
        before = pad_before == kPadSameUpper ? pad / 2 : pad - pad / 2;
        after = pad - before;
    }
    const int64_t room = axis->in + before + after - extent;
    if (axis->in == 0 && (same || room < 0)) {
        axis->before = axis->after = axis->out = 0;
        return kOk;
    }
    if (room < 0 || extent > INT_MAX || room / axis->stride >= INT_MAX || before > INT_MAX ||
        after > INT_MAX)
        return layer.fail("%s: a kernel that covers %lld does not fit %d + padding %lld, %lld",
                          name, (long long)extent, axis->in, (long long)before, (long long)after);
    axis->before = (int)before, axis->after = (int)after;
    axis->out = (int)(room / axis->stride) + 1;
    return kOk;
}

int flat_weight(const Layer& layer, const Mat& input, const Option& opt, Mat* flat) {
    const size_t count = (size_t)input.w * input.h * input.d * input.c;
    if (count > INT_MAX) return layer.fail("a weight of %zu values is too large", count);
    *flat = input.reshape((int)count, opt.workspace_allocator);
    return flat->empty() ? (int)kOutOfMemory : (int)kOk;
}

Mat quantize_weight(const Mat& weight, const Mat& scales) {
    Mat quantized(Shape(weight.w, DType::s8));
    if (quantized.empty()) return quantized;
    const int share = weight.w / scales.w;
    for (int i = 0; i < weight.w; i++)
        ((signed char*)quantized.data)[i] = float2int8(weight[i] * scales[i / share]);
    return quantized;
}

int check_int8_term(const Layer& layer, int int8_scale_term) {
    if (kHasInt8 || int8_scale_term == 0) return kOk;
    return layer.fail("int8_scale_term (8) %d: int8 is not part of this build (QUOLL_INT8 is off)",
                      int8_scale_term);
}

int check_weight_dtype(const Layer& layer, const Mat& weight, bool int8_scales) {
    if (weight.dtype == DType::f32 || weight.empty()) return kOk;
    if (weight.dtype == DType::s8 && int8_scales) return kOk;
    return layer.fail("weight_data: %s values without int8 scales", dtype_name(weight.dtype));
}

FusionTarget conv_fusion_target(ConvFields& s, int int8_scale_term) {
    FusionTarget t = {};
    t.weight = &s.weight_data, t.bias = &s.bias_data, t.bias_term = &s.bias_term;
    t.activation_type = &s.activation_type, t.activation_params = &s.activation_params;
    t.num_output = s.num_output;
    t.axes = s.axes;
    // What is added comes after the bias.
    t.folds = !s.dynamic_weight && !s.add_input && int8_scale_term == 0 &&
              s.weight_data.dtype == DType::f32 && s.activation_type == kActivationNone;
    // Above 100 the result is rounded to int8 after the activation.
    t.activates = s.activation_type == kActivationNone && int8_scale_term <= 100;
    t.per_output = !s.add_input;
    return t;
}

int64_t conv_macs(const ConvFields& s, const std::vector<Shape>& in,
                  const std::vector<Shape>& out) {
    if (!first_sizes_known(in, out)) return -1;
    return (int64_t)out[0].total() * s.maxk() * (in[0].size(0) / s.group);
}

}  // namespace quoll
