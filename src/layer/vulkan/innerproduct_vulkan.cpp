#include "layer/nn/innerproduct.h"

#include "layer/common/activation.h"
#include "layer/vulkan/vulkan_layer.h"

namespace quoll {

namespace {

class InnerProductVulkan : public VulkanLayer {
public:
    explicit InnerProductVulkan(const InnerProduct& layer)
        : layer_(layer), f_(layer.activation_type, layer.activation_params) {}

    int load(VulkanContext& context) {
        const std::vector<float> from = values_of(layer_.weight_data);
        const size_t inputs = (size_t)layer_.num_input(), width = round4((uint32_t)inputs);
        std::vector<float> rows(width * layer_.num_output, 0.f);
        for (int o = 0; o < layer_.num_output; o++)
            std::copy(&from[o * inputs], &from[o * inputs] + inputs, &rows[o * width]);
        QUOLL_RETURN_IF_ERROR(context.weights.add(rows, context.storage, &weight_));
        if (!layer_.bias_term) return kOk;
        return context.weights.add(values_of(layer_.bias_data), Storage::f32, &bias_);
    }

    bool supports(const Shapes& in, const Shapes& out) const override {
        return in[0].total() % (size_t)layer_.num_input() == 0 &&
               in[0].total() / (size_t)layer_.num_input() * layer_.num_output == out[0].total();
    }

    int record(Recorder& r, const Values& in, const Values& out) const override {
        const uint32_t rows = (uint32_t)(in[0].shape.total() / (size_t)layer_.num_input());
        r.dispatch(Shader::innerproduct, {f_.type, layer_.bias_term, layer_.num_input() % 4 == 0},
                   {r.read(in[0]), weight_, layer_.bias_term ? bias_ : weight_, r.write(out[0])},
                   {layer_.num_input(), layer_.num_output, in[0].first, out[0].first, f_.a, f_.b},
                   ((uint32_t)layer_.num_output + 3) / 4, rows);
        return kOk;
    }

private:
    const InnerProduct& layer_;
    const Activation f_;
    Binding weight_, bias_;
};

}  // namespace

int make_innerproduct_vulkan(const Layer& layer, VulkanContext& context, VulkanLayerPtr* made) {
    const InnerProduct* product = as<InnerProduct>(&layer);
    if (!product || product->int8_scale_term || product->weight_data.dtype != DType::f32)
        return kOk;
    std::unique_ptr<InnerProductVulkan> form(new InnerProductVulkan(*product));
    QUOLL_RETURN_IF_ERROR(form->load(context));
    *made = std::move(form);
    return kOk;
}

}  // namespace quoll
