#include "conv_reference.h"

#include <limits.h>

#include <algorithm>

namespace quoll {

namespace {

std::vector<Shape> shapes_of(const std::vector<Mat>& blobs) {
    std::vector<Shape> shapes;
    for (const Mat& m : blobs) shapes.push_back(m.logical_shape());
    return shapes;
}

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

// All sums of output row y of channel p, without bias.
template <class T, class Sum>
void convolve_row(const Mat& in, const ConvGeometry& g, const T* weights, T pad_value, int p, int y,
                  Sum* sums) {
    const int inputs = g.num_input / g.group, outputs = g.num_output / g.group;
    const T* weight = weights + (size_t)p * inputs * g.maxk();
    std::fill(sums, sums + g.x.out, Sum(0));
    for (int q = 0; q < inputs; q++) {
        const Mat channel = in.channel(p / outputs * inputs + q);
        for (int ky = 0; ky < g.y.kernel; ky++) {
            const int64_t sy = (int64_t)y * g.y.stride + (int64_t)ky * g.y.dilation - g.y.before;
            const T* row = sy >= 0 && sy < g.y.in ? channel.row<T>((int)sy) : nullptr;
            for (int kx = 0; kx < g.x.kernel; kx++)
                add_row(g.x, (int64_t)kx * g.x.dilation - g.x.before, row, *weight++, pad_value,
                        sums);
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
        for (int y = 0; y < g.y.out; y++) {
            convolve_row<T, Sum>(in, g, weights, pad_value, p, y, (Sum*)sums.data);
            Out* out = top.channel(p).row<Out>(y);
            for (int x = 0; x < g.x.out; x++) finish(p, ((const Sum*)sums.data)[x], out + x);
        }
    }
    return kOk;
}

int convolve_f32(const ConvolutionFields& s, const ConvGeometry& g, const Mat& in,
                 const Mat& weight, const Mat& bias, Mat& top, const Option& opt) {
    const Activation activation(s.activation_type, s.activation_params);
    return convolve<float, double, float>(
        in, g, weight, s.pad_value, top, opt, [&](int p, double sum, float* out) {
            *out = activate((float)(sum + (bias.empty() ? 0.f : bias[p])), activation);
        });
}

int convolve_s8(const ConvolutionFields& s, const ConvGeometry& g, const Mat& bottom, Mat& top,
                const Option& opt) {
    const Activation activation(s.activation_type, s.activation_params);
    const float input_scale = s.bottom_blob_int8_scales[0];
    const int scales = s.weight_data_int8_scales.w;
    const auto value = [&](int p, int64_t sum) {
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
            for (int i = 0; i < in.w * in.h; i++) to[i] = float2int8(from[i] * input_scale);
        }
    }
    const signed char* weights = s.weight_data_int8;
    const signed char pad_value = float2int8(s.pad_value);
    if (!s.int8_output())
        return convolve<signed char, int64_t, float>(
            in, g, weights, pad_value, top, opt,
            [&](int p, int64_t sum, float* out) { *out = value(p, sum); });
    const float top_scale = s.top_blob_int8_scales[0];
    return convolve<signed char, int64_t, signed char>(
        in, g, weights, pad_value, top, opt, [&](int p, int64_t sum, signed char* out) {
            *out = float2int8(value(p, sum) * top_scale);
        });
}

}  // namespace

void convolution_params(ConvolutionFields& s, ParamVisitor& v, Range int8_terms) {
    conv_params(s, v);
    v(18, "pad_value", s.pad_value, 0.f, "value of the padding");
    v(8, "int8_scale_term", s.int8_scale_term, 0, "not 0: int8 arithmetic; above 100: int8 output",
      int8_terms);
    v(19, "dynamic_weight", s.dynamic_weight, 0, "1: weight (and bias) are inputs", between(0, 1));
}

bool is_flat_input(const ConvFields& s, const Shape& input) {
    return input.dims == 1 && !s.dynamic_weight && s.group == 1 && s.kernel_w == 1 &&
           s.kernel_h == 1 && input.w == s.weight_data_size / s.num_output;
}

int convolution_geometry(const Layer& layer, const ConvolutionFields& s,
                         const std::vector<Shape>& in, ConvGeometry* g) {
    const bool s8_input = s.int8_scale_term != 0;
    if (in.size() == 1 && is_flat_input(s, in[0])) {
        const std::vector<Shape> pixel(1, Shape(1, 1, in[0].w, in[0].dtype));
        QUOLL_RETURN_IF_ERROR(conv_geometry(layer, s, pixel, false, s8_input, g));
        g->x.out = g->y.out = 1;
        return kOk;
    }
    QUOLL_RETURN_IF_ERROR(conv_geometry(layer, s, in, false, s8_input, g));
    QUOLL_RETURN_IF_ERROR(convolve_axis(layer, "width", s.pad_left, s.pad_right, &g->x));
    return convolve_axis(layer, "height", s.pad_top, s.pad_bottom, &g->y);
}

int convolution_shape(const Layer& layer, const ConvolutionFields& s, const std::vector<Shape>& in,
                      std::vector<Shape>& out) {
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(convolution_geometry(layer, s, in, &g));
    const DType dtype = s.int8_output()            ? DType::s8
                        : in[0].dtype == DType::s8 ? DType::f32
                                                   : in[0].dtype;
    const bool flat = is_flat_input(s, in[0]);
    out.assign(1, flat ? Shape(g.num_output, dtype) : Shape(g.x.out, g.y.out, g.num_output, dtype));
    out[0].n = in[0].n;
    return kOk;
}

int convolution_create_pipeline(const Layer& layer, ConvolutionFields& s) {
    if (s.int8_scale_term == 0 || s.dynamic_weight) return kOk;
    s.weight_data_int8 = s.weight_data.dtype == DType::s8
                             ? s.weight_data
                             : quantize_weight(s.weight_data, s.weight_data_int8_scales);
    if (!s.weight_data_int8.empty()) return kOk;
    layer.fail("out of memory for %d int8 weights", s.weight_data_size);
    return kOutOfMemory;
}

int convolution_forward(const Layer& layer, const ConvolutionFields& s,
                        const std::vector<Mat>& bottoms, Mat& top, const Option& opt) {
    const std::vector<Shape> in = shapes_of(bottoms);
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(convolution_geometry(layer, s, in, &g));
    const DType dtype = s.int8_output() ? DType::s8 : DType::f32;
    const bool flat = is_flat_input(s, in[0]);
    Mat bottom = bottoms[0];
    if (flat) bottom = bottom.reshape(1, 1, bottom.w, opt.workspace_allocator);
    top.create(Shape(g.x.out, g.y.out, g.num_output, dtype), 1, opt.blob_allocator);
    if (bottom.empty() || top.empty()) return kOutOfMemory;

    if (s.int8_scale_term != 0) {
        QUOLL_RETURN_IF_ERROR(convolve_s8(s, g, bottom, top, opt));
    } else {
        Mat weight = s.weight_data, bias = s.bias_data;
        if (s.dynamic_weight) {
            QUOLL_RETURN_IF_ERROR(flat_weight(layer, bottoms[1], opt, &weight));
            if (s.bias_term) QUOLL_RETURN_IF_ERROR(flat_weight(layer, bottoms[2], opt, &bias));
        }
        QUOLL_RETURN_IF_ERROR(convolve_f32(s, g, bottom, weight, bias, top, opt));
    }
    if (flat) top = top.reshape(top.c, opt.blob_allocator);
    return top.empty() ? (int)kOutOfMemory : (int)kOk;
}

void deconvolution_params(DeconvolutionFields& s, ParamVisitor& v) {
    conv_params(s, v);
    const Range size = between(0, 1 << 24);
    v(18, "output_pad_right", s.output_pad_right, 0, "columns added at the right", size);
    v(19, "output_pad_bottom", s.output_pad_bottom, s.output_pad_right, "rows added below", size);
    v(20, "output_w", s.output_w, 0, "width to cut down to, when pads are SAME", size);
    v(21, "output_h", s.output_h, s.output_w, "height to cut down to", size);
    v(28, "dynamic_weight", s.dynamic_weight, 0, "1: weight (and bias) are inputs", between(0, 1));
}

// The full output of an axis is (in - 1) * stride + extent + added; before and after are cut off.
// target: the size to cut to with SAME pads, 0: nothing is cut then.
static int deconvolve_axis(const Layer& layer, const char* name, int pad_before, int pad_after,
                           int added, int target, WindowAxis* axis) {
    const int64_t full = (int64_t)(axis->in - 1) * axis->stride +
                         (int64_t)axis->dilation * (axis->kernel - 1) + 1 + added;
    int64_t before = std::max(pad_before, 0), after = std::max(pad_after, 0);
    if (before == 0 && after == 0 && target > 0) {
        const int64_t cut = full - target;
        if (cut < 0)
            return layer.fail("%s: cannot cut %lld down to %d", name, (long long)full, target);
        // Without SAME the end is cut.
        before = pad_before == kPadSameUpper   ? cut / 2
                 : pad_before == kPadSameLower ? cut - cut / 2
                                               : 0;
        after = cut - before;
    }
    const int64_t out = full - before - after;
    if (out < 1 || full > INT_MAX)
        return layer.fail("%s: cutting %lld and %lld off %lld leaves %lld", name, (long long)before,
                          (long long)after, (long long)full, (long long)out);
    axis->out = (int)out, axis->before = (int)before, axis->after = (int)after;
    return kOk;
}

int deconvolution_geometry(const Layer& layer, const DeconvolutionFields& s,
                           const std::vector<Shape>& in, ConvGeometry* g) {
    QUOLL_RETURN_IF_ERROR(conv_geometry(layer, s, in, true, false, g));
    // Pads win over output_w and output_h, which count as a pair.
    const bool pads = s.pad_left > 0 || s.pad_right > 0 || s.pad_top > 0 || s.pad_bottom > 0;
    const bool sized = !pads && s.output_w > 0 && s.output_h > 0;
    QUOLL_RETURN_IF_ERROR(deconvolve_axis(layer, "width", s.pad_left, s.pad_right,
                                          s.output_pad_right, sized ? s.output_w : 0, &g->x));
    return deconvolve_axis(layer, "height", s.pad_top, s.pad_bottom, s.output_pad_bottom,
                           sized ? s.output_h : 0, &g->y);
}

int deconvolution_shape(const Layer& layer, const DeconvolutionFields& s,
                        const std::vector<Shape>& in, std::vector<Shape>& out) {
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(deconvolution_geometry(layer, s, in, &g));
    out.assign(1, Shape(g.x.out, g.y.out, g.num_output, in[0].dtype));
    out[0].n = in[0].n;
    return kOk;
}

// All sums of output row y of channel p, without bias: input pixel (sx, sy) reaches output
// (sx * stride + kx * dilation - before, ...).
static void deconvolve_row(const Mat& in, const ConvGeometry& g, const float* weights, int p, int y,
                           double* sums) {
    const int inputs = g.num_input / g.group, outputs = g.num_output / g.group;
    const float* weight = weights + (size_t)p * inputs * g.maxk();
    std::fill(sums, sums + g.x.out, 0.0);
    for (int q = 0; q < inputs; q++, weight += g.maxk()) {
        const Mat channel = in.channel(p / outputs * inputs + q);
        for (int ky = 0; ky < g.y.kernel; ky++) {
            const int64_t reached = (int64_t)y + g.y.before - (int64_t)ky * g.y.dilation;
            if (reached < 0 || reached % g.y.stride != 0 || reached / g.y.stride >= g.y.in)
                continue;
            const float* row = channel.row((int)(reached / g.y.stride));
            for (int kx = 0; kx < g.x.kernel; kx++) {
                const double k = weight[ky * g.x.kernel + kx];
                for (int sx = 0; sx < g.x.in; sx++) {
                    const int64_t x =
                        (int64_t)sx * g.x.stride + (int64_t)kx * g.x.dilation - g.x.before;
                    if (x >= 0 && x < g.x.out) sums[x] += k * row[sx];
                }
            }
        }
    }
}

int transpose_dynamic_weight(const Layer& layer, const Mat& input, int group, const Option& opt,
                             Mat* flat) {
    Mat source;
    QUOLL_RETURN_IF_ERROR(flat_weight(layer, input, opt, &source));
    flat->create(source.w, 4u, opt.workspace_allocator);
    if (flat->empty()) return kOutOfMemory;
    const int maxk = input.w * input.h, outputs = input.d, inputs = input.c / group;
    float* to = *flat;
    for (int g = 0; g < group; g++) {
        for (int p = 0; p < outputs; p++) {
            for (int q = 0; q < inputs; q++) {
                const float* from = source;
                from += ((size_t)(g * inputs + q) * outputs + p) * maxk;
                to = std::copy(from, from + maxk, to);
            }
        }
    }
    return kOk;
}

int deconvolution_forward(const Layer& layer, const DeconvolutionFields& s,
                          const std::vector<Mat>& bottoms, Mat& top, const Option& opt) {
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(deconvolution_geometry(layer, s, shapes_of(bottoms), &g));
    Mat weight = s.weight_data, bias = s.bias_data;
    if (s.dynamic_weight) {
        QUOLL_RETURN_IF_ERROR(transpose_dynamic_weight(layer, bottoms[1], s.group, opt, &weight));
        if (s.bias_term) QUOLL_RETURN_IF_ERROR(flat_weight(layer, bottoms[2], opt, &bias));
    }
    top.create(g.x.out, g.y.out, g.num_output, 4u, opt.blob_allocator);
    Mat sums(g.x.out, sizeof(double), opt.workspace_allocator);
    if (top.empty() || sums.empty()) return kOutOfMemory;
    const Activation activation(s.activation_type, s.activation_params);
    for (int p = 0; p < g.num_output; p++) {
        const float offset = bias.empty() ? 0.f : bias[p];
        for (int y = 0; y < g.y.out; y++) {
            deconvolve_row(bottoms[0], g, weight, p, y, (double*)sums.data);
            float* out = top.channel(p).row(y);
            for (int x = 0; x < g.x.out; x++)
                out[x] = activate((float)(((const double*)sums.data)[x] + offset), activation);
        }
    }
    return kOk;
}

}  // namespace quoll
