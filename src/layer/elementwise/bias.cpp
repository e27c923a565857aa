#include "layer/elementwise/bias.h"

#include "layer/common/channels.h"

namespace quoll {

Bias::Bias() : bias_data_size(0) { one_blob_only = support_inplace = true; }

void Bias::params(Bias& s, ParamVisitor& v) {
    v(0, "bias_data_size", s.bias_data_size, 0, "channels", at_least(1));
}

void Bias::weights(Bias& s, WeightVisitor& v) {
    v(true, "bias_data", s.bias_data, s.bias_data_size, WeightKind::kRaw, "[bias_data_size]");
}

int Bias::shape(const Bias& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(channelwise_shape(s, in, out, 0));
    if (in[0].dims < 3 || in[0].c == s.bias_data_size) return kOk;
    return s.fail("expected %d channels, got %s", s.bias_data_size, shape_text(in[0]).c_str());
}

int Bias::forward_inplace(Mat& blob, const Option&) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, blob));
    const size_t size = (size_t)blob.w * blob.h * blob.d;
    for (int q = 0; q < blob.c; q++) {
        float* p = (float*)blob.data + q * blob.cstep;
        for (size_t i = 0; i < size; i++) p[i] += bias_data[q];
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(Bias)

}  // namespace quoll
