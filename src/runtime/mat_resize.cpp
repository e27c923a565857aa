// Resizing of f32 Mats: nearest, bilinear and bicubic, as one separable filter with 1, 2 or 4 taps.
#include <math.h>

#include "quoll/log.h"
#include "quoll/mat.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

enum { kMaxTaps = 4 };

// For each index of the resized axis, which source indices contribute and how much: `taps` entries
// an index, ascending.
struct Filter {
    int taps;
    Mat index;   // s32
    Mat weight;  // f32

    bool create(int out, int taps_, const Option& opt) {
        taps = taps_;
        index.create(Shape(taps, out, DType::s32), 1, opt.workspace_allocator);
        weight.create(Shape(taps, out), 1, opt.workspace_allocator);
        return !index.empty() && !weight.empty();
    }
    const int* at(int i) const { return index.row<int>(i); }
    const float* weights(int i) const { return weight.row(i); }
};

// The cubic convolution kernel of R. Keys, "Cubic convolution interpolation for digital image
// processing" (1981), at the distances 1 + t, t, 1 - t and 2 - t.
void cubic_weights(double t, float* weight) {
    const double a = -0.75;
    const auto near = [a](double x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
    const auto far = [a](double x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
    weight[0] = (float)far(1 + t);
    weight[1] = (float)near(t);
    weight[2] = (float)near(1 - t);
    weight[3] = (float)far(2 - t);
}

int clamp_index(int i, int size) { return i < 0 ? 0 : i < size ? i : size - 1; }

// Fills the filter that takes an axis from `in` to `out` samples. Nearest takes the sample at the
// cell's left edge, the others put samples at cell centres and repeat the edge.
void fill_filter(Filter& f, int in, int out) {
    const double scale = (double)in / out;
    for (int i = 0; i < out; i++) {
        int* index = f.index.row<int>(i);
        float* weight = f.weight.row(i);
        if (f.taps == 1) {
            index[0] = clamp_index((int)((float)i * ((float)in / (float)out)), in);
            weight[0] = 1.f;
            continue;
        }
        const float at = (float)((i + 0.5) * scale - 0.5), base = floorf(at), t = at - base;
        const int first = (int)base - (f.taps == 4 ? 1 : 0);
        for (int k = 0; k < f.taps; k++) index[k] = clamp_index(first + k, in);
        if (f.taps == 4)
            cubic_weights(t, weight);
        else
            weight[0] = 1.f - t, weight[1] = t;
    }
}

// One row of `count` elements of `pack` channels. Pack is the number of channels, or 0 to take
// `pack`.
template <int Taps, int Pack>
void resize_row(const float* from, float* to, int count, int pack, const Filter& f) {
    const int channels = Pack ? Pack : pack;
    const int* index = f.at(0);
    const float* weight = f.weights(0);
    for (int x = 0; x < count; x++, to += channels, index += Taps, weight += Taps) {
        for (int k = 0; k < channels; k++) {
            float sum = from[(size_t)index[0] * channels + k] * weight[0];
            for (int t = 1; t < Taps; t++) sum += from[(size_t)index[t] * channels + k] * weight[t];
            to[k] = sum;
        }
    }
}

template <int Taps>
void resize_row(const float* from, float* to, int count, int pack, const Filter& f) {
    if (pack == 1)
        resize_row<Taps, 1>(from, to, count, pack, f);
    else
        resize_row<Taps, 0>(from, to, count, pack, f);
}

void resize_row(const float* from, float* to, int count, int pack, const Filter& f) {
    if (f.taps == 1)
        resize_row<1>(from, to, count, pack, f);
    else if (f.taps == 2)
        resize_row<2>(from, to, count, pack, f);
    else
        resize_row<4>(from, to, count, pack, f);
}

// to = the sum of rows[t] * weight[t].
template <int Taps>
void blend_rows(const float* const* rows, const float* weight, float* __restrict to, size_t count) {
    for (size_t i = 0; i < count; i++) {
        float sum = rows[0][i] * weight[0];
        for (int t = 1; t < Taps; t++) sum += rows[t][i] * weight[t];
        to[i] = sum;
    }
}

// One channel. `slots` keeps the last resized source rows, row i in slot i % taps.
void resize_plane(const float* from, int w, float* to, int out_w, int out_h, int pack,
                  const Filter& fx, const Filter& fy, float* slots) {
    const size_t count = (size_t)out_w * pack;
    int held[kMaxTaps] = {-1, -1, -1, -1};
    for (int y = 0; y < out_h; y++, to += count) {
        const int* index = fy.at(y);
        const float* rows[kMaxTaps];
        for (int t = 0; t < fy.taps; t++) {
            const int slot = index[t] % fy.taps;
            float* row = slots + slot * count;
            if (held[slot] != index[t])
                resize_row(from + (size_t)index[t] * w * pack, row, out_w, pack, fx);
            held[slot] = index[t];
            rows[t] = row;
        }
        if (fy.taps == 1)
            blend_rows<1>(rows, fy.weights(y), to, count);
        else if (fy.taps == 2)
            blend_rows<2>(rows, fy.weights(y), to, count);
        else
            blend_rows<4>(rows, fy.weights(y), to, count);
    }
}

bool valid(const Mat& src, int w, int h, const char* function) {
    if (src.empty() || src.dims > 3 || src.dtype != DType::f32 ||
        src.elemsize != 4u * src.elempack) {
        QUOLL_LOGE("[%s] expected an f32 Mat of 1 to 3 axes, got %d axes of %s", function, src.dims,
                   dtype_name(src.dtype));
        return false;
    }
    if (w < 1 || h < 1) {
        QUOLL_LOGE("[%s] size: expected at least 1 x 1, got %d x %d", function, w, h);
        return false;
    }
    return true;
}

// Every value of a 1-D Mat becomes a channel that is filled with it.
void spread(const Mat& src, Mat& dst, int w, int h, const Option& opt) {
    Shape shape(w, h, src.w * src.elempack);
    shape.n = src.n;
    dst.create(shape, src.elempack, opt.blob_allocator);
    if (dst.empty()) return;
    const int pack = src.elempack;
    for (int b = 0; b < src.n; b++) {
        for (int q = 0; q < dst.c; q++) {
            const float* from = (const float*)src.data + (b * src.nstep + q) * pack;
            float* to = (float*)dst.data + (b * dst.nstep + q * dst.cstep) * pack;
            for (size_t i = 0; i < (size_t)w * h; i++)
                for (int k = 0; k < pack; k++) to[i * pack + k] = from[k];
        }
    }
}

void resize_planes(const Mat& src, Mat& dst, int w, int h, int taps, const Option& opt) {
    const int pack = src.elempack;
    Shape shape = src.logical_shape();
    shape.w = w;
    if (src.dims == 3) shape.h = h;
    dst.create(shape, pack, opt.blob_allocator);
    if (dst.empty()) return;
    const int taps_x = src.w == w ? 1 : taps, taps_y = src.h == h ? 1 : taps;  // 1 copies
    Filter fx, fy;
    const Mat rows(Shape(w, taps_y, src.c * pack), pack, opt.workspace_allocator);
    if (rows.empty() || !fx.create(w, taps_x, opt) || !fy.create(h, taps_y, opt)) {
        dst.release();
        return;
    }
    fill_filter(fx, src.w, w);
    fill_filter(fy, src.h, h);
    const int threads = opt.num_threads < 1 ? 1 : opt.num_threads, channels = src.c;
    for (int b = 0; b < src.n; b++) {
        parallel_for(channels, threads, [&](int64_t q) {
            resize_plane((const float*)src.data + (b * src.nstep + q * src.cstep) * pack, src.w,
                         (float*)dst.data + (b * dst.nstep + q * dst.cstep) * pack, w, h, pack, fx,
                         fy, (float*)rows.data + q * rows.cstep * pack);
        });
    }
}

void resize(const Mat& src, Mat& dst, int w, int h, int taps, const char* function,
            const Option& opt) {
    const Mat in = src;  // dst may be src
    dst.release();
    if (!QUOLL_PIXEL) {
        QUOLL_LOGE("[%s] this is not part of this build (QUOLL_PIXEL is off)", function);
        return;
    }
    if (!valid(in, w, h, function)) return;
    if (in.dims == 2) {
        // rows of a 2-D Mat are independent signals: its h counts rows and stays
        h = in.h;
    }
    if (in.dims == 1)
        spread(in, dst, w, h, opt);
    else if (in.w == w && in.h == h)
        dst = in;
    else
        resize_planes(in, dst, w, h, taps, opt);
    if (dst.empty()) QUOLL_LOGE("[%s] no memory for the output", function);
}

}  // namespace

void resize_nearest(const Mat& src, Mat& dst, int w, int h, const Option& opt) {
    resize(src, dst, w, h, 1, "resize_nearest", opt);
}

void resize_bilinear(const Mat& src, Mat& dst, int w, int h, const Option& opt) {
    resize(src, dst, w, h, 2, "resize_bilinear", opt);
}

void resize_bicubic(const Mat& src, Mat& dst, int w, int h, const Option& opt) {
    resize(src, dst, w, h, 4, "resize_bicubic", opt);
}

}  // namespace quoll
