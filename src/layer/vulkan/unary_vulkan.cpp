// Layers that map each value by itself: activations.
#include "layer/common/activation.h"
#include "layer/vulkan/vulkan_layer.h"

namespace quoll {

namespace {

class UnaryVulkan : public VulkanLayer {
public:
    explicit UnaryVulkan(const Activation& f) : f_(f) {}
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
        r.dispatch_linear(Shader::unary, {f_.type}, {r.read(in[0]), r.write(out[0])},
                          {count, to.vectors(), to.length, in[0].first / 4, from.pitch / 4,
                           out[0].first / 4, to.pitch / 4, f_.a, f_.b},
                          count);
        return kOk;
    }

private:
    const Activation f_;
};

}  // namespace

int make_unary_vulkan(const Layer& layer, VulkanContext&, VulkanLayerPtr* made) {
    const Activation f = layer.as_activation();
    if (f.type != kActivationNone) made->reset(new UnaryVulkan(f));
    return kOk;
}

}  // namespace quoll
