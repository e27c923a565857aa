#include "layer/vision/resize.h"

#include <limits.h>
#include <math.h>

#include <algorithm>

namespace quoll {

// The most taps of one axis; more would need a scale below 2^-20.
static const int kMostTaps = 1 << 22;

void Resize::params(Resize& s, ParamVisitor& v) {
    v(0, "mode", s.mode, 0, "0 nearest, 1 linear, 2 cubic", between(kNearest, kCubic));
    v(1, "transform", s.transform, 0,
      "0 half_pixel, 1 pytorch_half_pixel, 2 align_corners, 3 asymmetric, 4 tf_crop_and_resize, "
      "5 half_pixel_symmetric, 6 tf_half_pixel_for_nn",
      between(0, kTransformCount - 1));
    v(2, "nearest_mode", s.nearest_mode, 0,
      "0 round_prefer_floor, 1 round_prefer_ceil, 2 floor, 3 ceil",
      between(kRoundPreferFloor, kCeil));
    v(3, "cubic_coeff_a", s.cubic_coeff_a, -0.75f, "a of the cubic kernel");
    v(4, "exclude_outside", s.exclude_outside, 0, "1: taps outside count nothing", between(0, 1));
    v(5, "extrapolation_value", s.extrapolation_value, 0.f,
      "value outside of the input (tf_crop_and_resize)");
    v(6, "antialias", s.antialias, 0, "1: wider kernels when sizes shrink", between(0, 1));
    v(7, "keep_aspect_ratio_policy", s.policy, 0,
      "what sizes mean: 0 stretch, 1 not larger, 2 not smaller", between(kStretch, kNotSmaller));
    v(8, "inputs", s.inputs, 0, "inputs behind the data: 1 roi, 2 scales, 4 sizes, as a sum",
      between(0, 7));
    v.ints(9, "axes", s.axes, "axes, 0: outermost, -1: innermost; none: all", between(-4, 3));
    v.floats(10, "scales", s.scales, "factors, one an axis");
    v.ints(11, "sizes", s.sizes, "sizes, one an axis", at_least(1));
    v.floats(12, "roi", s.roi, "starts, then ends, 0 and 1 being the outermost values");
}

int Resize::plan(const Shape& in, const Lists& lists, std::vector<AxisPlan>* plans,
                 Shape* out) const {
    std::vector<int> over = ints_of_param(axes);
    for (int i = 0; axes.empty() && i < in.dims; i++) over.push_back(i);
    const size_t count = over.size();
    if (lists.scales.empty() == lists.sizes.empty() ||
        (!lists.scales.empty() && lists.scales.size() != count) ||
        (!lists.sizes.empty() && lists.sizes.size() != count) ||
        (transform == kTfCropAndResize && lists.roi.size() != 2 * count))
        return fail("%zu axes: got %zu scales, %zu sizes and %zu numbers of roi", count,
                    lists.scales.size(), lists.sizes.size(), lists.roi.size());
    plans->clear();
    for (int i = 0; i < in.dims; i++) plans->push_back({in.size(i), in.size(i), 1, 0, 1});
    double common = 0;  // the scale that all axes get under a policy
    for (size_t k = 0; k < count; k++) {
        QUOLL_RETURN_IF_ERROR(resolve_axis(*this, over[k], in.dims, &over[k]));
        AxisPlan& axis = (*plans)[over[k]];
        if (axis.in < 1 && !lists.sizes.empty() && lists.sizes[k] != 0)
            return fail("axis %d has no values to make %d of", over[k], lists.sizes[k]);
        if (axis.in < 1) continue;  // stays empty
        axis.scale = lists.sizes.empty() ? lists.scales[k] : (double)lists.sizes[k] / axis.in;
        common = k == 0                 ? axis.scale
                 : policy == kNotLarger ? std::min(common, axis.scale)
                                        : std::max(common, axis.scale);
        if (transform == kTfCropAndResize)
            axis.start = lists.roi[k], axis.end = lists.roi[count + k];
    }
    *out = in;
    for (size_t k = 0; k < count; k++) {
        AxisPlan& axis = (*plans)[over[k]];
        if (axis.in < 1) continue;
        const bool keep_ratio = !lists.sizes.empty() && policy != kStretch;
        if (keep_ratio) axis.scale = common;
        // Scales come as f32; sizes are those that they give, cut to whole numbers.
        const double size = keep_ratio            ? floor(axis.scale * axis.in + 0.5)
                            : lists.sizes.empty() ? floor((float)axis.scale * (float)axis.in)
                                                  : lists.sizes[k];
        if (!(axis.scale > 0 && size >= 0 && size <= INT_MAX && fabs(axis.start) < 1e6 &&
              fabs(axis.end) < 1e6))
            return fail("axis %d of %d values: scale %g, roi %g to %g", over[k], axis.in,
                        axis.scale, axis.start, axis.end);
        axis.out = (int)size;
        out->set_size(over[k], axis.out);
    }
    return shape_of_sizes(*this, sizes_of(*out), out->dtype, out);
}

static std::vector<float> floats_of(const Mat& m) {
    if (m.empty()) return {};
    return std::vector<float>((const float*)m.data, (const float*)m.data + m.w);
}

int Resize::shape(const Resize& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    const size_t count = 1 + (s.inputs & 1) + (s.inputs >> 1 & 1) + (s.inputs >> 2 & 1);
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, count, count));
    if (!accepts_float(s, in[0].dtype)) {
        QUOLL_RETURN_IF_ERROR(expect_number(s, in[0].dtype));
        if (s.mode != kNearest)
            QUOLL_RETURN_IF_ERROR(expect_dtype(s, "data", in[0].dtype, DType::f32));
    }
    if (s.mode == kNearest && s.antialias) return s.fail("antialias with mode nearest");
    for (size_t i = 1; i < count; i++) {
        const bool is_sizes = i == count - 1 && (s.inputs & kSizesInput);
        QUOLL_RETURN_IF_ERROR(expect_dtype(s, is_sizes ? "sizes" : "roi or scales", in[i].dtype,
                                           is_sizes ? DType::s32 : DType::f32));
        if (in[i].dims != 1) return s.fail("input %zu: expected 1 axis", i);
    }
    out.assign(1, Shape());
    if (count > 1) return kOk;
    std::vector<AxisPlan> plans;
    return s.plan(in[0], {floats_of(s.scales), floats_of(s.roi), ints_of_param(s.sizes)}, &plans,
                  &out[0]);
}

