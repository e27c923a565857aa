#include "layer/tensor/diag.h"

#include <limits.h>

#include <algorithm>

#include "layer/common/strided.h"
#include "layer/common/tensor.h"

namespace quoll {

Diag::Diag() : diagonal(0) {
    one_blob_only = true;
    support_fp16_storage = support_bf16_storage = support_zero_size = true;
}

void Diag::params(Diag& s, ParamVisitor& v) {
    v(0, "diagonal", s.diagonal, 0, "columns to the right of the main diagonal",
      between(-INT_MAX, INT_MAX));
}

void Diag::weights(Diag&, WeightVisitor&) {}

int Diag::shape(const Diag& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() != 1) return s.fail("expected 1 input, got %zu", in.size());
    if (in[0].dims < 1 || in[0].dims > 2)
        return s.fail("expected 1 or 2 axes, got %s", shape_text(in[0]).c_str());
    const int64_t diagonal = s.diagonal, right = std::max<int64_t>(diagonal, 0);
    const int64_t down = right - diagonal;
    if (in[0].dims == 1) {
        const int64_t side = in[0].w + right + down;
        if (side > INT_MAX) return s.fail("diagonal %d is too far out", s.diagonal);
        out.assign(1, Shape((int)side, (int)side, in[0].dtype));
    } else {
        const int64_t length = std::max<int64_t>(std::min(in[0].w - right, in[0].h - down), 0);
        out.assign(1, Shape((int)length, in[0].dtype));
    }
    out[0].n = in[0].n;
    return kOk;
}

int Diag::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, {bottom_blob}, tops, opt));
    top_blob = tops[0];
    if (top_blob.empty()) return kOk;
    const bool build = bottom_blob.dims == 1;
    const Mat& matrix = build ? top_blob : bottom_blob;
    if (build) memset(top_blob.data, 0, (size_t)top_blob.w * top_blob.h * top_blob.elemsize);
    const ptrdiff_t right = std::max(diagonal, 0), down = right - diagonal;
    const size_t offset = (down * matrix.w + right) * matrix.elemsize;
    const ptrdiff_t line[4] = {0, 0, 0, 1}, slope[4] = {0, 0, 0, (ptrdiff_t)matrix.w + 1};
    const int size[4] = {1, 1, 1, build ? bottom_blob.w : top_blob.w};
    if (build)
        copy_strided(bottom_blob.data, line, (char*)top_blob.data + offset, slope, size,
                     matrix.elemsize);
    else
        copy_strided((const char*)bottom_blob.data + offset, slope, top_blob.data, line, size,
                     matrix.elemsize);
    return kOk;
}

QUOLL_DEFINE_LAYER(Diag)

}  // namespace quoll
