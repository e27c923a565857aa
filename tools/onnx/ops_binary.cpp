// Functions of several values, with broadcasting.
#include "onnx/nodes.h"
#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

namespace {

// The same operation with its operands exchanged.
int exchanged(int type) {
    switch (type) {
        case kSub:
            return kRsub;
        case kDiv:
            return kRdiv;
        case kPow:
            return kRpow;
        default:
            return type;
    }
}

// y = f(a, b) of f32, as BinaryOp has it.
bool float_binary(Op& op, int type, Value* x, Value* y, Broadcast* b, std::string* out) {
    if (!broadcast(op, {x, y}, b, true)) return false;
    if (b->blobs[0].empty() && b->blobs[1].empty()) return op.fail("two constants");
    if (!b->blobs[0].empty() && !b->blobs[1].empty()) {
        ModelLayer& layer = op.emit("BinaryOp", b->blobs);
        layer.set("op_type", type);
        *out = layer.outputs[0];
        return true;
    }
    const bool first = b->blobs[0].empty();
    float value = 0.f;
    uniform(first ? x : y, &value);
    *out = scalar_op(op, b->blobs[first], first ? exchanged(type) : type, value);
    return true;
}

// Shapes are small integer tensors: the numbers that are known stay known.
void set_binary_content(Op& op, int type, const Value* x, const Value* y) {
    if (!x->has_content || !y->has_content) return;
    const size_t n = std::max(x->content.size(), y->content.size());
    if ((x->content.size() != n && x->content.size() != 1) ||
        (y->content.size() != n && y->content.size() != 1) || x->rank() > 1 || y->rank() > 1)
        return;
    std::vector<Dim> content;
    for (size_t i = 0; i < n; i++) {
        const Dim a = x->content[x->content.size() == 1 ? 0 : i];
        const Dim b = y->content[y->content.size() == 1 ? 0 : i];
        Symbols& s = op.c.symbols;
        // Integer division of ONNX rounds to zero; sizes are not negative.
        const bool sizes = !(a.known() && a.value < 0) && !(b.known() && b.value < 0);
        content.push_back(type == kAdd            ? s.add(a, b)
                          : type == kSub          ? s.subtract(a, b)
                          : type == kMul          ? s.multiply(a, b)
                          : type == kDiv && sizes ? s.divide(a, b)
                          : type == kMax          ? s.larger(a, b)
                          : type == kMin          ? s.smaller(a, b)
                          : a.known() && b.known()
                              ? Dim()
                              : s.function("binary" + std::to_string(type), a, b));
    }
    op.set_content(0, content);
}

// Only while a node is being folded.
bool all_constant(const Value* x, const Value* y) { return x->is_constant() && y->is_constant(); }

// The sum of integers that are there as floats, also as floats.
bool add_as_float(Op& op, const Value* x, const Value* y) {
    Value* const out = op.c.find_value(op.node.outputs[0]);
    if (!out || x->as_float.empty() || y->as_float.empty()) return true;
    Nodes n(op);
    Value* const sum = n.value(n.add("Add", {x->as_float, y->as_float}));
    if (!sum) return false;
    sum->whole = true;
    out->as_float = sum->name;
    return true;
}

// Whether f(x, y) is x, in value and shape: exporters add 0 and multiply by 1 to copy what a loop
// carries. Of -0 + 0, which ONNX says is 0, -0 stays, as with ONNX Runtime.
bool leaves_as_is(int type, const Value* x, const Value* y) {
    float value = 0.f;
    if (x->is_constant() || !uniform(y, &value) || y->constant->count() != 1 ||
        y->rank() > x->rank())
        return false;
    return value == (type == kMul || type == kDiv ? 1.f : 0.f);
}

bool arithmetic(Op& op, int type, int tensor_type) {
    Value *x = op.in(0), *y = legacy_operand(op, op.in(0), op.in(1));
    Broadcast b;
    std::string out;
    if (!y) return false;
    if (type <= kDiv && leaves_as_is(type, x, y)) return op.alias(0, x), true;
    if ((type == kAdd || type == kMul) && leaves_as_is(type, y, x)) return op.alias(0, y), true;
    if (x->floats() && y->floats() && !all_constant(x, y)) {
        if (!float_binary(op, type, x, y, &b, &out)) return false;
    } else {
        if (!broadcast(op, {x, y}, &b)) return false;
        ModelLayer& layer = op.emit("TensorBinary", b.blobs);
        layer.set("op_type", tensor_type);
        out = wrapped(op, layer.outputs[0], x->type);
    }
    op.set(0, x->type, b.shape, b.form, out);
    if (!x->floats()) set_binary_content(op, type, x, y);
    return type != kAdd || x->floats() || add_as_float(op, x, y);
}

bool add(Op& op) { return arithmetic(op, kAdd, 0); }
bool sub(Op& op) { return arithmetic(op, kSub, 1); }
bool mul(Op& op) { return arithmetic(op, kMul, 2); }
bool div(Op& op) { return arithmetic(op, kDiv, 3); }

bool pow(Op& op) {
    Value *x = op.in(0), *y = op.in(1);
    if (x->floats() == y->floats() && x->floats()) {
        float exponent = 0.f;
        if (!x->is_constant() && uniform(y, &exponent) && exponent == 2.f &&
            y->constant->count() == 1 && y->rank() <= x->rank()) {
            if (!elementwise(op, x, "UnaryOp")) return false;
            op.c.model.layers.back().set("op_type", 4);
            return true;
        }
        return arithmetic(op, kPow, 6);
    }
    Broadcast b;
    if (!broadcast(op, {x, y}, &b)) return false;
    if (mat_type(x->type) == mat_type(y->type)) {
        ModelLayer& layer = op.emit("TensorBinary", b.blobs);
        layer.set("op_type", 6);
        op.set(0, x->type, b.shape, b.form, wrapped(op, layer.outputs[0], x->type));
        return true;
    }
    const std::string base = op.as_f32(b.blobs[0], x->type), power = op.as_f32(b.blobs[1], y->type);
    ModelLayer& layer = op.emit("TensorBinary", {base, power});
    layer.set("op_type", 6);
    op.set(0, x->type, b.shape, b.form, op.from_f32(layer.outputs[0], x->type));
    return true;
}

bool tensor_binary(Op& op, int type, ElementType result) {
    Value *x = op.in(0), *y = op.in(1);
    Broadcast b;
    if (!broadcast(op, {x, y}, &b)) return false;
    ModelLayer& layer = op.emit("TensorBinary", b.blobs);
    layer.set("op_type", type);
    op.set(0, result, b.shape, b.form, wrapped(op, layer.outputs[0], result));
    return true;
}

template <int kType>
bool compare(Op& op) {
    return tensor_binary(op, kType, ElementType::kBool);
}

// Exporters ask of sizes whether they are -1: a size is not, but a difference may be.
bool equal(Op& op) {
    const auto is_size = [&](const Dim& d) { return !op.c.symbols.may_be_negative(d); };
    // Two strings that the model does not name have the same number.
    if (op.in(0)->type == ElementType::kString && !op.in(0)->is_constant() &&
        !op.in(1)->is_constant())
        return op.fail("strings of which none is constant");
    if (!tensor_binary(op, 9, ElementType::kBool)) return false;
    const Value *x = op.in(0), *y = op.in(1);
    if (!x->has_content || !y->has_content || x->content.size() != y->content.size()) return true;
    std::vector<Dim> content;
    for (size_t i = 0; i < x->content.size(); i++) {
        const Dim a = x->content[i], b = y->content[i];
        if (same(a, b))
            content.push_back(Dim(1));
        else if ((a.known() && b.known()) || (a.known() && a.value < 0 && is_size(b)) ||
                 (b.known() && b.value < 0 && is_size(a)))
            content.push_back(Dim(0));
        else
            content.push_back(Dim());
    }
    op.set_content(0, content);
    return true;
}
template <int kType>
bool bitwise(Op& op) {
    return tensor_binary(op, kType, op.in(0)->type);
}

bool mod(Op& op) {
    if (!tensor_binary(op, op.attr("fmod", 0) ? 5 : 4, op.in(0)->type)) return false;
    const int kFmod = 101, kMod = 100;  // no BinaryType
    if (!op.in(0)->floats())
        set_binary_content(op, op.attr("fmod", 0) ? kFmod : kMod, op.in(0), op.in(1));
    return true;
}

// Of a negative x: ~(~x >> n), the layer's shift being that of unsigned numbers.
bool arithmetic_shift(Op& op) {
    Nodes n(op);
    const Attributes logical = {{"direction", attribute_of(std::string("RIGHT"))},
                                {"logical", attribute_of((int64_t)1)}};
    Tensor zero(op.in(0)->type, {});
    const std::string negative = n.add("Less", {n.in(0), n.constant(zero)});
    const std::string moved = n.add("BitShift", {n.add("BitwiseNot", {n.in(0)}), n.in(1)}, logical);
    return n.set(0, n.add("Where", {negative, n.add("BitwiseNot", {moved}),
                                    n.add("BitShift", {n.in(0), n.in(1)}, logical)}));
}

bool bit_shift(Op& op) {
    const ElementType type = op.in(0)->type;
    const bool has_sign = type == ElementType::kInt8 || type == ElementType::kInt16 ||
                          type == ElementType::kInt32 || type == ElementType::kInt64;
    if (has_sign && op.attr_string("direction", "") == "RIGHT" && !op.attr("logical", 0))
        return arithmetic_shift(op);
    return tensor_binary(op, op.attr_string("direction", "") == "LEFT" ? 20 : 21, op.in(0)->type);
}

// Max, Min, Sum, Mean of any number of inputs.
bool variadic(Op& op, int type, int tensor_type, bool mean) {
    std::vector<Value*> all;
    for (int i = 0; i < op.inputs(); i++)
        if (op.has(i)) all.push_back(op.in(i));
    if (all.empty()) return op.fail("no input");
    if (all.size() == 1) {
        op.alias(0, all[0]);
        return true;
    }
    Broadcast b;
    if (!broadcast(op, all, &b)) return false;
    const bool floats = all[0]->floats();
    std::string sum = b.blobs[0];
    for (size_t i = 1; i < all.size(); i++) {
        ModelLayer& layer = op.emit(floats ? "BinaryOp" : "TensorBinary", {sum, b.blobs[i]});
        layer.set("op_type", floats ? type : tensor_type);
        sum = layer.outputs[0];
    }
    if (mean) sum = scalar_op(op, sum, kMul, 1.f / (float)all.size());
    op.set(0, all[0]->type, b.shape, b.form, sum);
    if (!floats && all.size() == 2) set_binary_content(op, type, all[0], all[1]);
    return true;
}
bool max(Op& op) { return variadic(op, kMax, 7, false); }
bool min(Op& op) { return variadic(op, kMin, 8, false); }
bool sum(Op& op) { return variadic(op, kAdd, 0, false); }
bool mean(Op& op) { return variadic(op, kAdd, 0, true); }

bool where(Op& op) {
    Broadcast b;
    if (!broadcast(op, {op.in(0), op.in(1), op.in(2)}, &b)) return false;
    const std::string out = op.emit("Where", b.blobs).outputs[0];
    op.set(0, op.in(1)->type, b.shape, b.form, out);
    const Value *choice = op.in(0), *x = op.in(1), *y = op.in(2);
    const size_t n = choice->content.size();
    if (!choice->has_content || !x->has_content || !y->has_content || x->content.size() != n ||
        y->content.size() != n)
        return true;
    std::vector<Dim> content;
    for (size_t i = 0; i < n; i++) {
        const Dim c = choice->content[i];
        content.push_back(!c.known() ? Dim() : c.value ? x->content[i] : y->content[i]);
    }
    op.set_content(0, content);
    return true;
}

}  // namespace

