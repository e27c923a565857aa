// Operators of com.microsoft that are others in one node.
#include <math.h>

#include <algorithm>

#include "onnx/block_weights.h"
#include "onnx/nodes.h"
#include "onnx/ops.h"
#include "onnx/quantized.h"

namespace quoll {
namespace onnx_tool {

namespace {

bool fast_gelu(Op& op) {
    Nodes n(op);
    const std::string x = op.has(1) ? n.add("Add", {n.in(0), n.in(1)}) : n.in(0);
    return n.set(0, n.add("Gelu", {x}, {{"approximate", attribute_of(std::string("tanh"))}}));
}

// The activation of FusedConv and FusedGemm; `x` as it is if there is none.
std::string activate(Op& op, Nodes& n, const std::string& x) {
    const std::string type = op.attr_string("activation", "");
    std::vector<float> p = op.attr_floats("activation_params");
    if (type.empty()) return x;
    if (type == "Clip") {
        if (p.size() != 2) p = {-3.4e38f, 3.4e38f};
        return n.add("Clip", {x, n.scalar(p[0]), n.scalar(p[1])});
    }
    Attributes attributes;
    if (p.size() > 0) attributes["alpha"] = attribute_of(p[0]);
    if (p.size() > 1) attributes["beta"] = attribute_of(p[1]);
    for (const char* name : {"alpha", "beta", "gamma"}) {
        const std::string given = std::string("activation_") + name;
        if (op.has_attr(given.c_str()))
            attributes[name] = attribute_of(op.attr_float(given.c_str(), 0.f));
    }
    return n.add(type, {x}, attributes);
}

Attributes without_activation(const Op& op) {
    Attributes kept = op.node.attributes;
    for (const char* name : {"activation", "activation_params", "activation_alpha",
                             "activation_beta", "activation_gamma"})
        kept.erase(name);
    return kept;
}

bool fused_conv(Op& op) {
    Nodes n(op);
    std::vector<std::string> inputs = {n.in(0), n.in(1)};
    if (op.has(2)) inputs.push_back(n.in(2));
    std::string out = n.add("Conv", inputs, without_activation(op));
    if (op.has(3)) out = n.add("Add", {out, n.in(3)});
    return n.set(0, activate(op, n, out));
}

bool fused_gemm(Op& op) {
    Nodes n(op);
    std::vector<std::string> inputs = {n.in(0), n.in(1)};
    if (op.has(2)) inputs.push_back(n.in(2));
    return n.set(0, activate(op, n, n.add("Gemm", inputs, without_activation(op))));
}

// Operands whose last two axes are swapped (trans), or whose first axes go behind all of the batch
// (transBatch): axes 0, 1, ..., r - 2, r - 1 stand as 1, ..., r - 2, 0, r - 1.
std::string operand(Op& op, Nodes& n, int input, bool swapped, bool batch) {
    const int rank = op.in(input)->rank();
    if (rank < 2 || (!swapped && !batch)) return n.in(input);
    std::vector<int64_t> perm;
    for (int64_t a = 0; a < rank; a++) perm.push_back(a);
    if (batch) {
        for (int a = 0; a + 2 < rank; a++) perm[a] = a + 1;
        perm[rank - 2] = 0;
    }
    if (swapped) std::swap(perm[rank - 2], perm[rank - 1]);
    return n.transpose(n.in(input), perm);
}

bool fused_matmul(Op& op) {
    Nodes n(op);
    const std::string a =
        operand(op, n, 0, op.attr("transA", 0) != 0, op.attr("transBatchA", 0) != 0);
    const std::string b =
        operand(op, n, 1, op.attr("transB", 0) != 0, op.attr("transBatchB", 0) != 0);
    const float alpha = op.attr_float("alpha", 1.f);
    const std::string out = n.add("MatMul", {a, b});
    return n.set(0, alpha == 1.f ? out : n.add("Mul", {out, n.scalar(alpha)}));
}

// input_ids, segment_ids, word, position and segment embeddings, gamma, beta, mask, position_ids.
bool embed_layer_norm(Op& op) {
    if (op.in(0)->rank() != 2) return op.fail("rank %d", op.in(0)->rank());
    for (int i : {2, 3, 5, 6})
        if (!op.has(i)) return op.fail("it lacks input %d", i);
    Nodes n(op);
    std::string sum = n.add("Gather", {n.in(2), n.in(0)}), at = n.in(8);
    if (at.empty()) {
        const std::string zero = n.constant(Tensor::of_ints({0}, true));
        const std::string one = n.constant(Tensor::of_ints({1}, true));
        const std::string length = n.add("Gather", {n.add("Shape", {n.in(0)}), one});
        at = n.add("Unsqueeze", {n.add("Range", {zero, length, one}), n.ints({0})});
    }
    sum = n.add("Add", {sum, n.add("Gather", {n.in(3), at})});
    if (op.has(1) && op.has(4)) sum = n.add("Add", {sum, n.add("Gather", {n.in(4), n.in(1)})});
    const float eps = op.attr_float("epsilon", 1e-12f);
    if (!n.set(0, n.add("LayerNormalization", {sum, n.in(5), n.in(6)},
                        {{"epsilon", attribute_of(eps)}})))
        return false;
    if (op.wants(1)) {
        // Without a mask zeros, which ONNX Runtime's tools ask for although nothing reads them.
        const std::string sums =
            op.has(7)
                ? n.add("ReduceSum", {n.in(7), n.ints({1})},
                        {{"keepdims", attribute_of((int64_t)0)}})
                : n.cast(n.add("ConstantOfShape", {n.slice(n.add("Shape", {n.in(0)}), 0, 0, 1)}),
                         ElementType::kInt32);
        if (!n.set(1, sums)) return false;
    }
    return !op.wants(2) || n.set(2, sum);
}

// Weights of 2, 4 or 8 bits, one scale per block of a row.
bool unpack_weights(Op& op, Tensor* w) {
    const int64_t k = op.attr("K", 0), rows = op.attr("N", 0), bits = op.attr("bits", 4),
                  block = op.attr("block_size", 32);
    for (int i : {1, 2, 3})
        if (op.has(i) && !op.in(i)->is_constant()) return op.fail("weights that are not constant");
    if (k < 1 || rows < 1 || block < 1 || block > 1 << 20 || (bits != 2 && bits != 4 && bits != 8))
        return op.fail("K %lld, N %lld, block_size %lld, bits %lld", (long long)k, (long long)rows,
                       (long long)block, (long long)bits);
    const int64_t blocks = (k + block - 1) / block, bytes = block * bits / 8, each = 8 / bits;
    const Tensor &data = *op.in(1)->constant, &scales = *op.in(2)->constant;
    const Tensor* zeros = op.has(3) ? op.in(3)->constant.get() : nullptr;
    if (element_count({rows, k}) < 0 ||
        (int64_t)data.count() != element_count({rows, blocks, bytes}) ||
        (int64_t)scales.count() != rows * blocks || data.type != ElementType::kUint8)
        return op.fail("weights of other sizes than N, K and block_size say");
    const int64_t zero_bytes = (blocks * bits + 7) / 8;
    const bool packed = zeros && !is_float(zeros->type);
    if (zeros && (int64_t)zeros->count() != rows * (packed ? zero_bytes : blocks))
        return op.fail("zero points of other sizes than N, K and block_size say");
    const int64_t mask = (1 << bits) - 1;
    *w = Tensor(ElementType::kFloat, {k, rows});
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < k; i++) {
            const int64_t b = i / block, in = i % block;
            const int64_t byte = data.int_at((size_t)((r * blocks + b) * bytes + in / each));
            const int64_t q = (byte >> (in % each * bits)) & mask;
            float zero = (float)(1 << (bits - 1));
            if (packed)
                zero = (float)((zeros->int_at((size_t)(r * zero_bytes + b / each)) >>
                                (b % each * bits)) &
                               mask);
            else if (zeros)
                zero = zeros->float_at((size_t)(r * blocks + b));
            w->set_float((size_t)(i * rows + r),
                         ((float)q - zero) * scales.float_at((size_t)(r * blocks + b)));
        }
    }
    return true;
}

bool matmul_n_bits(Op& op) {
    if (op.has(4)) return op.fail("g_idx");
    if (block_product(op)) return true;
    Tensor w;
    if (!unpack_weights(op, &w)) return false;
    op.c.note("weights of few bits are held as float32 (MatMulNBits)");
    Nodes n(op);
    std::string out = n.add("MatMul", {n.in(0), n.constant(w)});
    if (op.has(5)) out = n.add("Add", {out, n.in(5)});
    return n.set(0, out);
}

// What the codes of bitsandbytes stand for, in units of the largest value of a block: fp4 with a
// mantissa of one bit over 12, and quantiles of the normal distribution (nf4).
const float kBnbValues[2][16] = {
    {0.f, 0.0625f / 12.f, 8.f / 12.f, 1.f, 4.f / 12.f, 6.f / 12.f, 2.f / 12.f, 3.f / 12.f, 0.f,
     -0.0625f / 12.f, -8.f / 12.f, -1.f, -4.f / 12.f, -6.f / 12.f, -2.f / 12.f, -3.f / 12.f},
    {-1.f, -0.69619280f, -0.52507305f, -0.39491749f, -0.28444138f, -0.18477343f, -0.09105004f, 0.f,
     0.07958030f, 0.16093020f, 0.24611230f, 0.33791524f, 0.44070983f, 0.56261700f, 0.72295684f,
     1.f}};

// A, B, absmax: B holds N x K codes, the first of two in the upper bits of a byte.
bool matmul_bnb4(Op& op) {
    const int64_t k = op.attr("K", 0), rows = op.attr("N", 0), block = op.attr("block_size", 0),
                  type = op.attr("quant_type", 0);
    if (op.attr("transB", 1) != 1) return op.fail("transB 0");
    if (!op.in(1)->is_constant() || !op.in(2)->is_constant())
        return op.fail("weights that are not constant");
    const Tensor &codes = *op.in(1)->constant, &scales = *op.in(2)->constant;
    const int64_t count = element_count({rows, k});
    if (k < 1 || rows < 1 || block < 1 || (type != 0 && type != 1) || count < 0 ||
        codes.type != ElementType::kUint8 || (int64_t)codes.count() != (count + 1) / 2 ||
        (int64_t)scales.count() != (count - 1) / block + 1)
        return op.fail("weights of other sizes than N, K and block_size say");
    Tensor w = Tensor::unset(ElementType::kFloat, {k, rows});
    for (int64_t i = 0; i < count; i++) {
        const int code = codes.bytes()[i / 2] >> (i % 2 ? 0 : 4) & 15;
        w.set_float((size_t)(i % k * rows + i / k),
                    kBnbValues[type][code] * scales.float_at((size_t)(i / block)));
    }
    op.c.note("weights of few bits are held as float32 (MatMulBnb4)");
    Nodes n(op);
    return n.set(0, n.add("MatMul", {n.in(0), n.constant(w)}));
}

// Rows of a constant matrix of few bits with a scale for each block of a row. A value less its
// zero point is kept as a byte wherever it fits, and multiplied once it has been chosen.
bool gather_block_quantized(Op& op) {
    const Value *data = op.in(0), *scale = op.in(2), *zero = op.in(3);
    const int64_t bits = op.attr("bits", 4), block = op.attr("block_size", 128);
    if (!data->is_constant() || !scale->is_constant() || (zero && !zero->is_constant()))
        return op.fail("weights, scales or zero points that are not constant");
    if (op.attr("gather_axis", 0) != 0 || data->rank() != 2 || scale->rank() != 2 ||
        (op.attr("quantize_axis", 1) != 1 && op.attr("quantize_axis", 1) != -1))
        return op.fail("expected rows of a matrix, with blocks along axis 1");
    if ((bits != 4 && bits != 8) || block < 1) return op.fail("bits or block_size");
    const Tensor &codes = *data->constant, &scales = *scale->constant;
    const Tensor* zeros = zero ? zero->constant.get() : nullptr;
    // Bytes hold one or two values; those of 4-bit types one.
    const bool bytes = codes.type == ElementType::kUint8;
    const int64_t each = bytes ? 8 / bits : 1, rows = codes.dims[0], k = codes.dims[1] * each;
    const int64_t blocks = (k + block - 1) / block, zero_row = (blocks + each - 1) / each;
    if (scales.dims != std::vector<int64_t>{rows, blocks} ||
        (zeros && (int64_t)zeros->count() != rows * zero_row))
        return op.fail("scales or zero points of other sizes than data and block_size say");
    const auto part = [each, bits](const Tensor& t, int64_t row, int64_t i) {
        const int64_t value = t.int_at((size_t)(row + i / each));
        return each == 1 ? value : value >> (i % each * bits) & 15;
    };
    const auto value_at = [&](int64_t r, int64_t i) {
        const int64_t zero_point = zeros   ? part(*zeros, r * zero_row, i / block)
                                   : bytes ? (int64_t)1 << (bits - 1)
                                           : 0;
        return part(codes, r * codes.dims[1], i) - zero_point;
    };
    bool fits = true;  // always with 4 bits
    for (int64_t r = 0; bits == 8 && r < rows && fits; r++)
        for (int64_t i = 0; i < k && fits; i++) {
            const int64_t v = value_at(r, i);
            fits = v >= -128 && v <= 127;
        }
    Tensor table(fits ? ElementType::kInt8 : ElementType::kInt32, {rows, blocks, block});
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < k; i++)
            table.set_int((size_t)(r * blocks * block + i), value_at(r, i));
    Nodes n(op);
    const Attributes first = {{"axis", attribute_of((int64_t)0)}};
    const std::string chosen = n.add("Gather", {n.constant(table), n.in(1)}, first);
    const std::string factors =
        n.add("Gather", {n.constant(scales.reshaped({rows, blocks, 1})), n.in(1)}, first);
    std::string y = n.add("Mul", {n.cast(chosen, ElementType::kFloat), factors});
    const std::string sizes =
        n.add("Concat", {n.add("Shape", {n.in(1)}), n.ints({blocks * block})}, first);
    y = n.add("Reshape", {y, sizes});
    if (k % block != 0 && n.ok()) y = n.slice(y, op.in(1)->rank(), 0, k);
    return n.set(0, y);
}

