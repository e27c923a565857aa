#include "layer/vision/shufflechannel.h"

#include <string.h>

namespace quoll {

ShuffleChannel::ShuffleChannel() {
    one_blob_only = true;
    support_fp16_storage = support_bf16_storage = true;
}

void ShuffleChannel::params(ShuffleChannel& s, ParamVisitor& v) {
    v(0, "group", s.group, 1, "groups of channels", at_least(1));
    v(1, "reverse", s.reverse, 0, "1: groups of `group` channels", between(0, 1));
}

void ShuffleChannel::weights(ShuffleChannel&, WeightVisitor&) {}

int ShuffleChannel::shape(const ShuffleChannel& s, const std::vector<Shape>& in,
                          std::vector<Shape>& out) {
    if (in.size() != 1) return s.fail("expected 1 input, got %zu", in.size());
    if (in[0].dims < 3) return s.fail("expected 3 or 4 axes, got %d", in[0].dims);
    if (in[0].c % s.group != 0)
        return s.fail("%d channels cannot be parted into groups of %d", in[0].c, s.group);
    out = in;
    return kOk;
}

int ShuffleChannel::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(create_tops(*this, {bottom}, tops, opt));
    top = tops[0];
    const int groups = reverse ? bottom.c / group : group, each = bottom.c / groups;
    const size_t bytes = (size_t)bottom.w * bottom.h * bottom.d * bottom.elemsize;
    for (int i = 0; i < groups; i++)
        for (int j = 0; j < each; j++)
            memcpy(top.channel(j * groups + i).data, bottom.channel(i * each + j).data, bytes);
    return kOk;
}

QUOLL_DEFINE_LAYER(ShuffleChannel)

}  // namespace quoll