OpTable binary_ops() {
    return {
        {"", "Add", 1, 0, add, "", 2, kOpElementwise},
        {"", "Sub", 1, 0, sub, "", 2, kOpElementwise},
        {"", "Mul", 1, 0, mul, "", 2, kOpElementwise},
        {"", "Div", 1, 0, div, "", 2, kOpElementwise},
        {"", "Pow", 1, 0, pow, "", 2},
        {"", "Mod", 10, 0, mod, "", 2},
        {"", "Equal", 7, 0, equal, "", 2, kOpFirstStrings | kOpSecondStrings},
        {"", "Less", 7, 0, compare<10>, "", 2},
        {"", "Greater", 7, 0, compare<11>, "", 2},
        {"", "LessOrEqual", 12, 0, compare<12>, "", 2},
        {"", "GreaterOrEqual", 12, 0, compare<13>, "", 2},
        {"", "And", 7, 0, compare<14>, "", 2},
        {"", "Or", 7, 0, compare<15>, "", 2},
        {"", "Xor", 7, 0, compare<16>, "", 2},
        {"", "BitwiseAnd", 18, 0, bitwise<17>, "", 2},
        {"", "BitwiseOr", 18, 0, bitwise<18>, "", 2},
        {"", "BitwiseXor", 18, 0, bitwise<19>, "", 2},
        {"", "BitShift", 11, 0, bit_shift, "32 bits", 2},
        {"", "Max", 1, 0, max, "", 1, kOpElementwise},
        {"", "Min", 1, 0, min, "", 1, kOpElementwise},
        {"", "Sum", 1, 0, sum, ""},
        {"", "Mean", 1, 0, mean, ""},
        {"", "Where", 9, 0, where, "", 3, kOpSecondStrings | kOpOtherStrings},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