// b_zero_point or another operand of a quantized product: floats that the bytes stand for.
std::string dequantized(Nodes& n, const std::string& x, const std::string& scale,
                        const std::string& zero) {
    std::vector<std::string> inputs = {x, scale};
    if (!zero.empty()) inputs.push_back(zero);
    return n.add("DequantizeLinear", inputs);
}

// A scale or a zero point for each column.
bool has_several(const Op& op, int i) {
    return op.has(i) && op.in(i)->rank() == 1 && !op.in(i)->shape[0].is(1);
}

// A vector of scales or of zero points goes along the last axis.
std::string dequantized_matrix(Op& op, Nodes& n, int x, int scale, int zero) {
    std::vector<std::string> inputs = {n.in(x), n.in(scale)};
    if (op.has(zero)) inputs.push_back(n.in(zero));
    const bool columns = has_several(op, scale) || has_several(op, zero);
    return n.add("DequantizeLinear", inputs,
                 {{"axis", attribute_of((int64_t)(columns ? op.in(x)->rank() - 1 : 0))}});
}

bool dynamic_quantize_matmul(Op& op) {
    if (int8_product_by_range(op, op.in(1), op.in(2), op.in(3), op.in(4))) return true;
    Nodes n(op);
    const std::vector<std::string> q = n.add_many("DynamicQuantizeLinear", {n.in(0)}, {}, 3);
    const std::string a = dequantized(n, q[0], q[1], q[2]);
    std::string out = n.add("MatMul", {a, dequantized_matrix(op, n, 1, 2, 3)});
    if (op.has(4)) out = n.add("Add", {out, n.in(4)});
    return n.set(0, out);
}

