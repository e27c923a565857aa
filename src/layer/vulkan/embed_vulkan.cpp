#include "layer/nn/embed.h"

#include "layer/vulkan/vulkan_layer.h"

namespace quoll {

namespace {

class EmbedVulkan : public VulkanLayer {
public:
    explicit EmbedVulkan(const Embed& layer) : layer_(layer) {}
    int load(VulkanContext& context) {
        QUOLL_RETURN_IF_ERROR(
            context.weights.add(values_of(layer_.weight_data), context.storage, &table_));
        bias_ = table_;
        if (!layer_.bias_term) return kOk;
        return context.weights.add(values_of(layer_.bias_data), context.storage, &bias_);
    }

    bool takes_integers() const override { return true; }
    // Floats are interpreted as the bits of integers, which uploads would not keep.
    bool supports(const Shapes& in, const Shapes&) const override {
        return in[0].dtype == DType::s32;
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        const uint32_t count = (uint32_t)out[0].shape.total();
        r.dispatch_linear(
            Shader::embed, {layer_.bias_term != 0}, {r.read(in[0]), table_, bias_, r.write(out[0])},
            {count, layer_.num_output, layer_.input_dim, in[0].first, out[0].first}, count);
        return kOk;
    }

private:
    const Embed& layer_;
    Binding table_, bias_;
};

}  // namespace

int make_embed_vulkan(const Layer& layer, VulkanContext& context, VulkanLayerPtr* made) {
    const Embed* embed = as<Embed>(&layer);
    if (!embed || embed->weight_data.dtype != DType::f32) return kOk;
    std::unique_ptr<EmbedVulkan> form(new EmbedVulkan(*embed));
    QUOLL_RETURN_IF_ERROR(form->load(context));
    *made = std::move(form);
    return kOk;
}

}  // namespace quoll
