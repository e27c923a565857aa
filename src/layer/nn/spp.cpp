#include "layer/nn/spp.h"

#include <limits.h>

#include <algorithm>

#include "layer/common/channels.h"

namespace quoll {

SPP::SPP() : pooling_type(0), pyramid_height(1) { one_blob_only = true; }

void SPP::params(SPP& s, ParamVisitor& v) {
    v(0, "pooling_type", s.pooling_type, 0, "0 max, 1 average", between(0, 1));
    v(1, "pyramid_height", s.pyramid_height, 1, "levels; the last has 2^(levels - 1) bins a side",
      between(1, 15));
}

void SPP::weights(SPP&, WeightVisitor&) {}

int SPP::shape(const SPP& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(channelwise_shape(s, in, out, 0));
    if (in[0].dims > 3) return s.fail("expected 1 to 3 axes, got %s", shape_text(in[0]).c_str());
    const int64_t bins = (((int64_t)1 << (2 * s.pyramid_height)) - 1) / 3;
    if (bins * in[0].c > INT_MAX)
        return s.fail("%lld bins of %d channels are too many", (long long)bins, in[0].c);
    out[0] = Shape((int)bins * in[0].c, in[0].dtype);
    out[0].n = in[0].n;
    return kOk;
}

// One axis of a level: windows of `size`, the first begins `pad` before the plane.
struct Bins {
    int64_t size, pad, length;
    Bins(int length, int count) : size(((int64_t)length + count - 1) / count), length(length) {
        pad = (size * count - length + 1) / 2;
    }
    // The part of window i that lies within the plane.
    int64_t begin(int i) const { return inside(i * size - pad); }
    int64_t end(int i) const { return inside((i + 1) * size - pad); }

private:
    int64_t inside(int64_t at) const { return std::min(length, std::max<int64_t>(0, at)); }
};

// Window (x, y) of a plane. pooling_type 0: its largest value, 1: the average.
static float pool_window(const float* plane, const Bins& across, const Bins& down, int x, int y,
                         int pooling_type) {
    const int64_t left = across.begin(x), right = across.end(x);
    const int64_t top = down.begin(y), bottom = down.end(y);
    const int64_t inside = (right - left) * (bottom - top), all = across.size * down.size;
    // Zeros around the plane take part.
    float most = inside < all ? 0.f : plane[top * across.length + left];
    double sum = 0;
    for (int64_t i = top; i < bottom; i++) {
        for (int64_t j = left; j < right; j++) {
            most = std::max(most, plane[i * across.length + j]);
            sum += plane[i * across.length + j];
        }
    }
    return pooling_type == 0 ? most : (float)(sum / all);
}

int SPP::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(create_tops(*this, {bottom_blob}, tops, opt));
    top_blob = tops[0];
    float* out = top_blob;
    for (int level = 0; level < pyramid_height; level++) {
        const int count = 1 << level;
        const Bins across(bottom_blob.w, count), down(bottom_blob.h, count);
        for (int q = 0; q < bottom_blob.c; q++) {
            const float* plane = (const float*)bottom_blob.data + q * bottom_blob.cstep;
            for (int i = 0; i < count * count; i++)
                *out++ = pool_window(plane, across, down, i % count, i / count, pooling_type);
        }
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(SPP)

}  // namespace quoll