// A, B, a_scale, b_scale, a_zero_point, b_zero_point, bias.
bool matmul_integer_to_float(Op& op) {
    // ONNX Runtime's fusion takes the scales in the order in which the model multiplies them.
    if (has_several(op, 2) && !has_several(op, 3)) {
        Node exchanged = op.node;
        std::swap(exchanged.inputs[2], exchanged.inputs[3]);
        Op product(op.c, exchanged, op.opset);
        const bool made = matmul_integer_to_float(product);
        op.reason = product.reason;
        return made;
    }
    const Value* x = op.c.find_value(op.in(0)->range_of);
    // Whether an input is the scale or the zero point that go with input 0.
    const auto goes_along = [&](int i) {
        return op.has(i) && op.in(i)->range_of == op.in(0)->range_of;
    };
    if (x && x->floats() && goes_along(2) && goes_along(4)) {
        Node whole = op.node;
        whole.inputs = {x->name, op.node.inputs[1], op.node.inputs[3]};
        for (int i : {5, 6}) whole.inputs.push_back(op.has(i) ? op.node.inputs[(size_t)i] : "");
        Op product(op.c, whole, op.opset);
        if (int8_product_by_range(product, product.in(1), product.in(2), product.in(3),
                                  product.in(4)))
            return true;
    }
    Nodes n(op);
    if (has_several(op, 2)) return op.fail("a scale for each row");
    std::string out = n.add(
        "MatMul", {dequantized(n, n.in(0), n.in(2), n.in(4)), dequantized_matrix(op, n, 1, 3, 5)});
    if (op.has(6)) out = n.add("Add", {out, n.in(6)});
    return n.set(0, out);
}

