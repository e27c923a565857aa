// Gemm and MatMul.
#include "layer/vulkan/product.h"

#include "layer/common/block_quant.h"
#include "layer/nn/gemm.h"
#include "layer/nn/matmul.h"
#include "runtime/log_mute.h"

namespace quoll {

namespace {

class GemmVulkan : public VulkanLayer {
public:
    explicit GemmVulkan(const Gemm& layer) : layer_(layer) {}

    int load(VulkanContext& context) {
        if (layer_.quantize_term && layer_.constantB) b_scale_ = layer_.B_data_int8_scale[0];
        const std::pair<const Mat*, Binding*> all[] = {
            {&layer_.A_data, &a_}, {&layer_.B_data, &b_}, {&layer_.C_data, &c_}};
        for (const auto& weight : all) {
            if (weight.first->empty() || (weight.second == &c_ && has_bias())) continue;
            const bool integers = weight.first->dtype == DType::s8;
            QUOLL_RETURN_IF_ERROR(context.weights.add(
                integers ? integers_of(*weight.first) : values_of(*weight.first), context.storage,
                weight.second));
        }
        if (!has_bias()) return kOk;
        std::vector<float> bias = values_of(layer_.C_data);
        for (float& value : bias) value *= layer_.alpha * layer_.beta;
        return context.weights.add(bias, Storage::f32, &c_);
    }
    // One blob can be added: if there is no C, that of the step behind.
    bool fuses(StepFusion fusion, const Shapes& in, const Shapes&) const override {
        Gemm::Product p;
        return fusion == StepFusion::kEpilogue && layer_.describe(in, &p) == kOk &&
               (has_bias() || p.c_shape == Gemm::kNone);
    }
    bool supports(const Shapes& in, const Shapes& out) const override {
        const LogMute mute;
        Gemm::Product p;
        return items_fit(in, out[0].n) && layer_.describe(in, &p) == kOk &&
               MatrixProduct::fits(p.m, out[0].n);
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        return record_fused(r, in, out, Fused());
    }
    int record_fused(Recorder& r, const Values& in, const Values& out,
                     const Fused& fused) const override {
        Shapes shapes;
        for (const Value& value : in) shapes.push_back(value.shape);
        Gemm::Product p;
        QUOLL_RETURN_IF_ERROR(layer_.describe(shapes, &p));
        MatrixProduct product;
        product.rows = p.m, product.columns = p.n, product.depth = p.k;
        product.c = out[0].shape.n;
        size_t next = 0;
        product.a_steps = steps(p.m, p.k, layer_.transA);
        QUOLL_RETURN_IF_ERROR(factor(r, in, false, p.m, p.k, &next, &product.a_steps, &product.a));
        product.b_steps = steps(p.k, p.n, layer_.transB);
        QUOLL_RETURN_IF_ERROR(factor(r, in, true, p.k, p.n, &next, &product.b_steps, &product.b));
        product.has_bias = has_bias(), product.bias = c_;
        product.has_addend = p.c_shape != Gemm::kNone && !has_bias();
        if (product.has_addend) {
            const uint32_t full = p.c_shape == Gemm::kFull;
            const bool column = p.c_shape == Gemm::kRow1 || p.c_shape == Gemm::kRow;
            product.addend_steps.row = full ? p.n : column;
            product.addend_steps.column = full || p.c_shape == Gemm::kColumn;
            product.addend = operand(r, in, layer_.constantC, c_, &next, &product.addend_steps);
        }
        product.y = r.write(out[0]);
        product.y_steps = steps(p.m, p.n, layer_.output_transpose);
        product.y_steps.first = out[0].first, product.y_steps.c = out[0].item_step();
        product.alpha = layer_.alpha / b_scale_, product.beta = layer_.alpha * layer_.beta;
        product.has_int8 = layer_.quantize_term != 0;
        product.add_epilogue(r, fused);
        product.record(r);
        return kOk;
    }

private:
    // Whether C is a value for each column.
    bool has_bias() const {
        return layer_.constantC && layer_.constant_broadcast_type_C == Gemm::kColumn;
    }
    static MatrixSteps steps(int rows, int columns, bool transposed) {
        if (transposed) return {0, 1, (uint32_t)rows, 0, 0};
        return {0, (uint32_t)columns, 1, 0, 0};
    }
    // int8 values are exact in any storage type. B's only scale is part of alpha; those of A's rows
    // are applied here.
    std::vector<float> integers_of(const Mat& m) const {
        const size_t rows = layer_.constantM, depth = layer_.constantK;
        std::vector<float> values;
        for (size_t i = 0; i < m.total(); i++) {
            const size_t row = layer_.transA ? i % rows : i / depth;
            const float scale = &m == &layer_.A_data ? layer_.A_data_int8_scales[row] : 1.f;
            values.push_back(((const signed char*)m.data)[i] / scale);
        }
        return values;
    }
    // Prepares a factor of an int8 product: A, whose rows have a scale each, or B, which has one.
    int factor(Recorder& r, const Values& in, bool is_b, int rows, int columns, size_t* next,
               MatrixSteps* steps, Binding* made) const {
        const bool constant = is_b ? layer_.constantB : layer_.constantA;
        if (constant || !layer_.quantize_term) {
            *made = operand(r, in, constant, is_b ? b_ : a_, next, steps);
            return kOk;
        }
        Value rounded;
        QUOLL_RETURN_IF_ERROR(
            record_rounded(r, in[(*next)++], rows, columns, is_b, steps, &rounded));
        *made = r.read(rounded);
        return kOk;
    }
    static Binding operand(Recorder& r, const Values& in, bool constant, const Binding& weight,
                           size_t* next, MatrixSteps* steps) {
        if (constant) return weight;
        const Value& value = in[(*next)++];
        steps->first = value.first, steps->c = value.item_step();
        return r.read(value);
    }

