#include "graph/passes.h"
#include "layer/control/memorydata.h"
#include "layer/elementwise/binaryop.h"
#include "layer/elementwise/eltwise.h"

namespace quoll {

namespace {

// Whether the layer is the plain sum of two blobs.
bool adds_two(const LayerGraph& graph, int index) {
    const auto* op = as_built<BinaryOp>(graph, index);
    const auto* sum = as_built<Eltwise>(graph, index);
    const bool adds = (op && op->op_type == BinaryOp::ADD && !op->with_scalar) ||
                      (sum && sum->op_type == Eltwise::SUM && sum->coeffs.empty());
    if (!adds) return false;
    const std::vector<int>& in = graph.layer(index)->bottoms;
    return in.size() == 2 && in[0] != in[1] && graph.layer(index)->tops.size() == 1;
}

}  // namespace

int fuse_residual(LayerGraph& graph, int index, const LayerMaker&) {
    Convolution* found = graph.as<Convolution>(index);
    const int next = found && !found->grouped ? graph.only_reader(index) : -1;
    if (next < 0 || !adds_two(graph, next)) return 0;
    Convolution& conv = *found;
    if (conv.activation_type != kActivationNone || conv.dynamic_weight || conv.add_input ||
        conv.int8_affine || conv.int8_output() || conv.bottoms.size() != 1)
        return 0;
    const std::vector<int>& in = graph.layer(next)->bottoms;
    const int added = graph.producer(in[in[0] == conv.tops[0] ? 1 : 0]);
    // If both are convolutions, the later one takes the sum; constants belong into the bias.
    if (added > index || graph.is<MemoryData>(added)) return 0;
    const std::string what = graph.layer(next)->type + " into " + conv.type;
    conv.adds_alike = as_built<Eltwise>(graph, next) != nullptr;
    graph.absorb(index, next, true, what.c_str());
    conv.add_input = 1;
    return conv.check_inputs() == kOk ? 1 : (int)kError;
}

}  // namespace quoll