std::string quantized(Nodes& n, const std::string& x, const std::string& scale,
                      const std::string& zero) {
    std::vector<std::string> inputs = {x, scale};
    if (!zero.empty()) inputs.push_back(zero);
    return n.add("QuantizeLinear", inputs);
}

// X, x_scale, x_zero_point, y_scale, y_zero_point: another operator between the two.
bool q_linear(Op& op, const char* type) {
    Nodes n(op);
    Attributes attributes = op.node.attributes;
    const bool last = op.attr("channels_last", 0) != 0;
    const int64_t opset = op.attr("opset", 13);
    attributes.erase("channels_last"), attributes.erase("opset");
    std::string x = dequantized(n, n.in(0), n.in(1), n.in(2));
    const int rank = op.in(0)->rank();
    std::vector<int64_t> front = {0, rank - 1}, back = {0};
    for (int64_t a = 1; a + 1 < rank; a++) front.push_back(a), back.push_back(a + 1);
    back.push_back(1);
    if (last && n.ok()) x = n.transpose(x, front);
    std::string y;
    if (std::string(type) == "Softmax" && opset < 13) {  // over all axes from this one on
        int axis = 0;
        if (!op.axis(op.attr("axis", -1), rank, &axis)) return false;
        const std::string rows = n.add("Flatten", {x}, {{"axis", attribute_of((int64_t)axis)}});
        y = n.add("Softmax", {rows}, {{"axis", attribute_of((int64_t)-1)}});
        y = n.add("Reshape", {y, n.add("Shape", {n.in(0)})});
    } else {
        y = n.add(type, {x}, attributes);
    }
    if (last && n.ok()) y = n.transpose(y, back);
    return n.set(0, quantized(n, y, n.in(3), n.in(4)));
}
bool q_sigmoid(Op& op) { return q_linear(op, "Sigmoid"); }
bool q_leaky_relu(Op& op) { return q_linear(op, "LeakyRelu"); }
bool q_global_average_pool(Op& op) { return q_linear(op, "GlobalAveragePool"); }
bool q_average_pool(Op& op) { return q_linear(op, "AveragePool"); }
bool q_softmax(Op& op) { return q_linear(op, "Softmax"); }

