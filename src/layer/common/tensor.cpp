#include "layer/common/tensor.h"

#include <limits.h>

#include <algorithm>

namespace quoll {

int expect_inputs(const Layer& layer, const std::vector<Shape>& in, size_t least, size_t most) {
    if (in.size() < least || in.size() > most)
        return least == most
                   ? layer.fail("expected %zu inputs, got %zu", least, in.size())
                   : layer.fail("expected %zu to %zu inputs, got %zu", least, most, in.size());
    for (size_t i = 0; i < in.size(); i++) {
        if (in[i].dims < 1 || in[i].dims > 4)
            return layer.fail("input %zu has %d axes, expected 1 to 4", i, in[i].dims);
        if (in[i].total() > INT_MAX)
            return layer.fail("input %zu has more than %d values: %s", i, INT_MAX,
                              shape_text(in[i]).c_str());
    }
    return kOk;
}

int expect_number(const Layer& layer, DType dtype) {
    if (dtype != DType::f16 && dtype != DType::bf16) return kOk;
    return layer.fail("expected f32, s32, s8 or u8, got %s", dtype_name(dtype));
}

int expect_dtype(const Layer& layer, const char* what, DType got, DType expected) {
    if (got == expected) return kOk;
    return layer.fail("%s: expected %s, got %s", what, dtype_name(expected), dtype_name(got));
}

int create_tensor(const Shape& shape, Mat* m, const Option& opt) {
    m->release();
    if (shape.total() > 0) {
        m->create(shape, 1, opt.blob_allocator);
        return m->empty() ? (int)kOutOfMemory : (int)kOk;
    }
    m->dims = shape.dims, m->w = shape.w, m->h = shape.h, m->d = shape.d, m->c = shape.c;
    m->n = shape.n, m->dtype = shape.dtype;
    m->elempack = 1, m->elemsize = dtype_size(shape.dtype);
    return kOk;
}

int create_tensors(const Layer& layer, const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                   const Option& opt) {
    std::vector<Shape> in = shapes_of(bottoms), out;
    out.resize(tops.size());
    QUOLL_RETURN_IF_ERROR(layer.infer_shapes(in, out));
    tops.resize(out.size());
    for (size_t i = 0; i < out.size(); i++)
        if (out[i].dims > 0) QUOLL_RETURN_IF_ERROR(create_tensor(out[i], &tops[i], opt));
    return kOk;
}

int fill_without_terms(const Layer& layer, const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                       float value, const Option& opt) {
    QUOLL_RETURN_IF_ERROR(create_from_nothing(layer, bottoms, tops, true, opt));
    for (Mat& top : tops)
        if (!top.empty()) top.fill(value);
    return kOk;
}

int clone_tensor(const Mat& m, Mat* copy, const Option& opt) {
    QUOLL_RETURN_IF_ERROR(create_tensor(m.logical_shape(), copy, opt));
    copy_values(m, 0, *copy, 0, value_count(m));
    return kOk;
}

std::vector<int> sizes_of(const Shape& shape) {
    std::vector<int> sizes(shape.dims);
    for (int i = 0; i < shape.dims; i++) sizes[i] = shape.size(i);
    return sizes;
}

int shape_of_sizes(const Layer& layer, const std::vector<int>& sizes, DType dtype, Shape* shape) {
    *shape = Shape(1, 1, 1, 1, dtype);
    if (sizes.size() > 4) return layer.fail("%zu axes, expected at most 4", sizes.size());
    shape->dims = std::max((int)sizes.size(), 1);
    int64_t total = 1;
    for (size_t i = 0; i < sizes.size(); i++) {
        if (sizes[i] < 0) return layer.fail("axis %zu would have size %d", i, sizes[i]);
        shape->set_size((int)i, sizes[i]);
        total *= std::max(sizes[i], 1);
        if (total > INT_MAX) return layer.fail("a tensor of more than %d values", INT_MAX);
    }
    return kOk;
}

int complete_empty_sizes(const Layer& layer, const Shape& in, std::vector<int>* sizes) {
    int64_t have = 1, wanted = 1;
    int have_zeros = in.n == 0, wanted_zeros = 0;
    for (int i = 0; i < in.dims; i++) {
        have_zeros += in.size(i) == 0;
        have = std::min<int64_t>(have * std::max(in.size(i), 1), (int64_t)INT_MAX + 1);
    }
    int* rest = nullptr;
    for (int& size : *sizes) {
        if (size == -1 && !rest) {
            rest = &size;
            continue;
        }
        wanted_zeros += size == 0;
        if (size < 0 || (wanted *= std::max(size, 1)) > INT_MAX)
            return layer.fail("a size of %d", size);
    }
    if (rest) {
        const bool fits = have % wanted == 0 && have / wanted <= INT_MAX;
        if (have_zeros <= wanted_zeros && !fits)
            return layer.fail("%s does not fill the output", shape_text(in).c_str());
        *rest = have_zeros > wanted_zeros ? 0 : (int)(have / wanted);
        wanted_zeros += *rest == 0;
    }
    if (wanted_zeros > 0) return kOk;
    return layer.fail("no values (%s) do not fill the output", shape_text(in).c_str());
}

int read_ints(const Layer& layer, const char* what, const Mat& m, int most, std::vector<int>* out) {
    QUOLL_RETURN_IF_ERROR(expect_dtype(layer, what, m.dtype, DType::s32));
    const size_t count = value_count(m);
    if (count > (size_t)most)
        return layer.fail("%s: expected at most %d values, got %zu", what, most, count);
    const Flat flat(m);
    out->resize(count);
    for (size_t i = 0; i < count; i++) (*out)[i] = ((const int32_t*)m.data)[flat(i)];
    return kOk;
}

std::vector<int> ints_of_param(const Mat& param) {
    if (param.empty()) return {};
    const int* const first = (const int*)param.data;
    return std::vector<int>(first, first + param.w);
}

void copy_values(const Mat& src, size_t from, Mat& dst, size_t to, size_t count) {
    const size_t es = src.elemsize;
    const size_t src_plane = (size_t)src.w * src.h * src.d, src_step = src.cstep;
    const size_t dst_plane = (size_t)dst.w * dst.h * dst.d, dst_step = dst.cstep;
    if ((src.c == 1 || src_plane == src_step) && (dst.c == 1 || dst_plane == dst_step)) {
        if (count > 0)
            memcpy((char*)dst.data + to * es, (const char*)src.data + from * es, count * es);
        return;
    }
    while (count > 0) {
        const size_t fi = from % src_plane, ti = to % dst_plane;
        const size_t run = std::min({count, src_plane - fi, dst_plane - ti});
        memcpy((char*)dst.data + (to / dst_plane * dst_step + ti) * es,
               (const char*)src.data + (from / src_plane * src_step + fi) * es, run * es);
        from += run, to += run, count -= run;
    }
}

AlongAxis::AlongAxis(const Mat& m, int axis) : outer(1), inner(1), flat(m) {
    const Shape shape = m.logical_shape();
    for (int i = 0; i < axis; i++) outer *= shape.size(i);
    size = shape.size(axis);
    for (int i = axis + 1; i < shape.dims; i++) inner *= shape.size(i);
    step = axis == 0 && m.dims >= 3 ? m.cstep : inner;
}

Steps steps_of(const Mat& m) {
    const Axes4 axes = axes_of(m);
    Steps s;
    for (int i = 0; i < 4; i++) s.step[i] = (ptrdiff_t)axes.step[i];
    return s;
}

Steps spread_steps(const Mat& m) {
    const Axes4 axes = axes_of(m);
    Steps s;
    for (int i = 0; i < 4; i++) s.step[i] = axes.size[i] == 1 ? 0 : (ptrdiff_t)axes.step[i];
    return s;
}

int broadcast_shapes(const Layer& layer, const std::vector<Shape>& in, Shape* out) {
    *out = in[0];
    for (const Shape& s : in) {
        const Shape fewer = s.dims < out->dims ? s : *out;
        Shape more = s.dims < out->dims ? *out : s;
        for (int i = 1; i <= fewer.dims; i++) {
            const int a = fewer.size(fewer.dims - i), b = more.size(more.dims - i);
            if (a != b && a != 1 && b != 1)
                return layer.fail("%s and %s cannot be broadcast", shape_text(*out).c_str(),
                                  shape_text(s).c_str());
            more.set_size(more.dims - i, a == 1 ? b : a);
        }
        *out = more;
    }
    out->dtype = in[0].dtype;
    return shape_of_sizes(layer, sizes_of(*out), out->dtype, out);
}

}  // namespace quoll
