// Operators of com.microsoft on images whose channels are the last axis: those of diffusion models,
// and those that quantised models have once ONNX Runtime has optimised them.
#include "onnx/nodes.h"
#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

namespace {

// The last axis behind the first.
std::string channels_first(Nodes& n, const std::string& x) {
    const Value* v = n.value(x);
    if (!v) return "";
    std::vector<int64_t> perm = {0, v->rank() - 1};
    for (int64_t a = 1; a + 1 < v->rank(); a++) perm.push_back(a);
    return n.transpose(x, perm);
}

std::string channels_last(Nodes& n, const std::string& x) {
    const Value* v = n.value(x);
    if (!v) return "";
    std::vector<int64_t> perm = {0};
    for (int64_t a = 2; a < v->rank(); a++) perm.push_back(a);
    perm.push_back(1);
    return n.transpose(x, perm);
}

// Normalises x, with Swish behind it if asked.
bool normalize(Op& op, Nodes& n, std::string x) {
    const bool last = op.attr("channels_last", 1) != 0;
    if (last) x = channels_first(n, x);
    std::string y = n.add("GroupNormalization", {x, n.in(1), n.in(2)},
                          {{"num_groups", attribute_of(op.attr("groups", 1))},
                           {"epsilon", attribute_of(op.attr_float("epsilon", 1e-5f))}});
    if (op.attr("activation", 0)) y = n.add("Mul", {y, n.add("Sigmoid", {y})});
    return n.set(0, last ? channels_last(n, y) : y);
}

bool group_norm(Op& op) {
    if (op.in(0)->rank() < 3) return op.fail("rank %d", op.in(0)->rank());
    Nodes n(op);
    return normalize(op, n, n.in(0));
}

// X, gamma, beta, skip, bias. The skip is an image, or has one value a channel and item.
bool skip_group_norm(Op& op) {
    const int rank = op.in(0)->rank(), skip_rank = op.in(3)->rank();
    if (rank != 4 || (skip_rank != 4 && skip_rank != 2))
        return op.fail("ranks %d and %d", rank, skip_rank);
    Nodes n(op);
    const bool last = op.attr("channels_last", 1) != 0;
    const std::vector<int64_t> pixels =
        last ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{2, 3};
    std::string skip = n.in(3);
    if (skip_rank == 2) skip = n.add("Unsqueeze", {skip, n.ints(pixels)});
    std::string sum = n.add("Add", {n.in(0), skip});
    if (op.has(4)) {
        const std::string bias = last ? n.in(4) : n.add("Unsqueeze", {n.in(4), n.ints({1, 2})});
        sum = n.add("Add", {sum, bias});
    }
    return normalize(op, n, sum) && (!op.wants(1) || n.set(1, sum));
}

// X, bias, skip.
bool bias_add(Op& op) {
    Nodes n(op);
    return n.set(0, n.add("Add", {n.add("Add", {n.in(0), n.in(1)}), n.in(2)}));
}

// The first half of the channels by the GELU of the others.
bool bias_split_gelu(Op& op) {
    const Value* bias = op.in(1);
    if (bias->rank() != 1 || !bias->shape[0].known() || bias->shape[0].value % 2 != 0)
        return op.fail("expected a bias of an even number of values");
    const int64_t half = bias->shape[0].value / 2;
    Nodes n(op);
    const std::string sum = n.add("Add", {n.in(0), n.in(1)});
    if (!n.ok()) return false;
    const std::string gate = n.add("Gelu", {n.slice(sum, -1, half, 2 * half)});
    return n.set(0, n.add("Mul", {n.slice(sum, -1, 0, half), gate}));
}

// Weights with the channels last, too.
bool nhwc_conv(Op& op) {
    Nodes n(op);
    std::vector<std::string> inputs = {channels_first(n, n.in(0)), channels_first(n, n.in(1))};
    if (op.has(2)) inputs.push_back(n.in(2));
    return n.set(0, channels_last(n, n.add("Conv", inputs, op.node.attributes)));
}

bool nhwc_max_pool(Op& op) {
    Nodes n(op);
    const std::string x = channels_first(n, n.in(0));
    return n.set(0, channels_last(n, n.add("MaxPool", {x}, op.node.attributes)));
}

// ONNX's, but for where the channels are; those of weights come first.
bool ms_qlinear_conv(Op& op) {
    Nodes n(op);
    Attributes attributes = op.node.attributes;
    const bool last = op.attr("channels_last", 0) != 0;
    attributes.erase("channels_last");
    std::vector<std::string> inputs;
    for (int i = 0; i < op.inputs(); i++) inputs.push_back(n.in(i));
    if (last) inputs[0] = channels_first(n, inputs[0]);
    const std::string y = n.add("QLinearConv", inputs, attributes);
    return n.set(0, last ? channels_last(n, y) : y);
}

}  // namespace

OpTable channels_last_ops() {
    const char* const ms = "com.microsoft";
    return {
        {ms, "BiasAdd", 1, 0, bias_add, "", 3},
        {ms, "BiasSplitGelu", 1, 0, bias_split_gelu, "", 2},
        {ms, "GroupNorm", 1, 0, group_norm, "", 3},
        {ms, "NhwcConv", 1, 0, nhwc_conv, "", 2},
        {ms, "NhwcMaxPool", 1, 0, nhwc_max_pool, ""},
        {ms, "QLinearConv", 1, 0, ms_qlinear_conv,
         "int8 as docs/tools/onnx2engine.md says; else in float32", 8},
        {ms, "SkipGroupNorm", 1, 0, skip_group_norm, "", 4},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