// Distances of the rows of two matrices.
bool cdist(Op& op) {
    const std::string metric = op.attr_string("metric", "sqeuclidean");
    if (metric != "sqeuclidean" && metric != "euclidean")
        return op.fail("metric %s, expected euclidean or sqeuclidean", metric.c_str());
    for (int i : {0, 1})
        if (op.in(i)->rank() != 2)
            return op.fail("input %d of rank %d, expected 2", i, op.in(i)->rank());
    Nodes n(op);
    const std::string difference = n.add("Sub", {n.add("Unsqueeze", {n.in(0), n.ints({1})}),
                                                 n.add("Unsqueeze", {n.in(1), n.ints({0})})});
    return n.set(0, n.add(metric == "euclidean" ? "ReduceL2" : "ReduceSumSquare",
                          {difference, n.ints({2})}, {{"keepdims", attribute_of((int64_t)0)}}));
}

// Condition, then value, scale and zero point of what it chooses from, and those of the result.
bool q_where(Op& op) {
    Nodes n(op);
    const std::string y = n.add("Where", {n.in(0), dequantized(n, n.in(1), n.in(2), n.in(3)),
                                          dequantized(n, n.in(4), n.in(5), n.in(6))});
    return n.set(0, quantized(n, y, n.in(7), n.in(8)));
}

