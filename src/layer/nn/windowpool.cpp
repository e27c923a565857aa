#include "layer/nn/windowpool.h"

#include <limits.h>
#include <math.h>

#include <algorithm>
#include <limits>

namespace quoll {

static const int kMostSize = 1 << 24;  // of a window, a stride or a pad: products stay below 2^63

static void declare_windows(ParamVisitor& v, Mat& kernel, Mat& strides, Mat& pads) {
    v.ints(1, "kernel", kernel, "sizes of the window, one a spatial axis", between(1, kMostSize));
    v.ints(2, "strides", strides, "one a spatial axis; none: 1", between(1, kMostSize));
    v.ints(4, "pads", pads, "padding before each spatial axis, then behind each; none: 0",
           between(0, kMostSize));
}

int WindowSizes::set(const Layer& layer, const Mat& kernels, const Mat& strides,
                     const Mat& dilations, const Mat& pads) {
    const std::vector<int> k = ints_of_param(kernels), s = ints_of_param(strides),
                           d = ints_of_param(dilations), p = ints_of_param(pads);
    count = (int)k.size();
    if (count < 1 || count > 3) return layer.fail("kernel: expected 1 to 3 sizes, got %d", count);
    if ((!s.empty() && s.size() != k.size()) || (!d.empty() && d.size() != k.size()) ||
        (!p.empty() && p.size() != 2 * k.size()))
        return layer.fail("%zu strides, %zu dilations and %zu pads do not go with %d kernel sizes",
                          s.size(), d.size(), p.size(), count);
    for (int i = 0; i < count; i++) {
        const int at = 3 - count + i;
        kernel[at] = k[i];
        if (!s.empty()) stride[at] = s[i];
        if (!d.empty()) dilation[at] = d[i];
        if (!p.empty()) before[at] = p[i], after[at] = p[count + i];
        if ((int64_t)(kernel[at] - 1) * dilation[at] >= kMostSize)
            return layer.fail("a window of %d values, %d apart", kernel[at], dilation[at]);
    }
    return kOk;
}

// The spatial sizes of a blob of `count` + 1 axes as three.
static int spatial_sizes(const Layer& layer, const Shape& in, int count, int size[3]) {
    if (in.dims != count + 1)
        return layer.fail("expected %d axes, got %s", count + 1, shape_text(in).c_str());
    for (int i = 0; i < 3; i++) size[i] = i < 3 - count ? 1 : in.size(i - (3 - count) + 1);
    return kOk;
}

// `in` with other spatial sizes.
static int with_spatial_sizes(const Layer& layer, const Shape& in, const int size[3], Shape* out) {
    std::vector<int> sizes(1, in.size(0));
    for (int i = 1; i < in.dims; i++) sizes.push_back(size[3 - in.dims + i]);
    QUOLL_RETURN_IF_ERROR(shape_of_sizes(layer, sizes, in.dtype, out));
    out->n = in.n;
    return out->total() <= INT_MAX ? (int)kOk : layer.fail("more than %d values", INT_MAX);
}

// The first value of channel q of item b.
static size_t plane_start(const Mat& m, int b, int q) {
    const size_t step = m.dims == 2 ? m.w : m.cstep;
    return b * m.nstep + q * step;
}

void WindowPool::params(WindowPool& s, ParamVisitor& v) {
    v(0, "op_type", s.op_type, 0, "0 max, 1 min, 2 average, 3 Lp norm", between(MAX, LP));
    declare_windows(v, s.kernel, s.strides, s.pads);
    v.ints(3, "dilations", s.dilations, "one a spatial axis; none: 1", between(1, kMostSize));
    v(5, "ceil_mode", s.ceil_mode, 0, "1: windows that begin inside but end outside count",
      between(0, 1));
    v(6, "auto_pad", s.auto_pad, 0, "0: pads, 1: same upper, 2: same lower, 3: none",
      between(kExplicit, kValid));
    v(7, "count_include_pad", s.count_include_pad, 0, "1: the mean counts padding", between(0, 1));
    v(8, "p", s.p, 2, "the norm's p", at_least(1));
    v(9, "storage_order", s.storage_order, 0, "1: indices count the first spatial axis fastest",
      between(0, 1));
}

int WindowPool::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    return windows_.set(*this, kernel, strides, dilations, pads);
}

