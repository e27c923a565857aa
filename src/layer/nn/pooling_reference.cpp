#include "layer/nn/pooling.h"

#include <float.h>
#include <limits.h>
#include <math.h>

#include <algorithm>

#include "layer/common/channels.h"
#include "layer/common/extremes.h"
#include "layer/common/scratch.h"

namespace quoll {

// Larger kernels, strides and pads can only be mistakes.
static const double kMaxWindow = 1 << 24;
static const int kKeepSize = -233;
enum { kPadFull, kPadValid, kPadSameUpper, kPadSameLower };

Pooling::Pooling(int axes)
    : axes(axes),
      pooling_type(0),
      kernel_w(0),
      kernel_h(1),
      kernel_d(1),
      stride_w(1),
      stride_h(1),
      stride_d(1),
      pad_left(0),
      pad_right(0),
      pad_top(0),
      pad_bottom(0),
      pad_front(0),
      pad_behind(0),
      global_pooling(0),
      pad_mode(0),
      avgpool_count_include_pad(0),
      adaptive_pooling(0),
      out_w(0),
      out_h(1),
      out_d(1) {
    one_blob_only = true;
}

void Pooling::params(Pooling& s, ParamVisitor& v) {
    const bool has_h = s.axes >= 2, has_d = s.axes == 3;
    const Range size = between(0, kMaxWindow), positive = between(1, kMaxWindow);
    const Range adaptive = between(kKeepSize, kMaxWindow);
    v(0, "pooling_type", s.pooling_type, 0, "0 max, 1 average", between(0, 1));
    v(1, "kernel_w", s.kernel_w, 0, "window width", size);
    if (has_h) v(11, "kernel_h", s.kernel_h, s.kernel_w, "window height", size);
    if (has_d) v(21, "kernel_d", s.kernel_d, s.kernel_w, "window depth", size);
    v(2, "stride_w", s.stride_w, 1, "step of the window", positive);
    if (has_h) v(12, "stride_h", s.stride_h, s.stride_w, "step of the window down", positive);
    if (has_d) v(22, "stride_d", s.stride_d, s.stride_w, "step of the window in depth", positive);
    v(3, "pad_left", s.pad_left, 0, "columns", size);
    v(14, "pad_right", s.pad_right, s.pad_left, "columns", size);
    if (has_h) v(13, "pad_top", s.pad_top, s.pad_left, "rows", size);
    if (has_h) v(15, "pad_bottom", s.pad_bottom, s.pad_top, "rows", size);
    if (has_d) v(23, "pad_front", s.pad_front, s.pad_left, "slices", size);
    if (has_d) v(16, "pad_behind", s.pad_behind, s.pad_front, "slices", size);
    v(4, "global_pooling", s.global_pooling, 0, "1: one window over the whole channel",
      between(0, 1));
    v(5, "pad_mode", s.pad_mode, 0, "0 full, 1 valid, 2 SAME_UPPER, 3 SAME_LOWER", between(0, 3));
    v(6, "avgpool_count_include_pad", s.avgpool_count_include_pad, 0,
      "1: averages count the padding as zeros", between(0, 1));
    v(7, "adaptive_pooling", s.adaptive_pooling, 0, "1: out_w x out_h x out_d windows",
      between(0, 1));
    v(8, "out_w", s.out_w, 0, "adaptive: columns, -233: those of the input", adaptive);
    if (has_h) v(18, "out_h", s.out_h, s.out_w, "adaptive: rows", adaptive);
    if (has_d) v(28, "out_d", s.out_d, s.out_w, "adaptive: slices", adaptive);
}

void Pooling::weights(Pooling&, WeightVisitor&) {}

bool Pooling::windows_hold_values() const {
    if (axes != 2) return false;
    if (global_pooling) return true;
    const auto holds = [](int kernel, int stride, int before, int after) {
        return before >= 0 && after >= 0 && before < kernel && stride + after <= kernel;
    };
    return pad_mode <= 1 && !adaptive_pooling && holds(kernel_w, stride_w, pad_left, pad_right) &&
           holds(kernel_h, stride_h, pad_top, pad_bottom);
}

int Pooling::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    if (global_pooling) return kOk;
    const auto wrong = [](int out) { return out < 1 && out != kKeepSize; };
    if (adaptive_pooling && (wrong(out_w) || wrong(out_h) || wrong(out_d)))
        return fail("out_w, out_h, out_d: expected at least 1, or -233, got %d, %d, %d", out_w,
                    out_h, out_d);
    if (!adaptive_pooling && (kernel_w < 1 || kernel_h < 1 || kernel_d < 1))
        return fail("kernel: expected at least 1 on every axis, got %d x %d x %d", kernel_w,
                    kernel_h, kernel_d);
    return kOk;
}

