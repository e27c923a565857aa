// Expand: axes of one value are repeated.
#include "layer/tensor/tensorshape.h"
#include "layer/vulkan/axes.h"

namespace quoll {

namespace {

class ExpandVulkan : public VulkanLayer {
public:
    // Computed sizes are known only at run time.
    bool supports(const Shapes& in, const Shapes& out) const override {
        return in.size() == 1 && out[0].n == in[0].n;
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        uint32_t steps[5];
        spread_steps(in[0], out[0].shape.dims - in[0].shape.dims, out[0], steps);
        const MemoryAxes to = memory_axes(out[0]);
        std::vector<CopyAxis> axes;
        for (int i = 0; i < 5; i++) axes.push_back({to.sizes[i], steps[i], to.steps[i]});
        record_strided_copy(r, in[0], in[0].first, out[0], out[0].first, axes, to.sizes[0]);
        return kOk;
    }
};

}  // namespace

int make_expand_vulkan(const Layer& layer, VulkanContext&, VulkanLayerPtr* made) {
    if (as<Expand>(&layer)) made->reset(new ExpandVulkan);
    return kOk;
}

}  // namespace quoll
