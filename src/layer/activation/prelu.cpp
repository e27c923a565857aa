#include "layer/activation/prelu.h"

#include "layer/common/channels.h"
#include "layer/common/elementwise.h"

namespace quoll {

PReLU::PReLU() : num_slope(0) { one_blob_only = support_inplace = true; }

void PReLU::params(PReLU& s, ParamVisitor& v) {
    v(0, "num_slope", s.num_slope, 0, "slopes: 1, or one a channel", at_least(1));
}

void PReLU::weights(PReLU& s, WeightVisitor& v) {
    v(true, "slope_data", s.slope_data, s.num_slope, WeightKind::kRaw, "[num_slope]");
}

int PReLU::shape(const PReLU& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    // As ReLU does, into which fusion turns a PReLU with one slope.
    if (s.num_slope == 1 && in.size() == 1 && in[0].dtype == DType::s8)
        return same_shapes(s, in, out);
    return channelwise_shape(s, in, out, s.num_slope == 1 ? 0 : s.num_slope);
}

int PReLU::forward_inplace(Mat& blob, const Option&) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, blob));
    if (blob.dtype == DType::s8) {
        for_each_value<signed char>(blob, [this](signed char x) {
            return x < 0 ? float2int8((float)x * slope_data[0]) : x;
        });
        return kOk;
    }
    for_each_channel_value(blob, [this](float x, int q) {
        return x < 0.f ? x * slope_data[num_slope == 1 ? 0 : q] : x;
    });
    return kOk;
}

QUOLL_DEFINE_LAYER(PReLU)

}  // namespace quoll
