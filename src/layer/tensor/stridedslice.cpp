#include "layer/tensor/stridedslice.h"

#include <algorithm>

namespace quoll {

void StridedSlice::params(StridedSlice& s, ParamVisitor& v) {
    v.ints(0, "starts", s.starts, "first index, one an axis");
    v.ints(1, "ends", s.ends, "index behind the last, one an axis");
    v.ints(2, "axes", s.axes, "axes, 0: outermost, -1: innermost; none: the first ones",
           between(-4, 3));
    v.ints(3, "steps", s.steps, "steps, not 0; none: 1");
}

StridedSlice::Lists StridedSlice::lists_of_params() const {
    return {ints_of_param(starts), ints_of_param(ends), ints_of_param(axes), ints_of_param(steps)};
}

int StridedSlice::plan(const Shape& data, const Lists& lists, Cut cuts[4], Shape* out) const {
    const size_t count = lists.starts.size();
    if (lists.ends.size() != count || (!lists.axes.empty() && lists.axes.size() != count) ||
        (!lists.steps.empty() && lists.steps.size() != count) || count > (size_t)data.dims)
        return fail("%zu starts, %zu ends, %zu axes and %zu steps for %d axes", count,
                    lists.ends.size(), lists.axes.size(), lists.steps.size(), data.dims);
    for (int i = 0; i < data.dims; i++) cuts[i] = {0, data.size(i), 1};
    *out = data;
    for (size_t i = 0; i < count; i++) {
        int axis;
        QUOLL_RETURN_IF_ERROR(
            resolve_axis(*this, lists.axes.empty() ? (int)i : lists.axes[i], data.dims, &axis));
        const int64_t size = data.size(axis), step = lists.steps.empty() ? 1 : lists.steps[i];
        if (step == 0) return fail("a step of 0 on axis %d", axis);
        // Where a walk may begin and end: forwards it may end behind the last index, backwards
        // before the first.
        const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
        const auto limit = [&](int64_t index, int64_t least) {
            return std::min(std::max(index < 0 ? index + size : index, least), high);
        };
        const int64_t start = limit(lists.starts[i], 0), end = limit(lists.ends[i], low);
        const int64_t span = step > 0 ? end - start : start - end, by = step > 0 ? step : -step;
        const int64_t taken = span > 0 ? (span + by - 1) / by : 0;
        cuts[axis] = {taken > 0 ? (int)start : 0, (int)taken, step};
        out->set_size(axis, (int)taken);
    }
    return kOk;
}

int StridedSlice::shape(const StridedSlice& s, const std::vector<Shape>& in,
                        std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 5));
    out.assign(1, Shape());
    if (in.size() == 1) {
        Cut cuts[4];
        return s.plan(in[0], s.lists_of_params(), cuts, &out[0]);
    }
    if (in.size() == 2 || !s.starts.empty() || !s.ends.empty())
        return s.fail("expected starts and ends both as parameters or both as inputs");
    for (size_t i = 1; i < in.size(); i++)
        QUOLL_RETURN_IF_ERROR(expect_dtype(s, "starts to steps", in[i].dtype, DType::s32));
    return kOk;
}

int StridedSlice::plan(const std::vector<Mat>& bottoms, Cut cuts[4], Shape* out) const {
    Lists lists = lists_of_params();
    std::vector<int>* const given[] = {&lists.starts, &lists.ends, &lists.axes, &lists.steps};
    for (size_t i = 1; i < bottoms.size(); i++)
        QUOLL_RETURN_IF_ERROR(read_ints(*this, "starts to steps", bottoms[i], 4, given[i - 1]));
    return plan(bottoms[0].logical_shape(), lists, cuts, out);
}

int StridedSlice::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                          const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat& data = bottoms[0];
    Cut cuts[4];
    Shape out;
    QUOLL_RETURN_IF_ERROR(plan(bottoms, cuts, &out));
    QUOLL_RETURN_IF_ERROR(create_tensor(out, &tops[0], opt));
    if (tops[0].empty()) return kOk;
    Steps along[] = {steps_of(data), steps_of(tops[0])};
    ptrdiff_t first = 0;
    for (int i = 0; i < data.dims; i++) {
        ptrdiff_t& step = along[0].step[axis_of_four(i, data.dims)];
        first += cuts[i].start * step;
        // A step larger than the axis is never taken twice; clamping it prevents an overflow.
        step *= std::min<int64_t>(std::max<int64_t>(cuts[i].step, -data.logical_shape().size(i)),
                                  data.logical_shape().size(i));
    }
    const Axes4 over = axes_of(tops[0]);
    const ptrdiff_t step = along[0].step[3];
    with_word(data.elemsize, [&](auto word) {
        using T = decltype(word);
        for_each_row(over.size, along, [&](const ptrdiff_t* at) {
            const T* from = (const T*)data.data + first + at[0];
            T* to = (T*)tops[0].data + at[1];
            if (step == 1)
                memcpy(to, from, over.size[3] * sizeof(T));
            else
                for (int i = 0; i < over.size[3]; i++) to[i] = from[i * step];
        });
    });
    return kOk;
}