// What SAME modes add to an axis; negative where the stride exceeds the window and the windows end
// before the axis does.
static int64_t same_pad(const Pooling::Axis& axis) {
    return axis.kernel + (int64_t)(axis.in - 1) / axis.stride * axis.stride - axis.in;
}

// The same before and behind the axis. As in ncnn a negative padding cuts values off: columns and
// slices on both sides, rows only at the end.
static Pooling::Pads same_pads(const Pooling::Axis& axis, bool lower, bool rows) {
    const int64_t pad = same_pad(axis);
    int64_t before = lower ? pad - pad / 2 : pad / 2;
    if (rows) before = std::max<int64_t>(before, 0);
    return {before, pad - before};
}

// Fills in out, before and the ranges of a sliding window; `same`: the padding of SAME modes.
int Pooling::slide(const char* name, Pads given, Pads same, Axis* axis) const {
    Pads pads = pad_mode == kPadFull || pad_mode == kPadValid ? given : same;
    int64_t tail = 0;
    if (pad_mode == kPadFull) {
        tail = (axis->in + pads.before + pads.after - axis->kernel) % axis->stride;
        if (tail != 0) tail = axis->stride - tail;
    }
    const bool by_pads = pad_mode == kPadFull || pad_mode == kPadValid;
    if (axis->in == 0 && (!by_pads || pads.before + pads.after < axis->kernel)) {
        axis->out = 0;
        return kOk;
    }
    const int64_t padded = axis->in + pads.before + pads.after + tail;
    if (padded < axis->kernel || padded > INT_MAX)
        return fail("%s: a window of %d does not fit %d + padding %lld, %lld", name, axis->kernel,
                    axis->in, (long long)pads.before, (long long)(pads.after + tail));
    axis->out = (int)((padded - axis->kernel) / axis->stride) + 1;
    axis->before = (int)pads.before;
    // In SAME modes the given pads only serve to be left out of averages, as in ncnn.
    axis->counted_first = avgpool_count_include_pad ? 0 : (int)given.before;
    axis->counted_last = (int)(avgpool_count_include_pad ? padded : padded - given.after - tail);
    axis->first = axis->before, axis->last = axis->before + axis->in;
    if (!is_max()) {
        axis->first = std::max(axis->first, axis->counted_first);
        axis->last = std::min(axis->last, axis->counted_last);
    }
    return kOk;
}

int Pooling::place(const char* name, Pads given, Pads same, int adaptive_out, Axis* axis) const {
    if (!global_pooling && !adaptive_pooling) return slide(name, given, same, axis);
    axis->kernel = 0, axis->stride = 1;
    axis->out = global_pooling ? 1 : adaptive_out == kKeepSize ? axis->in : adaptive_out;
    return kOk;
}

int Pooling::geometry(const Shape& in, Axis* x, Axis* y, Axis* z) const {
    *x = Axis{in.w, 0, kernel_w, stride_w, 0, 0, 0, 0, 0};
    *y = Axis{axes == 1 ? 1 : in.h, 0, kernel_h, stride_h, 0, 0, 0, 0, 0};
    *z = Axis{in.d, 0, kernel_d, stride_d, 0, 0, 0, 0, 0};
    // In SAME modes ncnn pads (and cuts) all axes or none; along d as SAME_UPPER in both.
    Pads same[3] = {};
    if (std::max(same_pad(*x), std::max(same_pad(*y), same_pad(*z))) > 0) {
        const bool lower = pad_mode == kPadSameLower;
        same[0] = same_pads(*x, lower, false);
        same[1] = same_pads(*y, lower, true);
        same[2] = same_pads(*z, false, false);
    }
    QUOLL_RETURN_IF_ERROR(place("width", {pad_left, pad_right}, same[0], out_w, x));
    QUOLL_RETURN_IF_ERROR(place("height", {pad_top, pad_bottom}, same[1], out_h, y));
    return place("depth", {pad_front, pad_behind}, same[2], out_d, z);
}

