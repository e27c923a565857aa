#include "layer/tensor/gather.h"

#include <algorithm>

#include "layer/common/scratch.h"

namespace quoll {

void Gather::params(Gather& s, ParamVisitor& v) {
    v(0, "axis", s.axis, 0, "axis of data, 0: outermost, -1: innermost", between(-4, 3));
    v(1, "scalar", s.scalar, 0, "1: the indices are one of rank 0", between(0, 1));
}

int Gather::shape(const Gather& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 2, 2));
    QUOLL_RETURN_IF_ERROR(expect_dtype(s, "indices", in[1].dtype, DType::s32));
    int axis;
    QUOLL_RETURN_IF_ERROR(resolve_axis(s, s.axis, in[0].dims, &axis));
    if (s.scalar && in[1].total() != 1)
        return s.fail("scalar: expected one index, got %s", shape_text(in[1]).c_str());
    std::vector<int> sizes = sizes_of(in[0]), replacing = sizes_of(in[1]);
    if (s.scalar) replacing.clear();
    sizes.erase(sizes.begin() + axis);
    sizes.insert(sizes.begin() + axis, replacing.begin(), replacing.end());
    out.resize(1);
    return shape_of_sizes(s, sizes, in[0].dtype, &out[0]);
}

namespace {

// For each slice of the data, the runs with these numbers.
template <class T>
void gather_runs(const Mat& data, const AlongAxis& along, const std::vector<int>& runs, Mat* out) {
    const Flat flat(*out);
    const size_t plane = (size_t)out->w * out->h * out->d, part = runs.size() * along.inner;
    const bool whole = part > 0 && plane % part == 0;  // lie those of a part in one piece?
    for (size_t o = 0; o < along.outer; o++) {
        const T* const from = (const T*)data.data + along.start(o);
        const size_t first = o * part, begin = flat(first);
        for (size_t j = 0; j < runs.size(); j++) {
            const T* const run = from + runs[j] * along.step;
            const size_t at = j * along.inner;
            T* const to = (T*)out->data + (whole ? begin + at : flat(first + at));
            if (along.inner == 1)
                *to = *run;
            else
                std::copy_n(run, along.inner, to);
        }
    }
}

}  // namespace

int Gather::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                    const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat &data = bottoms[0], &indices = bottoms[1];
    const AlongAxis along(data, axis < 0 ? axis + data.dims : axis);
    const Flat order(indices);
    const size_t count = value_count(indices);
    Scratch<int> runs;
    runs->resize(count);
    for (size_t j = 0; j < count; j++) {
        const int index = ((const int32_t*)indices.data)[order(j)];
        runs[j] = wrap_index(index, along.size);
        if (runs[j] < 0)
            return fail("index %d, expected %d to %d", index, -along.size, along.size - 1);
    }
    if (value_count(tops[0]) == 0) return kOk;
    // A run may be all of the output, with gaps.
    if ((size_t)tops[0].w * tops[0].h * tops[0].d < along.inner) {
        copy_values(data, runs[0] * along.inner, tops[0], 0, along.inner);
        return kOk;
    }
    with_word(data.elemsize,
              [&](auto word) { gather_runs<decltype(word)>(data, along, *runs, &tops[0]); });
    return kOk;
}

void GatherElements::params(GatherElements& s, ParamVisitor& v) {
    v(0, "axis", s.axis, 0, "axis of data, 0: outermost, -1: innermost", between(-4, 3));
}

int GatherElements::shape(const GatherElements& s, const std::vector<Shape>& in,
                          std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 2, 2));
    QUOLL_RETURN_IF_ERROR(expect_dtype(s, "indices", in[1].dtype, DType::s32));
    int axis;
    QUOLL_RETURN_IF_ERROR(resolve_axis(s, s.axis, in[0].dims, &axis));
    bool fits = in[1].dims == in[0].dims;
    for (int i = 0; fits && i < in[0].dims; i++) fits = i == axis || in[1].size(i) <= in[0].size(i);
    if (!fits)
        return s.fail("indices %s do not fit data %s", shape_text(in[1]).c_str(),
                      shape_text(in[0]).c_str());
    out.assign(1, in[1]);
    out[0].dtype = in[0].dtype;
    return kOk;
}

