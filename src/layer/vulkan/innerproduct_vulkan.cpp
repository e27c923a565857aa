#include "layer/nn/innerproduct.h"

#include <algorithm>

#include "layer/common/activation.h"
#include "layer/vulkan/product.h"

namespace quoll {

namespace {

class InnerProductVulkan : public VulkanLayer {
public:
    explicit InnerProductVulkan(const InnerProduct& layer)
        : layer_(layer),
          f_(layer.activation_type, layer.activation_params),
          int8_(layer.int8_scale_term != 0) {}

    int load(VulkanContext& context) {
        std::vector<float> from;
        fits_softmax_ = !int8_ && MatrixProduct::fits_softmax(context.device, layer_.num_output);
        QUOLL_RETURN_IF_ERROR(load_values(&from));
        const size_t inputs = (size_t)layer_.num_input(), width = round4((uint32_t)inputs);
        std::vector<float> rows(width * layer_.num_output, 0.f);
        for (int o = 0; o < layer_.num_output; o++)
            std::copy(&from[o * inputs], &from[o * inputs] + inputs, &rows[o * width]);
        QUOLL_RETURN_IF_ERROR(context.weights.add(rows, context.storage, &weight_));
        if (int8_) return context.weights.add(int8_factors(from), Storage::f32, &bias_);
        if (!layer_.bias_term) return kOk;
        return context.weights.add(values_of(layer_.bias_data), Storage::f32, &bias_);
    }

    bool takes_integers() const override { return int8_; }
    bool supports(const Shapes& in, const Shapes& out) const override {
        const bool s8 = in[0].dtype == DType::s8;
        if (layer_.int8_output()) return false;
        if (is_integer(in[0].dtype) ? !s8 : int8_ && layer_.int8_affine) return false;
        const size_t rows = in[0].total() / (size_t)layer_.num_input();
        if (!MatrixProduct::fits((int64_t)rows, 1) || (int8_ && rows > kMostGroups)) return false;
        return in[0].total() % (size_t)layer_.num_input() == 0 &&
               in[0].total() / (size_t)layer_.num_input() * layer_.num_output == out[0].total();
    }

    bool fuses(StepFusion fusion, const Shapes& in, const Shapes&) const override {
        const size_t rows = in[0].total() / (size_t)layer_.num_input();
        if (fusion == StepFusion::kHost || fusion == StepFusion::kPooled)
            return !int8_ && rows == 1;
        if (fusion == StepFusion::kSoftmax) return fits_softmax_ && rows == 1;
        return fusion == StepFusion::kEpilogue && f_.type == kActivationNone && !int8_;
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        return record_fused(r, in, out, Fused());
    }
    int record_fused(Recorder& r, const Values& in, const Values& out,
                     const Fused& fused) const override {
        const uint32_t rows = (uint32_t)(in[0].shape.total() / (size_t)layer_.num_input());
        MatrixProduct product = product_of(r, in[0], out[0], (int)rows, fused);
        product.add_epilogue(r, fused);
        if (int8_) {
            const bool words = are_words(in[0]);
            Value numbers = in[0];
            numbers.shape.dtype = DType::f32;
            if (words) {
                numbers = r.make(numbers.shape, Layout::kPlanar);
                r.copy(in[0], numbers);
            }
            product.a = r.read(numbers), product.a_steps.first = numbers.first;
            product.has_bias = true, product.int8 = words ? 1 : 3;
            product.record_vectors(r);
            return kOk;
        }
        // innerproduct.comp reads all weights for each row.
        if (fused.pooled || (!product.fills_tiles() && rows <= kMostGroups))
            product.record_vectors(r);
        else
            product.record(r);
        return kOk;
    }

    bool dense(Dense* dense) const override {
        if (int8_) return false;
        dense->weight = weight_, dense->bias = bias_, dense->has_bias = layer_.bias_term;
        dense->inputs = (uint32_t)layer_.num_input(), dense->outputs = (uint32_t)layer_.num_output;
        dense->output_step = round4(dense->inputs), dense->input_step = 1;
        dense->f = f_;
        return true;
    }

private:
    // [num_output][num_input]; of int8 weights as whole numbers.
    int load_values(std::vector<float>* values) const {
        const Mat weight = layer_.weight_by_outputs();
        if (weight.empty()) return kOutOfMemory;
        if (!int8_) {
            *values = values_of(weight);
            return kOk;
        }
        const Mat bytes = weight.dtype == DType::s8
                              ? weight
                              : quantize_weight(weight, layer_.weight_data_int8_scales);
        if (bytes.empty()) return kOutOfMemory;
        const signed char* const w = (const signed char*)bytes.data;
        values->assign(w, w + layer_.weight_data_size);
        return kOk;
    }
    // As innerproduct.comp has them.
    std::vector<float> int8_factors(const std::vector<float>& weights) const {
        const Mat& scales = layer_.weight_data_int8_scales;
        const float scale = layer_.bottom_blob_int8_scales[0];
        const size_t inputs = (size_t)layer_.num_input();
        std::vector<float> factors = {scale};
        for (int p = 0; p < layer_.num_output; p++) {
            double sum = 0;
            for (size_t i = 0; i < inputs; i++) sum += weights[p * inputs + i];
            const size_t at = (size_t)((int64_t)p * scales.w / layer_.num_output);
            factors.push_back(layer_.int8_affine ? (float)(sum * layer_.bottom_zero_point) : 0.f);
            factors.push_back(dequantize_scale(scale, scales[at]));
            factors.push_back(layer_.bias_term ? layer_.bias_data[(size_t)p] : 0.f);
        }
        return factors;
    }
    MatrixProduct product_of(Recorder& r, const Value& in, const Value& out, int rows,
                             const Fused& fused) const {
        const ChannelSums* const pooled = fused.pooled;
        const uint32_t inputs = (uint32_t)layer_.num_input(), outputs = (uint32_t)layer_.num_output;
        MatrixProduct product;
        product.rows = rows, product.columns = (int)outputs, product.depth = (int)inputs;
        product.a = pooled ? weight_ : r.read(in), product.b = weight_,
        product.y = fused.host ? *fused.host : r.write(out);
        product.pooled = pooled;
        product.a_steps = {pooled ? 0 : in.first, inputs, 1, 0, 0};
        product.b_steps = {0, 1, round4(inputs), 0, 0};
        product.y_steps = {out.first, outputs, 1, 0, 0};
        product.bias = bias_, product.has_bias = layer_.bias_term;
        product.f = f_;
        return product;
    }

    const InnerProduct& layer_;
    const Activation f_;
    const bool int8_;
    bool fits_softmax_ = false;
    Binding weight_, bias_;
};

}  // namespace

int make_innerproduct_vulkan(const Layer& layer, VulkanContext& context, VulkanLayerPtr* made) {
    const InnerProduct* product = as<InnerProduct>(&layer);
    if (!product || product->int16_input() || product->int8_affine == 2) return kOk;
    if (!product->int8_scale_term && product->weight_data.dtype != DType::f32) return kOk;
    std::unique_ptr<InnerProductVulkan> form(new InnerProductVulkan(*product));
    QUOLL_RETURN_IF_ERROR(form->load(context));
    *made = std::move(form);
    return kOk;
}

}  // namespace quoll
