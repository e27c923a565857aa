#include "tensorscan.h"

#include <math.h>

#include <algorithm>

#include "integer.h"

namespace quoll {

static void declare_axis(ParamVisitor& v, int& axis, int def) {
    v(0, "axis", axis, def, "axis, 0: outermost, -1: innermost", between(-4, 3));
}

// One f32 input with that axis; the output is like it.
static int along_axis_shape(const Layer& layer, int axis, const std::vector<Shape>& in,
                            std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(layer, in, 1, 1));
    QUOLL_RETURN_IF_ERROR(expect_dtype(layer, "input", in[0].dtype, DType::f32));
    int resolved;
    QUOLL_RETURN_IF_ERROR(resolve_axis(layer, axis, in[0].dims, &resolved));
    out = in;
    return kOk;
}

// f(from, to, size, step) for each line of values along an axis; both lie `step` apart.
template <class T, class F>
static void for_each_line(const Mat& in, Mat& out, int axis, F f) {
    if (out.empty()) return;
    const AlongAxis along(in, axis < 0 ? axis + in.dims : axis);
    for (size_t o = 0; o < along.outer; o++) {
        const T* from = (const T*)in.data + along.start(o);
        T* to = (T*)out.data + along.start(o);
        for (size_t r = 0; r < along.inner; r++) f(from + r, to + r, along.size, along.step);
    }
}

void CumSum::params(CumSum& s, ParamVisitor& v) {
    declare_axis(v, s.axis, 0);
    v(1, "exclusive", s.exclusive, 0, "1: sums without the value itself", between(0, 1));
    v(2, "reverse", s.reverse, 0, "1: sums from the end on", between(0, 1));
}

int CumSum::shape(const CumSum& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 2));
    QUOLL_RETURN_IF_ERROR(expect_number(s, in[0].dtype));
    out.assign(1, in[0]);
    if (in.size() == 2) {
        if (in[1].total() != 1)
            return s.fail("axis: expected one value, got %s", shape_text(in[1]).c_str());
        return expect_dtype(s, "axis", in[1].dtype, DType::s32);
    }
    int axis;
    return resolve_axis(s, s.axis, in[0].dims, &axis);
}

// Floats are added up in double.
static double long_sum(float) { return 0; }
template <class T>
static T long_sum(T) {
    return 0;
}
static double wrapping_add(double x, double y) { return x + y; }

int CumSum::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                    const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat& m = bottoms[0];
    int along = axis;
    if (bottoms.size() == 2)
        QUOLL_RETURN_IF_ERROR(
            resolve_axis(*this, *(const int32_t*)bottoms[1].data, m.dims, &along));
    with_number(m.dtype, [&](auto number) {
        using T = decltype(number);
        for_each_line<T>(m, tops[0], along, [&](const T* from, T* to, int size, size_t step) {
            auto sum = long_sum(T());
            for (int i = 0; i < size; i++) {
                const size_t at = (reverse ? size - 1 - i : i) * step;
                const auto before = sum;
                sum = wrapping_add(sum, (decltype(sum))from[at]);
                to[at] = (T)(exclusive ? before : sum);
            }
        });
    });
    return kOk;
}

void Trilu::params(Trilu& s, ParamVisitor& v) {
    v(0, "upper", s.upper, 1, "1: the upper triangle, 0: the lower", between(0, 1));
    v(1, "k", s.k, 0, "its outermost diagonal, 0: the main one, positive: above");
}

int Trilu::shape(const Trilu& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 2));
    if (in[0].dims < 2)
        return s.fail("expected at least 2 axes, got %s", shape_text(in[0]).c_str());
    out.assign(1, in[0]);
    if (in.size() == 1) return kOk;
    if (in[1].total() != 1)
        return s.fail("k: expected one value, got %s", shape_text(in[1]).c_str());
    return expect_dtype(s, "k", in[1].dtype, DType::s32);
}

