#include "pooling.h"

#include <float.h>
#include <limits.h>

#include <algorithm>

#include "channels.h"

namespace quoll {

// Larger kernels, strides and pads are typing errors.
static const double kMaxWindow = 1 << 24;
static const int kKeepSize = -233;

Pooling::Pooling()
    : pooling_type(0),
      kernel_w(0),
      kernel_h(0),
      stride_w(1),
      stride_h(1),
      pad_left(0),
      pad_right(0),
      pad_top(0),
      pad_bottom(0),
      global_pooling(0),
      pad_mode(0),
      avgpool_count_include_pad(0),
      adaptive_pooling(0),
      out_w(0),
      out_h(0) {
    one_blob_only = true;
}

void Pooling::params(Pooling& s, ParamVisitor& v) {
    const Range size = between(0, kMaxWindow), positive = between(1, kMaxWindow);
    v(0, "pooling_type", s.pooling_type, 0, "0 max, 1 average", between(0, 1));
    v(1, "kernel_w", s.kernel_w, 0, "window width", size);
    v(11, "kernel_h", s.kernel_h, s.kernel_w, "window height", size);
    v(2, "stride_w", s.stride_w, 1, "step of the window", positive);
    v(12, "stride_h", s.stride_h, s.stride_w, "step of the window down", positive);
    v(3, "pad_left", s.pad_left, 0, "columns", size);
    v(14, "pad_right", s.pad_right, s.pad_left, "columns", size);
    v(13, "pad_top", s.pad_top, s.pad_left, "rows", size);
    v(15, "pad_bottom", s.pad_bottom, s.pad_top, "rows", size);
    v(4, "global_pooling", s.global_pooling, 0, "1: one window over all pixels", between(0, 1));
    v(5, "pad_mode", s.pad_mode, 0, "0 full, 1 valid, 2 SAME_UPPER, 3 SAME_LOWER", between(0, 3));
    v(6, "avgpool_count_include_pad", s.avgpool_count_include_pad, 0,
      "1: averages count the padding as zeros", between(0, 1));
    v(7, "adaptive_pooling", s.adaptive_pooling, 0, "1: out_w x out_h windows", between(0, 1));
    v(8, "out_w", s.out_w, 0, "adaptive: columns, -233: those of the input",
      between(kKeepSize, kMaxWindow));
    v(18, "out_h", s.out_h, s.out_w, "adaptive: rows", between(kKeepSize, kMaxWindow));
}

void Pooling::weights(Pooling&, WeightVisitor&) {}

int Pooling::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    if (global_pooling) return kOk;
    const auto wrong = [](int out) { return out < 1 && out != kKeepSize; };
    if (adaptive_pooling && (wrong(out_w) || wrong(out_h)))
        return fail("out_w, out_h: expected at least 1, or -233, got %d, %d", out_w, out_h);
    if (!adaptive_pooling && (kernel_w < 1 || kernel_h < 1))
        return fail("kernel: expected at least 1 x 1, got %d x %d", kernel_w, kernel_h);
    return kOk;
}

// Fills in out, before and counted_*.
int Pooling::window_axis(const char* name, int pad_before, int pad_after, Axis* axis) const {
    int64_t before = pad_before, after = pad_after, tail = 0;
    if (pad_mode == 0) {
        tail = (axis->in + before + after - axis->kernel) % axis->stride;
        if (tail != 0) tail = axis->stride - tail;
    } else if (pad_mode >= 2) {
        const int64_t covered = (int64_t)(axis->in - 1) / axis->stride * axis->stride;
        const int64_t pad = std::max<int64_t>(0, axis->kernel + covered - axis->in);
        before = pad_mode == 2 ? pad / 2 : pad - pad / 2;
        after = pad - before;
    }
    const int64_t padded = axis->in + before + after + tail;
    if (padded < axis->kernel || padded > INT_MAX)
        return fail("%s: a window of %d does not fit %d + padding %lld, %lld", name, axis->kernel,
                    axis->in, (long long)before, (long long)(after + tail));
    axis->out = (int)((padded - axis->kernel) / axis->stride) + 1;
    axis->before = (int)before;
    // In SAME modes the pads given are of no use but to be left out of averages, as in ncnn.
    axis->counted_first = avgpool_count_include_pad ? 0 : pad_before;
    axis->counted_last = (int)(avgpool_count_include_pad ? padded : padded - pad_after - tail);
    return kOk;
}

int Pooling::window_axes(int w, int h, Axis* x, Axis* y) const {
    *x = Axis{w, 0, kernel_w, stride_w, 0, 0, 0};
    *y = Axis{h, 0, kernel_h, stride_h, 0, 0, 0};
    QUOLL_RETURN_IF_ERROR(window_axis("width", pad_left, pad_right, x));
    return window_axis("height", pad_top, pad_bottom, y);
}

