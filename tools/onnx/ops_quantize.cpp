// Quantised tensors. Most operators are written as the ONNX operators that define them.
#include <math.h>

#include <algorithm>

#include "layer/common/elementtype.h"
#include "layer/elementwise/unaryop.h"
#include "onnx/block_weights.h"
#include "onnx/nodes.h"
#include "onnx/ops.h"
#include "onnx/quantized.h"

namespace quoll {
namespace onnx_tool {

namespace {

// Which scale, or zero point, each value of a tensor has.
struct Granularity {
    int axis = 0;       // of a vector of scales
    int64_t block = 0;  // > 0: one for so many neighbours along the axis
};

// False after fail().
bool read_granularity(Op& op, Granularity* g) {
    const Value *x = op.in(0), *scale = op.in(1), *zero = op.in(2);
    g->block = op.attr("block_size", 0);
    const auto single = [](const Value* v) { return v->rank() == 0 || v->shape[0].is(1); };
    // ONNX Runtime's products take several zero points beside one scale.
    const bool one = x->rank() == 0 || (single(scale) && (!zero || single(zero)));
    if (g->block < 0) return op.fail("block_size %lld", (long long)g->block);
    if (one && g->block == 0) return true;
    return op.axis(op.attr("axis", 1), x->rank(), &g->axis);
}

// The scales of blocks, each as often as there are values in its block. Null after fail().
Value* along_blocks(Op& op, Value* v, const Granularity& g, const std::vector<Dim>& shape) {
    const Dim size = shape[(size_t)g.axis];
    if (v->rank() != (int)shape.size() || !size.known()) {
        op.fail("%s: block_size along an axis of unknown size, or scales of another rank",
                v->name.c_str());
        return nullptr;
    }
    if (!v->shape[(size_t)g.axis].is((size.value + g.block - 1) / g.block)) {
        op.fail("%s: expected a size of %lld on axis %d", v->name.c_str(),
                (long long)((size.value + g.block - 1) / g.block), g.axis);
        return nullptr;
    }
    std::vector<int64_t> blocks;
    for (int64_t i = 0; i < size.value; i++) blocks.push_back(i / g.block);
    Nodes n(op);
    const std::string out =
        n.add("Gather", {v->name, n.ints(blocks)}, {{"axis", attribute_of((int64_t)g.axis)}});
    return n.ok() ? n.value(out) : nullptr;
}

// Scales, or zero points, so that they broadcast with a tensor of that shape. Null after fail().
Value* along(Op& op, Value* v, const Granularity& g, const std::vector<Dim>& tensor) {
    const int rank = (int)tensor.size();
    int axis = g.axis;
    if (!v) return nullptr;
    if (g.block > 0) return along_blocks(op, v, g, tensor);
    if (v->rank() == 0) return v;
    if (v->rank() == 1 && v->shape[0].is(1)) axis = rank - 1;
    if (v->rank() != 1) {
        op.fail("%s has rank %d, expected 0 or 1", v->name.c_str(), v->rank());
        return nullptr;
    }
    std::vector<Dim> shape((size_t)rank, Dim(1));
    if (rank > 0) shape[(size_t)std::max(axis, 0)] = v->shape[0];
    const std::string name = op.c.unique_value(v->name + "_axis");
    if (v->is_constant()) return op.c.add_constant(name, v->constant->reshaped(values_of(shape)));
    const std::string from = op.plain(v);
    if (from.empty()) return nullptr;
    if (shape.size() > 4) {
        op.fail("scales that are no constants, for rank %d", rank);
        return nullptr;
    }
    Value* out = op.c.add_value(name);
    out->type = v->type, out->shape = shape, out->form = Form::plain((int)shape.size());
    const std::string blob = op.c.regroup(from, {v->shape[0]}, shape, v->floats(), name);
    out->blobs[{0, out->form}] = blob;
    return out;
}

// The value in f32 under another name.
Value* as_float(Op& op, Value* v) {
    if (v->floats()) return v;
    const std::string name = op.c.unique_value(v->name + "_float");
    if (v->is_constant()) return op.c.add_constant(name, v->constant->cast(ElementType::kFloat));
    const std::string from = op.blob(v);
    if (from.empty()) return nullptr;
    ModelLayer& cast = op.emit("CastTo", {from});
    cast.set("to", 0);
    Value* out = op.c.add_value(name);
    out->type = ElementType::kFloat, out->shape = v->shape, out->form = v->form;
    out->blobs[{0, out->form}] = cast.outputs[0];
    return out;
}

// f(x, y) of f32 values that lie anywhere.
Value* binary(Op& op, int type, Value* x, Value* y) {
    Broadcast b;
    if (!x || !y || !broadcast(op, {x, y}, &b)) return nullptr;
    ModelLayer& layer = op.emit("BinaryOp", b.blobs);
    layer.set("op_type", type);
    Value* out = op.c.add_value(op.c.unique_value(op.node.label() + "_value"));
    out->type = ElementType::kFloat, out->shape = b.shape, out->form = b.form;
    out->blobs[{0, b.form}] = layer.outputs[0];
    return out;
}

// The least and the largest value of an integer type of at most 16 bits.
bool limits(ElementType type, float* low, float* high) {
    const ElementInfo* info = element_info((int)type);
    if (!info || is_float(type) || info->bits > 16 || type == ElementType::kBool) return false;
    *low = info->is_signed ? -ldexpf(1.f, info->bits - 1) : 0.f;
    *high = ldexpf(1.f, info->bits - (info->is_signed ? 1 : 0)) - 1.f;
    return true;
}

// clamp(round(x / scale) + zero point); to a float type round(x / scale).
bool quantize_linear(Op& op) {
    Value *x = as_float(op, op.in(0)), *zero = op.in(2);
    ElementType type = zero ? zero->type : (ElementType)op.attr("output_dtype", 2);
    if (type == ElementType::kUndefined) type = ElementType::kUint8;
    float low = 0, high = 0;
    Granularity g;
    if (op.attr("block_size", 0) == 0 && quantize_as_int8(op, type)) return true;
    if (!x || !read_granularity(op, &g)) return false;
    const std::vector<Dim> shape = x->shape;
    if (!is_small_float(type) && !limits(type, &low, &high))
        return op.fail("to %s", type_name(type));
    Value* y = binary(op, kDiv, x, along(op, as_float(op, op.in(1)), g, shape));
    if (!y) return false;
    std::string blob = y->blobs[{0, y->form}];
    if (is_small_float(type)) {  // whose zero point is 0
        blob = narrow(op, blob, type);
        return !blob.empty() && (op.set(0, type, y->shape, y->form, blob), true);
    }
    ModelLayer& round = op.emit("UnaryOp", {blob});
    round.set("op_type", UnaryOp::ROUND);  // half to even
    y->blobs[{0, y->form}] = round.outputs[0];
    if (zero) y = binary(op, kAdd, y, along(op, as_float(op, zero), g, shape));
    if (!y) return false;
    ModelLayer& clip = op.emit("Clip", {y->blobs[{0, y->form}]});
    clip.set("min", low);
    clip.set("max", high);
    ModelLayer& cast = op.emit("CastTo", {clip.outputs[0]});
    cast.set("to", cast_code(type));
    op.set(0, type, y->shape, y->form, cast.outputs[0]);
    return true;
}

// Integers with scales and zero points that are constants, too, where constants are computed: at
// once. False, with nothing done, for others.
bool dequantize_constant(Op& op, const Granularity& g) {
    const Value *x = op.in(0), *scale = op.in(1), *zero = op.has(2) ? op.in(2) : nullptr;
    if (op.c.folding() || !x->is_constant() || x->floats() || !scale->is_constant() ||
        !scale->floats() || (zero && !zero->is_constant()))
        return false;
    const Tensor& values = *x->constant;
    const size_t count = values.count(), rank = values.dims.size();
    const size_t size = rank ? (size_t)values.dims[(size_t)g.axis] : 1;
    size_t inner = 1;
    for (size_t a = (size_t)g.axis + 1; a < rank; a++) inner *= (size_t)values.dims[a];
    std::vector<float> scales = scale->constant->floats(), zeros = {0.f};
    if (zero) zeros = zero->constant->cast(ElementType::kFloat).floats();
    for (std::vector<float>* each : {&scales, &zeros}) {
        if (each->size() == 1) each->assign(size, (*each)[0]);
        if (each->size() != size) return false;
    }
    Tensor y = Tensor::unset(ElementType::kFloat, values.dims);
    float* to = (float*)y.bytes();
    with_values(values, [&](const auto* v) {
        for (size_t begin = 0, row = 0; begin < count; begin += inner, row++) {
            const float s = scales[row % size], z = zeros[row % size];
            for (size_t i = begin; i < begin + inner; i++) to[i] = ((float)v[i] - z) * s;
        }
    });
    return op.set_constant(0, y) != nullptr;
}

// (x - zero point) scale
bool dequantize_linear(Op& op) {
    Granularity g;
    if (!read_granularity(op, &g)) return false;
    if (g.block > 0 && dequantize_blocks(op)) return true;
    if (g.block == 0 && (dequantize_constant(op, g) || dequantize_int8(op))) return true;
    const std::vector<Dim> shape = op.in(0)->shape;
    Value* x = as_float(op, op.in(0));
    if (x && op.has(2)) x = binary(op, kSub, x, along(op, as_float(op, op.in(2)), g, shape));
    if (x) x = binary(op, kMul, x, along(op, as_float(op, op.in(1)), g, shape));
    if (!x) return false;
    op.set(0, ElementType::kFloat, x->shape, x->form, x->blobs[{0, x->form}]);
    return true;
}

Attribute int_attribute(int64_t value) {
    Attribute a;
    a.kind = Attribute::kInt, a.i = value;
    return a;
}

// Nodes that stand for one, between its inputs and outputs.
class Expansion {
public:
    explicit Expansion(Op& op)
        : op_(op), prefix_(op.node.label() + "/"), before_(op.c.problems.size()) {}

