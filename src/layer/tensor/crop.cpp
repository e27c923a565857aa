#include "layer/tensor/crop.h"

#include <algorithm>

namespace quoll {

static const int kRest = -233;

Crop::Crop() { support_fp16_storage = support_bf16_storage = true; }

void Crop::params(Crop& s, ParamVisitor& v) {
    v(0, "woffset", s.woffset, 0, "first column; -233: input 1 holds offsets and sizes");
    v(1, "hoffset", s.hoffset, 0, "first row");
    v(13, "doffset", s.doffset, 0, "first depth");
    v(2, "coffset", s.coffset, 0, "first channel");
    v(3, "outw", s.outw, 0, "width, -233: the rest");
    v(4, "outh", s.outh, 0, "height, -233: the rest");
    v(14, "outd", s.outd, 0, "depth, -233: the rest");
    v(5, "outc", s.outc, 0, "channels, -233: the rest");
    v(6, "woffset2", s.woffset2, 0, "columns to leave at the end", at_least(0));
    v(7, "hoffset2", s.hoffset2, 0, "rows to leave at the end", at_least(0));
    v(15, "doffset2", s.doffset2, 0, "depths to leave at the end", at_least(0));
    v(8, "coffset2", s.coffset2, 0, "channels to leave at the end", at_least(0));
    v.ints(9, "starts", s.starts, "first index on each of axes");
    v.ints(10, "ends", s.ends, "index behind the last on each of axes");
    v.ints(11, "axes", s.axes, "axes to cut, 0: outermost; absent: 0, 1, ...");
    v(19, "starts_expr", s.starts_expr, "", "starts as expressions");
    v(20, "ends_expr", s.ends_expr, "", "ends as expressions");
    v(21, "axes_expr", s.axes_expr, "", "axes as expressions");
}

void Crop::weights(Crop&, WeightVisitor&) {}

int Crop::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    QUOLL_RETURN_IF_ERROR(starts_expression_.parse(*this, "starts_expr", starts_expr));
    QUOLL_RETURN_IF_ERROR(ends_expression_.parse(*this, "ends_expr", ends_expr));
    QUOLL_RETURN_IF_ERROR(axes_expression_.parse(*this, "axes_expr", axes_expr));
    const int start_count = starts_expr.empty() ? starts.w : starts_expression_.count();
    const int end_count = ends_expr.empty() ? ends.w : ends_expression_.count();
    const int axis_count = axes_expr.empty() ? axes.w : axes_expression_.count();
    if (start_count != end_count || (axis_count > 0 && axis_count != start_count))
        return fail("%d starts, %d ends and %d axes do not match", start_count, end_count,
                    axis_count);
    return kOk;
}

bool Crop::by_values(size_t inputs) const {
    return inputs == 2 && starts.empty() && starts_expression_.empty() && woffset == kRest;
}

static int list_of(const Layer& layer, const Mat& numbers, const Expression& expression,
                   const std::vector<Shape>& in, std::vector<int>* list) {
    if (!expression.empty()) return expression.evaluate(layer, in, list);
    const int* p = numbers;
    list->assign(p, p + numbers.w);
    return kOk;
}

// The axes of `like` with other sizes; sizes of axes that it does not have are ignored.
static Shape with_sizes(const Shape& like, int w, int h, int d, int c) {
    Shape s = like;
    s.w = w;
    if (s.dims >= 2) s.h = h;
    if (s.dims >= 3) s.c = c;
    if (s.dims >= 4) s.d = d;
    return s;
}

int Crop::part_of_slices(const std::vector<Shape>& in, Part* part) const {
    std::vector<int> first, last, axis;
    QUOLL_RETURN_IF_ERROR(list_of(*this, starts, starts_expression_, in, &first));
    QUOLL_RETURN_IF_ERROR(list_of(*this, ends, ends_expression_, in, &last));
    QUOLL_RETURN_IF_ERROR(list_of(*this, axes, axes_expression_, in, &axis));
    if (last.size() < first.size() || (!axis.empty() && axis.size() < first.size()))
        return fail("%zu starts, %zu ends, %zu axes", first.size(), last.size(), axis.size());
    part->start = with_sizes(in[0], 0, 0, 0, 0);
    part->size = in[0];
    for (size_t i = 0; i < first.size(); i++) {
        int a;
        QUOLL_RETURN_IF_ERROR(resolve_axis(*this, axis.empty() ? (int)i : axis[i], in[0].dims, &a));
        const int size = in[0].size(a);
        int start = first[i] == kRest ? 0 : first[i], end = last[i] == kRest ? 0 : last[i];
        if (start < 0) start = std::max(start + size, 0);
        end = end > 0 ? std::min(end, size) : std::max(end + size, 0);
        part->start.set_size(a, start);
        part->size.set_size(a, end - start);
    }
    return kOk;
}

