#include "layer/tensor/reduction.h"

#include <limits.h>
#include <math.h>

#include <algorithm>

#include "layer/common/blocks.h"
#include "layer/common/channels.h"
#include "layer/common/extremes.h"
#include "layer/common/tensor.h"

namespace quoll {

Reduction::Reduction() : operation(kSum), reduce_all(1), coeff(1.f), keepdims(0), fixbug0(0) {
    one_blob_only = true;
}

void Reduction::params(Reduction& s, ParamVisitor& v) {
    v(0, "operation", s.operation, 0,
      "0 sum, 1 sum |x|, 2 sum x^2, 3 mean, 4 max, 5 min, 6 product, 7 L1, 8 L2, 9 ln sum, "
      "10 ln sum e^x",
      between(kSum, kLogSumExp));
    v(1, "reduce_all", s.reduce_all, 1, "1: all axes, whatever axes says");
    v(2, "coeff", s.coeff, 1.f, "factor of the result");
    v.ints(3, "axes", s.axes, "axes to reduce, 0: outermost, -1: innermost", between(-4, 3));
    v(4, "keepdims", s.keepdims, 0, "1: reduced axes stay with size 1");
    v(5, "fixbug0", s.fixbug0, 0, "1: axes mean what they say");
}

void Reduction::weights(Reduction&, WeightVisitor&) {}

int Reduction::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    if (axes.empty() || fixbug0) return kOk;
    return fail(
        "axes (3) without fixbug0 (5): old files counted axes otherwise, convert the model "
        "anew");
}

bool Reduction::takes_ints() const { return coeff == 1.f && operation <= kL1; }

int Reduction::reduced_axes(int dims, unsigned* mask) const {
    *mask = reduce_all || dims == 1 ? (1u << dims) - 1 : 0u;
    for (int i = 0; i < axes.w && !reduce_all; i++) {
        int axis;
        QUOLL_RETURN_IF_ERROR(resolve_axis(*this, ((const int*)axes.data)[i], dims, &axis));
        *mask |= 1u << axis;
    }
    return kOk;
}

int Reduction::shape(const Reduction& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    std::vector<Shape> same;
    const bool ints = in.size() == 1 && in[0].dtype == DType::s32 && s.takes_ints();
    QUOLL_RETURN_IF_ERROR(ints ? expect_inputs(s, in, 1, 1) : channelwise_shape(s, in, same, 0));
    unsigned mask;
    QUOLL_RETURN_IF_ERROR(s.reduced_axes(in[0].dims, &mask));
    int left[4], count = 0;
    for (int axis = 0; axis < in[0].dims; axis++) {
        const bool reduced = mask >> axis & 1;
        if (!reduced || s.keepdims) left[count++] = reduced ? 1 : in[0].size(axis);
    }
    if (count == 0) left[count++] = 1;
    Shape result(1, in[0].dtype);
    result.dims = count;
    for (int axis = 0; axis < count; axis++) result.set_size(axis, left[axis]);
    result.n = in[0].n;
    out.assign(1, result);
    return kOk;
}

template <class T, class F>
static void for_each_of_four(const T* p, const Axes4& axes, F f) {
    for (int q = 0; q < axes.size[0]; q++)
        for (int z = 0; z < axes.size[1]; z++)
            for (int y = 0; y < axes.size[2]; y++)
                for (int x = 0; x < axes.size[3]; x++)
                    f(p[q * axes.step[0] + z * axes.step[1] + y * axes.step[2] + x * axes.step[3]]);
}

// The value of one output: `axes` holds the reduced axes of the input from p on.
static double reduce(int operation, const float* p, const Axes4& axes) {
    double sum = 0, product = 1, most = p[0], least = p[0];
    switch (operation) {
        case Reduction::kSum:
        case Reduction::kMean:
        case Reduction::kLogSum: {
            for_each_of_four(p, axes, [&](float x) { sum += x; });
            const double count = (double)axes.size[0] * axes.size[1] * axes.size[2] * axes.size[3];
            return operation == Reduction::kSum    ? sum
                   : operation == Reduction::kMean ? sum / count
                                                   : log(sum);
        }
        case Reduction::kASum:
        case Reduction::kL1:
            for_each_of_four(p, axes, [&](float x) { sum += fabsf(x); });
            return sum;
        case Reduction::kSumSq:
        case Reduction::kL2:
            for_each_of_four(p, axes, [&](float x) { sum += (double)x * x; });
            return operation == Reduction::kL2 ? sqrt(sum) : sum;
        case Reduction::kMax:
            for_each_of_four(p, axes, [&](float x) { most = maximum(most, (double)x); });
            return most;
        case Reduction::kMin:
            for_each_of_four(p, axes, [&](float x) { least = minimum(least, (double)x); });
            return least;
        case Reduction::kProd:
            for_each_of_four(p, axes, [&](float x) { product *= x; });
            return product;
        default:  // kLogSumExp; the largest value is taken out, so that nothing overflows
            for_each_of_four(p, axes, [&](float x) { most = maximum(most, (double)x); });
            for_each_of_four(p, axes, [&](float x) { sum += exp(x - most); });
            return isinf(most) ? most : most + log(sum);
    }
}

