#include "layer/norm/lrn.h"

#include <math.h>

#include <algorithm>

#include "layer/common/channels.h"

namespace quoll {

LRN::LRN() : region_type(0), local_size(5), alpha(1.f), beta(0.75f), bias(1.f) {
    one_blob_only = true;
}

void LRN::params(LRN& s, ParamVisitor& v) {
    v(0, "region_type", s.region_type, 0, "0: across channels, 1: within a channel", between(0, 1));
    v(1, "local_size", s.local_size, 5, "size of the neighbourhood", between(1, 1 << 15));
    v(2, "alpha", s.alpha, 1.f, "factor of the sum");
    v(3, "beta", s.beta, 0.75f, "exponent");
    v(4, "bias", s.bias, 1.f, "added to the sum");
}

void LRN::weights(LRN&, WeightVisitor&) {}

int LRN::shape(const LRN& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() == 1 && in[0].dims > 3)
        return s.fail("expected at most 3 axes, got %s", shape_text(in[0]).c_str());
    return channelwise_shape(s, in, out, 0);
}

static double sum_of_squares(const Mat& m, int x0, int x1, int y0, int y1, int q0, int q1) {
    double sum = 0;
    for (int q = std::max(q0, 0); q <= std::min(q1, m.c - 1); q++) {
        for (int y = std::max(y0, 0); y <= std::min(y1, m.h - 1); y++) {
            const float* row = m.channel(q).row(y);
            for (int x = std::max(x0, 0); x <= std::min(x1, m.w - 1); x++)
                sum += (double)row[x] * row[x];
        }
    }
    return sum;
}

int LRN::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(create_tops(*this, std::vector<Mat>(1, bottom_blob), tops, opt));
    const int half = local_size / 2, after = local_size - 1 - half;
    const double count = region_type == 0 ? local_size : (double)local_size * local_size;
    for (int q = 0; q < bottom_blob.c; q++) {
        for (int y = 0; y < bottom_blob.h; y++) {
            const float* in = bottom_blob.channel(q).row(y);
            float* out = tops[0].channel(q).row(y);
            for (int x = 0; x < bottom_blob.w; x++) {
                const double sum =
                    region_type == 0 ? sum_of_squares(bottom_blob, x, x, y, y, q - half, q + after)
                                     : sum_of_squares(bottom_blob, x - half, x + after, y - half,
                                                      y + after, q, q);
                out[x] = (float)(in[x] * pow(bias + alpha / count * sum, -(double)beta));
            }
        }
    }
    top_blob = tops[0];
    return kOk;
}

QUOLL_DEFINE_LAYER(LRN)

}  // namespace quoll
