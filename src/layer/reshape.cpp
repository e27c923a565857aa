#include "reshape.h"

#include <limits.h>
#include <string.h>

#include "blocks.h"

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
}

void Reshape::weights(Reshape&, WeightVisitor&) {}

int Reshape::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    QUOLL_RETURN_IF_ERROR(expression_.parse(*this, "shape_expr", shape_expr));
    if (expression_.count() > 4)
        return fail("shape_expr: expected at most 4 values, got %d", expression_.count());
    if (expression_.empty() && w == kNoAxis) return fail("no output size is given");
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

int Reshape::shape(const Reshape& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.empty()) return s.fail("expected at least 1 input, got 0");
    std::vector<int> sizes;
    QUOLL_RETURN_IF_ERROR(s.wanted_sizes(in, &sizes));
    const int dims = (int)sizes.size();
    const int from3[] = {in[0].w, in[0].h, in[0].c}, from4[] = {in[0].w, in[0].h, in[0].d, in[0].c};
    const long long total = (long long)(in[0].total() / in[0].n);
    long long known = 1;
    int rest = -1;
    for (int i = 0; i < dims; i++) {
        if (sizes[i] == 0) sizes[i] = dims == 4 ? from4[i] : from3[i];
        if (sizes[i] == -1 && rest < 0) {
            rest = i;
            continue;
        }
        if (sizes[i] < 1) return s.fail("size %d of the output is %d", i, sizes[i]);
        known = known > total / sizes[i] ? total + 1 : known * sizes[i];
    }
    if (known > total || total % known != 0 || (rest < 0 && known != total) ||
        total / known > INT_MAX)
        return s.fail("%lld values (%s) do not fill the output, of %s%lld", total,
                      shape_text(in[0]).c_str(),
                      known > total ? "more than "
                      : rest < 0    ? ""
                                    : "a multiple of ",
                      known > total ? total : known);
    if (rest >= 0) sizes[rest] = (int)(total / known);
    Shape to = dims == 1   ? Shape(sizes[0])
               : dims == 2 ? Shape(sizes[0], sizes[1])
               : dims == 3 ? Shape(sizes[0], sizes[1], sizes[2])
                           : Shape(sizes[0], sizes[1], sizes[2], sizes[3]);
    to.n = in[0].n, to.dtype = in[0].dtype;
    if (s.permute && (dims > 3 || in[0].dims > 3)) return s.fail("permute takes at most 3 axes");
    out.assign(1, to);
    return kOk;
}

int Reshape::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                     const Option& opt) const {
    std::vector<Shape> in, out;
    for (const Mat& m : bottoms) in.push_back(m.logical_shape());
    QUOLL_RETURN_IF_ERROR(shape(*this, in, out));
    const Mat& m = bottoms[0];
    const Shape& to = out[0];
    tops.resize(1);
    if (permute) return forward_permuted(m, tops[0], to, opt);
    return reshape_blob(m, to, &tops[0], opt);
}

int Reshape::forward_permuted(const Mat& bottom, Mat& top, const Shape& to,
                              const Option& opt) const {
    top.create(to, 1, opt.blob_allocator);
    if (top.empty()) return kOutOfMemory;
    // Of a 2-D blob h is outermost, as c is of a 3-D one: both orders put that axis last.
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
