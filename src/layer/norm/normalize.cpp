#include "layer/norm/normalize.h"

#include <math.h>

#include <algorithm>

#include "layer/common/channels.h"

namespace quoll {

Normalize::Normalize()
    : across_spatial(0),
      across_channel(1),
      channel_shared(0),
      eps(0.0001f),
      eps_mode(0),
      scale_data_size(0) {
    one_blob_only = support_inplace = true;
}

void Normalize::params(Normalize& s, ParamVisitor& v) {
    v(0, "across_spatial", s.across_spatial, 0, "1: sum over the pixels of a channel",
      between(0, 1));
    v(4, "across_channel", s.across_channel, 1, "1: sum over the channels", between(0, 1));
    v(1, "channel_shared", s.channel_shared, 0, "1: one scale for all channels", between(0, 1));
    v(2, "eps", s.eps, 0.0001f, "against division by 0");
    v(9, "eps_mode", s.eps_mode, 0, "0 caffe, 1 pytorch, 2 tensorflow", between(0, 2));
    v(3, "scale_data_size", s.scale_data_size, 0, "scales", at_least(1));
}

void Normalize::weights(Normalize& s, WeightVisitor& v) {
    v(true, "scale_data", s.scale_data, s.scale_data_size, WeightKind::kRaw, "[scale_data_size]");
}

int Normalize::shape(const Normalize& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(channelwise_shape(s, in, out, 0));
    if (!s.channel_shared && in[0].c != s.scale_data_size)
        return s.fail("expected %d channels, one a scale, got %s", s.scale_data_size,
                      shape_text(in[0]).c_str());
    return kOk;
}

double Normalize::factor(double sum) const {
    if (eps_mode == 1) return 1.0 / std::max(sqrt(sum), (double)eps);
    return 1.0 / sqrt(eps_mode == 2 ? std::max(sum, (double)eps) : sum + eps);
}

int Normalize::forward_inplace(Mat& blob, const Option&) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, blob));
    if (!across_spatial && !across_channel) return kOk;
    // A group of `channels` channels and `size` pixels, `channel_step` and 1 apart, shares a sum.
    const size_t pixels = (size_t)blob.w * blob.h * blob.d;
    const int channels = across_channel ? blob.c : 1;
    const size_t size = across_spatial ? pixels : 1;
    float* data = blob;
    for (int first = 0; first < blob.c; first += channels) {
        for (size_t start = 0; start < pixels; start += size) {
            double sum = 0;
            for (int q = first; q < first + channels; q++)
                for (size_t i = start; i < start + size; i++)
                    sum += (double)data[q * blob.cstep + i] * data[q * blob.cstep + i];
            for (int q = first; q < first + channels; q++) {
                const double scale = factor(sum) * scale_data[channel_shared ? 0 : q];
                for (size_t i = start; i < start + size; i++)
                    data[q * blob.cstep + i] = (float)(data[q * blob.cstep + i] * scale);
            }
        }
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(Normalize)

}  // namespace quoll
