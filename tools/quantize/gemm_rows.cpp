#include "quantize/gemm_rows.h"

#include "quantize/targets.h"
#include "quoll/status.h"

namespace quoll {

Mat gemm_rows(const Gemm& op, const ModelLayer& layer) {
    const Mat weight = float_weight(layer, "B_data");
    if (op.transB || weight.empty()) return weight;
    const int n = op.constantN, k = op.constantK;
    Mat turned(weight.w);
    for (int i = 0; i < k && !turned.empty(); i++)
        for (int j = 0; j < n; j++)
            turned[(size_t)j * k + i] = weight[(size_t)i * n + j];
    return turned;
}

namespace {

bool is_row_product(const Gemm& op, const Shape& input) {
    // C has an input of its own, or is none.
    const bool bias = !op.constantC || op.constant_broadcast_type_C == Gemm::kNone ||
                      op.constant_broadcast_type_C == Gemm::kColumn;
    return op.constantB && !op.constantA && !op.transA && !op.output_N1M && !op.output_transpose &&
           op.quantize_term == 0 && op.alpha == 1.f && op.beta == 1.f && bias &&
           input.dims == 2 && input.w == op.constantK;
}

int replace(const Gemm& op, ModelLayer* layer) {
    const Mat weight = gemm_rows(op, *layer), bias = float_weight(*layer, "C_data");
    if (weight.empty()) return kError;
    layer->type = "InnerProduct", layer->params = ParamDict(), layer->weights.clear();
    layer->set("num_output", op.constantN);
    layer->set("weight_data_size", weight.w);
    layer->set_weight("weight_data", weight);
    if (bias.empty()) return kOk;
    layer->set_weight("bias_data", bias);
    return layer->set("bias_term", 1);
}

}  // namespace

int gemm_to_inner_product(const QuantizeOptions& options, Model* model) {
    const BlobSizes sizes = known_sizes(*model, options.sizes);
    for (ModelLayer& layer : model->layers) {
        if (layer.inputs.size() != 1 || !is_static_kind(kind_of_layer(options, layer.name)))
            continue;
        const std::unique_ptr<Layer> op = layer.is<Gemm>() ? layer.make_operator() : nullptr;
        const Gemm* gemm = as<Gemm>(op.get());
        const auto size = sizes.find(layer.inputs[0]);
        if (gemm && size != sizes.end() && is_row_product(*gemm, size->second))
            QUOLL_RETURN_IF_ERROR(replace(*gemm, &layer));
    }
    return kOk;
}

}  // namespace quoll
