#include "layer/nn/statisticspooling.h"

#include <math.h>

#include "layer/common/channels.h"

namespace quoll {

StatisticsPooling::StatisticsPooling() : include_stddev(0) { one_blob_only = true; }

void StatisticsPooling::params(StatisticsPooling& s, ParamVisitor& v) {
    v(0, "include_stddev", s.include_stddev, 0, "1: standard deviations follow the means");
}

void StatisticsPooling::weights(StatisticsPooling&, WeightVisitor&) {}

int StatisticsPooling::shape(const StatisticsPooling& s, const std::vector<Shape>& in,
                             std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(channelwise_shape(s, in, out, 0));
    if (in[0].c > (1 << 30)) return s.fail("%d channels are too many", in[0].c);
    out[0] = Shape(s.include_stddev ? 2 * in[0].c : in[0].c, in[0].dtype);
    out[0].n = in[0].n;
    return kOk;
}

int StatisticsPooling::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(create_tops(*this, {bottom_blob}, tops, opt));
    top_blob = tops[0];
    const size_t size = (size_t)bottom_blob.w * bottom_blob.h * bottom_blob.d;
    for (int q = 0; q < bottom_blob.c; q++) {
        const float* x = (const float*)bottom_blob.data + q * bottom_blob.cstep;
        double sum = 0, squares = 0;
        for (size_t i = 0; i < size; i++) sum += x[i];
        const double mean = sum / size;
        top_blob[q] = (float)mean;
        if (!include_stddev) continue;
        for (size_t i = 0; i < size; i++) squares += (x[i] - mean) * (x[i] - mean);
        top_blob[bottom_blob.c + q] = (float)sqrt(squares / size);
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(StatisticsPooling)

}  // namespace quoll
