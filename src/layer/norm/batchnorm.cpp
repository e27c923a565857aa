#include "layer/norm/batchnorm.h"

#include <math.h>

#include "layer/common/channels.h"

namespace quoll {

BatchNorm::BatchNorm() : channels(0), eps(0.f) { one_blob_only = support_inplace = true; }

void BatchNorm::params(BatchNorm& s, ParamVisitor& v) {
    v(0, "channels", s.channels, 0, "channels of the input", at_least(1));
    v(1, "eps", s.eps, 0.f, "added to the variance");
}

void BatchNorm::weights(BatchNorm& s, WeightVisitor& v) {
    v(true, "slope_data", s.slope_data, s.channels, WeightKind::kRaw, "[channels]");
    v(true, "mean_data", s.mean_data, s.channels, WeightKind::kRaw, "[channels]");
    v(true, "var_data", s.var_data, s.channels, WeightKind::kRaw, "[channels]");
    v(true, "bias_data", s.bias_data, s.channels, WeightKind::kRaw, "[channels]");
}

int BatchNorm::load_model(const ModelBin& mb) {
    QUOLL_RETURN_IF_ERROR(load_weights_by_schema(*this, mb));
    a_data.create(channels);
    b_data.create(channels);
    if (a_data.empty() || b_data.empty()) return kOutOfMemory;
    for (int q = 0; q < channels; q++) {
        const float deviation = sqrtf(var_data[q] + eps);
        b_data[q] = slope_data[q] / (deviation == 0.f ? 0.0001f : deviation);
        a_data[q] = bias_data[q] - b_data[q] * mean_data[q];
    }
    return kOk;
}

int BatchNorm::shape(const BatchNorm& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    return channelwise_shape(s, in, out, s.channels);
}

int BatchNorm::forward_inplace(Mat& blob, const Option&) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, blob));
    for_each_channel_value(blob, [this](float x, int q) {
        const float y = b_data[q] * x + a_data[q];
        return kTakesRelu && relu && y < 0.f ? 0.f : y;
    });
    return kOk;
}

QUOLL_DEFINE_LAYER(BatchNorm)

}  // namespace quoll
