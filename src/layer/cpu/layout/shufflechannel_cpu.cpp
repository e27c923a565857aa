#include "layer/vision/shufflechannel.h"

#include "layer/cpu/layout/channel_gather.h"

namespace quoll {

namespace {

class ShuffleChannelCpu : public ShuffleChannel {
public:
    ShuffleChannelCpu() { support_packing = true; }
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;
    unsigned traits() const override { return ShuffleChannel::traits() | kCreatesOutput; }
};

int ShuffleChannelCpu::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    const ShapeList in(bottom);
    ShapeList out;
    QUOLL_RETURN_IF_ERROR(shape(*this, *in, *out));
    const int groups = reverse ? out[0].c / group : group, each = out[0].c / groups;
    Scratch<int> source;
    for (int i = 0; i < each; i++)
        for (int g = 0; g < groups; g++) source->push_back(g * each + i);
    top.create_like(bottom, opt.blob_allocator);
    if (top.empty()) return kOutOfMemory;
    ChannelGather(bottom, top, *source).copy_all(opt);
    return kOk;
}

}  // namespace

Layer* create_ShuffleChannel_fast_layer() { return new ShuffleChannelCpu; }

}  // namespace quoll
