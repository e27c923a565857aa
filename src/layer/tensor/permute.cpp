#include "layer/tensor/permute.h"

#include <string.h>

#include "layer/common/blocks.h"

namespace quoll {

Permute::Permute() {
    one_blob_only = true;
    support_fp16_storage = support_bf16_storage = true;
}

void Permute::params(Permute& s, ParamVisitor& v) {
    v(0, "order_type", s.order_type, 0, "order of the axes, see Permute", between(0, 23));
}

void Permute::weights(Permute&, WeightVisitor&) {}

int Permute::axis_order(int dims, int source[4]) const {
    const int orders[] = {0, 1, 2, 6, 24};
    if (dims < 1 || dims > 4 || (dims > 1 && order_type >= orders[dims]))
        return fail("order_type %d is none of the %d orders of %d axes", order_type,
                    dims >= 0 && dims <= 4 ? orders[dims] : 0, dims);
    static const int triples[6][3] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1},
                                      {2, 0, 1}, {1, 2, 0}, {2, 1, 0}};
    int inner[4] = {0, 1, 2, 3};  // axes counted from the innermost (w is 0)
    if (dims == 2 && order_type == 1) inner[0] = 1, inner[1] = 0;
    if (dims == 3)
        for (int i = 0; i < 3; i++) inner[i] = triples[order_type][i];
    if (dims == 4) {
        const int last = 3 - order_type / 6;
        int others[3], count = 0;
        for (int axis = 0; axis < 4; axis++)
            if (axis != last) others[count++] = axis;
        for (int i = 0; i < 3; i++) inner[i] = others[triples[order_type % 6][i]];
        inner[3] = last;
    }
    for (int i = 0; i < dims; i++) source[i] = dims - 1 - inner[dims - 1 - i];
    return kOk;
}

int Permute::shape(const Permute& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() != 1) return s.fail("expected 1 input, got %zu", in.size());
    int source[4];
    QUOLL_RETURN_IF_ERROR(s.axis_order(in[0].dims, source));
    out = in;
    for (int i = 0; i < in[0].dims; i++) out[0].set_size(i, in[0].size(source[i]));
    return kOk;
}

int Permute::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    if (order_type == 0 || bottom.dims == 1) {
        top = bottom;
        return kOk;
    }
    int source[4];
    QUOLL_RETURN_IF_ERROR(axis_order(bottom.dims, source));
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(create_tops(*this, {bottom}, tops, opt));
    top = tops[0];
    const Axes4 from = axes_of(bottom), into = axes_of(top);
    size_t step[4] = {0, 0, 0, 0};  // of the input, along each axis of the output
    for (int i = 0; i < top.dims; i++)
        step[axis_of_four(i, top.dims)] = from.step[axis_of_four(source[i], top.dims)];
    const size_t es = bottom.elemsize;
    const char* src = (const char*)bottom.data;
    char* dst = (char*)top.data;
    for (int i = 0; i < into.size[0]; i++)
        for (int j = 0; j < into.size[1]; j++)
            for (int k = 0; k < into.size[2]; k++)
                for (int l = 0; l < into.size[3]; l++)
                    memcpy(dst + (i * into.step[0] + j * into.step[1] + k * into.step[2] + l) * es,
                           src + (i * step[0] + j * step[1] + k * step[2] + l * step[3]) * es, es);
    return kOk;
}

QUOLL_DEFINE_LAYER(Permute)

}  // namespace quoll
