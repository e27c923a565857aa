// Quantised tensors.
#include <algorithm>

#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

namespace {

bool matmul_integer(Op& op) {
    Value *a = op.in(0), *b = op.in(1);
    const int rank = std::max(a->rank(), b->rank());
    if (a->rank() < 2 || b->rank() < 2 || rank > 4) return op.fail("rank %d", rank);
    std::vector<std::string> from = {op.plain(a), op.plain(b)};
    for (int i = 2; i < 4; i++)
        if (op.has(i)) from.push_back(op.plain(op.in(i)));
    for (const std::string& blob : from)
        if (blob.empty()) return false;
    ModelLayer& layer = op.emit("MatMulInteger", from);
    if (op.has(2)) layer.set("a_zero_point_input", 1);
    if (op.has(3)) layer.set("b_zero_point_input", 1);
    Value x, y;
    x.shape.assign(a->shape.begin(), a->shape.end() - 2);
    y.shape.assign(b->shape.begin(), b->shape.end() - 2);
    std::vector<Dim> shape;
    if (!broadcast_shape(op, {&x, &y}, &shape)) return false;
    shape.push_back(a->shape[a->rank() - 2]);
    shape.push_back(b->shape[b->rank() - 1]);
    op.set(0, ElementType::kInt32, shape, Form::plain(rank), layer.outputs[0]);
    return true;
}

}  // namespace

OpTable quantize_ops() {
    return {
        {"", "MatMulInteger", 10, 0, matmul_integer, "ranks 2 to 4"},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