int Pooling::shape(const Pooling& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    ShapeList floats;
    *floats = in;
    // Maxima may be of s8, too.
    for (Shape& shape : *floats)
        if (s.is_max() && shape.dtype == DType::s8) shape.dtype = DType::f32;
    QUOLL_RETURN_IF_ERROR(channelwise_shape(s, *floats, out, 0));
    const Shape& m = in[0];
    if (m.dims > s.axes + 1)
        return s.fail("expected at most %d axes, got %s", s.axes + 1, shape_text(m).c_str());
    Axis x, y, z;
    QUOLL_RETURN_IF_ERROR(s.geometry(m, &x, &y, &z));
    if (s.global_pooling)
        out[0] = Shape(s.axes == 1 ? m.h : m.c, m.dtype);
    else if (s.axes == 1)
        out[0] = Shape(x.out, m.h, m.dtype);
    else if (s.axes == 2)
        out[0] = Shape(x.out, y.out, m.c, m.dtype);
    else
        out[0] = Shape(x.out, y.out, z.out, m.c, m.dtype);
    out[0].n = m.n;
    return kOk;
}

Pooling::Span Pooling::Axis::at(int i) const {
    if (kernel == 0) {
        const int from = (int)((int64_t)in * i / out);
        const int to = (int)(((int64_t)in * (i + 1) + out - 1) / out);
        return Span{from, to - from, to - from};
    }
    const int64_t begin = (int64_t)i * stride, end = begin + kernel;
    const int64_t from = std::max<int64_t>(begin, first), to = std::min<int64_t>(end, last);
    const int64_t counted =
        std::min<int64_t>(end, counted_last) - std::max<int64_t>(begin, counted_first);
    if (to <= from) return Span{0, 0, (int)std::max<int64_t>(0, counted)};
    return Span{(int)(from - before), (int)(to - from), (int)counted};
}

// The result for one window on a channel.
static float pool_window(const Mat& channel, const Pooling::Span& x, const Pooling::Span& y,
                         const Pooling::Span& z, bool max) {
    const bool empty = x.size < 1 || y.size < 1 || z.size < 1;
    float most = empty ? -FLT_MAX : -INFINITY;
    double sum = 0;
    for (int k = 0; k < z.size; k++) {
        for (int j = 0; j < y.size; j++) {
            const float* row = channel.depth(z.from + k).row(y.from + j) + x.from;
            for (int i = 0; i < x.size; i++) {
                most = maximum(most, row[i]);
                sum += row[i];
            }
        }
    }
    if (max) return most;
    const double counted = (double)x.counted * y.counted * z.counted;
    return counted > 0 ? (float)(sum / counted) : 0.f;
}

// The largest s8 value of a window, -128 where it is empty.
static signed char largest_s8(const Mat& channel, const Pooling::Span& x, const Pooling::Span& y,
                              const Pooling::Span& z) {
    signed char most = -128;
    for (int k = 0; k < z.size; k++) {
        for (int j = 0; j < y.size; j++) {
            const signed char* row =
                channel.depth(z.from + k).row<signed char>(y.from + j) + x.from;
            for (int i = 0; i < x.size; i++) most = std::max(most, row[i]);
        }
    }
    return most;
}

int Pooling::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(create_tops(*this, std::vector<Mat>(1, bottom_blob), tops, opt));
    top_blob = tops[0];
    Axis ax, ay, az;
    QUOLL_RETURN_IF_ERROR(geometry(bottom_blob.logical_shape(), &ax, &ay, &az));
    const Mat in = channels(bottom_blob);
    const size_t step = global_pooling ? 1 : channels(top_blob).cstep;
    for (int q = 0; q < in.c; q++) {
        const Mat channel = in.channel(q);
        float* out = (float*)top_blob.data + q * step;
        signed char* out_s8 = (signed char*)top_blob.data + q * step;
        for (int z = 0; z < az.out; z++) {
            for (int y = 0; y < ay.out; y++) {
                for (int x = 0; x < ax.out; x++) {
                    if (in.dtype == DType::s8)
                        *out_s8++ = largest_s8(channel, ax.at(x), ay.at(y), az.at(z));
                    else
                        *out++ = pool_window(channel, ax.at(x), ay.at(y), az.at(z), is_max());
                }
            }
        }
    }
    return kOk;
}

}  // namespace quoll
