#include "layer/control/loop.h"

#include <algorithm>

namespace quoll {

// 16-bit floats are only compared with 0, which is enough for a condition.
int read_number(const Layer& layer, const Mat& m, double* value) {
    if (m.dims == 0 || m.logical_shape().total() != 1 || !m.data)
        return layer.fail("expected one value, got %s", shape_text(m.logical_shape()).c_str());
    if (m.dtype == DType::f32)
        *value = *(const float*)m.data;
    else if (m.dtype == DType::s32)
        *value = *(const int32_t*)m.data;
    else if (m.dtype == DType::u8)
        *value = *(const uint8_t*)m.data;
    else if (m.dtype == DType::s8)
        *value = *(const int8_t*)m.data;
    else
        *value = (*(const uint16_t*)m.data & 0x7fff) != 0;
    return kOk;
}

LoopStart::LoopStart() {
    support_packing = true;
    set_any_storage(*this);
}

int LoopStart::shape(const LoopStart& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() < 2) return s.fail("expected at least 2 inputs, got %zu", in.size());
    QUOLL_RETURN_IF_ERROR(expect_dtype(s, "count", in[0].dtype, DType::s32));
    for (size_t i = 0; i < 2; i++)
        if (in[i].dims != 0 && in[i].total() != 1)
            return s.fail("expected one value as input %zu, got %s", i, shape_text(in[i]).c_str());
    // Carried values may change their sizes from one iteration to the next.
    out.assign(in.size() + 1, Shape());
    out[0] = out[1] = Shape(1, DType::s32);
    out[2] = in[1];
    return kOk;
}

int LoopStart::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                       const Option& opt) const {
    std::vector<Shape> in = shapes_of(bottoms), out;
    QUOLL_RETURN_IF_ERROR(shape(*this, in, out));
    tops.resize(out.size());
    tops[0] = bottoms[0];
    QUOLL_RETURN_IF_ERROR(create_tensor(out[1], &tops[1], opt));
    *(int32_t*)tops[1].data = 0;
    std::copy(bottoms.begin() + 1, bottoms.end(), tops.begin() + 2);
    return kOk;
}

LoopEnd::LoopEnd() { set_any_storage(*this); }

void LoopEnd::params(LoopEnd& s, ParamVisitor& v) {
    v(0, "scans", s.scans, 0, "values that every iteration adds, the last inputs", at_least(0));
    v.ints(1, "ranks", s.ranks, "how many axes each of them has, without the new one",
           between(0, 3));
    v.ints(2, "types", s.types, "their types: 0 f32, 3 s32, 4 s8, 5 u8", between(0, 5));
    v.ints(3, "sizes", s.sizes, "their sizes from the outermost axis on, one scan after the other",
           at_least(0));
}

int LoopEnd::shape(const LoopEnd& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() < 2 || in.size() - 2 < (size_t)s.scans)
        return s.fail("expected at least %zu inputs, got %zu", (size_t)s.scans + 2, in.size());
    if (in[1].dims != 0 && in[1].total() != 1)
        return s.fail("expected one value as input 1, got %s", shape_text(in[1]).c_str());
    out.assign(in.size() - 2, Shape());
    return kOk;
}

int LoopEnd::stack(const std::vector<Mat>& parts, int scan, Mat* all, const Option& opt) const {
    const auto at = [](const Mat& list, int i, int missing) {
        const std::vector<int> values = ints_of_param(list);
        return (size_t)i < values.size() ? values[(size_t)i] : missing;
    };
    const Shape one = parts.empty() ? Shape() : parts[0].logical_shape();
    const int rank = at(ranks, scan, parts.empty() ? 0 : one.dims), type = at(types, scan, 0);
    int first = 0;
    for (int i = 0; parts.empty() && i < scan; i++) first += at(ranks, i, 0);
    const DType dtype = !parts.empty() ? one.dtype
                        : type == 3    ? DType::s32
                        : type == 4    ? DType::s8
                        : type == 5    ? DType::u8
                                       : DType::f32;
    if (!parts.empty() && (rank == 0 ? one.total() != 1 : rank != one.dims || one.n != 1))
        return fail("scan %d: expected %d axes, got %s", scan, rank, shape_text(one).c_str());
    std::vector<int> all_sizes(1, (int)parts.size());
    for (int axis = 0; axis < rank; axis++)
        all_sizes.push_back(parts.empty() ? at(sizes, first + axis, 0) : one.size(axis));
    Shape shape;
    QUOLL_RETURN_IF_ERROR(shape_of_sizes(*this, all_sizes, dtype, &shape));
    QUOLL_RETURN_IF_ERROR(create_tensor(shape, all, opt));
    for (size_t i = 0; i < parts.size(); i++) {
        if (parts[i].logical_shape() != one || parts[i].elempack != 1)
            return fail("scan %d: %s after %s", scan, shape_text(parts[i].logical_shape()).c_str(),
                        shape_text(one).c_str());
        if (!all->empty()) copy_values(parts[i], 0, *all, i * value_count(parts[i]), one.total());
    }
    return kOk;
}

int LoopEnd::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                     const Option& opt) const {
    std::vector<Shape> in = shapes_of(bottoms), out;
    QUOLL_RETURN_IF_ERROR(shape(*this, in, out));
    const size_t states = out.size() - (size_t)scans;
    tops.resize(out.size());
    for (size_t i = 0; i < states; i++) tops[i] = bottoms[2 + i];
    for (size_t i = states; i < out.size(); i++)
        QUOLL_RETURN_IF_ERROR(stack({bottoms[2 + i]}, (int)(i - states), &tops[i], opt));
    return kOk;
}

QUOLL_DEFINE_LAYER(LoopStart)
QUOLL_DEFINE_LAYER(LoopEnd)

}  // namespace quoll
