// Mixtures of experts: MoE and QMoE of com.microsoft. All experts see all rows; those that a row
// has not chosen have the weight 0.
#include <string.h>

#include "onnx/nodes.h"
#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

namespace {

// The inputs that belong to a product; -1: it has none.
struct ProductInputs {
    int weights, scales, bias, zeros;
};

struct Mixture {
    ProductInputs first, second, third;
    bool quantized = false;
    int64_t experts = 0;
};

// Which rows of weights that are experts x rows, or experts x rows x columns: every step-th of one
// of `parts` equal parts of them all.
struct Rows {
    int64_t parts, part, first, step;
};

Tensor rows_of(const Tensor& all, const Rows& which) {
    const int64_t rows = all.dims[0] * all.dims[1] / which.parts;
    const int64_t columns = all.rank() > 2 ? all.dims[2] : 1;
    std::vector<int64_t> dims(all.dims.begin() + 1, all.dims.end());
    dims[0] = rows / which.step;
    Tensor part = Tensor::unset(all.type, dims);
    const size_t bytes = (size_t)columns * all.value_size();
    for (int64_t r = 0; r < dims[0]; r++) {
        const int64_t from = which.part * rows + which.first + r * which.step;
        memcpy(part.bytes() + (size_t)r * bytes, all.bytes() + (size_t)from * bytes, bytes);
    }
    return part;
}

bool is_absent(const Op& op, int i) { return i < 0 || !op.has(i); }

// What a product has is constant, and of as many experts and rows as its weights.
bool check_product(Op& op, const Mixture& m, const ProductInputs& in) {
    if (is_absent(op, in.weights)) return true;
    for (int i : {in.weights, in.scales, in.bias, in.zeros}) {
        if (is_absent(op, i)) continue;
        if (!op.in(i)->is_constant()) return op.fail("weights that are not constant");
        const std::vector<int64_t>&dims = op.in(i)->constant->dims,
              &own = op.in(in.weights)->constant->dims;
        if (dims.size() < 2 || dims.size() > 3 || own.size() != 3 || dims[0] != m.experts ||
            (i == in.zeros && dims.size() != 3) || dims[1] != own[1])
            return op.fail("input %d of other sizes than the weights it goes with", i);
    }
    return !m.quantized || !is_absent(op, in.scales) || op.fail("weights without scales");
}

// Bits of a weight of product fc1, fc2 or fc3.
int64_t bits_of_product(const Op& op, int number) {
    const std::string own = "fc" + std::to_string(number) + "_expert_weight_bits";
    return op.attr(own.c_str(), op.attr("expert_weight_bits", 4));
}

// The product of x and such rows of the weights, and their bias.
std::string product(Op& op, Nodes& n, const std::string& x, const ProductInputs& in, int number,
                    const Rows& which) {
    const Tensor weights = rows_of(*op.in(in.weights)->constant, which);
    std::string y;
    if (is_absent(op, in.scales)) {
        y = n.add("MatMul", {x, n.constant(weights.transposed({1, 0}))});
    } else {
        const int64_t bits = bits_of_product(op, number);
        const int64_t k = bits > 0 ? weights.dims[1] * 8 / bits : 0;
        Node node = op.node;
        node.op = "MatMulNBits";
        node.attributes = {{"K", attribute_of(k)},
                           {"N", attribute_of(weights.dims[0])},
                           {"bits", attribute_of(bits)},
                           {"block_size", attribute_of(op.attr("block_size", k))}};
        node.inputs = {x, n.constant(weights),
                       n.constant(rows_of(*op.in(in.scales)->constant, which))};
        if (!is_absent(op, in.zeros))
            node.inputs.push_back(n.constant(rows_of(*op.in(in.zeros)->constant, which)));
        node.outputs = {op.c.unique_value(op.node.label() + "/product")};
        y = n.run(node) ? node.outputs[0] : "";
    }
    if (is_absent(op, in.bias)) return y;
    return n.add("Add", {y, n.constant(rows_of(*op.in(in.bias)->constant, which))});
}

// min(gate, limit) * sigmoid(alpha gate) * (clip(up, -limit, limit) + beta).
std::string swiglu(Op& op, Nodes& n, std::string gate, std::string up) {
    if (op.has_attr("swiglu_limit")) {
        const float limit = op.attr_float("swiglu_limit", 0.f);
        gate = n.add("Min", {gate, n.scalar(limit)});
        up = n.add("Clip", {up, n.scalar(-limit), n.scalar(limit)});
    }
    const float alpha = op.attr_float("activation_alpha", 1.f);
    const float beta = op.attr_float("activation_beta", 0.f);
    const std::string scaled = alpha == 1.f ? gate : n.add("Mul", {gate, n.scalar(alpha)});
    if (beta != 0.f) up = n.add("Add", {up, n.scalar(beta)});
    return n.add("Mul", {n.add("Mul", {gate, n.add("Sigmoid", {scaled})}), up});
}

bool is_activation(const std::string& type) {
    return type == "identity" || type == "relu" || type == "silu" || type == "gelu";
}

std::string activate(Nodes& n, const std::string& type, const std::string& x) {
    if (type == "identity") return x;
    if (type == "relu") return n.add("Relu", {x});
    if (type == "silu") return n.add("Mul", {x, n.add("Sigmoid", {x})});
    return n.add("Gelu", {x}, {{"approximate", attribute_of(std::string("tanh"))}});
}

// What one expert makes of all rows.
std::string expert(Op& op, Nodes& n, const Mixture& m, const std::string& x, int64_t e) {
    const std::string type = op.attr_string("activation_type", "relu");
    const Rows whole = {m.experts, e, 0, 1};
    const bool glu = type == "swiglu";
    std::string hidden;
    if (glu && is_absent(op, m.third.weights)) {
        const bool interleaved = op.attr("swiglu_fusion", 0) == 1;
        const auto half = [&](int64_t i) -> Rows {
            if (interleaved) return {m.experts, e, i, 2};
            return {2 * m.experts, 2 * e + i, 0, 1};
        };
        hidden = swiglu(op, n, product(op, n, x, m.first, 1, half(0)),
                        product(op, n, x, m.first, 1, half(1)));
    } else {
        const bool gated = !is_absent(op, m.third.weights);
        hidden = product(op, n, x, m.first, 1, whole);
        const std::string up = gated ? product(op, n, x, m.third, 3, whole) : "";
        if (glu) {
            hidden = swiglu(op, n, hidden, up);
        } else {
            hidden = activate(n, type, hidden);
            if (gated) hidden = n.add("Mul", {hidden, up});
        }
    }
    return product(op, n, hidden, m.second, 2, whole);
}

// rows x experts: the weight of each expert, 0 of those that a row has not chosen.
std::string mixing_weights(Op& op, Nodes& n, const Mixture& m) {
    const Attributes last = {{"axis", attribute_of((int64_t)-1)}};
    const bool others = m.quantized && op.has(14);
    const std::string scores = others ? n.in(1) : n.add("Softmax", {n.in(1)}, last);
    const std::vector<std::string> top =
        n.add_many("TopK", {scores, n.ints({op.attr("k", 1)})}, last, 2);
    std::string weights = others ? n.add("GatherElements", {n.in(14), top[1]}, last) : top[0];
    if (op.attr("normalize_routing_weights", 0) == 1 || (m.quantized && !others))
        weights = n.add("Div", {weights, n.add("ReduceSum", {weights, n.ints({-1})})});
    std::vector<int64_t> numbers;
    for (int64_t e = 0; e < m.experts; e++) numbers.push_back(e);
    const std::string chosen =
        n.add("Equal", {n.add("Unsqueeze", {top[1], n.ints({2})}), n.ints(numbers)});
    weights = n.add("Where", {chosen, n.add("Unsqueeze", {weights, n.ints({2})}), n.scalar(0.f)});
    return n.add("ReduceSum", {weights, n.ints({1})}, {{"keepdims", attribute_of((int64_t)0)}});
}

bool mixture(Op& op, Mixture* m) {
    const Value* weights = op.in(m->first.weights);
    if (is_absent(op, m->second.weights)) return op.fail("it lacks input %d", m->second.weights);
    const int rank = op.in(0)->rank();
    if ((rank != 2 && rank != 3) || op.in(1)->rank() != 2)
        return op.fail("rank %d, rows of experts of rank %d", rank, op.in(1)->rank());
    if (weights->rank() != 3 || !weights->is_constant())
        return op.fail("weights that are not constant");
    m->experts = weights->constant->dims[0];
    const int64_t k = op.attr("k", 1);
    if (m->experts < 1 || k < 1 || k > m->experts)
        return op.fail("%lld of %lld experts", (long long)k, (long long)m->experts);
    const std::string type = op.attr_string("activation_type", "relu");
    const bool glu = type == "swiglu";
    if (!glu && !is_activation(type)) return op.fail("activation_type %s", type.c_str());
    const bool fused = op.attr("swiglu_fusion", 0) != 0;
    if (glu && (fused != is_absent(op, m->third.weights)))
        return op.fail("swiglu_fusion does not say where its two products are");
    if (glu && fused && weights->constant->dims[1] % 2 != 0)
        return op.fail("an odd number of rows for two products");
    if (op.attr("use_sparse_mixer", 0) == 1 || op.attr("swiglu_limit_after_activation", 0) == 1)
        return op.fail("use_sparse_mixer or swiglu_limit_after_activation");
    for (const ProductInputs& in : {m->first, m->second, m->third})
        if (!check_product(op, *m, in)) return false;
    Nodes n(op);
    const std::string rows =
        rank == 2 ? n.in(0) : n.add("Flatten", {n.in(0)}, {{"axis", attribute_of((int64_t)2)}});
    const std::string mix = mixing_weights(op, n, *m);
    std::string sum;
    for (int64_t e = 0; e < m->experts && n.ok(); e++) {
        const std::string one =
            n.add("Mul", {expert(op, n, *m, rows, e), n.slice(mix, 1, e, e + 1)});
        sum = sum.empty() ? one : n.add("Add", {sum, one});
    }
    return n.set(0, rank == 2 ? sum : n.add("Reshape", {sum, n.add("Shape", {n.in(0)})}));
}

bool moe(Op& op) {
    Mixture m;
    m.first = {2, -1, 3, -1}, m.second = {4, -1, 5, -1}, m.third = {6, -1, 7, -1};
    return mixture(op, &m);
}

bool q_moe(Op& op) {
    if (op.attr_string("quant_type", "int") != "int")
        return op.fail("quant_type %s, expected int", op.attr_string("quant_type", "").c_str());
    Mixture m;
    m.first = {2, 3, 4, 11}, m.second = {5, 6, 7, 12}, m.third = {8, 9, 10, 13};
    m.quantized = true;
    return mixture(op, &m);
}

}  // namespace

OpTable expert_ops() {
    const char* const ms = "com.microsoft";
    return {
        {ms, "MoE", 1, 0, moe, "constant weights; all experts are computed for all rows", 3},
        {ms, "QMoE", 1, 0, q_moe,
         "as MoE; integers of 2, 4 or 8 bits, kept as those of MatMulNBits; zero points by blocks",
         3},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
