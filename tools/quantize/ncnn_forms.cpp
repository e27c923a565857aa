#include "quantize/ncnn_forms.h"

#include <math.h>

#include <algorithm>

#include "common/layer_fields.h"
#include "layer/common/conv_window.h"
#include "layer/nn/embed.h"
#include "layer/nn/gemm.h"
#include "layer/sequence/gru.h"
#include "layer/sequence/lstm.h"
#include "layer/sequence/multiheadattention.h"
#include "layer/sequence/rnn.h"
#include "layer/sequence/sdpa.h"
#include "quantize/gemm_rows.h"
#include "quantize/targets.h"
#include "quantize/weight_kinds.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

namespace {

// Rows of int8 values, by scales of one row each or one for all.
struct Rounded {
    Mat values, scales;
};

// False for weights that are missing or no finite numbers.
bool round_rows(const Mat& weight, int scales, Rounded* to) {
    if (weight.empty() || scales < 1 || weight.w % scales != 0) return false;
    to->scales.create(scales);
    const int each = weight.w / scales;
    for (int i = 0; i < scales && !to->scales.empty(); i++) {
        float most = 0.f;
        for (int j = 0; j < each; j++) {
            const float value = weight[(size_t)i * each + j];
            if (!std::isfinite(value)) return false;
            most = std::max(most, fabsf(value));
        }
        to->scales[i] = most > 0.f ? 127.f / most : 1.f;
    }
    to->values = quantize_weight(weight, to->scales);
    return !to->values.empty();
}

bool round_weight(const Mat& weight, int scales, const std::string& name,
                  const std::string& scale_name, ModelLayer* layer) {
    Rounded rounded;
    if (!round_rows(weight, scales, &rounded)) return false;
    layer->set_weight(name.c_str(), rounded.values);
    layer->set_weight(scale_name.c_str(), rounded.scales);
    return true;
}

bool round_attention(const MultiHeadAttention& op, ModelLayer* layer) {
    for (const char* part : {"q", "k", "v"}) {
        const std::string name = std::string(part) + "_weight_data";
        const Mat weight = float_weight(*layer, name.c_str());
        if (!round_weight(weight, op.embed_dim, name, name + "_int8_scales", layer)) return false;
    }
    const Mat weight = float_weight(*layer, "out_weight_data");
    return round_weight(weight, 1, "out_weight_data", "out_weight_data_int8_scale", layer);
}

// A constant A as rows [M][K].
Mat rows_of_a(const Gemm& op, const ModelLayer& layer) {
    const Mat weight = float_weight(layer, "A_data");
    if (!op.transA || weight.empty()) return weight;
    Mat turned(weight.w);
    for (int i = 0; i < op.constantM && !turned.empty(); i++)
        for (int j = 0; j < op.constantK; j++)
            turned[(size_t)i * op.constantK + j] = weight[(size_t)j * op.constantM + i];
    return turned;
}

bool round_gemm(const Gemm& op, ModelLayer* layer) {
    if (op.constantA) {
        if (!round_weight(rows_of_a(op, *layer), op.constantM, "A_data", "A_data_int8_scales",
                          layer))
            return false;
        layer->set("transA", 0);
    }
    if (!op.constantB) return true;
    layer->set("transB", 1);
    return round_weight(gemm_rows(op, *layer), 1, "B_data", "B_data_int8_scale", layer);
}

// The param that says so, of layers that ncnn has such a form of; or null.
const char* term_of(const ModelLayer& layer) {
    if (layer.is<Gemm>() || layer.is<MultiHeadAttention>()) return "quantize_term";
    const bool has = layer.is<RNN>() || layer.is<LSTM>() || layer.is<GRU>() || layer.is<Embed>() ||
                     layer.is<SDPA>();
    return has ? "int8_scale_term" : nullptr;
}

// *why: it cannot be done.
int round_layer(const Layer& op, ModelLayer* layer, std::string* why) {
    bool good = true;
    if (const Gemm* gemm = as<Gemm>(&op))
        good = round_gemm(*gemm, layer);
    else if (const MultiHeadAttention* attention = as<MultiHeadAttention>(&op))
        good = round_attention(*attention, layer);
    else if (layer->is<Embed>())
        good = round_weight(float_weight(*layer, "weight_data"), 1, "weight_data",
                            "weight_data_int8_scale", layer);
    else if (!layer->is<SDPA>())
        return store_weight_kind("dynamic", Shape(), nullptr, layer, why);
    if (!good) return *why = "its weights are not there as finite numbers", kOk;
    return layer->set(term_of(*layer), 2);
}

}  // namespace

int make_ncnn_forms(Model* model, std::vector<std::string>* done) {
    for (ModelLayer& layer : model->layers) {
        const char* term = layer.custom() ? nullptr : term_of(layer);
        const std::unique_ptr<Layer> op = term ? layer.make_operator() : nullptr;
        if (!op || int_field(op.get(), term) != 0) continue;
        ModelLayer made = layer;
        std::string why;
        QUOLL_RETURN_IF_ERROR(round_layer(*op, &made, &why));
        if (!why.empty()) {
            QUOLL_LOGW("[%s %s] stays in float: %s", layer.type.c_str(), layer.name.c_str(),
                       why.c_str());
            continue;
        }
        layer = made;
        done->push_back(layer.name);
    }
    return kOk;
}

}  // namespace quoll