int GatherElements::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                            const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat &data = bottoms[0], &indices = bottoms[1];
    const int along = axis_of_four(axis < 0 ? axis + data.dims : axis, data.dims);
    const int size = axes_of(data).size[along];
    Steps steps[] = {steps_of(indices), steps_of(data), steps_of(tops[0])};
    const ptrdiff_t step = steps[1].step[along];
    steps[1].step[along] = 0;
    const Axes4 over = axes_of(indices);
    int status = kOk;
    with_word(data.elemsize, [&](auto word) {
        using T = decltype(word);
        for_each_row(over.size, steps, [&](const ptrdiff_t* at) {
            const int32_t* index = (const int32_t*)indices.data + at[0];
            const T* from = (const T*)data.data + at[1];
            T* to = (T*)tops[0].data + at[2];
            for (int l = 0; l < over.size[3] && status == kOk; l++) {
                const int i = wrap_index(index[l], size);
                if (i < 0)
                    status = fail("index %d, expected %d to %d", index[l], -size, size - 1);
                else
                    to[l] = from[i * step + l * steps[1].step[3]];
            }
        });
    });
    return status;
}

void GatherND::params(GatherND& s, ParamVisitor& v) {
    v(0, "batch_dims", s.batch_dims, 0, "leading axes that data and indices share", between(0, 3));
}

int GatherND::shape(const GatherND& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 2, 2));
    QUOLL_RETURN_IF_ERROR(expect_dtype(s, "indices", in[1].dtype, DType::s32));
    const int k = in[1].w, batch = s.batch_dims;
    bool fits = k >= 1 && batch < in[1].dims && batch + k <= in[0].dims;
    for (int i = 0; fits && i < batch; i++) fits = in[0].size(i) == in[1].size(i);
    if (!fits)
        return s.fail("indices %s do not fit data %s (batch_dims %d)", shape_text(in[1]).c_str(),
                      shape_text(in[0]).c_str(), batch);
    std::vector<int> sizes = sizes_of(in[1]), part = sizes_of(in[0]);
    sizes.pop_back();
    sizes.insert(sizes.end(), part.begin() + batch + k, part.end());
    out.resize(1);
    return shape_of_sizes(s, sizes, in[0].dtype, &out[0]);
}

TupleParts::TupleParts(const Layer& layer, const Mat& data, int first, const Mat& indices)
    : layer_(layer),
      first_(first),
      k_(indices.w),
      indices_((const int32_t*)indices.data),
      order_(indices),
      size_(),
      part_(1) {
    const Shape shape = data.logical_shape();
    for (int j = 0; j < k_; j++) size_[j] = shape.size(first + j);
    for (int i = first + k_; i < shape.dims; i++) part_ *= shape.size(i);
}

// There may be a tuple for every value; usually it differs from the one before only in the last
// index. Which tuple lies outside is searched for only once it is known that one does.
int TupleParts::begins(size_t first, size_t count, ptrdiff_t* begin) const {
    const int32_t* before = nullptr;
    const auto wrapped = [&](int index, int size) {
        return (size_t)(ptrdiff_t)(index < 0 ? index + size : index);
    };
    const int last = k_ - 1;
    const size_t size = (size_t)size_[last];
    size_t row = 0;
    bool outside = false;
    for (size_t t = 0; t < count; t++) {
        const int32_t* const tuple = indices_ + order_((first + t) * k_);  // within a row
        if (!before || !std::equal(tuple, tuple + last, before)) {
            row = 0;
            for (int j = 0; j < last; j++) {
                const size_t i = wrapped(tuple[j], size_[j]);
                outside |= i >= (size_t)size_[j];
                row = row * (size_t)size_[j] + i;
            }
            row *= size;
            before = tuple;
        }
        const size_t i = wrapped(tuple[last], size_[last]);
        outside |= i >= size;
        begin[t] = (ptrdiff_t)((row + i) * (size_t)part_);
    }
    return outside ? fail_outside(first, count) : (int)kOk;
}