int Pooling::shape(const Pooling& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(channelwise_shape(s, in, out, 0));
    const Shape& m = in[0];
    if (m.dims > 3) return s.fail("expected at most 3 axes, got %s", shape_text(m).c_str());
    if (s.global_pooling) {
        out[0] = Shape(m.c, m.dtype);
    } else if (s.adaptive_pooling) {
        out[0] = Shape(s.out_w == kKeepSize ? m.w : s.out_w, s.out_h == kKeepSize ? m.h : s.out_h,
                       m.c, m.dtype);
    } else {
        Axis x, y;
        QUOLL_RETURN_IF_ERROR(s.window_axes(m.w, m.h, &x, &y));
        out[0] = Shape(x.out, y.out, m.c, m.dtype);
    }
    out[0].n = m.n;
    return kOk;
}

// Of the part [x0, x1) x [y0, y1) of a channel.
static float largest_of(const Mat& channel, int x0, int x1, int y0, int y1) {
    float most = -FLT_MAX;
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++) most = std::max(most, channel.row(y)[x]);
    return most;
}

static double sum_of(const Mat& channel, int x0, int x1, int y0, int y1) {
    double sum = 0;
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++) sum += channel.row(y)[x];
    return sum;
}

// Positions of window `i` inside [first, last) of the padded axis.
static void clip_window(const Pooling::Axis& axis, int i, int first, int last, int* from, int* to) {
    const int64_t start = (int64_t)i * axis.stride;
    *from = (int)std::max<int64_t>(start, first);
    *to = (int)std::min<int64_t>(start + axis.kernel, last);
}

void Pooling::pool_windows(const Mat& in, const Axis& ax, const Axis& ay, Mat& top) const {
    for (int q = 0; q < top.c; q++) {
        const Mat channel = in.channel(q);
        for (int y = 0; y < top.h; y++) {
            float* out = top.channel(q).row(y);
            for (int x = 0; x < top.w; x++) {
                // The part of the window that counts, and that part of it which has pixels.
                int x0, x1, y0, y1, px0, px1, py0, py1;
                clip_window(ax, x, ax.counted_first, ax.counted_last, &x0, &x1);
                clip_window(ay, y, ay.counted_first, ay.counted_last, &y0, &y1);
                clip_window(ax, x, ax.before, ax.before + ax.in, &px0, &px1);
                clip_window(ay, y, ay.before, ay.before + ay.in, &py0, &py1);
                if (pooling_type == PoolMethod_MAX) {
                    out[x] = largest_of(channel, px0 - ax.before, px1 - ax.before, py0 - ay.before,
                                        py1 - ay.before);
                    continue;
                }
                px0 = std::max(px0, x0), px1 = std::min(px1, x1);
                py0 = std::max(py0, y0), py1 = std::min(py1, y1);
                const double sum = sum_of(channel, px0 - ax.before, px1 - ax.before,
                                          py0 - ay.before, py1 - ay.before);
                const double area = (double)std::max(0, x1 - x0) * std::max(0, y1 - y0);
                out[x] = area > 0 ? (float)(sum / area) : 0.f;
            }
        }
    }
}

void Pooling::pool_adaptive(const Mat& in, Mat& top) const {
    for (int q = 0; q < top.c; q++) {
        const Mat channel = in.channel(q);
        for (int y = 0; y < top.h; y++) {
            const int y0 = (int)((int64_t)in.h * y / top.h);
            const int y1 = (int)(((int64_t)in.h * (y + 1) + top.h - 1) / top.h);
            float* out = top.channel(q).row(y);
            for (int x = 0; x < top.w; x++) {
                const int x0 = (int)((int64_t)in.w * x / top.w);
                const int x1 = (int)(((int64_t)in.w * (x + 1) + top.w - 1) / top.w);
                const double area = (double)(x1 - x0) * (y1 - y0);
                out[x] = pooling_type == PoolMethod_MAX
                             ? largest_of(channel, x0, x1, y0, y1)
                             : (float)(sum_of(channel, x0, x1, y0, y1) / area);
            }
        }
    }
}

int Pooling::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(create_tops(*this, std::vector<Mat>(1, bottom_blob), tops, opt));
    top_blob = tops[0];
    const Mat& in = bottom_blob;
    if (global_pooling) {
        for (int q = 0; q < in.c; q++)
            top_blob[q] =
                pooling_type == PoolMethod_MAX
                    ? largest_of(in.channel(q), 0, in.w, 0, in.h)
                    : (float)(sum_of(in.channel(q), 0, in.w, 0, in.h) / ((double)in.w * in.h));
        return kOk;
    }
    if (adaptive_pooling) {
        pool_adaptive(in, top_blob);
        return kOk;
    }
    Axis x, y;
    QUOLL_RETURN_IF_ERROR(window_axes(in.w, in.h, &x, &y));
    pool_windows(in, x, y, top_blob);
    return kOk;
}

QUOLL_DEFINE_LAYER(Pooling)

}  // namespace quoll
