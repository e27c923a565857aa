#include "graph/passes.h"
#include "layer/activation/hardsigmoid.h"
#include "layer/activation/hardswish.h"
#include "layer/activation/prelu.h"
#include "layer/activation/relu.h"
#include "layer/activation/sigmoid.h"
#include "layer/elementwise/binaryop.h"
#include "layer/norm/batchnorm.h"
#include "layer/norm/instancenorm.h"
#include "layer/quantize/affine.h"
#include "layer/tensor/concat.h"

namespace quoll {

namespace {

// The activation that the layer is.
Activation activation_of(const LayerGraph& graph, int index) {
    const Layer& layer = *graph.layer(index);
    return layer.typeindex >= 0 ? layer.as_activation() : Activation();
}

// The layer of type T that makes `blob`, if only `reader` reads it; else null.
template <class T>
const T* gate_of(const LayerGraph& graph, int blob, int reader) {
    const T* gate = graph.as<T>(graph.producer(blob));
    return gate && graph.only_reader(graph.producer(blob)) == reader ? gate : nullptr;
}

}  // namespace

int set_activation(const FusionTarget& target, const Activation& f) {
    Mat params;
    if (f.num_params() > 0) {
        params.create(f.num_params());
        if (params.empty()) return kOutOfMemory;
        params[0] = f.a;
        if (params.w > 1) params[1] = f.b;
    }
    *target.activation_type = f.type;
    *target.activation_params = params;
    return kOk;
}

int fuse_activation(LayerGraph& graph, int index, const LayerMaker&) {
    FusionTarget w;
    const int next = graph.only_reader(index);
    if (next < 0 || !fusion_target(graph, index, &w) || !w.activates) return 0;
    const Activation f = activation_of(graph, next);
    if (f.type == kActivationNone) return 0;
    QUOLL_RETURN_IF_ERROR(set_activation(w, f));
    const std::string what = graph.layer(next)->type + " into " + graph.layer(index)->type;
    graph.absorb(index, next, false, what.c_str());
    return 1;
}

int fuse_norm_activation(LayerGraph& graph, int index, const LayerMaker&) {
    auto* norm = graph.as<InstanceNorm>(index);
    auto* batch_norm = graph.as<BatchNorm>(index);
    const int next = graph.only_reader(index);
    if ((!norm && !batch_norm) || next < 0) return 0;
    const Activation f = activation_of(graph, next);
    if (norm && norm->activation.type == kActivationNone && f.type != kActivationNone) {
        norm->activation = f;
    } else if (BatchNorm::kTakesRelu && batch_norm && !batch_norm->relu &&
               f.type == kActivationReLU) {
        batch_norm->relu = true;
    } else {
        return 0;
    }
    graph.absorb(index, next, false, "activation into a norm");
    return 1;
}

int fuse_sum_relu(LayerGraph& graph, int index, const LayerMaker&) {
    auto* sum = graph.as<BinaryOp>(index);
    const int next = graph.only_reader(index);
    if (!BinaryOp::kTakesRelu || !sum || next < 0 || sum->op_type != BinaryOp::ADD ||
        sum->with_scalar || sum->relu || sum->bottoms.size() != 2 ||
        activation_of(graph, next).type != kActivationReLU)
        return 0;
#if defined(__x86_64__) || defined(__i386__)  // as BinaryOp::kTakesRelu
    sum->relu = true;
#endif
    graph.absorb(index, next, false, "ReLU into a sum");
    return 1;
}

int fuse_norm_rounding(LayerGraph& graph, int index, const LayerMaker&) {
    auto* norm = graph.as<InstanceNorm>(index);
    if (!norm || norm->bytes) return 0;
    const int next = graph.only_reader(index), before = graph.producer(norm->bottoms[0]);
    const auto* from = graph.as<AffineDequantize>(before);
    const auto* to = graph.as<AffineQuantize>(next);
    if (!from || !to || graph.only_reader(before) != index) return 0;
    norm->bytes = {from->scale, to->scale, from->zero_point, to->zero_point};
    graph.absorb(index, next, false, "rounding of a norm into it");
    graph.bypass(before, "values of a norm from int8", LayerGraph::Output::gone);
    return 1;
}

int fuse_joined_activation(LayerGraph& graph, int index, const LayerMaker&) {
    std::vector<FusionTarget> targets;
    const int next = graph.is<Concat>(index) ? graph.only_reader(index) : -1;
    if (next < 0 || !joined_targets(graph, index, &targets)) return 0;
    const Activation f = activation_of(graph, next);
    if (f.type == kActivationNone) return 0;
    for (const FusionTarget& w : targets)
        if (!w.activates) return 0;
    for (const FusionTarget& w : targets) QUOLL_RETURN_IF_ERROR(set_activation(w, f));
    const std::string what = graph.layer(next)->type + " into what a Concat joins";
    for (int blob : graph.layer(index)->bottoms) graph.change(blob);  // none is kept: one reader
    graph.absorb(index, next, false, what.c_str());
    return 1;
}

int chain_scalars(LayerGraph& graph, int index, const LayerMaker&) {
    const auto links = [](const BinaryOp* s) {
        return s && s->with_scalar && s->op_type <= BinaryOp::RSUB && s->op_type != BinaryOp::POW &&
               !s->is_neutral();
    };
    auto* last = graph.as<BinaryOp>(index);
    const int next = graph.only_reader(index);
    auto* second = next < 0 ? nullptr : graph.as<BinaryOp>(next);
    if (!links(last) || !links(second)) return 0;
    int length = 2;
    for (; last->then; last = last->then) length++;
    if (second->then || length > BinaryOp::kLongestChain) return 0;
    last->then = second;
    graph.absorb(index, next, false, "BinaryOp with a scalar into the one before");
    return 1;
}

int merge_gate(LayerGraph& graph, int index, const LayerMaker& make) {
    if (const auto* s = graph.as<PReLU>(index)) {
        // A slope of 0 turns minus infinity into NaN, which a ReLU does not.
        if (s->num_slope != 1 || s->slope_data[0] == 0.f) return 0;
        std::unique_ptr<Layer> with(make("ReLU"));
        ReLU* relu = as<ReLU>(with.get());
        if (!relu) return 0;  // left out of this build
        relu->slope = s->slope_data[0];
        graph.replace(index, std::move(with), s->bottoms, "PReLU with one slope to ReLU");
        return 1;
    }
    const auto* mul = graph.as<BinaryOp>(index);
    if (!mul || mul->op_type != BinaryOp::MUL || mul->with_scalar || mul->bottoms.size() != 2)
        return 0;
    for (int side : {0, 1}) {
        const int x = mul->bottoms[side], gated = mul->bottoms[1 - side];
        const Sigmoid* sigmoid = gate_of<Sigmoid>(graph, gated, index);
        const HardSigmoid* hard = gate_of<HardSigmoid>(graph, gated, index);
        const Layer* gate = sigmoid ? (const Layer*)sigmoid : hard;
        if (!gate || gate->bottoms[0] != x) continue;
        std::unique_ptr<Layer> with(make(sigmoid ? "Swish" : "HardSwish"));
        if (!with) return 0;
        if (HardSwish* swish = as<HardSwish>(with.get()))
            swish->alpha = hard->alpha, swish->beta = hard->beta;
        graph.replace(index, std::move(with), {x},
                      sigmoid ? "x * Sigmoid(x) to Swish" : "x * HardSigmoid(x) to HardSwish");
        graph.remove(graph.producer(gated));
        return 1;
    }
    return 0;
}

}  // namespace quoll