// The input coordinate of output index i, in arithmetic of T.
template <class T>
static T position_in(const Resize::AxisPlan& axis, int transform, int i) {
    const T in = (T)axis.in, scale = (T)axis.scale, out = (T)(axis.scale * axis.in), half = T(0.5);
    const T start = (T)axis.start, end = (T)axis.end;
    switch (transform) {
        case Resize::kAlignCorners:
            return out == 1 ? 0 : i * (in - 1) / (out - 1);
        case Resize::kAsymmetric:
            return i / scale;
        case Resize::kTfCropAndResize:
            if (out == 1) return (start + end) * (in - 1) / 2;
            return start * (in - 1) + i * (end - start) * (in - 1) / (out - 1);
        case Resize::kPytorchHalfPixel:
            if (out == 1) return 0;
            break;
        case Resize::kTfHalfPixelForNn:
            return (i + half) / scale;
        case Resize::kHalfPixelSymmetric:
            return in / 2 * (1 - axis.out / out) + (i + half) / scale - half;
    }
    return (i + half) / scale - half;
}

// Rounding decides ties of nearest sampling, so that single precision is used, as in other engines.
double Resize::position(const AxisPlan& axis, int i) const {
    return mode == kNearest ? (double)position_in<float>(axis, transform, i)
                            : position_in<double>(axis, transform, i);
}

