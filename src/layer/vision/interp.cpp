#include "layer/vision/interp.h"

#include <limits.h>
#include <math.h>

#include <algorithm>

namespace quoll {

Interp::Interp() {}

void Interp::params(Interp& s, ParamVisitor& v) {
    v(0, "resize_type", s.resize_type, 0, "1: nearest, 2: bilinear, 3: bicubic", between(0, 3));
    v(1, "height_scale", s.height_scale, 1.f, "factor of the height");
    v(2, "width_scale", s.width_scale, 1.f, "factor of the width");
    v(3, "output_height", s.output_height, 0, "height, 0: by scale", at_least(0));
    v(4, "output_width", s.output_width, 0, "width, 0: by scale", at_least(0));
    v(5, "dynamic_target_size", s.dynamic_target_size, 0,
      "1: the size of input 1, unless size_expr", between(0, 1));
    v(6, "align_corner", s.align_corner, 0, "1: corner values keep their place", between(0, 1));
    v(9, "size_expr", s.size_expr, "", "width, height as expressions");
}

void Interp::weights(Interp&, WeightVisitor&) {}

int Interp::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    QUOLL_RETURN_IF_ERROR(expression_.parse(*this, "size_expr", size_expr));
    if (expression_.count() > 2)
        return fail("size_expr: expected at most 2 values, got %d", expression_.count());
    return kOk;
}

bool Interp::by_scale() const {
    return !dynamic_target_size && expression_.empty() && (output_height == 0 || output_width == 0);
}

int Interp::target_size(const std::vector<Shape>& in, int* w, int* h) const {
    const int from_w = in[0].dims == 1 ? 1 : in[0].w, from_h = in[0].dims <= 1 ? 1 : in[0].h;
    double to_w = output_width, to_h = output_height;
    if (!expression_.empty()) {
        std::vector<int> sizes;
        QUOLL_RETURN_IF_ERROR(expression_.evaluate(*this, in, &sizes));
        to_w = sizes[0], to_h = sizes.size() > 1 ? sizes[1] : from_h;
    } else if (dynamic_target_size) {
        if (in.size() != 2) return fail("expected 2 inputs, got %zu", in.size());
        to_w = in[1].w, to_h = in[1].h;
    } else if (by_scale()) {
        to_w = from_w * width_scale, to_h = from_h * height_scale;
    }
    if (in[0].dims == 2) to_h = in[0].h;
    const double least = in[0].total() == 0 ? 0 : 1;
    if (!(to_w >= least && to_h >= least && to_w <= INT_MAX && to_h <= INT_MAX))
        return fail("cannot resize to %g x %g", to_w, to_h);
    *w = (int)to_w, *h = (int)to_h;
    return kOk;
}

int Interp::shape(const Interp& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.empty() || in[0].dims < 1) return s.fail("expected at least 1 input, got none");
    const bool picks_bytes =
        in[0].dtype == DType::s8 && s.resize_type == kNearest && in[0].dims > 1;
    if (!accepts_float(s, in[0].dtype) && !picks_bytes)
        return s.fail("expected f32, got %s", dtype_name(in[0].dtype));
    int w, h;
    QUOLL_RETURN_IF_ERROR(s.target_size(in, &w, &h));
    out.assign(1, in[0]);
    if (in[0].dims == 1) {
        out[0] = Shape(w, h, in[0].w);
        out[0].n = in[0].n;
        return kOk;
    }
    out[0].w = w, out[0].h = h;
    if (s.resize_type == 0 && out[0] != in[0]) return s.fail("resize_type 0 is no way to resize");
    return kOk;
}

