#include "layer/tensor/tensorfill.h"

#include <limits.h>
#include <math.h>

#include <algorithm>

#include "layer/elementwise/tensorunary.h"

namespace quoll {

void ConstantOfShape::params(ConstantOfShape& s, ParamVisitor& v) {
    v(0, "type", s.type, 0, "as in CastTo: 0 f32, 3 s32, 4 s8, 5 u8, 6 bool",
      between(0, CastTo::kBool));
    v(1, "value", s.value, 0.f, "value if the type is f32");
    v(2, "int_value", s.int_value, 0, "value if the type is s32, s8, u8 or bool");
}

int ConstantOfShape::shape(const ConstantOfShape& s, const std::vector<Shape>& in,
                           std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 1));
    QUOLL_RETURN_IF_ERROR(expect_number(s, dtype_of_element(s.type)));
    out.assign(1, Shape());
    return expect_dtype(s, "shape", in[0].dtype, DType::s32);
}

int ConstantOfShape::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                             const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    std::vector<int> sizes;
    Shape out;
    QUOLL_RETURN_IF_ERROR(read_ints(*this, "shape", bottoms[0], 4, &sizes));
    QUOLL_RETURN_IF_ERROR(shape_of_sizes(*this, sizes, dtype_of_element(type), &out));
    QUOLL_RETURN_IF_ERROR(create_tensor(out, &tops[0], opt));
    with_number(out.dtype, [&](auto number) {
        using T = decltype(number);
        tops[0].fill<T>(out.dtype == DType::f32 ? (T)value : (T)int_value);
    });
    return kOk;
}

int RangeOf::shape(const RangeOf& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 3, 3));
    for (const Shape& shape : in) {
        if (shape.total() != 1 || (shape.dtype != DType::f32 && shape.dtype != DType::s32))
            return s.fail("expected single values of f32 or s32, got %s of %s",
                          shape_text(shape).c_str(), dtype_name(shape.dtype));
        QUOLL_RETURN_IF_ERROR(expect_dtype(s, "limit and delta", shape.dtype, in[0].dtype));
    }
    out.assign(1, Shape());
    return kOk;
}

int RangeOf::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                     const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const DType dtype = bottoms[0].dtype;
    double from[3];
    for (int i = 0; i < 3; i++) {
        const void* p = bottoms[i].data;
        from[i] = dtype == DType::f32 ? (double)*(const float*)p : (double)*(const int32_t*)p;
    }
    const double count = ceil((from[1] - from[0]) / from[2]);
    if (!(fabs(from[2]) > 0) || !(count <= INT_MAX))
        return fail("from %g to %g in steps of %g", from[0], from[1], from[2]);
    QUOLL_RETURN_IF_ERROR(create_tensor(Shape(std::max((int)count, 0), dtype), &tops[0], opt));
    const int size = tops[0].w;
    for (int i = 0; i < size; i++) {
        const double value = from[0] + i * from[2];
        if (dtype == DType::f32)
            ((float*)tops[0].data)[i] = (float)value;
        else
            ((int32_t*)tops[0].data)[i] = (int32_t)value;
    }
    return kOk;
}

void EyeLike::params(EyeLike& s, ParamVisitor& v) {
    v(0, "k", s.k, 0, "the diagonal, 0: main, positive: above it");
    v(1, "type", s.type, -1, "as in CastTo: 0 f32, 3 s32, 4 s8, 5 u8, 6 bool; -1: the input's",
      between(-1, CastTo::kBool));
}

int EyeLike::shape(const EyeLike& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 1));
    if (in[0].dims != 2) return s.fail("expected 2 axes, got %s", shape_text(in[0]).c_str());
    out = in;
    if (s.type >= 0) out[0].dtype = dtype_of_element(s.type);
    return expect_number(s, out[0].dtype);
}

int EyeLike::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                     const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    with_number(tops[0].dtype, [&](auto number) {
        using T = decltype(number);
        tops[0].fill<T>(T(0));
        for (int y = 0; y < tops[0].h; y++) {
            const int64_t x = (int64_t)y + k;
            if (x >= 0 && x < tops[0].w) tops[0].row<T>(y)[x] = T(1);
        }
    });
    return kOk;
}

void OneHot::params(OneHot& s, ParamVisitor& v) {
    v(0, "axis", s.axis, -1, "where the new axis is in the output, -1: innermost", between(-4, 3));
    v(1, "depth", s.depth, 0, "size of the new axis, 0: the third input", at_least(0));
    v(2, "scalar", s.scalar, 0, "1: the indices are one of rank 0", between(0, 1));
}

