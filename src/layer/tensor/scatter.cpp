#include "layer/tensor/scatter.h"

#include <algorithm>

#include "layer/common/integer.h"
#include "layer/tensor/gather.h"

namespace quoll {

static void declare_reduction(ParamVisitor& v, int& reduction) {
    v(1, "reduction", reduction, 0, "0 replace, 1 add, 2 multiply, 3 max, 4 min", between(0, 4));
}

// The requirements of data and updates other than their shapes.
static int expect_types(const Layer& layer, const std::vector<Shape>& in) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(layer, in, 3, 3));
    QUOLL_RETURN_IF_ERROR(expect_number(layer, in[0].dtype));
    QUOLL_RETURN_IF_ERROR(expect_dtype(layer, "indices", in[1].dtype, DType::s32));
    return expect_dtype(layer, "updates", in[2].dtype, in[0].dtype);
}

// Calls f with a function T(T old, T update). An update that is NaN is kept, an old value that is
// NaN is replaced, as in ONNX Runtime.
template <class T, class F>
static void with_reduction(int reduction, F f) {
    switch ((ScatterReduction)reduction) {
        case ScatterReduction::kReplace:
            return f([](T, T b) { return b; });
        case ScatterReduction::kAdd:
            return f([](T a, T b) { return wrapping_add(a, b); });
        case ScatterReduction::kMultiply:
            return f([](T a, T b) { return wrapping_mul(a, b); });
        case ScatterReduction::kMax:
            return f([](T a, T b) { return std::max(b, a); });
        case ScatterReduction::kMin:
            return f([](T a, T b) { return std::min(b, a); });
    }
}

void ScatterElements::params(ScatterElements& s, ParamVisitor& v) {
    v(0, "axis", s.axis, 0, "axis of data, 0: outermost, -1: innermost", between(-4, 3));
    declare_reduction(v, s.reduction);
}

int ScatterElements::shape(const ScatterElements& s, const std::vector<Shape>& in,
                           std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_types(s, in));
    int axis;
    QUOLL_RETURN_IF_ERROR(resolve_axis(s, s.axis, in[0].dims, &axis));
    bool fits = in[1].dims == in[0].dims && sizes_of(in[1]) == sizes_of(in[2]);
    for (int i = 0; fits && i < in[0].dims; i++) fits = i == axis || in[1].size(i) <= in[0].size(i);
    if (!fits)
        return s.fail("indices %s and updates %s do not fit data %s", shape_text(in[1]).c_str(),
                      shape_text(in[2]).c_str(), shape_text(in[0]).c_str());
    out.assign(1, in[0]);
    return kOk;
}

int ScatterElements::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                             const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat &data = bottoms[0], &indices = bottoms[1], &updates = bottoms[2];
    copy_values(data, 0, tops[0], 0, value_count(data));
    const int along = axis_of_four(axis < 0 ? axis + data.dims : axis, data.dims);
    const int size = axes_of(data).size[along];
    Steps steps[] = {steps_of(indices), steps_of(updates), steps_of(tops[0])};
    const ptrdiff_t step = steps[2].step[along];
    steps[2].step[along] = 0;
    const Axes4 over = axes_of(indices);
    int status = kOk;
    with_number(data.dtype, [&](auto number) {
        using T = decltype(number);
        with_reduction<T>(reduction, [&](auto combine) {
            for_each_row(over.size, steps, [&](const ptrdiff_t* at) {
                const int32_t* index = (const int32_t*)indices.data + at[0];
                const T* update = (const T*)updates.data + at[1];
                T* to = (T*)tops[0].data + at[2];
                for (int l = 0; l < over.size[3] && status == kOk; l++) {
                    const int i = wrap_index(index[l], size);
                    if (i < 0) {
                        status = fail("index %d, expected %d to %d", index[l], -size, size - 1);
                        return;
                    }
                    T& value = to[i * step + l * steps[2].step[3]];
                    value = combine(value, update[l]);
                }
            });
        });
    });
    return status;
}

void ScatterND::params(ScatterND& s, ParamVisitor& v) { declare_reduction(v, s.reduction); }

int ScatterND::shape(const ScatterND& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_types(s, in));
    const int k = in[1].w;
    bool fits = k >= 1 && k <= in[0].dims;
    if (fits) {
        std::vector<int> expected = sizes_of(in[1]), part = sizes_of(in[0]);
        expected.pop_back();
        expected.insert(expected.end(), part.begin() + k, part.end());
        if (expected.empty()) expected.push_back(1);  // a scalar
        fits = sizes_of(in[2]) == expected;
    }
    if (!fits)
        return s.fail("indices %s and updates %s do not fit data %s", shape_text(in[1]).c_str(),
                      shape_text(in[2]).c_str(), shape_text(in[0]).c_str());
    out.assign(1, in[0]);
    return kOk;
}

int ScatterND::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                       const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat &data = bottoms[0], &indices = bottoms[1], &updates = bottoms[2];
    copy_values(data, 0, tops[0], 0, value_count(data));
    const int k = indices.w;
    const size_t tuples = value_count(indices) / k, total = value_count(updates);
    if (total == 0) return kOk;
    const size_t part = total / tuples;
    const TupleParts parts(*this, data, 0, indices);
    const Flat from(updates), into(tops[0]);
    enum { kTuples = 256 };  // at a time
    ptrdiff_t begins[kTuples];
    for (size_t first = 0; first < tuples; first += kTuples) {
        const size_t count = std::min<size_t>(kTuples, tuples - first);
        QUOLL_RETURN_IF_ERROR(parts.begins(first, count, begins));
        with_number(data.dtype, [&](auto number) {
            using T = decltype(number);
            with_reduction<T>(reduction, [&](auto combine) {
                const T* const update = (const T*)updates.data;
                T* const all = (T*)tops[0].data;
                for (size_t t = 0; t < count && part == 1; t++) {
                    T& value = all[into((size_t)begins[t])];
                    value = combine(value, update[from(first + t)]);
                }
                for (size_t t = 0, at = first * part; t < count && part > 1; t++) {
                    // Within the first axis, where values are neighbours.
                    T* const values = all + into((size_t)begins[t]);
                    for (size_t i = 0; i < part; i++, at++)
                        values[i] = combine(values[i], update[from(at)]);
                }
            });
        });
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(ScatterElements)
QUOLL_DEFINE_LAYER(ScatterND)

}  // namespace quoll
