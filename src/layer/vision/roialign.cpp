#include "layer/vision/roialign.h"

#include <math.h>

#include <algorithm>

namespace quoll {

// The most samples on an axis, for all bins together; no real region of a map needs more.
static const float kMostSamples = 1 << 20;

ROIAlign::ROIAlign() {}

void ROIAlign::params(ROIAlign& s, ParamVisitor& v) {
    roi_params(s, v, 0, 1.f);
    v(3, "sampling_ratio", s.sampling_ratio, 0, "samples a bin on each axis, 0: by size",
      at_least(0));
    v(4, "aligned", s.aligned, 0, "1: shift by half a position", between(0, 1));
    v(5, "version", s.version, 0, "0: bins cut to the map, 1: zeros beyond it", between(0, 1));
}

void ROIAlign::weights(ROIAlign&, WeightVisitor&) {}

int ROIAlign::shape(const ROIAlign& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    return roi_shape(s, s, in.empty() ? 1 : in[0].c, in, out);
}

// A sample at `at` >= 0, between two values of the map or on the last.
void ROIAlign::Bin::add(float at, int size, float share) {
    const int left = (int)std::min(at, size - 1.f);
    const float part = left + 1 < size ? at - left : 0.f;
    if (weights.empty()) first = left;
    if (left < first) {
        weights.insert(weights.begin(), first - left, 0.f);
        first = left;
    }
    const size_t needed = left - first + (part > 0.f ? 2 : 1);
    if (weights.size() < needed) weights.resize(needed);
    weights[left - first] += (1.f - part) * share;
    if (part > 0.f) weights[left - first + 1] += part * share;
}

int ROIAlign::bins_of(float from, float to, int count, int size, std::vector<Bin>* bins) const {
    const float shift = aligned ? 0.5f : 0.f;
    const float begin = from * spatial_scale - shift, end = to * spatial_scale - shift;
    const float extent = aligned ? end - begin : std::max(end - begin, 1.f);
    const float bin = extent / (float)count;
    const float samples = sampling_ratio > 0 ? sampling_ratio : ceilf(bin);
    if (!(fabsf(begin) < 1e9f && isfinite(extent) && samples * count <= kMostSamples))
        return fail("a region from %g to %g on an axis of %d: too far, or too many samples", begin,
                    end, size);
    bins->assign(count, Bin());
    for (int i = 0; i < count; i++) {
        float start = begin + i * bin, grid = samples;
        if (version == 0) {
            const float stop = std::min(std::max(begin + (i + 1) * bin, 0.f), (float)size);
            start = std::min(std::max(start, 0.f), (float)size);
            if (stop <= start) continue;
            if (sampling_ratio == 0) grid = ceilf(stop - start);
        }
        for (int k = 0; k < grid; k++) {
            const float at = start + (k + 0.5f) * bin / grid;
            if (version == 1 && (at < -1.f || at > size)) continue;
            (*bins)[i].add(std::max(at, 0.f), size, 1.f / grid);
        }
    }
    return kOk;
}

int ROIAlign::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                      const Option& opt) const {
    if (bottoms.size() != 2) return fail("expected a map and a region, got %zu", bottoms.size());
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(
        shape(*this, {bottoms[0].logical_shape(), bottoms[1].logical_shape()}, out));
    const Mat& map = bottoms[0];
    const float* const roi = bottoms[1];
    std::vector<Bin> xs, ys;
    QUOLL_RETURN_IF_ERROR(bins_of(roi[0], roi[2], pooled_width, map.w, &xs));
    QUOLL_RETURN_IF_ERROR(bins_of(roi[1], roi[3], pooled_height, map.h, &ys));
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottoms, tops, opt));
    for (int q = 0; q < map.c; q++) {
        const float* const values = (const float*)map.data + q * map.cstep;
        float* top = tops[0].channel(q);
        for (const Bin& y : ys)
            for (const Bin& x : xs) {
                float sum = 0.f;
                for (size_t i = 0; i < y.weights.size(); i++) {
                    const float* const row = values + (y.first + i) * map.w + x.first;
                    float part = 0.f;
                    for (size_t k = 0; k < x.weights.size(); k++) part += x.weights[k] * row[k];
                    sum += y.weights[i] * part;
                }
                *top++ = sum;
            }
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(ROIAlign)

}  // namespace quoll
