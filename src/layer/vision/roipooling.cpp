#include "layer/vision/roipooling.h"

#include <math.h>

#include <algorithm>

#include "layer/common/extremes.h"

namespace quoll {

ROIPooling::ROIPooling() {}

void ROIPooling::params(ROIPooling& s, ParamVisitor& v) {
    roi_params(s, v, 0, 1.f);
    v(20, "exact_bins", s.exact_bins, 0, "1: bins as in Caffe, where they divide the region, too",
      between(0, 1));
}

void ROIPooling::weights(ROIPooling&, WeightVisitor&) {}

int ROIPooling::shape(const ROIPooling& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    return roi_shape(s, s, in.empty() ? 1 : in[0].c, in, out);
}

// The bins of one axis of the region from `first` to `last`. ncnn's builds multiply by a
// rounded-down reciprocal instead of dividing by `count`, so that a bin that would begin at a whole
// position begins one before it.
static std::vector<RoiBin> bins_of(float first, float last, float scale, int count, int size,
                                   bool exact) {
    const float begin = roundf(first * scale), end = roundf(last * scale);
    const float whole = std::max(end - begin + 1.f, 1.f) / (float)count;
    const float bin = exact ? whole : nextafterf(whole, 0.f);
    std::vector<RoiBin> bins;
    for (int i = 0; i < count; i++)
        bins.emplace_back(begin + floorf(i * bin), begin + ceilf((i + 1) * bin), size);
    return bins;
}

static float greatest(const float* map, int w, RoiBin x, RoiBin y) {
    if (x.end <= x.begin || y.end <= y.begin) return 0.f;
    float most = -INFINITY;
    for (int i = y.begin; i < y.end; i++)
        for (int k = x.begin; k < x.end; k++) most = maximum(most, map[(size_t)i * w + k]);
    return most;
}

int ROIPooling::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                        const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottoms, tops, opt));
    const Mat& map = bottoms[0];
    const float* const roi = bottoms[1];
    const auto xs = bins_of(roi[0], roi[2], spatial_scale, pooled_width, map.w, exact_bins != 0);
    const auto ys = bins_of(roi[1], roi[3], spatial_scale, pooled_height, map.h, exact_bins != 0);
    for (int q = 0; q < map.c; q++) {
        float* out = tops[0].channel(q);
        for (const RoiBin& y : ys)
            for (const RoiBin& x : xs)
                *out++ = greatest((const float*)map.data + q * map.cstep, map.w, x, y);
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(ROIPooling)

}  // namespace quoll