int WindowPool::plan(const Shape& in, WindowSizes* windows, int out[3]) const {
    *windows = windows_;
    WindowSizes& win = *windows;
    int size[3];
    QUOLL_RETURN_IF_ERROR(spatial_sizes(*this, in, win.count, size));
    for (int i = 0; i < 3; i++) {
        if (auto_pad != kExplicit) win.before[i] = win.after[i] = 0;
        if (auto_pad == kSameUpper || auto_pad == kSameLower) {
            const int64_t count = ((int64_t)size[i] + win.stride[i] - 1) / win.stride[i];
            const int64_t total =
                std::max<int64_t>((count - 1) * win.stride[i] + win.extent(i) - size[i], 0);
            win.before[i] = (int)(auto_pad == kSameUpper ? total / 2 : (total + 1) / 2);
            win.after[i] = (int)(total - win.before[i]);
        }
        const int64_t padded = (int64_t)size[i] + win.before[i] + win.after[i];
        const int64_t room = padded - win.extent(i) + (ceil_mode ? win.stride[i] - 1 : 0);
        if (size[i] < 1 || room < 0)
            return fail("a window of %d does not fit %s", win.extent(i), shape_text(in).c_str());
        int64_t count = room / win.stride[i] + 1;
        // The last window has to begin inside or on the padding before.
        if ((count - 1) * win.stride[i] >= (int64_t)size[i] + win.before[i]) count--;
        if (count < 1) return fail("no window fits %s", shape_text(in).c_str());
        out[i] = (int)count;
    }
    return kOk;
}

int WindowPool::shape(const WindowPool& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 1));
    if (s.op_type == AVERAGE || s.op_type == LP)
        QUOLL_RETURN_IF_ERROR(expect_dtype(s, "input", in[0].dtype, DType::f32));
    QUOLL_RETURN_IF_ERROR(expect_number(s, in[0].dtype));
    const size_t outputs = output_count(s, out);
    if (outputs > (s.op_type == MAX ? 2u : 1u))
        return s.fail("expected 1 output, or 2 of max, got %zu", outputs);
    WindowSizes windows;
    int size[3];
    QUOLL_RETURN_IF_ERROR(s.plan(in[0], &windows, size));
    out.resize(outputs);
    QUOLL_RETURN_IF_ERROR(with_spatial_sizes(s, in[0], size, &out[0]));
    if (out.size() == 2) out[1] = out[0], out[1].dtype = DType::s32;
    return kOk;
}

// f(z, y, x) for the taps of the window at `at` that lie inside an input of that size.
template <class F>
static void for_each_tap(const WindowSizes& win, const int at[3], const int size[3], F f) {
    int64_t first[3];
    int from[3], to[3];
    for (int i = 0; i < 3; i++) {
        first[i] = (int64_t)at[i] * win.stride[i] - win.before[i];
        const int d = win.dilation[i];
        from[i] = first[i] >= 0 ? 0 : (int)((-first[i] + d - 1) / d);
        const int64_t room = size[i] - first[i];  // values from the window's begin to the end
        to[i] = room <= 0 ? 0 : (int)std::min<int64_t>((room + d - 1) / d, win.kernel[i]);
    }
    for (int z = from[0]; z < to[0]; z++)
        for (int y = from[1]; y < to[1]; y++)
            for (int x = from[2]; x < to[2]; x++)
                f((int)(first[0] + (int64_t)z * win.dilation[0]),
                  (int)(first[1] + (int64_t)y * win.dilation[1]),
                  (int)(first[2] + (int64_t)x * win.dilation[2]));
}