int Trilu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                   const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat& m = bottoms[0];
    const int64_t diagonal = bottoms.size() == 2 ? *(const int32_t*)bottoms[1].data : k;
    if (m.empty()) return kOk;
    const Axes4 over = axes_of(m);
    const Steps steps[] = {steps_of(m)};
    const int w = over.size[3], h = over.size[2];
    int y = 0;
    for_each_row(over.size, steps, [&](const ptrdiff_t* at) {
        // Column y + diagonal is the first of the upper triangle, and the last of the lower one.
        const int64_t edge = y + diagonal + (upper ? 0 : 1);
        const size_t cut = (size_t)std::min<int64_t>(std::max<int64_t>(edge, 0), w);
        const size_t first = upper ? cut : 0, last = upper ? w : cut, es = m.elemsize;
        char* to = (char*)tops[0].data + at[0] * es;
        memset(to, 0, w * es);
        if (last > first)
            memcpy(to + first * es, (const char*)m.data + (at[0] + first) * es,
                   (last - first) * es);
        y = y + 1 == h ? 0 : y + 1;
    });
    return kOk;
}

void LogSoftmax::params(LogSoftmax& s, ParamVisitor& v) { declare_axis(v, s.axis, -1); }

int LogSoftmax::shape(const LogSoftmax& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    return along_axis_shape(s, s.axis, in, out);
}

int LogSoftmax::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                        const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    for_each_line<float>(bottoms[0], tops[0], axis,
                         [](const float* from, float* to, int size, size_t step) {
                             if (size == 0) return;
                             float most = from[0];
                             double sum = 0;
                             for (int i = 1; i < size; i++) most = std::max(most, from[i * step]);
                             for (int i = 0; i < size; i++)
                                 sum += exp((double)from[i * step] - most);
                             const double log_sum = most + log(sum);
                             for (int i = 0; i < size; i++)
                                 to[i * step] = (float)(from[i * step] - log_sum);
                         });
    return kOk;
}

void Hardmax::params(Hardmax& s, ParamVisitor& v) { declare_axis(v, s.axis, -1); }

int Hardmax::shape(const Hardmax& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    return along_axis_shape(s, s.axis, in, out);
}

int Hardmax::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                     const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    for_each_line<float>(bottoms[0], tops[0], axis,
                         [](const float* from, float* to, int size, size_t step) {
                             int best = 0;
                             for (int i = 1; i < size; i++)
                                 if (from[i * step] > from[best * step]) best = i;
                             for (int i = 0; i < size; i++) to[i * step] = i == best ? 1.f : 0.f;
                         });
    return kOk;
}

void LpNormalization::params(LpNormalization& s, ParamVisitor& v) {
    declare_axis(v, s.axis, -1);
    v(1, "p", s.p, 2, "the norm, 1 or 2", between(1, 2));
}

int LpNormalization::shape(const LpNormalization& s, const std::vector<Shape>& in,
                           std::vector<Shape>& out) {
    return along_axis_shape(s, s.axis, in, out);
}

int LpNormalization::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                             const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    for_each_line<float>(bottoms[0], tops[0], axis,
                         [&](const float* from, float* to, int size, size_t step) {
                             double sum = 0;
                             for (int i = 0; i < size; i++) {
                                 const double x = from[i * step];
                                 sum += p == 1 ? fabs(x) : x * x;
                             }
                             const double norm = p == 1 ? sum : sqrt(sum);
                             const double factor = norm != 0 ? 1 / norm : 0;
                             for (int i = 0; i < size; i++)
                                 to[i * step] = (float)(from[i * step] * factor);
                         });
    return kOk;
}

void MeanVarianceNormalization::params(MeanVarianceNormalization& s, ParamVisitor& v) {
    v.ints(0, "axes", s.axes, "axes to average over, 0: outermost, -1: innermost; none: all",
           between(-4, 3));
}

int MeanVarianceNormalization::shape(const MeanVarianceNormalization& s,
                                     const std::vector<Shape>& in, std::vector<Shape>& out) {
    for (int axis : ints_of_param(s.axes))
        QUOLL_RETURN_IF_ERROR(along_axis_shape(s, axis, in, out));
    return along_axis_shape(s, 0, in, out);
}