// As EmbedLayerNormalization with inputs 2 to 6 of bytes, whose scales are inputs 8 to 12, zero
// points 13 to 17.
bool q_embed_layer_norm(Op& op) {
    Nodes n(op);
    Node node = op.node;
    node.op = "EmbedLayerNormalization";
    node.inputs.resize(8);
    for (int i = 2; i < 7; i++)
        if (op.has(i)) node.inputs[i] = dequantized(n, n.in(i), n.in(i + 6), n.in(i + 11));
    return n.run(node);
}

// y_scale, y_zero_point, then x, scale and zero point of each input.
bool q_concat(Op& op) {
    if (op.inputs() < 5 || (op.inputs() - 2) % 3 != 0) return op.fail("%d inputs", op.inputs());
    Nodes n(op);
    std::vector<std::string> parts;
    for (int i = 2; i + 2 < op.inputs(); i += 3)
        parts.push_back(dequantized(n, n.in(i), n.in(i + 1), n.in(i + 2)));
    const std::string y = n.add("Concat", parts, {{"axis", attribute_of(op.attr("axis", 0))}});
    return n.set(0, quantized(n, y, n.in(0), n.in(1)));
}

// A, a_scale, a_zero_point, B, b_scale, b_zero_point, C (s32), y_scale, y_zero_point.
bool q_gemm(Op& op) {
    Nodes n(op);
    const std::string a = dequantized(n, n.in(0), n.in(1), n.in(2));
    const bool swapped = op.attr("transB", 0) != 0;
    std::vector<std::string> inputs = {n.in(3), n.in(4)};
    if (op.has(5)) inputs.push_back(n.in(5));
    const bool rows = op.in(4)->rank() == 1 && !op.in(4)->shape[0].is(1);
    const std::string b = n.add("DequantizeLinear", inputs,
                                {{"axis", attribute_of((int64_t)(rows && !swapped ? 1 : 0))}});
    std::string y = n.add("Gemm", {a, b},
                          {{"transA", attribute_of(op.attr("transA", 0))},
                           {"transB", attribute_of(op.attr("transB", 0))}});
    if (op.has(6)) {
        const std::string scale = n.add("Mul", {n.in(1), n.in(4)});
        y = n.add("Add", {y, n.add("Mul", {n.cast(n.in(6), ElementType::kFloat), scale})});
    }
    const float alpha = op.attr_float("alpha", 1.f);
    if (alpha != 1.f) y = n.add("Mul", {y, n.scalar(alpha)});
    return n.set(0, op.has(7) ? quantized(n, y, n.in(7), n.in(8)) : y);
}

// A weight of LSTM, [directions][gates][inputs]: as floats, and, unless codes less their zero
// points exceed int8, as codes and what they are divided by, one per gate.
struct LstmWeight {
    Tensor floats, codes, scales;
    bool fits = true;
};

// From [directions][inputs][gates] of bytes; a scale and a zero point for each direction, or for
// each gate of it.
bool lstm_weight(Op& op, int input, int scale, int zero, LstmWeight* weight) {
    const Value *w = op.in(input), *s = op.in(scale), *z = op.in(zero);
    if (!w || !s || !w->is_constant() || !s->is_constant() || (z && !z->is_constant()))
        return op.fail("weights, scales or zero points that are not constant");
    if (w->rank() != 3) return op.fail("weights of rank %d", w->rank());
    const int64_t directions = w->constant->dims[0], rows = w->constant->dims[1],
                  gates = w->constant->dims[2];
    const int64_t scales = (int64_t)s->constant->count();
    if (scales != directions && scales != directions * gates)
        return op.fail("%lld scales for %lld gates", (long long)scales, (long long)gates);
    const int64_t zeros = z ? (int64_t)z->constant->count() : scales;
    if (zeros != scales) return op.fail("%lld zero points", (long long)zeros);
    weight->floats = Tensor(ElementType::kFloat, {directions, gates, rows});
    weight->codes = Tensor(ElementType::kInt8, {directions, gates, rows});
    weight->scales = Tensor(ElementType::kFloat, {directions * gates});
    with_values(*w->constant, [&](const auto* q) {
        for (int64_t i = 0; i < directions * gates; i++) {
            const size_t at = (size_t)(scales == directions ? i / gates : i);
            const int zero_point = z ? (int)z->constant->int_at(at) : 0;
            const float step = s->constant->float_at(at);
            weight->scales.set_float((size_t)i, step == 0.f ? 0.f : 1.f / step);
            float* const f = (float*)weight->floats.bytes() + i * rows;
            int8_t* const code = (int8_t*)weight->codes.bytes() + i * rows;
            const auto* from = q + i / gates * rows * gates + i % gates;
            for (int64_t k = 0; k < rows; k++) {
                const int value = (int)from[k * gates] - zero_point;
                weight->fits = weight->fits && value >= -128 && value <= 127;
                f[k] = step * (float)value;
                code[k] = step == 0.f ? 0 : (int8_t)value;
            }
        }
    });
    return true;
}

