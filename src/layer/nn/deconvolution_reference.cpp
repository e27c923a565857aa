#include "layer/nn/deconvolution.h"

#include <limits.h>

#include <algorithm>

namespace quoll {

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
    if (out < (axis->in > 0) || full > INT_MAX)
        return layer.fail("%s: cutting %lld and %lld off %lld leaves %lld", name, (long long)before,
                          (long long)after, (long long)full, (long long)out);
    axis->out = (int)out, axis->before = (int)before, axis->after = (int)after;
    return kOk;
}

int deconvolution_geometry(const Layer& layer, const DeconvolutionFields& s,
                           const std::vector<Shape>& in, ConvGeometry* g) {
    QUOLL_RETURN_IF_ERROR(conv_geometry(layer, s, in, true, false, g));
    // Pads have precedence over the output sizes, which only count if all are given.
    const bool pads = s.pad_left > 0 || s.pad_right > 0 || s.pad_top > 0 || s.pad_bottom > 0 ||
                      s.pad_front > 0 || s.pad_behind > 0;
    const bool sized =
        !pads && s.output_w > 0 && (s.axes < 2 || s.output_h > 0) && (s.axes < 3 || s.output_d > 0);
    QUOLL_RETURN_IF_ERROR(deconvolve_axis(layer, "width", s.pad_left, s.pad_right,
                                          s.output_pad_right, sized ? s.output_w : 0, &g->x));
    QUOLL_RETURN_IF_ERROR(deconvolve_axis(layer, "height", s.pad_top, s.pad_bottom,
                                          s.output_pad_bottom, sized ? s.output_h : 0, &g->y));
    return deconvolve_axis(layer, "depth", s.pad_front, s.pad_behind, s.output_pad_behind,
                           sized ? s.output_d : 0, &g->z);
}

// A row of the input that contributes to a row of the output, in each channel, and the kernel's row
// for it.
struct RowTap {
    int z, y, k;
};

static std::vector<RowTap> row_taps(const ConvGeometry& g, int z, int y) {
    std::vector<RowTap> taps;
    for (int k = 0; k < g.z.kernel * g.y.kernel; k++) {
        const int64_t sz = g.z.source(z, k / g.y.kernel), sy = g.y.source(y, k % g.y.kernel);
        if (sz >= 0 && sy >= 0) taps.push_back({(int)sz, (int)sy, k});
    }
    return taps;
}

// All sums of an output row of channel p, without bias: input value sx reaches output
// sx * stride + kx * dilation - before.
static void deconvolve_row(const Mat& in, const ConvGeometry& g, const float* weights, int p,
                           const std::vector<RowTap>& taps, double* sums) {
    const int inputs = g.num_input / g.group, outputs = g.num_output / g.group;
    const float* weight = weights + (size_t)p * inputs * g.maxk();
    std::fill(sums, sums + g.x.out, 0.0);
    for (int q = 0; q < inputs; q++, weight += g.maxk()) {
        const Mat channel = in.channel(p / outputs * inputs + q);
        for (const RowTap& row_tap : taps) {
            const float* row = channel.depth(row_tap.z).row(row_tap.y);
            for (int kx = 0; kx < g.x.kernel; kx++) {
                const double tap = weight[row_tap.k * g.x.kernel + kx];
                for (int sx = 0; sx < g.x.in; sx++) {
                    const int64_t x = g.x.position(sx, kx);
                    if (x >= 0 && x < g.x.out) sums[x] += tap * row[sx];
                }
            }
        }
    }
}

int transpose_dynamic_weight(const Layer& layer, const ConvGeometry& g, const Mat& input,
                             const Option& opt, Mat* flat) {
    Mat source;
    QUOLL_RETURN_IF_ERROR(flat_weight(layer, input, opt, &source));
    flat->create(source.w, 4u, opt.workspace_allocator);
    if (flat->empty()) return kOutOfMemory;
    const int maxk = g.maxk(), inputs = g.num_input / g.group, outputs = g.num_output / g.group;
    float* to = *flat;
    for (int i = 0; i < g.group; i++) {
        for (int p = 0; p < outputs; p++) {
            for (int q = 0; q < inputs; q++) {
                const float* from = source;
                from += ((size_t)(i * inputs + q) * outputs + p) * maxk;
                to = std::copy(from, from + maxk, to);
            }
        }
    }
    return kOk;
}