// Keys' cubic convolution kernel with a = -0.75 at distances 1 + t, t, 1 - t, 2 - t.
static void cubic_factors(float t, float factor[4]) {
    const float a = -0.75f;
    const auto near = [a](float x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
    const auto far = [a](float x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
    factor[0] = far(1 + t);
    factor[1] = near(t);
    factor[2] = near(1 - t);
    factor[3] = 1.f - factor[0] - factor[1] - factor[2];
}

std::vector<Interp::Taps> Interp::taps(int size, int out_size, double step) const {
    std::vector<Taps> list(out_size);
    // As in ncnn, an axis that keeps its size is left alone by bilinear whatever the scale says.
    if (resize_type == kBilinear && size == out_size) step = 1.0;
    const double scale = !align_corner ? step : out_size > 1 ? (size - 1.0) / (out_size - 1) : 0.0;
    for (int i = 0; i < out_size; i++) {
        Taps& t = list[i];
        t = Taps();
        if (resize_type == kNearest) {
            t.index[0] = (int)std::min(std::max(i * (float)step, 0.f), size - 1.f);
            t.factor[0] = 1.f;
            continue;
        }
        const float at = (float)(align_corner ? i * scale : (i + 0.5) * scale - 0.5);
        const int left = (int)floorf(at);
        const float part = at - left;
        const int first = resize_type == kBicubic ? left - 1 : left;
        for (int k = 0; k < taps_of(); k++) t.index[k] = std::min(std::max(first + k, 0), size - 1);
        if (resize_type == kBicubic)
            cubic_factors(part, t.factor);
        else
            t.factor[0] = 1.f - part, t.factor[1] = part;
    }
    return list;
}

std::vector<Interp::Taps> Interp::column_taps(int size, int out_size) const {
    const bool scaled = by_scale() && output_width == 0;
    return taps(size, out_size, scaled ? 1.f / width_scale : (double)size / out_size);
}

std::vector<Interp::Taps> Interp::row_taps(int size, int out_size) const {
    const bool scaled = by_scale() && output_height == 0;
    return taps(size, out_size, scaled ? 1.f / height_scale : (double)size / out_size);
}

// src: h x w values. Rows first, then columns, as ncnn adds them up. A factor of 0 makes NaN of
// what is not finite, as in every other framework.
static void resize_plane(const float* src, int w, float* dst, const std::vector<Interp::Taps>& xs,
                         int x_taps, const std::vector<Interp::Taps>& ys, int y_taps) {
    for (const Interp::Taps& y : ys) {
        for (const Interp::Taps& x : xs) {
            float sum = 0.f;
            for (int i = 0; i < y_taps; i++) {
                const float* row = src + (size_t)y.index[i] * w;
                float part = 0.f;
                for (int k = 0; k < x_taps; k++) part += row[x.index[k]] * x.factor[k];
                sum += part * y.factor[i];
            }
            *dst++ = sum;
        }
    }
}

static void pick_bytes(const signed char* src, int w, signed char* dst,
                       const std::vector<Interp::Taps>& xs, const std::vector<Interp::Taps>& ys) {
    for (const Interp::Taps& y : ys)
        for (const Interp::Taps& x : xs) *dst++ = src[(size_t)y.index[0] * w + x.index[0]];
}

// As in ncnn bicubic goes by the scale even where that rounds to the same size.
bool Interp::unchanged(const Shape& in, const Shape& out) const {
    return in == out && !(resize_type == kBicubic && by_scale() && !align_corner);
}

int Interp::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                    const Option& opt) const {
    std::vector<Shape> in = shapes_of(bottoms), out;
    QUOLL_RETURN_IF_ERROR(shape(*this, in, out));
    const Mat& src = bottoms[0];
    tops.resize(1);
    if (unchanged(in[0], out[0])) {
        tops[0] = src;
        return kOk;
    }
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottoms, tops, opt));
    Mat& dst = tops[0];
    if (src.dims == 1) {
        for (int q = 0; q < dst.c; q++) dst.channel(q).fill(((const float*)src)[q]);
        return kOk;
    }
    const std::vector<Taps> xs = column_taps(src.w, dst.w);
    std::vector<Taps> ys;
    if (src.dims == 2)
        for (int y = 0; y < src.h; y++) ys.push_back(Taps{{y, 0, 0, 0}, {1.f, 0.f, 0.f, 0.f}});
    else
        ys = row_taps(src.h, dst.h);
    for (int q = 0; q < src.c; q++)
        for (int z = 0; z < src.d; z++) {
            const size_t from = q * src.cstep + (size_t)z * src.w * src.h,
                         to = q * dst.cstep + (size_t)z * dst.w * dst.h;
            if (src.dtype == DType::s8)
                pick_bytes((const signed char*)src.data + from, src.w, (signed char*)dst.data + to,
                           xs, ys);
            else
                resize_plane((const float*)src.data + from, src.w, (float*)dst.data + to, xs,
                             taps_of(), ys, src.dims == 2 ? 1 : taps_of());
        }
    return kOk;
}

QUOLL_DEFINE_LAYER(Interp)

}  // namespace quoll