int OneHot::result(const Shape& indices, DType dtype, int size, Shape* out) const {
    std::vector<int> sizes = sizes_of(indices);
    if (scalar) sizes.clear();
    int at;
    QUOLL_RETURN_IF_ERROR(resolve_axis(*this, axis, (int)sizes.size() + 1, &at));
    sizes.insert(sizes.begin() + at, size);
    return shape_of_sizes(*this, sizes, dtype, out);
}

int OneHot::shape(const OneHot& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    const size_t count = s.depth > 0 ? 2 : 3;
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, count, count));
    QUOLL_RETURN_IF_ERROR(expect_dtype(s, "indices", in[0].dtype, DType::s32));
    if (in[1].total() != 2 || in[1].dims != 1)
        return s.fail("expected the values off and on, got %s", shape_text(in[1]).c_str());
    if (s.scalar && in[0].total() != 1)
        return s.fail("scalar: expected one index, got %s", shape_text(in[0]).c_str());
    out.assign(1, Shape());
    if (s.depth > 0) return s.result(in[0], in[1].dtype, s.depth, &out[0]);
    if (in[2].total() != 1)
        return s.fail("depth: expected one value, got %s", shape_text(in[2]).c_str());
    return expect_dtype(s, "depth", in[2].dtype, DType::s32);
}

int OneHot::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                    const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat &indices = bottoms[0], &values = bottoms[1];
    const int size = depth > 0 ? depth : *(const int32_t*)bottoms[2].data;
    if (size < 1) return fail("depth: expected at least 1, got %d", size);
    Shape out;
    QUOLL_RETURN_IF_ERROR(result(indices.logical_shape(), values.dtype, size, &out));
    QUOLL_RETURN_IF_ERROR(create_tensor(out, &tops[0], opt));
    const AlongAxis along(tops[0], axis < 0 ? axis + out.dims : axis);
    const Flat order(indices);
    with_word(values.elemsize, [&](auto word) {
        using T = decltype(word);
        const T off = ((const T*)values.data)[0], on = ((const T*)values.data)[1];
        for (size_t o = 0; o < along.outer; o++) {
            T* part = (T*)tops[0].data + along.start(o);
            for (int i = 0; i < size; i++)
                std::fill(part + i * along.step, part + i * along.step + along.inner, off);
            for (size_t r = 0; r < along.inner; r++) {
                const int index = ((const int32_t*)indices.data)[order(o * along.inner + r)];
                const int i = wrap_index(index, size);
                if (i >= 0) part[i * along.step + r] = on;
            }
        }
    });
    return kOk;
}

void RandomFill::params(RandomFill& s, ParamVisitor& v) {
    v(0, "normal", s.normal, 0, "0: uniform, 1: normal", between(0, 1));
    v(1, "a", s.a, 0.f, "the least value, or the mean");
    v(2, "b", s.b, 1.f, "the bound above, or the standard deviation");
    v(3, "seed", s.seed, 0, "another number gives other values");
}

int RandomFill::shape(const RandomFill& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 1));
    QUOLL_RETURN_IF_ERROR(expect_number(s, in[0].dtype));
    out = in;
    out[0].dtype = DType::f32;
    return kOk;
}

// SplitMix64's function of its state.
static uint64_t mixed(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

int RandomFill::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                        const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const uint64_t kStep = 0x9E3779B97F4A7C15u, first = mixed((uint64_t)(int64_t)seed + kStep);
    // In [0, 1), of 53 bits.
    const auto uniform = [&](uint64_t i) {
        return (double)(mixed(first + (i + 1) * kStep) >> 11) * 0x1p-53;
    };
    const double kTurn = 6.283185307179586;  // 2 pi
    const Flat place(tops[0]);
    const size_t count = tops[0].empty() ? 0 : tops[0].logical_shape().total();
    for (size_t i = 0; i < count; i++) {
        double value = normal ? sqrt(-2 * log(1 - uniform(2 * i))) * cos(kTurn * uniform(2 * i + 1))
                              : uniform(i);
        value = normal ? a + b * value : a + ((double)b - a) * value;
        ((float*)tops[0].data)[place(i)] = (float)value;
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(ConstantOfShape)
QUOLL_DEFINE_LAYER(EyeLike)
QUOLL_DEFINE_LAYER(OneHot)
QUOLL_DEFINE_LAYER(RandomFill)
Layer* create_Range_layer() { return new RangeOf; }   // Range is a name of schema.h
Layer* create_RangeOflayer() { return new RangeOf; }  // schema.h has a Range

}  // namespace quoll