static uint32_t magnitude(int32_t x) { return x < 0 ? 0u - (uint32_t)x : (uint32_t)x; }

// Of ints: sums and products wrap, a mean is cut towards 0.
static int32_t reduce(int operation, const int32_t* p, const Axes4& axes) {
    uint32_t sum = 0, product = 1;
    int32_t most = p[0], least = p[0];
    int64_t total = 0, count = 0;
    switch (operation) {
        case Reduction::kSum:
            for_each_of_four(p, axes, [&](int32_t x) { sum += (uint32_t)x; });
            return (int32_t)sum;
        case Reduction::kSumSq:
            for_each_of_four(p, axes, [&](int32_t x) { sum += magnitude(x) * magnitude(x); });
            return (int32_t)sum;
        case Reduction::kMean:
            for_each_of_four(p, axes, [&](int32_t x) { total += x, count++; });
            return (int32_t)(total / count);
        case Reduction::kMax:
            for_each_of_four(p, axes, [&](int32_t x) { most = std::max(most, x); });
            return most;
        case Reduction::kMin:
            for_each_of_four(p, axes, [&](int32_t x) { least = std::min(least, x); });
            return least;
        case Reduction::kProd:
            for_each_of_four(p, axes, [&](int32_t x) { product *= (uint32_t)x; });
            return (int32_t)product;
        default:  // kASum, kL1
            for_each_of_four(p, axes, [&](int32_t x) { sum += magnitude(x); });
            return (int32_t)sum;
    }
}

int Reduction::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(create_tops(*this, std::vector<Mat>(1, bottom_blob), tops, opt));
    unsigned mask;
    QUOLL_RETURN_IF_ERROR(reduced_axes(bottom_blob.dims, &mask));
    Axes4 kept = axes_of(bottom_blob), reduced = kept;
    for (int axis = 0; axis < bottom_blob.dims; axis++) {
        const bool is_reduced = mask >> axis & 1;
        (is_reduced ? kept : reduced).size[axis_of_four(axis, bottom_blob.dims)] = 1;
    }
    // Outputs come in order; only the channels of the result have gaps.
    Mat& top = tops[0];
    const size_t plane = (size_t)top.w * top.h * top.d;
    size_t i = 0;
    const auto next = [&] {
        const size_t at = i / plane * top.cstep + i % plane;
        i++;
        return at;
    };
    if (bottom_blob.dtype == DType::s32)
        for_each_of_four((const int32_t*)bottom_blob.data, kept, [&](const int32_t& first) {
            const int32_t value = reduce(operation, &first, reduced);
            ((int32_t*)top.data)[next()] = value;
        });
    else
        for_each_of_four((const float*)bottom_blob.data, kept, [&](const float& first) {
            const double value = reduce(operation, &first, reduced);
            ((float*)top.data)[next()] = (float)value * coeff;
        });
    top_blob = top;
    return kOk;
}

static float value_of_none(int operation) {
    switch (operation) {
        case Reduction::kMean:
            return NAN;
        case Reduction::kMin:
            return INFINITY;
        case Reduction::kMax:
        case Reduction::kLogSum:
        case Reduction::kLogSumExp:
            return -INFINITY;
        case Reduction::kProd:
            return 1.f;
        default:
            return 0.f;
    }
}

static int int_of_none(int operation) {
    return operation == Reduction::kMax    ? INT_MIN
           : operation == Reduction::kMin  ? INT_MAX
           : operation == Reduction::kProd ? 1
                                           : 0;
}

int Reduction::forward_empty(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                             const Option& opt) const {
    if (bottoms[0].dtype != DType::s32)
        return fill_without_terms(*this, bottoms, tops, value_of_none(operation) * coeff, opt);
    QUOLL_RETURN_IF_ERROR(create_from_nothing(*this, bottoms, tops, true, opt));
    if (!tops[0].empty()) tops[0].fill(int_of_none(operation));
    return kOk;
}

QUOLL_DEFINE_LAYER(Reduction)

}  // namespace quoll
