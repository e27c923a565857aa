#include <initializer_list>

#include "graph/passes.h"
#include "layer/binaryop.h"
#include "layer/clip.h"
#include "layer/gelu.h"
#include "layer/hardsigmoid.h"
#include "layer/hardswish.h"
#include "layer/prelu.h"
#include "layer/relu.h"
#include "layer/swish.h"

namespace quoll {

namespace {

struct FoundActivation {
    int type;
    std::vector<float> params;
};

bool activation_of_layer(const LayerGraph& graph, int index, FoundActivation* f) {
    f->params.clear();
    if (const auto* s = graph.as<ReLU>(index, "ReLU")) {
        f->type = s->slope == 0.f ? kActivationReLU : kActivationLeakyReLU;
        if (s->slope != 0.f) f->params = {s->slope};
    } else if (const auto* s = graph.as<Clip>(index, "Clip")) {
        f->type = kActivationClip;
        f->params = {s->min, s->max};
    } else if (const auto* s = graph.as<HardSwish>(index, "HardSwish")) {
        f->type = kActivationHardSwish;
        f->params = {s->alpha, s->beta};
    } else if (const auto* s = graph.as<GELU>(index, "GELU")) {
        f->type = kActivationGelu;
        f->params = {s->fast_gelu ? 1.f : 0.f};
    } else if (graph.is(index, "Sigmoid")) {
        f->type = kActivationSigmoid;
    } else if (graph.is(index, "Mish")) {
        f->type = kActivationMish;
    } else if (const auto* s = graph.as<Swish>(index, "Swish")) {
        if (s->beta != 1.f) return false;
        f->type = kActivationSwish;
    } else {
        return false;
    }
    return true;
}

// The layer that computes `type` of `blob` and is read by `reader` alone; -1 if there is none.
int gate_of(const LayerGraph& graph, int blob, int reader, const char* type) {
    const int gate = graph.producer(blob);
    return gate >= 0 && graph.is(gate, type) && graph.only_reader(gate) == reader ? gate : -1;
}

}  // namespace

int fuse_activation(LayerGraph& graph, int index, const LayerMaker&) {
    WeightedLayer w;
    FoundActivation f;
    const int next = graph.only_reader(index);
    if (next < 0 || !weighted_layer(graph, index, &w) || !w.activates ||
        !activation_of_layer(graph, next, &f))
        return 0;
    Mat params;
    if (!f.params.empty()) {
        params.create((int)f.params.size());
        if (params.empty()) return kOutOfMemory;
        for (size_t i = 0; i < f.params.size(); i++) params[i] = f.params[i];
    }
    *w.activation_type = f.type;
    *w.activation_params = params;
    const std::string what = graph.layer(next)->type + " into " + graph.layer(index)->type;
    graph.absorb(index, next, false, what.c_str());
    return 1;
}

int merge_gate(LayerGraph& graph, int index, const LayerMaker& make) {
    if (const auto* s = graph.as<PReLU>(index, "PReLU")) {
        if (s->num_slope != 1) return 0;
        std::unique_ptr<Layer> relu(make("ReLU"));
        if (!relu) return 0;  // left out of this build
        static_cast<ReLU&>(*relu).slope = s->slope_data[0];
        graph.replace(index, std::move(relu), s->bottoms, "PReLU with one slope to ReLU");
        return 1;
    }
    const auto* mul = graph.as<BinaryOp>(index, "BinaryOp");
    if (!mul || mul->op_type != BinaryOp::MUL || mul->with_scalar || mul->bottoms.size() != 2)
        return 0;
    for (int side : {0, 1}) {
        const int x = mul->bottoms[side], gated = mul->bottoms[1 - side];
        const int sigmoid = gate_of(graph, gated, index, "Sigmoid");
        const int hard = gate_of(graph, gated, index, "HardSigmoid");
        const int gate = sigmoid >= 0 ? sigmoid : hard;
        if (gate < 0 || graph.layer(gate)->bottoms[0] != x) continue;
        std::unique_ptr<Layer> with(make(sigmoid >= 0 ? "Swish" : "HardSwish"));
        if (!with) return 0;
        if (sigmoid < 0) {
            const auto* s = graph.as<HardSigmoid>(hard, "HardSigmoid");
            static_cast<HardSwish&>(*with).alpha = s->alpha;
            static_cast<HardSwish&>(*with).beta = s->beta;
        }
        graph.replace(index, std::move(with), {x},
                      sigmoid >= 0 ? "x * Sigmoid(x) to Swish" : "x * HardSigmoid(x) to HardSwish");
        graph.remove(gate);
        return 1;
    }
    return 0;
}

}  // namespace quoll