    const Gemm& layer_;
    Binding a_, b_, c_;
    float b_scale_ = 1.f;
};

class MatMulVulkan : public VulkanLayer {
public:
    explicit MatMulVulkan(const MatMul& layer) : layer_(layer) {}

    bool supports(const Shapes& in, const Shapes& out) const override {
        const LogMute mute;
        MatMul::Product p;
        if (!items_fit(in, out[0].n) || layer_.product_of(in, &p) != kOk) return false;
        // There may be one axis of matrices besides the items.
        if (out[0].n > 1 && p.c > 1 && p.d > 1) return false;
        return MatrixProduct::fits(p.m, (int64_t)p.c * p.d * out[0].n);
    }
    bool fuses(StepFusion fusion, const Shapes&, const Shapes&) const override {
        return fusion == StepFusion::kEpilogue;
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        return record_fused(r, in, out, Fused());
    }
    int record_fused(Recorder& r, const Values& in, const Values& out,
                     const Fused& fused) const override {
        MatMul::Product p;
        QUOLL_RETURN_IF_ERROR(layer_.product_of({in[0].shape, in[1].shape}, &p));
        MatrixProduct product;
        product.rows = p.m, product.columns = p.n, product.depth = p.k;
        product.c = p.c, product.d = p.d;
        product.a = r.read(in[0]), product.b = r.read(in[1]), product.y = r.write(out[0]);
        product.a_steps = steps(in[0], p.a);
        product.b_steps = steps(in[1], p.b);
        const uint32_t matrix = (uint32_t)p.m * p.n;
        product.y_steps = {out[0].first, (uint32_t)p.n, 1, p.d * matrix, matrix};
        if (out[0].shape.n > 1) add_items(in, out[0], &product);
        product.add_epilogue(r, fused);
        product.record(r);
        return kOk;
    }

private:
    // Puts the items on the free axis.
    static void add_items(const Values& in, const Value& out, MatrixProduct* product) {
        const Value* const values[] = {&in[0], &in[1], &out};
        MatrixSteps* const all[] = {&product->a_steps, &product->b_steps, &product->y_steps};
        for (int i = 0; i < 3; i++) {
            if (product->c > 1) all[i]->d = all[i]->c;
            all[i]->c = values[i]->item_step();
        }
        if (product->c > 1) product->d = product->c;
        product->c = out.shape.n;
    }
    static MatrixSteps steps(const Value& value, const MatMul::Operand& m) {
        return {value.first, (uint32_t)m.row_step, (uint32_t)m.column_step,
                m.c == 1 ? 0 : plane(value.shape), m.d == 1 ? 0 : (uint32_t)m.d_step};
    }

    const MatMul& layer_;
};

}  // namespace

int make_product_vulkan(const Layer& layer, VulkanContext& context, VulkanLayerPtr* made) {
    const MatMul* matmul = as<MatMul>(&layer);
    if (matmul) made->reset(new MatMulVulkan(*matmul));
    const Gemm* gemm = as<Gemm>(&layer);
    if (!gemm || BlockQuant(gemm->quantize_term)) return kOk;
    // f16 cannot hold int8 values times scales of two factors, bf16 not even those with one scale.
    const bool scaled =
        context.storage == Storage::bf16 || (context.storage == Storage::f16 && !gemm->constantB);
    if (gemm->quantize_term && scaled) return kOk;
    std::unique_ptr<GemmVulkan> form(new GemmVulkan(*gemm));
    QUOLL_RETURN_IF_ERROR(form->load(context));
    *made = std::move(form);
    return kOk;
}

}  // namespace quoll
