#include "validate/compare.h"

#include <math.h>

#include <algorithm>
#include <vector>

namespace quoll {

namespace {

// The values in the order c, d, h, w, all items of a batch after each other.
std::vector<double> values_of(const Mat& m) {
    std::vector<double> values;
    const Shape shape = m.logical_shape();
    values.reserve(shape.total());
    for (int n = 0; n < shape.n; n++) {
        const Mat item = shape.n > 1 ? m.batch(n) : m;
        for (int q = 0; q < item.c; q++) {
            const Mat channel = item.channel(q);
            for (size_t i = 0; i < (size_t)item.w * item.h * item.d; i++) {
                const void* p = channel.data;
                values.push_back(m.dtype == DType::f32   ? ((const float*)p)[i]
                                 : m.dtype == DType::s32 ? ((const int*)p)[i]
                                 : m.dtype == DType::s8  ? ((const signed char*)p)[i]
                                                         : ((const unsigned char*)p)[i]);
            }
        }
    }
    return values;
}

std::vector<int> axes_of(const Shape& shape) {
    std::vector<int> axes;
    if (shape.n > 1) axes.push_back(shape.n);
    for (int i = 0; i < shape.dims; i++)
        if (!axes.empty() || shape.size(i) != 1 || i + 1 == shape.dims)
            axes.push_back(shape.size(i));
    return axes;
}

// Part of the groups, `size` values `step` apart, whose largest value has the same index.
double same_argmax(const std::vector<double>& a, const std::vector<double>& b, size_t size,
                   size_t step) {
    size_t same = 0, groups = 0;
    for (size_t block = 0; block + size * step <= a.size(); block += size * step) {
        for (size_t offset = 0; offset < step; offset++, groups++) {
            size_t best_a = 0, best_b = 0;
            const double *pa = &a[block + offset], *pb = &b[block + offset];
            for (size_t i = 1; i < size; i++) {
                if (pa[i * step] > pa[best_a * step]) best_a = i;
                if (pb[i * step] > pb[best_b * step]) best_b = i;
            }
            same += best_a == best_b;
        }
    }
    return groups ? (double)same / (double)groups : 1.0;
}

}  // namespace

double Comparison::relative_error() const {
    const double scale = range > 0 ? range : largest;
    return max_error == 0 ? 0 : scale > 0 ? max_error / scale : INFINITY;
}

Comparison compare(const Mat& got, const Mat& expected) {
    Comparison c;
    const Shape shape = expected.logical_shape();
    c.same_shape = axes_of(got.logical_shape()) == axes_of(shape);
    if (!c.same_shape) return c;
    const std::vector<double> x = values_of(expected), y = values_of(got);
    c.count = x.size();
    double xy = 0, xx = 0, yy = 0, dd = 0, low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < x.size(); i++) {
        const bool bad_x = !std::isfinite(x[i]), bad_y = !std::isfinite(y[i]);
        c.bad_expected += bad_x, c.bad_got += bad_y, c.only_got += bad_y && !bad_x;
        if (!bad_x) c.largest = std::max(c.largest, fabs(x[i]));
        if (bad_x || bad_y) continue;
        c.compared++;
        const double d = x[i] - y[i];
        xy += x[i] * y[i], xx += x[i] * x[i], yy += y[i] * y[i], dd += d * d;
        low = std::min(low, x[i]), high = std::max(high, x[i]);
        c.max_error = std::max(c.max_error, fabs(d));
        c.error_sum += fabs(d);
    }
    c.range = high >= low ? high - low : 0;
    const bool nothing = c.compared == 0 && c.count > 0;
    c.similarity = nothing              ? 0
                   : xx == 0 && yy == 0 ? 1
                   : xx == 0 || yy == 0 ? 0
                                        : xy / sqrt(xx) / sqrt(yy);
    c.signal = xx, c.noise = dd;
    c.sqnr = dd == 0 ? INFINITY : 10 * log10(xx / dd);
    const bool channels = shape.dims >= 3;
    c.pixel_accuracy = same_argmax(x, y, channels ? shape.c : shape.w,
                                   channels ? (size_t)shape.w * shape.h * shape.d : 1);
    return c;
}

std::string metric_text(double value) {
    char text[40];
    snprintf(text, sizeof(text), "%.6g", value);
    return text;
}

}  // namespace quoll
