#include "layer/vision/spaceblocks.h"

#include <limits.h>

#include <algorithm>

namespace quoll {

DepthToSpace::DepthToSpace() {
    one_blob_only = true;
    set_any_storage(*this);
}

void DepthToSpace::params(DepthToSpace& s, ParamVisitor& v) {
    v(0, "blocksize", s.blocksize, 1, "width and height of a block", between(1, 32768));
    v(1, "mode", s.mode, 0, "channels are 0: by, bx, q (DCR); 1: q, by, bx (CRD)", between(0, 1));
    v(2, "inverse", s.inverse, 0, "1: space to depth", between(0, 1));
}

int DepthToSpace::shape(const DepthToSpace& s, const std::vector<Shape>& in,
                        std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 1));
    const int size = s.blocksize, area = size * size;
    if (in[0].dims != 3) return s.fail("expected 3 axes, got %s", shape_text(in[0]).c_str());
    if (s.inverse ? in[0].w % size != 0 || in[0].h % size != 0 : in[0].c % area != 0)
        return s.fail("%s is no multiple of the block size %d", shape_text(in[0]).c_str(), size);
    const int64_t w = in[0].w, h = in[0].h, c = in[0].c;
    const int64_t most = std::max({w * size, h * size, c * area});
    if (!s.inverse && std::max(w, h) * size > INT_MAX)
        return s.fail("the output would have an axis of %lld", (long long)most);
    if (s.inverse && c * area > INT_MAX)
        return s.fail("the output would have %lld channels", (long long)(c * area));
    out.resize(1);
    if (s.inverse)
        return shape_of_sizes(s, {(int)c * area, (int)h / size, (int)w / size}, in[0].dtype,
                              &out[0]);
    return shape_of_sizes(s, {(int)c / area, (int)h * size, (int)w * size}, in[0].dtype, &out[0]);
}

int DepthToSpace::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, {bottom}, tops, opt));
    top = tops[0];
    if (top.empty()) return kOk;
    const Mat& deep = inverse ? top : bottom;
    const Mat& wide = inverse ? bottom : top;
    const int size = blocksize, channels = wide.c;
    with_word(bottom.elemsize, [&](auto word) {
        using T = decltype(word);
        for (int q = 0; q < channels; q++) {
            for (int i = 0; i < size * size; i++) {
                const int from = mode == 0 ? i * channels + q : q * size * size + i;
                for (int y = 0; y < deep.h; y++) {
                    T* packed = (T*)deep.data + from * deep.cstep + (size_t)y * deep.w;
                    T* spread = (T*)wide.data + q * wide.cstep +
                                ((size_t)y * size + i / size) * wide.w + i % size;
                    for (int x = 0; x < deep.w; x++) {
                        if (inverse)
                            packed[x] = spread[x * size];
                        else
                            spread[x * size] = packed[x];
                    }
                }
            }
        }
    });
    return kOk;
}

SpaceToBatch::SpaceToBatch() {
    one_blob_only = true;
    support_batch = true;
    set_any_storage(*this);
}

void SpaceToBatch::params(SpaceToBatch& s, ParamVisitor& v) {
    v(0, "block_h", s.block_h, 1, "height of a block", between(1, 32768));
    v(1, "block_w", s.block_w, s.block_h, "width of a block", between(1, 32768));
    v(2, "pad_top", s.pad_top, 0, "rows of zeros above (inverse: rows cut off)",
      between(0, INT_MAX / 4));
    v(3, "pad_bottom", s.pad_bottom, 0, "rows below", between(0, INT_MAX / 4));
    v(4, "pad_left", s.pad_left, 0, "columns on the left", between(0, INT_MAX / 4));
    v(5, "pad_right", s.pad_right, 0, "columns on the right", between(0, INT_MAX / 4));
    v(6, "inverse", s.inverse, 0, "1: batch to space", between(0, 1));
}

int SpaceToBatch::shape(const SpaceToBatch& s, const std::vector<Shape>& in,
                        std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 1));
    if (in[0].dims != 3) return s.fail("expected 3 axes, got %s", shape_text(in[0]).c_str());
    const int64_t area = (int64_t)s.block_h * s.block_w;
    int64_t h = in[0].h, w = in[0].w, n = in[0].n;
    if (s.inverse) {
        if (n % area != 0)
            return s.fail("%lld items are no multiple of %lld", (long long)n, (long long)area);
        h = h * s.block_h - s.pad_top - s.pad_bottom, w = w * s.block_w - s.pad_left - s.pad_right;
        n /= area;
    } else {
        h += s.pad_top + s.pad_bottom, w += s.pad_left + s.pad_right, n *= area;
        if (h % s.block_h != 0 || w % s.block_w != 0)
            return s.fail("%lld rows and %lld columns are no multiples of %d and %d", (long long)h,
                          (long long)w, s.block_h, s.block_w);
        h /= s.block_h, w /= s.block_w;
    }
    if (h < 1 || w < 1 || n < 1 || (double)h * w * n * in[0].c > INT_MAX)
        return s.fail("the output would have %lld items of %lld rows and %lld columns",
                      (long long)n, (long long)h, (long long)w);
    out = in;
    out[0].h = (int)h, out[0].w = (int)w, out[0].n = (int)n;
    return kOk;
}

int SpaceToBatch::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, {bottom}, tops, opt));
    top = tops[0];
    if (top.empty()) return kOk;
    if (!inverse && top.n > 0) memset(top.data, 0, top.total() * top.elemsize);
    const Mat& many = inverse ? bottom : top;  // items
    const Mat& wide = inverse ? top : bottom;
    const auto at = [](const Mat& m, int b, int q, int y) {
        return b * m.nstep + q * m.cstep + (size_t)y * m.w;
    };
    with_word(bottom.elemsize, [&](auto word) {
        using T = decltype(word);
        for (int item = 0; item < many.n; item++) {
            const int b = item % wide.n, block = item / wide.n;
            const int by = block / block_w - pad_top, bx = block % block_w - pad_left;
            for (int q = 0; q < many.c; q++) {
                for (int i = 0; i < many.h; i++) {
                    const int64_t y = (int64_t)i * block_h + by;
                    if (y < 0 || y >= wide.h) continue;
                    T* packed = (T*)many.data + at(many, item, q, i);
                    T* spread = (T*)wide.data + at(wide, b, q, (int)y);
                    for (int j = 0; j < many.w; j++) {
                        const int64_t x = (int64_t)j * block_w + bx;
                        if (x < 0 || x >= wide.w) continue;
                        if (inverse)
                            spread[x] = packed[j];
                        else
                            packed[j] = spread[x];
                    }
                }
            }
        }
    });
    return kOk;
}

QUOLL_DEFINE_LAYER(DepthToSpace)
QUOLL_DEFINE_LAYER(SpaceToBatch)

}  // namespace quoll
