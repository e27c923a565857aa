// Operators of the first opsets that ONNX has withdrawn and ONNX Runtime still runs.
#include "onnx/nodes.h"
#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

namespace {

// x * alpha + beta.
bool affine(Op& op) {
    Nodes n(op);
    const std::string y = n.add("Mul", {n.in(0), n.scalar(op.attr_float("alpha", 1.f))});
    return n.set(0, n.add("Add", {y, n.scalar(op.attr_float("beta", 0.f))}));
}

bool scale(Op& op) {
    Nodes n(op);
    return n.set(0, n.add("Mul", {n.in(0), n.scalar(op.attr_float("scale", 1.f))}));
}

// alpha * f(beta * x).
bool scaled(Op& op, const char* type) {
    Nodes n(op);
    const std::string x = n.add("Mul", {n.in(0), n.scalar(op.attr_float("beta", 1.f))});
    return n.set(0, n.add("Mul", {n.add(type, {x}), n.scalar(op.attr_float("alpha", 1.f))}));
}
bool scaled_tanh(Op& op) { return scaled(op, "Tanh"); }
bool parametric_softplus(Op& op) { return scaled(op, "Softplus"); }

// An image times one number, plus one for each channel.
bool image_scaler(Op& op) {
    const std::vector<float> bias = op.attr_floats("bias");
    const Value* x = op.in(0);
    if (x->rank() != 4) return op.fail("rank %d, expected 4", x->rank());
    if (x->shape[1].known() && x->shape[1].value != (int64_t)bias.size())
        return op.fail("%zu biases for %lld channels", bias.size(), (long long)x->shape[1].value);
    Tensor biases(ElementType::kFloat, {(int64_t)bias.size(), 1, 1});
    for (size_t i = 0; i < bias.size(); i++) biases.set_float(i, bias[i]);
    Nodes n(op);
    const std::string y = n.add("Mul", {n.in(0), n.scalar(op.attr_float("scale", 1.f))});
    return n.set(0, n.add("Add", {y, n.constant(biases)}));
}

// border: left, top, right, bottom; scale: height and width, in the place of right and bottom.
bool crop(Op& op) {
    const std::vector<int64_t> border = op.attr_ints("border"), size = op.attr_ints("scale");
    const Value* x = op.in(0);
    if (x->rank() != 4 || border.size() != 4 || (!size.empty() && size.size() != 2))
        return op.fail("rank %d, %zu borders, %zu sizes", x->rank(), border.size(), size.size());
    std::vector<int64_t> ends;
    for (int i = 0; i < 2; i++) {
        const int64_t first = border[(size_t)(1 - i)], last = border[(size_t)(3 - i)];
        if (first < 0 || last < 0) return op.fail("borders below 0");
        if (!size.empty())
            ends.push_back(first + size[(size_t)i]);
        else
            ends.push_back(last > 0 ? -last : INT32_MAX);
    }
    Nodes n(op);
    return n.set(
        0, n.add("Slice", {n.in(0), n.ints({border[1], border[0]}), n.ints(ends), n.ints({2, 3})}));
}

}  // namespace

OpTable experimental_ops() {
    return {
        {"", "Affine", 7, 0, affine, ""},
        {"", "Crop", 7, 0, crop, ""},
        {"", "ImageScaler", 7, 0, image_scaler, ""},
        {"", "ParametricSoftplus", 7, 0, parametric_softplus, ""},
        {"", "Scale", 7, 0, scale, ""},
        {"", "ScaledTanh", 7, 0, scaled_tanh, ""},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
