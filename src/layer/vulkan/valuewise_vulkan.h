// Layers that map each value by itself.
#ifndef QUOLL_LAYER_VULKAN_VALUEWISE_VULKAN_H
#define QUOLL_LAYER_VULKAN_VALUEWISE_VULKAN_H

#include <vector>

#include "layer/vulkan/vulkan_layer.h"

namespace quoll {

// By a shader with specialisation constant `type`, whose push constants end in the parameters.
class ValuewiseVulkan : public VulkanLayer {
public:
    ValuewiseVulkan(Shader shader, int type, const std::vector<float>& parameters)
        : shader_(shader), type_(type), parameters_(parameters) {}
    bool supports(const Shapes& in, const Shapes& out) const override {
        return in.size() == 1 && out.size() == 1;
    }
    void choose_layouts(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                        Layouts* out) const override {
        follow_layout(0, in_shapes, out_shapes, in, out);
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        const Rows from = rows_of(in[0]), to = rows_of(out[0]);
        const uint32_t count = to.count * to.vectors();
        Words push = {count,          to.vectors(),     to.length,   in[0].first / 4,
                      from.pitch / 4, out[0].first / 4, to.pitch / 4};
        push.insert(push.end(), parameters_.begin(), parameters_.end());
        r.dispatch_linear(shader_, {type_}, {r.read(in[0]), r.write(out[0])}, push, count);
        return kOk;
    }

private:
    const Shader shader_;
    const int type_;
    const std::vector<float> parameters_;
};

}  // namespace quoll

#endif
