#include "layer/tensor/tensorshape.h"

#include <limits.h>
#include <string.h>

#include <algorithm>

namespace quoll {

// No tensor has more axes than this.
static const int kMostAxes = 4;

ShapeOf::ShapeOf() {
    support_packing = support_batch = true;
    set_any_storage(*this);
}

void ShapeOf::params(ShapeOf& s, ParamVisitor& v) {
    v(0, "start", s.start, 0, "first axis, negative: from the end");
    v(1, "end", s.end, INT_MAX, "axis behind the last, negative: from the end");
    v(2, "product", s.product, 0, "1: the number of values instead", between(0, 1));
    v(3, "batch", s.batch, 0, "1: the batch counts as an axis in front", between(0, 1));
}

std::vector<int> ShapeOf::sizes(const Shape& shape) const {
    std::vector<int> all = sizes_of(shape);
    if (batch) all.insert(all.begin(), shape.n);
    const int rank = (int)all.size();
    const int first = std::min(std::max(start < 0 ? start + rank : start, 0), rank);
    const int last = std::min(std::max(end < 0 ? end + rank : end, first), rank);
    return std::vector<int>(all.begin() + first, all.begin() + last);
}

int ShapeOf::shape(const ShapeOf& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 1));
    out.assign(1, Shape(s.product ? 1 : (int)s.sizes(in[0]).size(), DType::s32));
    return kOk;
}

int ShapeOf::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                     const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const std::vector<int> all = sizes(bottoms[0].logical_shape());
    int32_t* const out = (int32_t*)tops[0].data;
    if (product) {
        out[0] = 1;
        for (int size : all) out[0] *= size;
    } else {
        std::copy(all.begin(), all.end(), out);
    }
    return kOk;
}

// The list of numbers, which is a parameter or else input 1.
static int take_sizes(const Layer& layer, const Mat& param, const std::vector<Mat>& bottoms,
                      std::vector<int>* sizes) {
    *sizes = ints_of_param(param);
    if (bottoms.size() < 2) return kOk;
    return read_ints(layer, "shape", bottoms[1], kMostAxes, sizes);
}

// Whether there is a shape of the right kind.
static int expect_sizes(const Layer& layer, const Mat& param, const std::vector<Shape>& in) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(layer, in, 1, 2));
    if (param.empty() == (in.size() == 1))
        return layer.fail("expected a shape as parameter or as second input, one of them");
    if (in.size() == 2) return expect_dtype(layer, "shape", in[1].dtype, DType::s32);
    return kOk;
}

void Expand::params(Expand& s, ParamVisitor& v) {
    v.ints(0, "shape", s.sizes, "sizes from the outermost axis on", at_least(0));
}

int Expand::expanded(const Shape& data, const std::vector<int>& wanted, Shape* out) const {
    Shape target;
    QUOLL_RETURN_IF_ERROR(shape_of_sizes(*this, wanted, data.dtype, &target));
    return broadcast_shapes(*this, {data, target}, out);
}

int Expand::shape(const Expand& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_sizes(s, s.sizes, in));
    out.assign(1, Shape());
    return in.size() == 2 ? (int)kOk : s.expanded(in[0], ints_of_param(s.sizes), &out[0]);
}

int Expand::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                    const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat& data = bottoms[0];
    std::vector<int> wanted;
    Shape out;
    QUOLL_RETURN_IF_ERROR(take_sizes(*this, sizes, bottoms, &wanted));
    QUOLL_RETURN_IF_ERROR(expanded(data.logical_shape(), wanted, &out));
    QUOLL_RETURN_IF_ERROR(create_tensor(out, &tops[0], opt));
    const Steps steps[] = {spread_steps(data), steps_of(tops[0])};
    const Axes4 over = axes_of(tops[0]);
    with_word(data.elemsize, [&](auto word) {
        using T = decltype(word);
        for_each_row(over.size, steps, [&](const ptrdiff_t* at) {
            const T* from = (const T*)data.data + at[0];
            T* to = (T*)tops[0].data + at[1];
            if (over.size[3] == 0) return;
            if (steps[0].step[3] == 0)
                std::fill(to, to + over.size[3], *from);
            else
                std::copy(from, from + over.size[3], to);
        });
    });
    return kOk;
}

void ReshapeTo::params(ReshapeTo& s, ParamVisitor& v) {
    v.ints(0, "shape", s.sizes, "sizes from the outermost axis on, -1: what remains", at_least(-1));
    v(1, "allowzero", s.allowzero, 0, "1: a size of 0 is 0, not the input's", between(0, 1));
}

