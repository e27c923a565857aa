#include "layer/norm/groupnorm.h"

#include "layer/common/channels.h"

namespace quoll {

GroupNorm::GroupNorm() : group(1), channels(0), eps(0.001f), affine(1) {
    one_blob_only = support_inplace = true;
}

void GroupNorm::params(GroupNorm& s, ParamVisitor& v) {
    v(0, "group", s.group, 1, "groups of channels", at_least(1));
    v(1, "channels", s.channels, 0, "channels of the input", at_least(0));
    v(2, "eps", s.eps, 0.001f, "added to the variance");
    v(3, "affine", s.affine, 1, "1: gamma and beta are there", between(0, 1));
}

void GroupNorm::weights(GroupNorm& s, WeightVisitor& v) {
    v(s.affine != 0, "gamma_data", s.gamma_data, s.channels, WeightKind::kRaw, "[channels]");
    v(s.affine != 0, "beta_data", s.beta_data, s.channels, WeightKind::kRaw, "[channels]");
}

int GroupNorm::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    if (channels % group == 0) return kOk;
    return fail("channels (1): expected a multiple of group %d, got %d", group, channels);
}

int GroupNorm::shape(const GroupNorm& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(channelwise_shape(s, in, out, s.affine ? s.channels : 0));
    if (in[0].size(0) % s.group == 0) return kOk;
    return s.fail("expected a multiple of %d channels, got %s", s.group, shape_text(in[0]).c_str());
}

int GroupNorm::forward_inplace(Mat& blob, const Option&) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, blob));
    const Channels c(blob);
    const int each = c.count / group;
    for (int g = 0; g < group; g++) normalize_runs(c.channel(g * each), each, c.size, c.step, eps);
    if (affine)
        for_each_channel_value(blob,
                               [this](float x, int q) { return x * gamma_data[q] + beta_data[q]; });
    return kOk;
}

QUOLL_DEFINE_LAYER(GroupNorm)

}  // namespace quoll