// The linear and the cubic kernel (Keys, IEEE Trans. ASSP 29(6), 1981).
double Resize::weight(double distance) const {
    const double x = fabs(distance), a = cubic_coeff_a;
    if (mode == kLinear) return std::max(1 - x, 0.0);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

int Resize::nearest_index(double x) const {
    // A tie in single precision counts as one, too, as in ONNX Runtime.
    const double kTie = 0.5 + 1e-6;
    switch (nearest_mode) {
        case kRoundPreferFloor:
            return (int)ceil(x - kTie);
        case kRoundPreferCeil:
            return (int)floor(x + kTie);
        case kFloor:
            return (int)floor(x);
    }
    return (int)ceil(x);
}

// Taps of an output index: of the plain kernel, or of one stretched by 1 / scale.
int Resize::kernel_taps(const AxisPlan& axis) const {
    if (mode == kNearest) return 1;
    const int support = mode == kLinear ? 1 : 2;
    if (!antialias || axis.scale >= 1) return 2 * support;
    const double taps = 2 * ceil(support / axis.scale);
    return taps <= kMostTaps ? (int)taps : -1;
}

int Resize::make_taps(const AxisPlan& axis, Taps* taps) const {
    taps->count = kernel_taps(axis);
    if (taps->count < 0 || (double)taps->count * axis.out > 16.0 * kMostTaps)
        return fail("an axis of %d values from %d would take too many taps", axis.out, axis.in);
    const double stretch = antialias ? std::min(axis.scale, 1.0) : 1.0;
    taps->outside.resize(axis.out);
    for (int i = 0; i < axis.out; i++) {
        const double x = position(axis, i), last = axis.in - 1;
        // Beyond these all taps are those of the edge.
        const double held = std::min(std::max(x, -1.0 - taps->count), last + 1 + taps->count);
        taps->outside[i] = transform == kTfCropAndResize && (x < 0 || x > last);
        const int first =
            mode == kNearest ? nearest_index(held) : (int)floor(held) - taps->count / 2 + 1;
        double sum = 0;
        for (int k = 0; k < taps->count; k++) {
            const int at = first + k;
            const bool dropped = exclude_outside && mode != kNearest && (at < 0 || at > last);
            const double w = mode == kNearest ? 1 : dropped ? 0 : weight((at - held) * stretch);
            taps->at.push_back(std::min(std::max(at, 0), axis.in - 1));
            taps->weight.push_back((float)w);
            sum += w;
        }
        for (int k = 0; k < taps->count && sum != 0; k++)
            taps->weight[(size_t)i * taps->count + k] /= (float)sum;
    }
    return kOk;
}

int Resize::resample(const Mat& in, int axis, const AxisPlan& plan, Mat* out,
                     const Option& opt) const {
    Shape shape = in.logical_shape();
    shape.set_size(axis, plan.out);
    QUOLL_RETURN_IF_ERROR(create_tensor(shape, out, opt));
    Taps taps;
    QUOLL_RETURN_IF_ERROR(make_taps(plan, &taps));
    const AlongAxis from(in, axis), into(*out, axis);
    with_number(in.dtype, [&](auto number) {
        using T = decltype(number);
        for (size_t o = 0; o < from.outer; o++) {
            for (int i = 0; i < plan.out; i++) {
                const T* part = (const T*)in.data + from.start(o);
                T* to = (T*)out->data + into.start(o) + i * into.step;
                const int* at = &taps.at[(size_t)i * taps.count];
                const float* weight = &taps.weight[(size_t)i * taps.count];
                if (taps.outside[i]) {
                    std::fill(to, to + into.inner, (T)extrapolation_value);
                } else if (mode == kNearest) {
                    memcpy(to, part + at[0] * from.step, from.inner * sizeof(T));
                } else {
                    std::fill(to, to + into.inner, T(0));
                    for (int k = 0; k < taps.count; k++)
                        for (size_t r = 0; r < from.inner; r++)
                            to[r] += (T)(weight[k] * (float)part[at[k] * from.step + r]);
                }
            }
        }
    });
    return kOk;
}

Resize::Lists Resize::lists(const std::vector<Mat>& bottoms) const {
    Lists lists = {floats_of(scales), floats_of(roi), ints_of_param(sizes)};
    size_t next = 1;
    if (inputs & kRoiInput) lists.roi = floats_of(bottoms[next++]);
    if (inputs & kScalesInput) lists.scales = floats_of(bottoms[next++]);
    if (inputs & kSizesInput) lists.sizes = ints_of_param(bottoms[next++]);
    return lists;
}

int Resize::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                    const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    std::vector<AxisPlan> plans;
    Shape out;
    Mat m = bottoms[0];
    QUOLL_RETURN_IF_ERROR(plan(m.logical_shape(), lists(bottoms), &plans, &out));
    if (out.total() == 0) return create_tensor(out, &tops[0], opt);
    for (int axis = 0; axis < m.dims; axis++) {
        if (plans[axis].identity()) continue;
        Mat resized;
        QUOLL_RETURN_IF_ERROR(resample(m, axis, plans[axis], &resized, opt));
        m = resized;
    }
    tops[0] = m;
    return kOk;
}

QUOLL_DEFINE_LAYER(Resize)

}  // namespace quoll
