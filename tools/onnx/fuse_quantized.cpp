// What quantisation at run time writes around MatMulInteger, as the one operator that it is.
#include "onnx/fuse.h"
#include "onnx/quantized.h"

namespace quoll {
namespace onnx_tool {

namespace {

std::string input(const Node& node, size_t i) {
    return i < node.inputs.size() ? node.inputs[i] : std::string();
}

// Cast(MatMulInteger(q, w, q's zero point, w's)) * (q's scale * w's), where q is a
// DynamicQuantizeLinear of x, which others may read, too.
bool product_by_range(Match& m) {
    for (size_t i = 0; i < 2; i++) {
        const Node* cast = m.maker(m.last.inputs[i], "Cast");
        const Node* scales = m.maker(m.last.inputs[1 - i], "Mul");
        const Node* product = cast ? m.maker(cast->inputs[0], "MatMulInteger") : nullptr;
        const Node* range =
            product ? m.maker(product->inputs[0], "DynamicQuantizeLinear") : nullptr;
        if (!scales || !range || range->outputs.size() != 3 ||
            !m.same(input(*product, 2), range->outputs[2]))
            continue;
        const std::string w = input(*product, 1), zero = input(*product, 3);
        for (size_t j = 0; j < 2; j++) {
            const std::string scale = scales->inputs[1 - j];
            const Tensor *values = m.constant(w), *factor = m.constant(scale);
            const Tensor* point = zero.empty() ? nullptr : m.constant(zero);
            if (!m.same(scales->inputs[j], range->outputs[1]) || !values || !factor ||
                (!zero.empty() && !point) || !is_integer_weight(*values, *factor, point))
                continue;
            Node node = m.node("DynamicQuantizeMatMul", {range->inputs[0], w, scale, zero});
            node.domain = "com.microsoft";
            if (zero.empty()) node.inputs.pop_back();
            return m.replace_open(node);
        }
    }
    return false;
}

}  // namespace

std::vector<Pattern> quantized_patterns() {
    return {{"Mul", "int8 product of a quantised range", product_by_range, true}};
}

}  // namespace onnx_tool
}  // namespace quoll