// The taps of the window that lie inside the padded input.
static double padded_taps(const WindowSizes& win, const int at[3], const int size[3]) {
    double taps = 1;
    for (int i = 0; i < 3; i++) {
        const int64_t room =
            (int64_t)size[i] + win.before[i] + win.after[i] - (int64_t)at[i] * win.stride[i];
        taps *= (double)std::min<int64_t>((room + win.dilation[i] - 1) / win.dilation[i],
                                          win.kernel[i]);
    }
    return taps;
}

template <class T>
void WindowPool::pool_plane(const T* in, const int size[3], const WindowSizes& win, T* out,
                            const int out_size[3], int* index, size_t first) const {
    const auto value = [&](int z, int y, int x) -> T {
        return in[((size_t)z * size[1] + y) * size[2] + x];
    };
    int at[3];
    for (at[0] = 0; at[0] < out_size[0]; at[0]++) {
        for (at[1] = 0; at[1] < out_size[1]; at[1]++) {
            for (at[2] = 0; at[2] < out_size[2]; at[2]++) {
                if (op_type == MAX || op_type == MIN) {
                    T best = op_type == MAX ? std::numeric_limits<T>::lowest()
                                            : std::numeric_limits<T>::max();
                    int place[3] = {0, 0, 0};
                    bool any = false;
                    for_each_tap(win, at, size, [&](int z, int y, int x) {
                        const T v = value(z, y, x);
                        // The first NaN stays.
                        if (any &&
                            (best != best || !(v != v || (op_type == MAX ? v > best : v < best))))
                            return;
                        best = v, any = true;
                        place[0] = z, place[1] = y, place[2] = x;
                    });
                    *out++ = best;
                    if (!index) continue;
                    const int z = place[0], y = place[1], x = place[2];
                    const size_t number = storage_order ? ((size_t)x * size[1] + y) * size[0] + z
                                                        : ((size_t)z * size[1] + y) * size[2] + x;
                    *index++ = (int)(first + number);
                    continue;
                }
                double sum = 0, count = 0;
                for_each_tap(win, at, size, [&](int z, int y, int x) {
                    const double v = value(z, y, x);
                    sum += op_type == AVERAGE ? v : pow(fabs(v), p);
                    count++;
                });
                if (op_type == AVERAGE && count_include_pad) count = padded_taps(win, at, size);
                *out++ = (T)(op_type == LP ? pow(sum, 1.0 / p) : count > 0 ? sum / count : 0);
            }
        }
    }
}

int WindowPool::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                        const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat& m = bottoms[0];
    WindowSizes windows;
    int size[3], out_size[3];
    QUOLL_RETURN_IF_ERROR(plan(m.logical_shape(), &windows, out_size));
    QUOLL_RETURN_IF_ERROR(spatial_sizes(*this, m.logical_shape(), windows.count, size));
    const int channels = m.logical_shape().size(0);
    const size_t plane = (size_t)size[0] * size[1] * size[2];
    with_number(m.dtype, [&](auto number) {
        using T = decltype(number);
        for (int b = 0; b < m.n; b++) {
            for (int q = 0; q < channels; q++) {
                int* index = nullptr;
                if (tops.size() > 1) index = (int*)tops[1].data + plane_start(tops[1], b, q);
                pool_plane((const T*)m.data + plane_start(m, b, q), size, windows,
                           (T*)tops[0].data + plane_start(tops[0], b, q), out_size, index,
                           ((size_t)b * channels + q) * plane);
            }
        }
    });
    return kOk;
}

void MaxUnpool::params(MaxUnpool& s, ParamVisitor& v) {
    declare_windows(v, s.kernel, s.strides, s.pads);
}

int MaxUnpool::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    return windows_.set(*this, kernel, strides, Mat(), pads);
}