    std::string run(const std::string& type, const std::vector<std::string>& inputs,
                    const std::string& output = "",
                    const std::map<std::string, Attribute>& attributes = {}) {
        Node node;
        node.name = prefix_ + type, node.op = type;
        node.inputs = inputs;
        while (!node.inputs.empty() && node.inputs.back().empty()) node.inputs.pop_back();
        node.outputs = {output.empty() ? prefix_ + std::to_string(count_++) : output};
        node.attributes = attributes;
        op_.c.run_node(node);
        return node.outputs[0];
    }
    std::string constant(const Tensor& t) {
        return op_.c.add_constant(prefix_ + std::to_string(count_++), t)->name;
    }
    // What went wrong inside is a problem of this node.
    bool done() {
        if (op_.c.problems.size() == before_) return true;
        const Problem inner = op_.c.problems[before_];
        op_.c.problems.resize(before_);
        return op_.fail("%s: %s", inner.op.c_str(), inner.reason.c_str());
    }

private:
    Op& op_;
    const std::string prefix_;
    const size_t before_;
    int count_ = 0;
};

std::string input(const Op& op, int i) { return i < op.inputs() ? op.node.inputs[i] : ""; }

bool qlinear_conv(Op& op) {
    if (op.inputs() < 8) return op.fail("%d inputs", op.inputs());
    Expansion e(op);
    const std::string x = e.run("DequantizeLinear", {input(op, 0), input(op, 1), input(op, 2)});
    const std::map<std::string, Attribute> first = {{"axis", int_attribute(0)}};
    const std::string w =
        e.run("DequantizeLinear", {input(op, 3), input(op, 4), input(op, 5)}, "", first);
    std::string bias;
    if (op.has(8)) {
        const std::string scale = e.run("Mul", {input(op, 1), input(op, 4)});
        bias = e.run("DequantizeLinear", {input(op, 8), scale}, "", first);
    }
    const std::string y = e.run("Conv", {x, w, bias}, "", op.node.attributes);
    e.run("QuantizeLinear", {y, input(op, 6), input(op, 7)}, op.node.outputs[0]);
    return e.done();
}

bool qlinear_matmul(Op& op) {
    if (op.inputs() < 8) return op.fail("%d inputs", op.inputs());
    Expansion e(op);
    const auto last = [](const Value* v) {
        return std::map<std::string, Attribute>{{"axis", int_attribute(v->rank() - 1)}};
    };
    const auto before_last = [](const Value* v) {
        return std::map<std::string, Attribute>{
            {"axis", int_attribute(std::max(0, v->rank() - 2))}};
    };
    const std::string a = e.run("DequantizeLinear", {input(op, 0), input(op, 1), input(op, 2)}, "",
                                before_last(op.in(0)));
    const std::string b =
        e.run("DequantizeLinear", {input(op, 3), input(op, 4), input(op, 5)}, "", last(op.in(3)));
    const std::string y = e.run("MatMul", {a, b});
    if (!e.done()) return false;
    e.run("QuantizeLinear", {y, input(op, 6), input(op, 7)}, op.node.outputs[0],
          before_last(op.c.find_value(y)));
    return e.done();
}

// com.microsoft: f of two dequantised inputs, quantised.
template <bool kMultiply>
bool qlinear_binary(Op& op) {
    if (op.inputs() < 7) return op.fail("%d inputs", op.inputs());
    Expansion e(op);
    const std::string a = e.run("DequantizeLinear", {input(op, 0), input(op, 1), input(op, 2)});
    const std::string b = e.run("DequantizeLinear", {input(op, 3), input(op, 4), input(op, 5)});
    const std::string y = e.run(kMultiply ? "Mul" : "Add", {a, b});
    e.run("QuantizeLinear", {y, input(op, 6), input(op, 7)}, op.node.outputs[0]);
    return e.done();
}

bool bias_gelu(Op& op) {
    Expansion e(op);
    const std::string sum = e.run("Add", {input(op, 0), input(op, 1)});
    if (!e.done()) return false;
    Value* x = op.c.find_value(sum);
    return elementwise(op, x, "GELU");
}

// Scale (max - min) / 255 over a range that holds 0, zero point round(-min / scale). Of zeros
// alone, for which the definition says 0 / 0, the scale is 1, as ONNX Runtime has it.
bool dynamic_quantize_linear(Op& op) {
    Expansion e(op);
    const std::string x = input(op, 0);
    const std::string none = e.constant(Tensor::of_float(0.f)),
                      all = e.constant(Tensor::of_float(255.f));
    const std::map<std::string, Attribute> drop = {{"keepdims", int_attribute(0)}};
    const std::string high = e.run("Max", {e.run("ReduceMax", {x}, "", drop), none});
    const std::string low = e.run("Min", {e.run("ReduceMin", {x}, "", drop), none});
    const std::string one = e.constant(Tensor::of_float(1.f));
    const std::string step = e.run("Div", {e.run("Sub", {high, low}), all});
    const std::string scale =
        e.run("Where", {e.run("Equal", {step, none}), one, step}, op.node.outputs[1]);
    const std::string zero = e.run(
        "Clip", {e.run("Round", {e.run("Div", {e.run("Sub", {none, low}), scale})}), none, all});
    const std::string point = e.run("Cast", {zero}, op.node.outputs[2],
                                    {{"to", int_attribute((int)ElementType::kUint8)}});
    const std::string rounded = e.run("Round", {e.run("Div", {x, scale})});
    const std::string whole = e.run("Clip", {e.run("Add", {rounded, zero}), none, all});
    e.run("Cast", {whole}, op.node.outputs[0], {{"to", int_attribute((int)ElementType::kUint8)}});
    if (!e.done()) return false;
    Value *q = op.c.find_value(op.node.outputs[0]), *p = op.c.find_value(point);
    if (q) q->range_of = x, q->as_float = whole;
    if (p) p->as_float = zero, p->range_of = x;
    if (Value* s = op.c.find_value(scale)) s->range_of = x;
    return true;
}

bool matmul_integer(Op& op) {
    Value *a = op.in(0), *b = op.in(1);
    const int rank = std::max(a->rank(), b->rank());
    if (a->rank() < 2 || b->rank() < 2 || rank > 4) return op.fail("rank %d", rank);
    const Value* zero = op.has(3) ? op.in(3) : nullptr;
    const bool is_weight = b->is_constant() && b->rank() == 2 && b->constant->count() > 0 &&
                           (!zero || (zero->is_constant() && zero->rank() < 2));
    std::vector<std::string> from = {op.plain(a)};
    if (!is_weight) from.push_back(op.plain(b));
    if (op.has(2)) from.push_back(op.plain(op.in(2)));
    if (zero && !is_weight) from.push_back(op.plain(op.in(3)));
    for (const std::string& blob : from)
        if (blob.empty()) return false;
    ModelLayer& layer = op.emit("MatMulInteger", from);
    if (op.has(2)) layer.set("a_zero_point_input", 1);
    if (zero && !is_weight) layer.set("b_zero_point_input", 1);
    if (is_weight) set_integer_weight(&layer, *b->constant, zero ? zero->constant.get() : nullptr);
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

// A convolution of numbers less their zero points, in f32: sums stay exact below 2^24.
// Input 0 less its zero point, input 2, in f32.
std::string whole_numbers(Op& op, Expansion* e) {
    const Value *q = op.in(0), *zero = op.has(2) ? op.in(2) : nullptr;
    if (q->as_float.empty() || (zero && zero->as_float.empty()))
        return e->run("DequantizeLinear",
                      {input(op, 0), e->constant(Tensor::of_float(1.f)), input(op, 2)});
    return zero ? e->run("Sub", {q->as_float, zero->as_float}) : q->as_float;
}

bool conv_integer(Op& op) {
    Expansion e(op);
    const std::string one = e.constant(Tensor::of_float(1.f));
    const std::string x = whole_numbers(op, &e);
    std::string scale = one;
    if (op.has(3) && op.in(3)->rank() == 1 && op.in(3)->shape[0].known()) {
        Tensor ones(ElementType::kFloat, {op.in(3)->shape[0].value});
        for (size_t i = 0; i < ones.count(); i++) ones.set_float(i, 1.f);
        scale = e.constant(ones);
    }
    const std::string w = e.run("DequantizeLinear", {input(op, 1), scale, input(op, 3)}, "",
                                {{"axis", int_attribute(0)}});
    const std::string y = e.run("Conv", {x, w}, "", op.node.attributes);
    if (Value* sums = op.c.find_value(y)) sums->whole = true;
    e.run("Cast", {y}, op.node.outputs[0], {{"to", int_attribute((int)ElementType::kInt32)}});
    op.c.note("ConvInteger is computed in float32: sums beyond 2^24 are rounded");
    return e.done();
}

}  // namespace

OpTable quantize_ops() {
    const char* const int8 = "int8 as docs/tools/onnx2engine.md says; else in float32";
    return {
        {"", "QuantizeLinear", 10, 0, quantize_linear, "computed in float32", 2},
        {"", "DequantizeLinear", 10, 0, dequantize_linear, "", 2},
        {"com.microsoft", "QuantizeLinear", 1, 0, quantize_linear, "computed in float32", 2},
        {"com.microsoft", "DequantizeLinear", 1, 0, dequantize_linear, "", 2},
        {"", "DynamicQuantizeLinear", 11, 0, dynamic_quantize_linear, ""},
        {"", "QLinearConv", 10, 0, qlinear_conv, int8, 8},
        {"", "QLinearMatMul", 10, 0, qlinear_matmul, int8, 8},
        {"com.microsoft", "QLinearAdd", 1, 0, qlinear_binary<false>, int8, 7},
        {"com.microsoft", "QLinearMul", 1, 0, qlinear_binary<true>, int8, 7},
        {"com.microsoft", "BiasGelu", 1, 0, bias_gelu, "", 2},
        {"", "MatMulInteger", 10, 0, matmul_integer, "ranks 2 to 4", 2},
        {"", "ConvInteger", 10, 0, conv_integer, "computed in float32", 2},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
