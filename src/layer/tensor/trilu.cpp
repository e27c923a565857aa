#include "layer/tensor/trilu.h"

#include <algorithm>

namespace quoll {

void Trilu::params(Trilu& s, ParamVisitor& v) {
    v(0, "upper", s.upper, 1, "1: the upper triangle, 0: the lower", between(0, 1));
    v(1, "k", s.k, 0, "its outermost diagonal, 0: the main one, positive: above");
}

int Trilu::shape(const Trilu& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 2));
    if (in[0].dims < 2)
        return s.fail("expected at least 2 axes, got %s", shape_text(in[0]).c_str());
    out.assign(1, in[0]);
    if (in.size() == 1) return kOk;
    if (in[1].total() != 1)
        return s.fail("k: expected one value, got %s", shape_text(in[1]).c_str());
    return expect_dtype(s, "k", in[1].dtype, DType::s32);
}

int Trilu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                   const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat& m = bottoms[0];
    const int64_t diagonal = bottoms.size() == 2 ? *(const int32_t*)bottoms[1].data : k;
    if (m.empty()) return kOk;
    const Axes4 over = axes_of(m);
    const Steps steps[] = {steps_of(m)};
    const int w = over.size[3], h = over.size[2];
    int y = 0;
    for_each_row(over.size, steps, [&](const ptrdiff_t* at) {
        // Column y + diagonal is the first of the upper triangle, and the last of the lower one.
        const int64_t edge = y + diagonal + (upper ? 0 : 1);
        const size_t cut = (size_t)std::min<int64_t>(std::max<int64_t>(edge, 0), w);
        const size_t first = upper ? cut : 0, last = upper ? w : cut, es = m.elemsize;
        char* to = (char*)tops[0].data + at[0] * es;
        memset(to, 0, w * es);
        if (last > first)
            memcpy(to + first * es, (const char*)m.data + (at[0] + first) * es,
                   (last - first) * es);
        y = y + 1 == h ? 0 : y + 1;
    });
    return kOk;
}

QUOLL_DEFINE_LAYER(Trilu)

}  // namespace quoll