int ReshapeTo::reshaped(const Shape& data, std::vector<int> wanted, Shape* out) const {
    const int64_t total = (int64_t)data.total();
    int64_t known = 1;
    int rest = -1;
    for (int i = 0; i < (int)wanted.size(); i++) {
        if (wanted[i] == 0 && !allowzero) {
            if (i >= data.dims) return fail("size 0 on axis %d, which the input has not", i);
            wanted[i] = data.size(i);
        }
        if (wanted[i] == -1 && rest < 0) {
            rest = i;
        } else {
            if (wanted[i] < 0) return fail("size %d of axis %d", wanted[i], i);
            known *= wanted[i];
            if (known > INT_MAX) return fail("a tensor of more than %d values", INT_MAX);
        }
    }
    if (total == 0) {
        QUOLL_RETURN_IF_ERROR(complete_empty_sizes(*this, data, &wanted));
        return shape_of_sizes(*this, wanted, data.dtype, out);
    }
    if (rest >= 0) {
        if (known == 0 || total % known != 0 || total / known > INT_MAX)
            return fail("%lld values do not fill parts of %lld", (long long)total,
                        (long long)known);
        wanted[rest] = (int)(total / known);
        known = total;
    }
    if (known != total)
        return fail("%lld values do not fill a shape of %lld", (long long)total, (long long)known);
    return shape_of_sizes(*this, wanted, data.dtype, out);
}

int ReshapeTo::shape(const ReshapeTo& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_sizes(s, s.sizes, in));
    out.assign(1, Shape());
    return in.size() == 2 ? (int)kOk : s.reshaped(in[0], ints_of_param(s.sizes), &out[0]);
}

int ReshapeTo::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                       const Option& opt) const {
    std::vector<Shape> in = shapes_of(bottoms), ignored;
    QUOLL_RETURN_IF_ERROR(shape(*this, in, ignored));
    std::vector<int> wanted;
    Shape out;
    QUOLL_RETURN_IF_ERROR(take_sizes(*this, sizes, bottoms, &wanted));
    QUOLL_RETURN_IF_ERROR(reshaped(in[0], wanted, &out));
    tops.resize(1);
    if (out.total() == 0) return create_tensor(out, &tops[0], opt);
    return reshape_blob(bottoms[0], out, &tops[0], opt);
}

BatchAxis::BatchAxis() {
    one_blob_only = true;
    support_batch = true;
    set_any_storage(*this);
}

void BatchAxis::params(BatchAxis& s, ParamVisitor& v) {
    v(0, "inverse", s.inverse, 0, "0: the outermost axis becomes the batch, 1: the other way",
      between(0, 1));
}

int BatchAxis::shape(const BatchAxis& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 1));
    std::vector<int> sizes = sizes_of(in[0]);
    out.resize(1);
    if (s.inverse) {
        sizes.insert(sizes.begin(), in[0].n);
        return shape_of_sizes(s, sizes, in[0].dtype, &out[0]);
    }
    if (in[0].n != 1 || in[0].dims < 2)
        return s.fail("expected at least 2 axes and no batch, got %s", shape_text(in[0]).c_str());
    sizes.erase(sizes.begin());
    QUOLL_RETURN_IF_ERROR(shape_of_sizes(s, sizes, in[0].dtype, &out[0]));
    out[0].n = in[0].size(0);
    return kOk;
}

// Values from one index of the outermost axis to the next.
static size_t outermost_step(const Mat& m) { return m.dims >= 3 ? m.cstep : (size_t)m.w; }

// Whether the items of `batch` lie as the outermost axis of `whole` does.
static bool lies_alike(const Mat& batch, const Mat& whole) {
    const bool dense = batch.dims < 3 || batch.cstep == (size_t)batch.w * batch.h * batch.d;
    return dense && batch.nstep == outermost_step(whole);
}

void BatchAxis::plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in,
                             const Option& opt, std::vector<BlobLayout>* out) const {
    Layer::plan_layouts(plan, in, opt, out);
    if (in[0].shape.total() == 0) return;
    const Mat from = Mat::of_shape(in[0].shape), to = Mat::of_shape((*out)[0].shape);
    if (inverse ? lies_alike(from, to) : lies_alike(to, from)) (*out)[0].shares = 0;
}

int BatchAxis::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(shape(*this, {bottom.logical_shape()}, out));
    const int items = inverse ? bottom.n : out[0].n;
    if (items == 1 && !bottom.empty()) return reshape_blob(bottom, out[0], &top, opt);
    const Mat like = Mat::of_shape(out[0]);
    if (!bottom.empty() && (inverse ? lies_alike(bottom, like) : lies_alike(like, bottom))) {
        top = bottom;
        top.dims = like.dims, top.w = like.w, top.h = like.h, top.d = like.d, top.c = like.c;
        top.cstep = like.cstep, top.n = like.n, top.nstep = like.nstep;
        return kOk;
    }
    QUOLL_RETURN_IF_ERROR(create_tensor(out[0], &top, opt));
    if (top.empty()) return kOk;
    const Mat &batch = inverse ? bottom : top, &whole = inverse ? top : bottom;
    const size_t es = bottom.elemsize, step = outermost_step(whole);
    const size_t run = (size_t)batch.w * batch.h * batch.d;  // without gaps in both
    for (int b = 0; b < items; b++)
        for (int q = 0; q < batch.c; q++) {
            char* const item = (char*)batch.data + (b * batch.nstep + q * batch.cstep) * es;
            char* const part = (char*)whole.data + (b * step + q * run) * es;
            memcpy(inverse ? part : item, inverse ? item : part, run * es);
        }
    return kOk;
}

QUOLL_DEFINE_LAYER(ShapeOf)
QUOLL_DEFINE_LAYER(Expand)
QUOLL_DEFINE_LAYER(ReshapeTo)
QUOLL_DEFINE_LAYER(BatchAxis)

}  // namespace quoll
