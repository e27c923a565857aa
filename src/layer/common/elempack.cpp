#include "layer/common/elempack.h"

#include <initializer_list>

namespace quoll {

int pack_within(int most, int size) {
    for (int pack : {16, 8, 4})
        if (pack <= most && size % pack == 0) return pack;
    return 1;
}

Mat planar_view(const Mat& m) {
    Mat view = m;
    view.w *= m.elempack;
    view.elemsize /= m.elempack;
    view.elempack = 1;
    view.cstep = view.nstep = view.w;
    return view;
}

bool share_channels(const Mat& m, int first, int count, Mat* out) {
    const size_t step = (m.dims == 2 ? (size_t)m.w : m.cstep) * m.elemsize;
    if (m.n != 1 || first % m.elempack != 0 || count % m.elempack != 0 ||
        first / m.elempack * step % 16 != 0)
        return false;
    *out = m;
    out->data = (unsigned char*)m.data + first / m.elempack * step;
    (m.dims == 2 ? out->h : out->c) = count / m.elempack;
    if (m.dims == 2) out->cstep = (size_t)out->w * out->h;
    out->nstep = out->cstep * out->c;
    return true;
}

}  // namespace quoll