int TupleParts::fail_outside(size_t first, size_t count) const {
    for (size_t at = first * k_; at < (first + count) * k_; at++) {
        const int index = indices_[order_(at)], j = (int)(at % k_), size = size_[j];
        if (wrap_index(index, size) < 0)
            return layer_.fail("index %d on axis %d, expected %d to %d", index, first_ + j, -size,
                               size - 1);
    }
    return kOk;
}

int GatherND::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                      const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat &data = bottoms[0], &indices = bottoms[1];
    const int k = indices.w;
    const Shape shape = data.logical_shape();
    size_t batches = 1, item = 1, part = 1;
    for (int i = 0; i < shape.dims; i++) {
        (i < batch_dims ? batches : item) *= shape.size(i);
        if (i >= batch_dims + k) part *= shape.size(i);
    }
    const size_t tuples = value_count(indices) / k;
    if (tuples == 0 || part == 0) return kOk;
    const TupleParts parts(*this, data, batch_dims, indices);
    const size_t each = tuples / batches;  // tuples of a batch item
    for (size_t t = 0; t < tuples; t++) {
        ptrdiff_t from;
        QUOLL_RETURN_IF_ERROR(parts.begins(t, 1, &from));
        copy_values(data, t / each * item + from, tops[0], t * part, part);
    }
    return kOk;
}

void Compress::params(Compress& s, ParamVisitor& v) {
    v(0, "axis", s.axis, kAllAxes,
      "axis, 0: outermost, -1: innermost, -233: all values in one axis", between(-233, 3));
}

int Compress::shape(const Compress& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 2, 2));
    QUOLL_RETURN_IF_ERROR(expect_dtype(s, "condition", in[1].dtype, DType::u8));
    if (in[1].dims != 1)
        return s.fail("condition: expected 1 axis, got %s", shape_text(in[1]).c_str());
    int axis;
    if (s.axis != kAllAxes) QUOLL_RETURN_IF_ERROR(resolve_axis(s, s.axis, in[0].dims, &axis));
    out.assign(1, Shape());
    return kOk;
}

int Compress::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                      const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat& data = bottoms[0];
    const uint8_t* const keep = (const uint8_t*)bottoms[1].data;
    size_t outer = 1, inner = 1, size = value_count(data);
    const int at = axis < 0 && axis != kAllAxes ? axis + data.dims : axis;
    if (axis != kAllAxes) {
        const AlongAxis along(data, at);
        outer = along.outer, inner = along.inner, size = along.size;
    }
    // The rest of a longer condition chooses nothing.
    const size_t given = std::min((size_t)bottoms[1].w, size);
    int kept = 0;
    for (size_t i = 0; i < given; i++) kept += keep[i] != 0;
    Shape out(kept, data.dtype);
    if (axis != kAllAxes) {
        out = data.logical_shape();
        out.set_size(at, kept);
    }
    QUOLL_RETURN_IF_ERROR(create_tensor(out, &tops[0], opt));
    size_t to = 0;
    for (size_t o = 0; o < outer; o++) {
        for (size_t i = 0; i < given; i++) {
            if (!keep[i]) continue;
            copy_values(data, (o * size + i) * inner, tops[0], to, inner);
            to += inner;
        }
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(Gather)
QUOLL_DEFINE_LAYER(GatherElements)
QUOLL_DEFINE_LAYER(GatherND)
QUOLL_DEFINE_LAYER(Compress)

}  // namespace quoll
