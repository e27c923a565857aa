// Losses, which exporters leave in models that are given labels.
#include "onnx/nodes.h"
#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

namespace {

// Of logarithms of probabilities, [items, classes, ...], with the labels of input 1, [items, ...],
// and the weights of classes of input 2.
bool negative_log_likelihood(Op& op, Nodes& n, const std::string& log_probabilities) {
    std::string labels = n.in(1), ignored, weights;
    if (op.has_attr("ignore_index")) {
        labels = n.cast(labels, ElementType::kInt64);
        const std::string zero = n.constant(Tensor::of_ints({0}, true));
        ignored = n.add("Equal",
                        {labels, n.constant(Tensor::of_ints({op.attr("ignore_index", 0)}, true))});
        labels = n.add("Where", {ignored, zero, labels});
    }
    const std::string axis = n.ints({1});
    const std::string chosen =
        n.add("GatherElements", {log_probabilities, n.add("Unsqueeze", {labels, axis})},
              {{"axis", attribute_of((int64_t)1)}});
    std::string loss = n.add("Neg", {n.add("Squeeze", {chosen, axis})});
    if (op.has(2)) weights = n.add("Gather", {n.in(2), labels});
    if (!ignored.empty())
        weights = n.add("Where", {ignored, n.scalar(0.f), op.has(2) ? weights : n.scalar(1.f)});
    if (!weights.empty()) loss = n.add("Mul", {loss, weights});
    if (!ignored.empty()) loss = n.add("Where", {ignored, n.scalar(0.f), loss});  // of class 0
    const std::string reduction = op.attr_string("reduction", "mean");
    const Attributes all = {{"keepdims", attribute_of((int64_t)0)}};
    if (reduction == "none") return n.set(0, loss);
    if (reduction == "sum") return n.set(0, n.add("ReduceSum", {loss}, all));
    if (reduction != "mean") return op.fail("reduction %s", reduction.c_str());
    if (weights.empty()) return n.set(0, n.add("ReduceMean", {loss}, all));
    return n.set(
        0, n.add("Div", {n.add("ReduceSum", {loss}, all), n.add("ReduceSum", {weights}, all)}));
}

bool nll_loss(Op& op) {
    if (op.in(0)->rank() < 2) return op.fail("rank %d, expected 2 or more", op.in(0)->rank());
    Nodes n(op);
    return negative_log_likelihood(op, n, n.in(0));
}

bool softmax_cross_entropy(Op& op) {
    if (op.in(0)->rank() < 2) return op.fail("rank %d, expected 2 or more", op.in(0)->rank());
    Nodes n(op);
    const std::string logs = n.add("LogSoftmax", {n.in(0)}, {{"axis", attribute_of((int64_t)1)}});
    return negative_log_likelihood(op, n, logs) && (!op.wants(1) || n.set(1, logs));
}

}  // namespace

OpTable loss_ops() {
    return {
        {"", "NegativeLogLikelihoodLoss", 12, 0, nll_loss, "", 2},
        {"", "SoftmaxCrossEntropyLoss", 12, 0, softmax_cross_entropy, "", 2},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
