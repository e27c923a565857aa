#include "plan/precise_blobs.h"

#include <algorithm>

#include "layer/activation/clip.h"
#include "layer/common/traits.h"
#include "layer/control/split.h"
#include "layer/elementwise/absval.h"
#include "layer/elementwise/binaryop.h"
#include "layer/elementwise/log.h"
#include "layer/elementwise/power.h"
#include "layer/elementwise/scale.h"
#include "layer/elementwise/unaryop.h"
#include "layer/nn/gemm.h"
#include "layer/nn/matmul.h"
#include "layer/sequence/spectrogram.h"
#include "layer/sequence/stft.h"
#include "layer/tensor/reduction.h"
#include "layer/tensor/stridedslice.h"
#include "layer/tensor/tensorshape.h"

namespace quoll {

namespace {

bool is_one_of(int value, std::initializer_list<int> values) {
    return std::find(values.begin(), values.end(), value) != values.end();
}

// The power to which a layer with a constant exponent raises its input; 1: it does not.
float exponent_of(const Layer& layer) {
    if (const Power* power = as<Power>(&layer)) return power->power;
    const BinaryOp* binary = as<BinaryOp>(&layer);
    return binary && binary->with_scalar && binary->op_type == BinaryOp::POW ? binary->b : 1.f;
}

// What must not be lost in half floats. kSums: larger parts must be exact, too, since the quiet
// bins of a spectrum are differences of loud samples.
enum Need : char { kNothing, kSmallValues, kSums };

// What the layer itself needs of input i: logarithms, roots and quotients differ most where values
// are smallest.
Need own_need(const Layer& layer, size_t i) {
    if (as<Log>(&layer)) return kSums;
    bool spreads = exponent_of(layer) < 1.f;
    if (const UnaryOp* unary = as<UnaryOp>(&layer)) {
        if (is_one_of(unary->op_type, {UnaryOp::LOG, UnaryOp::LOG10})) return kSums;
        spreads = is_one_of(unary->op_type, {UnaryOp::SQRT, UnaryOp::RSQRT, UnaryOp::RECIPROCAL});
    }
    if (const BinaryOp* binary = as<BinaryOp>(&layer))
        spreads |= binary->op_type == BinaryOp::DIV ? i == 1 : binary->op_type == BinaryOp::RDIV;
    return spreads ? kSmallValues : kNothing;
}

// Whether small values of the input give small values of the output, however small.
bool passes_on(Layer& layer) {
    FusionTarget linear;
    if (layer.fusion_target(&linear)) return !linear.activation_type || !*linear.activation_type;
    if (const BinaryOp* binary = as<BinaryOp>(&layer)) return binary->op_type <= BinaryOp::RPOW;
    if (const UnaryOp* unary = as<UnaryOp>(&layer))
        return is_one_of(unary->op_type,
                         {UnaryOp::ABS, UnaryOp::NEG, UnaryOp::SQUARE, UnaryOp::SQRT});
    return (layer.traits() & (kMovesValues | kChoosesValues | kSharesMemory)) != 0 ||
           as<BatchAxis>(&layer) || as<StridedSlice>(&layer) || as<Reduction>(&layer) ||
           as<MatMul>(&layer) || as<Gemm>(&layer) || as<Scale>(&layer) || as<Clip>(&layer) ||
           as<AbsVal>(&layer) || as<Power>(&layer) || as<Stft>(&layer) || as<Spectrogram>(&layer);
}

// The layer whose output the blob is a copy of.
int origin_of(const NetGraph& graph, int blob) {
    const int producer = graph.blobs[(size_t)blob].producer;
    const bool copied = producer >= 0 && as<Split>(graph.layers[(size_t)producer]);
    return copied ? graph.layers[(size_t)producer]->bottoms[0] : blob;
}

// The operand of a square has half its exponent, which half floats hold well.
bool squares(const NetGraph& graph, const Layer& layer) {
    const UnaryOp* const unary = as<UnaryOp>(&layer);
    const Reduction* const reduction = as<Reduction>(&layer);
    const BinaryOp* const binary = as<BinaryOp>(&layer);
    return (unary && unary->op_type == UnaryOp::SQUARE) || exponent_of(layer) > 1.f ||
           (reduction && is_one_of(reduction->operation, {Reduction::kSumSq, Reduction::kL2})) ||
           (binary && binary->op_type == BinaryOp::MUL && layer.bottoms.size() == 2 &&
            origin_of(graph, layer.bottoms[0]) == origin_of(graph, layer.bottoms[1]));
}

}  // namespace

void find_precise_blobs(NetGraph* graph) {
    std::vector<char> needs(graph->blobs.size(), kNothing);
    for (size_t l = graph->layers.size(); l-- > 0;) {
        Layer& layer = *graph->layers[l];
        char need = kNothing;
        for (int top : layer.tops) need = std::max(need, needs[(size_t)top]);
        const bool builtin = layer.typeindex >= 0;
        if (need && builtin) layer.featmask |= 1;  // no arithmetic on half floats
        if (!builtin || !passes_on(layer) || (need == kSmallValues && squares(*graph, layer)))
            need = kNothing;
        for (size_t i = 0; i < layer.bottoms.size(); i++) {
            char& input = needs[(size_t)layer.bottoms[i]];
            input = std::max({input, need, (char)own_need(layer, i)});
        }
    }
    graph->precise = std::move(needs);
}

void widen_inputs_of_precise_blobs(NetGraph* graph) {
    if (graph->precise.empty()) return;
    const auto any_precise = [&](const std::vector<int>& blobs) {
        return std::any_of(blobs.begin(), blobs.end(),
                           [&](int blob) { return graph->precise[(size_t)blob] != kNothing; });
    };
    for (Layer* layer : graph->layers) {
        // An f32 blob beside half floats would be narrowed.
        const bool reads = layer->bottoms.size() > 1 && any_precise(layer->bottoms);
        if (layer->typeindex >= 0 && !has_trait(*layer, kSharesMemory) &&
            (reads || any_precise(layer->tops)))
            layer->support_fp16_storage = false;
    }
}

}  // namespace quoll