int MaxUnpool::shape(const MaxUnpool& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 2, 3));
    QUOLL_RETURN_IF_ERROR(expect_number(s, in[0].dtype));
    Shape expected = in[0];
    expected.dtype = DType::s32;
    if (in[1] != expected)
        return s.fail("indices are %s of %s, x is %s", shape_text(in[1]).c_str(),
                      dtype_name(in[1].dtype), shape_text(in[0]).c_str());
    int size[3];
    QUOLL_RETURN_IF_ERROR(spatial_sizes(s, in[0], s.windows_.count, size));
    out.assign(1, Shape());
    if (in.size() == 3) return expect_dtype(s, "output shape", in[2].dtype, DType::s32);
    const WindowSizes& win = s.windows_;
    for (int i = 0; i < 3; i++) {
        const int64_t wide =
            ((int64_t)size[i] - 1) * win.stride[i] + win.kernel[i] - win.before[i] - win.after[i];
        if (wide < 1 || wide > INT_MAX)
            return s.fail("the output would have an axis of %lld", (long long)wide);
        size[i] = (int)wide;
    }
    return with_spatial_sizes(s, in[0], size, &out[0]);
}

int MaxUnpool::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                       const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat &x = bottoms[0], &indices = bottoms[1];
    if (bottoms.size() == 3) {
        std::vector<int> sizes;
        Shape out;
        QUOLL_RETURN_IF_ERROR(read_ints(*this, "output shape", bottoms[2], 5, &sizes));
        if ((int)sizes.size() != x.dims + 1 || sizes[0] != x.n)
            return fail("output shape: expected %d sizes, the first %d", x.dims + 1, x.n);
        sizes.erase(sizes.begin());
        QUOLL_RETURN_IF_ERROR(shape_of_sizes(*this, sizes, x.dtype, &out));
        out.n = x.n;
        if (out.total() > INT_MAX) return fail("more than %d values", INT_MAX);
        QUOLL_RETURN_IF_ERROR(create_tensor(out, &tops[0], opt));
    }
    Mat& top = tops[0];
    if (!top.empty()) memset(top.data, 0, top.total() * top.elemsize);
    const size_t item = value_count(top), total = item * top.n, count = value_count(x);
    const Flat from(x), into(top);
    int status = kOk;
    with_number(x.dtype, [&](auto number) {
        using T = decltype(number);
        for (int b = 0; b < x.n; b++) {
            for (size_t i = 0; i < count; i++) {
                const size_t at = b * x.nstep + from(i);
                // The steps of x and of the indices differ when their types do.
                const int to = ((const int32_t*)indices.data)[b * indices.nstep + Flat(indices)(i)];
                if (to < 0 || (size_t)to >= total) {
                    status = fail("index %d, expected 0 to %zu", to, total - 1);
                    return;
                }
                ((T*)top.data)[to / item * top.nstep + into(to % item)] = ((const T*)x.data)[at];
            }
        }
    });
    return status;
}

void Col2Im::params(Col2Im& s, ParamVisitor& v) {
    v.ints(0, "image", s.image, "spatial sizes of the output", between(1, kMostSize));
    declare_windows(v, s.kernel, s.strides, s.pads);
    v.ints(3, "dilations", s.dilations, "one a spatial axis; none: 1", between(1, kMostSize));
}

