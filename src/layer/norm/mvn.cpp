#include "layer/norm/mvn.h"

#include <math.h>

#include "layer/common/channels.h"

namespace quoll {

MVN::MVN() : normalize_variance(0), across_channels(0), eps(0.0001f) { one_blob_only = true; }

void MVN::params(MVN& s, ParamVisitor& v) {
    v(0, "normalize_variance", s.normalize_variance, 0, "1: divide by the standard deviation");
    v(1, "across_channels", s.across_channels, 0, "1: mean and deviation of all channels together");
    v(2, "eps", s.eps, 0.0001f, "added to the standard deviation");
}

void MVN::weights(MVN&, WeightVisitor&) {}

int MVN::shape(const MVN& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(channelwise_shape(s, in, out, 0));
    if (in[0].dims < 3) out[0].dims = 3;
    return kOk;
}

// `count` channels of m from channel `first` on.
static void center_and_scale(Mat& m, int first, int count, bool scale, float eps) {
    const size_t size = (size_t)m.w * m.h * m.d;
    double sum = 0, squares = 0;
    for (int q = first; q < first + count; q++) {
        const float* p = (const float*)m.data + q * m.cstep;
        for (size_t i = 0; i < size; i++) sum += p[i];
    }
    const double mean = sum / ((double)size * count);
    for (int q = first; q < first + count; q++) {
        const float* p = (const float*)m.data + q * m.cstep;
        for (size_t i = 0; i < size; i++) squares += (p[i] - mean) * (p[i] - mean);
    }
    const double factor = scale ? 1.0 / (sqrt(squares / ((double)size * count)) + eps) : 1.0;
    for (int q = first; q < first + count; q++) {
        float* p = (float*)m.data + q * m.cstep;
        for (size_t i = 0; i < size; i++) p[i] = (float)((p[i] - mean) * factor);
    }
}

int MVN::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, bottom_blob));
    const Mat& x = bottom_blob;
    const Mat m = x.dims < 3 ? x.reshape(x.w, x.h, 1, opt.workspace_allocator) : x;
    top_blob = m.clone(opt.blob_allocator);
    if (top_blob.empty()) return kOutOfMemory;
    const int together = across_channels ? top_blob.c : 1;
    for (int q = 0; q < top_blob.c; q += together)
        center_and_scale(top_blob, q, together, normalize_variance != 0, eps);
    return kOk;
}

QUOLL_DEFINE_LAYER(MVN)

}  // namespace quoll