int MeanVarianceNormalization::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                                       const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat& m = bottoms[0];
    // The axes that are not averaged over, and those that are, each as four.
    const Axes4 axes4 = axes_of(m);
    int kept[4], averaged[4];
    for (int i = 0; i < 4; i++) kept[i] = axes.empty() ? 1 : axes4.size[i];
    for (int axis : ints_of_param(axes)) kept[axis_of_four((axis + m.dims) % m.dims, m.dims)] = 1;
    for (int i = 0; i < 4; i++) averaged[i] = kept[i] == axes4.size[i] ? 1 : axes4.size[i];
    const double count = (double)averaged[0] * averaged[1] * averaged[2] * averaged[3];
    Steps steps[] = {steps_of(m)};
    const ptrdiff_t step = steps[0].step[3];
    const float* const in = m;
    float* const out = tops[0];
    const auto over_group = [&](ptrdiff_t first, auto f) {
        for_each_row(averaged, steps, [&](const ptrdiff_t* at) {
            for (int i = 0; i < averaged[3]; i++) f(first + at[0] + i * step);
        });
    };
    for_each_row(kept, steps, [&](const ptrdiff_t* row) {
        for (int x = 0; x < kept[3]; x++) {
            const ptrdiff_t first = row[0] + x * step;
            double sum = 0, squares = 0;
            over_group(first, [&](ptrdiff_t i) { sum += in[i]; });
            const double mean = sum / count;
            over_group(first, [&](ptrdiff_t i) { squares += (in[i] - mean) * (in[i] - mean); });
            const double factor = 1 / (sqrt(squares / count) + 1e-9);
            over_group(first, [&](ptrdiff_t i) { out[i] = (float)((in[i] - mean) * factor); });
        }
    });
    return kOk;
}

int Det::shape(const Det& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 1));
    QUOLL_RETURN_IF_ERROR(expect_dtype(s, "input", in[0].dtype, DType::f32));
    if (in[0].dims < 2 || in[0].w != in[0].h)
        return s.fail("expected square matrices, got %s", shape_text(in[0]).c_str());
    std::vector<int> sizes = sizes_of(in[0]);
    sizes.resize(sizes.size() - 2);
    out.resize(1);
    return shape_of_sizes(s, sizes, DType::f32, &out[0]);
}

// Of a matrix of n rows, which is destroyed: elimination with the largest pivot of each column.
static double determinant(std::vector<double>& a, int n) {
    double det = 1;
    for (int k = 0; k < n; k++) {
        int pivot = k;
        for (int i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k])) pivot = i;
        if (a[pivot * n + k] == 0) return 0;
        if (pivot != k) {
            std::swap_ranges(&a[pivot * n], &a[pivot * n] + n, &a[k * n]);
            det = -det;
        }
        det *= a[k * n + k];
        for (int i = k + 1; i < n; i++) {
            const double factor = a[i * n + k] / a[k * n + k];
            for (int j = k + 1; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
        }
    }
    return det;
}

int Det::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops, const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat& m = bottoms[0];
    const size_t each = (size_t)m.w * m.h, count = value_count(tops[0]);
    const Flat from(m), into(tops[0]);
    std::vector<double> matrix(each);
    for (size_t i = 0; i < count; i++) {
        const float* first = (const float*)m.data + (each ? from(i * each) : 0);
        std::copy(first, first + each, matrix.begin());
        ((float*)tops[0].data)[into(i)] = (float)determinant(matrix, m.w);
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(CumSum)
QUOLL_DEFINE_LAYER(Trilu)
QUOLL_DEFINE_LAYER(LogSoftmax)
QUOLL_DEFINE_LAYER(Hardmax)
QUOLL_DEFINE_LAYER(LpNormalization)
QUOLL_DEFINE_LAYER(MeanVarianceNormalization)
QUOLL_DEFINE_LAYER(Det)

}  // namespace quoll