int Col2Im::plan(const Shape& columns, const Mat& sizes, const Mat& kernels, Plan* plan) const {
    WindowSizes& win = plan->windows;
    QUOLL_RETURN_IF_ERROR(win.set(*this, kernels, strides, dilations, pads));
    const std::vector<int> wanted = ints_of_param(sizes);
    if ((int)wanted.size() != win.count)
        return fail("%zu image sizes for %d kernel sizes", wanted.size(), win.count);
    int64_t taps = 1, windows = 1;
    for (int i = 0; i < 3; i++) {
        if (i >= 3 - win.count) plan->image[i] = wanted[i - (3 - win.count)];
        const int64_t room = (int64_t)plan->image[i] + win.before[i] + win.after[i] - win.extent(i);
        if (plan->image[i] < 1 || win.kernel[i] < 1 || room < 0)
            return fail("a window of %d does not fit an image of %d", win.extent(i),
                        plan->image[i]);
        plan->blocks[i] = (int)(room / win.stride[i]) + 1;
        windows *= plan->blocks[i], taps *= win.kernel[i];
        if (windows > INT_MAX || taps > INT_MAX) return fail("too many windows or taps");
    }
    if (columns.dims != 2 || columns.w != windows || columns.h % taps != 0)
        return fail("expected rows of %lld, a multiple of %lld of them, got %s", (long long)windows,
                    (long long)taps, shape_text(columns).c_str());
    std::vector<int> out(1, (int)(columns.h / taps));
    out.insert(out.end(), wanted.begin(), wanted.end());
    return shape_of_sizes(*this, out, DType::f32, &plan->out);
}

int Col2Im::shape(const Col2Im& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 3));
    QUOLL_RETURN_IF_ERROR(expect_dtype(s, "columns", in[0].dtype, DType::f32));
    out.assign(1, Shape());
    if (in.size() == 1) {
        Plan plan;
        QUOLL_RETURN_IF_ERROR(s.plan(in[0], s.image, s.kernel, &plan));
        out[0] = plan.out;
        return kOk;
    }
    if (in.size() == 2 || !s.image.empty() || !s.kernel.empty())
        return s.fail("expected image and kernel sizes both as parameters or both as inputs");
    for (int i = 1; i < 3; i++) {
        QUOLL_RETURN_IF_ERROR(expect_dtype(s, "sizes", in[i].dtype, DType::s32));
        if (in[i].dims != 1) return s.fail("sizes: expected 1 axis");
    }
    return kOk;
}

int Col2Im::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                    const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const bool given = bottoms.size() == 3;
    for (size_t i = 1; i < bottoms.size(); i++)
        for (int j = 0; j < bottoms[i].w; j++)
            if (((const int*)bottoms[i].data)[j] > kMostSize)
                return fail("sizes: expected at most %d", kMostSize);
    Plan p;
    QUOLL_RETURN_IF_ERROR(plan(bottoms[0].logical_shape(), given ? bottoms[1] : image,
                               given ? bottoms[2] : kernel, &p));
    QUOLL_RETURN_IF_ERROR(create_tensor(p.out, &tops[0], opt));
    const WindowSizes& win = p.windows;
    const int taps = win.kernel[0] * win.kernel[1] * win.kernel[2];
    const Mat& columns = bottoms[0];
    tops[0].fill(0.f);
    for (int row = 0; row < columns.h; row++) {
        const int tap = row % taps;
        const int tz = tap / (win.kernel[1] * win.kernel[2]),
                  ty = tap / win.kernel[2] % win.kernel[1], tx = tap % win.kernel[2];
        const float* from = columns.row(row);
        float* image_plane = (float*)tops[0].data + plane_start(tops[0], 0, row / taps);
        for (int i = 0; i < columns.w; i++) {
            const int at[3] = {i / (p.blocks[1] * p.blocks[2]), i / p.blocks[2] % p.blocks[1],
                               i % p.blocks[2]};
            const int64_t z =
                (int64_t)at[0] * win.stride[0] + (int64_t)tz * win.dilation[0] - win.before[0];
            const int64_t y =
                (int64_t)at[1] * win.stride[1] + (int64_t)ty * win.dilation[1] - win.before[1];
            const int64_t x =
                (int64_t)at[2] * win.stride[2] + (int64_t)tx * win.dilation[2] - win.before[2];
            if (z >= 0 && z < p.image[0] && y >= 0 && y < p.image[1] && x >= 0 && x < p.image[2])
                image_plane[(z * p.image[1] + y) * p.image[2] + x] += from[i];
        }
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(WindowPool)
QUOLL_DEFINE_LAYER(MaxUnpool)
QUOLL_DEFINE_LAYER(Col2Im)

}  // namespace quoll