Deconvolution::Deconvolution(int axes, bool grouped) : DeconvolutionFields(axes, grouped) {
    one_blob_only = true;
}

void Deconvolution::params(Deconvolution& s, ParamVisitor& v) {
    conv_params(s, v);
    const bool has_h = s.axes >= 2, has_d = s.axes == 3;
    const Range size = between(0, 1 << 24);
    v(18, "output_pad_right", s.output_pad_right, 0, "columns added at the right", size);
    if (has_h)
        v(19, "output_pad_bottom", s.output_pad_bottom, s.output_pad_right, "rows added below",
          size);
    if (has_d)
        v(20, "output_pad_behind", s.output_pad_behind, s.output_pad_right, "slices added behind",
          size);
    v(has_d ? 25 : 20, "output_w", s.output_w, 0, "width to cut down to, when pads are SAME", size);
    if (has_h)
        v(has_d ? 26 : 21, "output_h", s.output_h, s.output_w, "height to cut down to", size);
    if (has_d) v(27, "output_d", s.output_d, s.output_w, "depth to cut down to", size);
    v(28, "dynamic_weight", s.dynamic_weight, 0, "1: weight (and bias) are inputs", between(0, 1));
}

void Deconvolution::weights(Deconvolution& s, WeightVisitor& v) { conv_weights(s, v); }

int Deconvolution::shape(const Deconvolution& s, const std::vector<Shape>& in,
                         std::vector<Shape>& out) {
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(deconvolution_geometry(s, s, in, &g));
    out.assign(1, conv_output_shape(s, g, in[0].dtype));
    out[0].n = in[0].n;
    return kOk;
}

int Deconvolution::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    one_blob_only = !dynamic_weight;
    return check_conv_params(*this, *this);
}

int Deconvolution::load_model(const ModelBin& mb) {
    QUOLL_RETURN_IF_ERROR(load_weights_by_schema(*this, mb));
    return check_weight_dtype(*this, weight_data, false);
}

int Deconvolution::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(Deconvolution::forward(std::vector<Mat>(1, bottom_blob), tops, opt));
    top_blob = tops[0];
    return kOk;
}

int Deconvolution::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                           const Option& opt) const {
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(deconvolution_geometry(*this, *this, shapes_of(bottoms), &g));
    Mat weight = weight_data, bias = bias_data, top;
    if (dynamic_weight) {
        QUOLL_RETURN_IF_ERROR(transpose_dynamic_weight(*this, g, bottoms[1], opt, &weight));
        if (bias_term) QUOLL_RETURN_IF_ERROR(flat_weight(*this, bottoms[2], opt, &bias));
    }
    tops.resize(1);
    QUOLL_RETURN_IF_ERROR(create_conv_top(*this, g, DType::f32, 1, opt, &tops[0], &top));
    Mat sums(g.x.out, sizeof(double), opt.workspace_allocator);
    if (sums.empty()) return kOutOfMemory;
    const Mat in = conv_channels(*this, bottoms[0]);
    const Activation activation(activation_type, activation_params);
    for (int64_t row = 0; row < (int64_t)g.z.out * g.y.out; row++) {
        const int z = (int)(row / g.y.out), y = (int)(row % g.y.out);
        const std::vector<RowTap> taps = row_taps(g, z, y);
        for (int p = 0; p < g.num_output; p++) {
            const float offset = bias.empty() ? 0.f : bias[p];
            deconvolve_row(in, g, weight, p, taps, (double*)sums.data);
            float* out = top.channel(p).depth(z).row(y);
            for (int x = 0; x < g.x.out; x++)
                out[x] = activate((float)(((const double*)sums.data)[x] + offset), activation);
        }
    }
    return kOk;
}

int Deconvolution::forward_empty(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                                 const Option& opt) const {
    return fill_with_bias(*this, *this, bottoms, tops, opt);
}

int64_t Deconvolution::macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const {
    if (!first_sizes_known(in, out)) return -1;
    return (int64_t)in[0].total() * maxk() * (num_output / group);
}

}  // namespace quoll
