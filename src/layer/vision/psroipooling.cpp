#include "layer/vision/psroipooling.h"

#include <math.h>

#include <algorithm>

namespace quoll {

PSROIPooling::PSROIPooling() {}

void PSROIPooling::params(PSROIPooling& s, ParamVisitor& v) {
    roi_params(s, v, 7, 0.0625f);
    v(3, "output_dim", s.output_dim, 0, "channels of the output", at_least(1));
}

void PSROIPooling::weights(PSROIPooling&, WeightVisitor&) {}

int PSROIPooling::shape(const PSROIPooling& s, const std::vector<Shape>& in,
                        std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(roi_shape(s, s, s.output_dim, in, out));
    const double channels = (double)s.output_dim * s.pooled_width * s.pooled_height;
    if (in[0].c != channels)
        return s.fail("expected %.0f channels, got %s", channels, shape_text(in[0]).c_str());
    return kOk;
}

// The bins of one axis of the region from `first` to `last`, inclusive.
static std::vector<RoiBin> bins_of(float first, float last, float scale, int count, int size) {
    const float begin = roundf(first) * scale, end = roundf(last + 1.f) * scale;
    const float bin = std::max(end - begin, 0.1f) / (float)count;
    std::vector<RoiBin> bins;
    for (int i = 0; i < count; i++)
        bins.emplace_back(floorf(begin + i * bin), ceilf(begin + (i + 1) * bin), size);
    return bins;
}

static float average(const float* map, int w, RoiBin x, RoiBin y) {
    if (x.end <= x.begin || y.end <= y.begin) return 0.f;
    double sum = 0;
    for (int i = y.begin; i < y.end; i++)
        for (int k = x.begin; k < x.end; k++) sum += map[(size_t)i * w + k];
    return (float)(sum / ((double)(y.end - y.begin) * (x.end - x.begin)));
}

int PSROIPooling::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                          const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottoms, tops, opt));
    const Mat& maps = bottoms[0];
    const float* const roi = bottoms[1];
    const auto xs = bins_of(roi[0], roi[2], spatial_scale, pooled_width, maps.w);
    const auto ys = bins_of(roi[1], roi[3], spatial_scale, pooled_height, maps.h);
    const float* map = maps;
    for (int q = 0; q < output_dim; q++) {
        float* out = tops[0].channel(q);
        for (const RoiBin& y : ys)
            for (const RoiBin& x : xs) {
                *out++ = average(map, maps.w, x, y);
                map += maps.cstep;
            }
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(PSROIPooling)

}  // namespace quoll
