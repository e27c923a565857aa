#include "layer/nn/innerproduct.h"

#include <algorithm>

#include "layer/common/activation.h"
#include "layer/vulkan/product.h"

namespace quoll {

namespace {

class InnerProductVulkan : public VulkanLayer {
public:
    explicit InnerProductVulkan(const InnerProduct& layer)
        : layer_(layer), f_(layer.activation_type, layer.activation_params) {}

    int load(VulkanContext& context) {
        const std::vector<float> from = values_of(layer_.weight_by_outputs());
        if (from.empty()) return kOutOfMemory;
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

    bool fuses(StepFusion fusion, const Shapes&, const Shapes&) const override {
        return fusion == StepFusion::kEpilogue && f_.type == kActivationNone;
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        return record_fused(r, in, out, Fused());
    }
    int record_fused(Recorder& r, const Values& in, const Values& out,
                     const Fused& fused) const override {
        const uint32_t rows = (uint32_t)(in[0].shape.total() / (size_t)layer_.num_input());
        MatrixProduct product = product_of(r, in[0], out[0], (int)rows);
        product.add_epilogue(r, fused);
        if (product.fits_units(r))
            product.record(r);
        else
            product.record_vectors(r);
        return kOk;
    }

    bool dense(Dense* dense) const override {
        dense->weight = weight_, dense->bias = bias_, dense->has_bias = layer_.bias_term;
        dense->inputs = (uint32_t)layer_.num_input(), dense->outputs = (uint32_t)layer_.num_output;
        dense->output_step = round4(dense->inputs), dense->input_step = 1;
        dense->f = f_;
        return true;
    }

private:
    MatrixProduct product_of(Recorder& r, const Value& in, const Value& out, int rows) const {
        const uint32_t inputs = (uint32_t)layer_.num_input(), outputs = (uint32_t)layer_.num_output;
        MatrixProduct product;
        product.rows = rows, product.columns = (int)outputs, product.depth = (int)inputs;
        product.a = r.read(in), product.b = weight_, product.y = r.write(out);
        product.a_steps = {in.first, inputs, 1, 0, 0};
        product.b_steps = {0, 1, round4(inputs), 0, 0};
        product.y_steps = {out.first, outputs, 1, 0, 0};
        product.bias = bias_, product.has_bias = layer_.bias_term;
        product.f = f_;
        return product;
    }

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
