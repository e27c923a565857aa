#include "layer/tensor/reshape.h"

#include <limits.h>
#include <string.h>

#include <algorithm>

#include "layer/common/blocks.h"
#include "layer/common/tensor.h"

namespace quoll {

static const int kNoAxis = -233;

Reshape::Reshape() { support_fp16_storage = support_bf16_storage = true; }

void Reshape::params(Reshape& s, ParamVisitor& v) {
    const char* const doc = "size, 0: the input's, -1: what remains, -233: no such axis";
    v(0, "w", s.w, kNoAxis, doc, at_least(-233));
    v(1, "h", s.h, kNoAxis, doc, at_least(-233));
    v(11, "d", s.d, kNoAxis, doc, at_least(-233));
    v(2, "c", s.c, kNoAxis, doc, at_least(-233));
    v(3, "permute", s.permute, 0, "1: order h w c instead of c h w", between(0, 1));
    v(6, "shape_expr", s.shape_expr, "", "sizes w h c or w h d c as expressions");
    v(12, "input_batch_axis", s.input_batch_axis, kNoBatchAxis,
      "the batch's place among the axes of the input, 233: none", between(-5, kNoBatchAxis));
    v(13, "output_batch_axis", s.output_batch_axis, kNoBatchAxis,
      "the batch's place among the axes of the output, 233: none", between(-5, kNoBatchAxis));
}

void Reshape::weights(Reshape&, WeightVisitor&) {}

int Reshape::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    QUOLL_RETURN_IF_ERROR(expression_.parse(*this, "shape_expr", shape_expr));
    const int most = output_batch_axis == kNoBatchAxis ? 4 : 5;
    if (expression_.count() > most)
        return fail("shape_expr: expected at most %d values, got %d", most, expression_.count());
    if (expression_.empty() && w == kNoAxis) return fail("no output size is given");
    support_batch = !permute;
    if (permute && (has_batch_axis() || expression_.uses_batch() || expression_.input_count() > 1))
        return fail("permute is not for batch axes or several inputs");
    return kOk;
}

// The sizes in the order w, h, d, c without the axes that are not there.
int Reshape::wanted_sizes(const std::vector<Shape>& in, std::vector<int>* sizes) const {
    if (!expression_.empty()) return expression_.evaluate(*this, in, sizes);
    // As in ncnn the first missing axis of w, h, c ends the list; d counts only beside c.
    *sizes = {w};
    if (h == kNoAxis) return kOk;
    sizes->push_back(h);
    if (c == kNoAxis) return kOk;
    if (d != kNoAxis) sizes->push_back(d);
    sizes->push_back(c);
    return kOk;
}

// Replaces a size of -1 by what the other sizes leave of `total` values.
int Reshape::complete_sizes(const Shape& in, long long total, std::vector<int>* sizes) const {
    long long known = 1;
    int* rest = nullptr;
    for (int& size : *sizes) {
        if (size == -1 && !rest) {
            rest = &size;
            continue;
        }
        if (size < (total > 0)) return fail("a size of the output is %d", size);
        if (total > 0) known = known > total / size ? total + 1 : known * size;
    }
    // An expression that rounded to 0 cannot be told from an axis without values.
    if (total == 0 && rest && !expression_.empty())
        return fail("%s has no values to say what -1 in shape_expr is", shape_text(in).c_str());
    if (total == 0) return complete_empty_sizes(*this, in, sizes);
    if (known > total || total % known != 0 || (!rest && known != total) || total / known > INT_MAX)
        return fail("%lld values (%s) do not fill the output, of %s%lld", total,
                    shape_text(in).c_str(),
                    known > total ? "more than "
                    : !rest       ? ""
                                  : "a multiple of ",
                    known > total ? total : known);
    if (rest) *rest = (int)(total / known);
    return kOk;
}

static Shape shape_of(const std::vector<int>& s, const Shape& like) {
    Shape to = s.size() == 1   ? Shape(s[0])
               : s.size() == 2 ? Shape(s[0], s[1])
               : s.size() == 3 ? Shape(s[0], s[1], s[2])
                               : Shape(s[0], s[1], s[2], s[3]);
    to.n = like.n, to.dtype = like.dtype;
    return to;
}

// Where the batch stands among `count` axes, itself counted; -1: nowhere.
static int batch_place(int axis, int count) {
    return axis == Reshape::kNoBatchAxis ? -1 : axis < 0 ? axis + count : axis;
}

int Reshape::shape_with_batch_axes(const std::vector<Shape>& in, Shape* out) const {
    std::vector<int> from, to;  // outermost first, the batch among them
    for (int i = 0; i < in[0].dims; i++) from.push_back(in[0].size(i));
    if (input_batch_axis != kNoBatchAxis) {
        const int place = batch_place(input_batch_axis, in[0].dims + 1);
        if (place < 0 || place > in[0].dims)
            return fail("input_batch_axis %d is not among %d axes and the batch", input_batch_axis,
                        in[0].dims);
        from.insert(from.begin() + place, in[0].n);
    } else if (in[0].n != 1) {
        return fail("a batch of %d items, but no input_batch_axis", in[0].n);
    }
    QUOLL_RETURN_IF_ERROR(wanted_sizes(in, &to));
    std::reverse(to.begin(), to.end());
    for (size_t i = 0; i < to.size(); i++) {
        if (to[i] == 0 && i >= from.size())
            return fail("size %zu is that of the input, which has %zu axes", i, from.size());
        if (to[i] == 0) to[i] = from[i];
    }
    QUOLL_RETURN_IF_ERROR(complete_sizes(in[0], (long long)in[0].total(), &to));
    int n = 1;
    if (output_batch_axis != kNoBatchAxis) {
        const int place = batch_place(output_batch_axis, (int)to.size());
        if (place < 0 || place >= (int)to.size() || to.size() < 2)
            return fail("output_batch_axis %d: %zu sizes are given", output_batch_axis, to.size());
        n = to[place];
        to.erase(to.begin() + place);
    }
    std::reverse(to.begin(), to.end());
    *out = shape_of(to, in[0]);
    out->n = n;
    return kOk;
}