void Stack::params(Stack& s, ParamVisitor& v) {
    v(0, "axis", s.axis, 0, "where the new axis is in the output, -1: innermost", between(-4, 3));
}

int Stack::shape(const Stack& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, SIZE_MAX));
    for (size_t i = 1; i < in.size(); i++)
        if (in[i] != in[0])
            return s.fail("input %zu is %s (%s), the first is %s (%s)", i,
                          shape_text(in[i]).c_str(), dtype_name(in[i].dtype),
                          shape_text(in[0]).c_str(), dtype_name(in[0].dtype));
    int axis;
    QUOLL_RETURN_IF_ERROR(resolve_axis(s, s.axis, in[0].dims + 1, &axis));
    std::vector<int> sizes = sizes_of(in[0]);
    sizes.insert(sizes.begin() + axis, (int)in.size());
    out.resize(1);
    return shape_of_sizes(s, sizes, in[0].dtype, &out[0]);
}

int Stack::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                   const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const AlongAxis along(tops[0], axis < 0 ? axis + tops[0].dims : axis);
    size_t to = 0;
    for (size_t o = 0; o < along.outer; o++) {
        for (const Mat& m : bottoms) {
            copy_values(m, o * along.inner, tops[0], to, along.inner);
            to += along.inner;
        }
    }
    return kOk;
}

void Unstack::params(Unstack& s, ParamVisitor& v) {
    v(0, "axis", s.axis, 0, "axis, 0: outermost, -1: innermost", between(-4, 3));
}

int Unstack::shape(const Unstack& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 1));
    int axis;
    QUOLL_RETURN_IF_ERROR(resolve_axis(s, s.axis, in[0].dims, &axis));
    std::vector<int> sizes = sizes_of(in[0]);
    const size_t outputs = output_count(s, out);
    if ((size_t)sizes[axis] != outputs)
        return s.fail("%d parts for %zu outputs", sizes[axis], outputs);
    sizes.erase(sizes.begin() + axis);
    Shape part;
    QUOLL_RETURN_IF_ERROR(shape_of_sizes(s, sizes, in[0].dtype, &part));
    out.assign(outputs, part);
    return kOk;
}

int Unstack::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                     const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const AlongAxis along(bottoms[0], axis < 0 ? axis + bottoms[0].dims : axis);
    size_t from = 0;
    for (size_t o = 0; o < along.outer; o++) {
        for (Mat& top : tops) {
            copy_values(bottoms[0], from, top, o * along.inner, along.inner);
            from += along.inner;
        }
    }
    return kOk;
}

void ReverseSequence::params(ReverseSequence& s, ParamVisitor& v) {
    v(0, "batch_axis", s.batch_axis, 1, "axis with a length for each index", between(-4, 3));
    v(1, "time_axis", s.time_axis, 0, "axis to reverse", between(-4, 3));
}

int ReverseSequence::shape(const ReverseSequence& s, const std::vector<Shape>& in,
                           std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 2, 2));
    QUOLL_RETURN_IF_ERROR(expect_dtype(s, "lengths", in[1].dtype, DType::s32));
    int batch, time;
    QUOLL_RETURN_IF_ERROR(resolve_axis(s, s.batch_axis, in[0].dims, &batch));
    QUOLL_RETURN_IF_ERROR(resolve_axis(s, s.time_axis, in[0].dims, &time));
    if (batch == time) return s.fail("batch_axis and time_axis are both %d", batch);
    if (in[1].dims != 1 || in[1].w != in[0].size(batch))
        return s.fail("expected %d lengths, got %s", in[0].size(batch), shape_text(in[1]).c_str());
    out.assign(1, in[0]);
    return kOk;
}

int ReverseSequence::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                             const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat& data = bottoms[0];
    const int dims = data.dims;
    const int batch = axis_of_four(batch_axis < 0 ? batch_axis + dims : batch_axis, dims);
    const int time = axis_of_four(time_axis < 0 ? time_axis + dims : time_axis, dims);
    const Axes4 axes = axes_of(data);
    for (int b = 0; b < axes.size[batch]; b++) {
        const int length = ((const int32_t*)bottoms[1].data)[b];
        if (length < 0 || length > axes.size[time])
            return fail("length %d of %d, expected 0 to %d", length, b, axes.size[time]);
        for (int t = 0; t < axes.size[time]; t++) {
            Block block = whole_block(data);
            block.size[batch] = block.size[time] = 1;
            int to[4] = {0, 0, 0, 0};
            block.start[batch] = to[batch] = b;
            block.start[time] = t;
            to[time] = t < length ? length - 1 - t : t;
            copy_block(data, block, tops[0], to);
        }
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(StridedSlice)
QUOLL_DEFINE_LAYER(Stack)
QUOLL_DEFINE_LAYER(Unstack)
QUOLL_DEFINE_LAYER(ReverseSequence)

}  // namespace quoll