void Crop::part_of_reference(const Shape& in, const Shape& ref, Part* part) const {
    part->start = with_sizes(in, woffset, hoffset, doffset, coffset);
    part->size = with_sizes(in, ref.w, ref.h, ref.d, ref.dims >= in.dims ? ref.c : in.c);
}

void Crop::part_of_values(const Shape& in, const int* v, Part* part) const {
    const bool four = in.dims == 4;
    part->start =
        four ? with_sizes(in, v[0], v[1], v[2], v[3]) : with_sizes(in, v[0], v[1], 1, v[2]);
    part->size =
        four ? with_sizes(in, v[4], v[5], v[6], v[7]) : with_sizes(in, v[3], v[4], 1, v[5]);
}

void Crop::part_of_offsets(const Shape& in, Part* part) const {
    const Shape wanted = with_sizes(in, outw, outh, outd, outc);
    const Shape tail = with_sizes(in, woffset2, hoffset2, doffset2, coffset2);
    part->start = with_sizes(in, woffset, hoffset, doffset, coffset);
    part->size = in;
    for (int i = 0; i < in.dims; i++) {
        const int64_t left = (int64_t)in.size(i) - part->start.size(i) - tail.size(i);
        const int64_t size =
            wanted.size(i) == kRest ? left : std::min<int64_t>(left, wanted.size(i));
        part->size.set_size(i, (int)std::min<int64_t>(std::max<int64_t>(size, 0), in.size(i)));
    }
}

int Crop::find_part(const std::vector<Shape>& in, const int* values, Part* part) const {
    if (!starts.empty() || !starts_expression_.empty())
        QUOLL_RETURN_IF_ERROR(part_of_slices(in, part));
    else if (in.size() == 2 && values)
        part_of_values(in[0], values, part);
    else if (in.size() == 2)
        part_of_reference(in[0], in[1], part);
    else if (in.size() == 1)
        part_of_offsets(in[0], part);
    else
        return fail("expected 1 or 2 inputs, got %zu", in.size());
    for (int i = 0; i < in[0].dims; i++) {
        const int start = part->start.size(i), size = part->size.size(i);
        if (start < 0 || size < (in[0].size(i) > 0) || start > in[0].size(i) - size)
            return fail("on axis %d, %d values from index %d on are not within %d", i, size, start,
                        in[0].size(i));
    }
    return kOk;
}

int Crop::shape(const Crop& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.empty() || in[0].dims < 1) return s.fail("expected at least 1 input, got none");
    out.assign(1, Shape());
    if (s.by_values(in.size())) return kOk;  // known only when it runs
    Part part;
    QUOLL_RETURN_IF_ERROR(s.find_part(in, nullptr, &part));
    out[0] = part.size;
    return kOk;
}

int Crop::values_of(const std::vector<Mat>& bottoms, const int** values) const {
    *values = nullptr;
    if (bottoms.empty()) return fail("expected at least 1 input, got none");
    if (!by_values(bottoms.size())) return kOk;
    const int needed = bottoms[0].dims == 4 ? 8 : 6;
    const Shape shape = bottoms[1].logical_shape();
    if (shape.dims != 1 || shape.w < needed || shape.dtype != DType::s32)
        return fail("input 1: expected %d s32 values, got %s of %s", needed,
                    shape_text(shape).c_str(), dtype_name(shape.dtype));
    *values = bottoms[1];
    return kOk;
}

int Crop::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                  const Option& opt) const {
    std::vector<Shape> in = shapes_of(bottoms);
    const int* values;
    QUOLL_RETURN_IF_ERROR(values_of(bottoms, &values));
    Part part;
    QUOLL_RETURN_IF_ERROR(find_part(in, values, &part));
    const Shape& to = part.size;
    tops.resize(1);
    if (to == in[0]) {
        tops[0] = bottoms[0];
        return kOk;
    }
    tops[0].create(to, 1, opt.blob_allocator);
    if (tops[0].empty()) return kOutOfMemory;
    Block block = whole_block(tops[0]);
    for (int i = 0; i < to.dims; i++) block.start[axis_of_four(i, to.dims)] = part.start.size(i);
    const int origin[4] = {0, 0, 0, 0};
    copy_block(bottoms[0], block, tops[0], origin);
    return kOk;
}

QUOLL_DEFINE_LAYER(Crop)

}  // namespace quoll