int Reshape::shape(const Reshape& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.empty() || in[0].dims < 1) return s.fail("expected at least 1 input, got none");
    out.resize(1);
    if (s.has_batch_axis()) return s.shape_with_batch_axes(in, &out[0]);
    std::vector<int> sizes;
    QUOLL_RETURN_IF_ERROR(s.wanted_sizes(in, &sizes));
    const bool four = sizes.size() == 4;
    const int from[] = {in[0].w, in[0].h, four ? in[0].d : in[0].c, in[0].c};
    for (size_t i = 0; i < sizes.size(); i++)
        if (sizes[i] == 0 && (s.expression_.empty() || item_total(in[0]) > 0)) sizes[i] = from[i];
    QUOLL_RETURN_IF_ERROR(s.complete_sizes(in[0], (long long)item_total(in[0]), &sizes));
    if (s.permute && (four || in[0].dims > 3)) return s.fail("permute takes at most 3 axes");
    out[0] = shape_of(sizes, in[0]);
    return kOk;
}

int Reshape::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                     const Option& opt) const {
    std::vector<Shape> in = shapes_of(bottoms), out;
    QUOLL_RETURN_IF_ERROR(shape(*this, in, out));
    const Mat& m = bottoms[0];
    const Shape& to = out[0];
    tops.resize(1);
    if (permute) return forward_permuted(m, tops[0], to, opt);
    if (has_batch_axis() && (m.n > 1 || to.n > 1))
        return forward_with_batch_axes(m, tops[0], to, opt);
    return reshape_blob(m, to, &tops[0], opt);
}

namespace {

// The elements of a planar Mat one after another, with the batch as one of the axes.
class Walk {
public:
    Walk(const Mat& m, int batch_axis) : count_(m.dims), run_(1) {
        const Axes4 axes = axes_of(m);
        const int place = batch_place(batch_axis, m.dims + 1);
        if (place >= 0) count_++;
        for (int i = 0, k = 4 - m.dims; i < count_; i++) {
            size_[i] = i == place ? m.n : axes.size[k];
            step_[i] = i == place ? m.nstep : axes.step[k];
            if (i != place) k++;
        }
        for (int i = count_ - 1; i >= 0 && (size_[i] == 1 || step_[i] == run_); i--)
            run_ *= size_[i];
    }
    // Where element number i is, and how many elements follow it without a gap.
    size_t offset(size_t i) const {
        size_t at = 0;
        for (int axis = count_ - 1; axis >= 0; i /= size_[axis--])
            at += i % size_[axis] * step_[axis];
        return at;
    }
    size_t left(size_t i) const { return run_ - i % run_; }

private:
    int count_;
    size_t size_[5], step_[5];
    size_t run_;
};

}  // namespace

int Reshape::forward_with_batch_axes(const Mat& bottom, Mat& top, const Shape& to,
                                     const Option& opt) const {
    top.create(to, 1, opt.blob_allocator);
    if (top.empty()) return kOutOfMemory;
    const Walk from(bottom, input_batch_axis), into(top, output_batch_axis);
    const size_t total = to.total(), es = bottom.elemsize;
    for (size_t i = 0, n; i < total; i += n) {
        n = std::min(from.left(i), into.left(i));
        memcpy((char*)top.data + into.offset(i) * es,
               (const char*)bottom.data + from.offset(i) * es, n * es);
    }
    return kOk;
}

int Reshape::forward_permuted(const Mat& bottom, Mat& top, const Shape& to,
                              const Option& opt) const {
    top.create(to, 1, opt.blob_allocator);
    if (top.empty()) return kOutOfMemory;
    // The outermost axis is h in a 2-D blob and c in a 3-D one; both orders put that axis last.
    struct Order {
        Axes4 axes;
        int outer;  // index of the outermost axis
        explicit Order(const Mat& m) : axes(axes_of(m)), outer(axis_of_four(0, m.dims)) {}
        // Where the value with number i in outermost-last order lies.
        size_t offset(size_t i) const {
            size_t at = i % axes.size[outer] * axes.step[outer];
            i /= axes.size[outer];
            for (int axis = 3; axis > outer; axis--) {
                at += i % axes.size[axis] * axes.step[axis];
                i /= axes.size[axis];
            }
            return at;
        }
    };
    const Order from(bottom), into(top);
    const size_t total = to.total() / to.n, es = bottom.elemsize;
    for (size_t i = 0; i < total; i++)
        memcpy((char*)top.data + into.offset(i) * es,
               (const char*)bottom.data + from.offset(i) * es, es);
    return kOk;
}

QUOLL_DEFINE_LAYER(Reshape)

}  // namespace quoll