bool dynamic_quantize_lstm(Op& op) {
    LstmWeight w, r;
    if (!lstm_weight(op, 1, 8, 9, &w) || !lstm_weight(op, 2, 10, 11, &r)) return false;
    const bool int8 = w.fits && r.fits;
    Nodes n(op);
    Node node = op.node;
    node.op = "LSTM", node.domain.clear();
    node.inputs.resize(int8 ? 10 : 8);
    node.inputs[1] = n.constant(int8 ? w.codes : w.floats);
    node.inputs[2] = n.constant(int8 ? r.codes : r.floats);
    if (int8) node.inputs[8] = n.constant(w.scales), node.inputs[9] = n.constant(r.scales);
    node.attributes[kRoundInputs] = attribute_of((int64_t)1);
    return n.run(node);
}

}  // namespace

OpTable contrib_ops() {
    const char* const ms = "com.microsoft";
    const char* const slow = "computed in float32";
    const char* const int8 = "int8 as docs/tools/onnx2engine.md says; else in float32";
    return {
        {ms, "FastGelu", 1, 0, fast_gelu, ""},
        {ms, "FusedConv", 1, 0, fused_conv, "", 2},
        {ms, "FusedGemm", 1, 0, fused_gemm, "", 2},
        {ms, "FusedMatMul", 1, 0, fused_matmul, "", 2},
        {ms, "TransposeMatMul", 1, 0, fused_matmul, "", 2},
        {ms, "CDist", 1, 0, cdist, "", 2},
        {ms, "EmbedLayerNormalization", 1, 0, embed_layer_norm, ""},
        {ms, "MatMulNBits", 1, 0, matmul_n_bits,
         "constant weights, kept as they are with blocks of 16, 32, 64 or a multiple of 128; no "
         "g_idx",
         3},
        {ms, "MatMulBnb4", 1, 0, matmul_bnb4, "constant weights, held as float32", 3},
        {ms, "GatherBlockQuantized", 1, 0, gather_block_quantized,
         "constant data of rank 2, gathered along axis 0, with blocks along axis 1", 3},
        {ms, "DynamicQuantizeMatMul", 1, 0, dynamic_quantize_matmul, int8, 3},
        {ms, "MatMulIntegerToFloat", 1, 0, matmul_integer_to_float, int8, 4},
        {ms, "DynamicQuantizeLSTM", 1, 0, dynamic_quantize_lstm,
         "constant weights; int8 unless these less their zero points exceed it, then sums of "
         "inputs and states rounded to 8 bits in float32",
         3},
        {ms, "QLinearSigmoid", 1, 0, q_sigmoid, slow, 4},
        {ms, "QLinearLeakyRelu", 1, 0, q_leaky_relu, slow, 4},
        {ms, "QLinearGlobalAveragePool", 1, 0, q_global_average_pool, slow, 4},
        {ms, "QLinearAveragePool", 1, 0, q_average_pool, slow, 4},
        {ms, "QLinearSoftmax", 1, 0, q_softmax, slow, 4},
        {ms, "QLinearConcat", 1, 0, q_concat, int8, 5},
        {ms, "QLinearWhere", 1, 0, q_where, slow, 9},
        {ms, "QEmbedLayerNormalization", 1, 0, q_embed_layer_norm, slow},
        {ms, "QGemm", 1, 0, q_gemm, int8, 6},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
