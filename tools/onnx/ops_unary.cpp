// Functions of each value by itself.
#include <float.h>
#include <math.h>

#include <algorithm>

#include "layer/common/elementtype.h"
#include "layer/elementwise/unaryop.h"
#include "onnx/nodes.h"
#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

namespace {

bool need_float(Op& op, const Value* x) {
    return x->floats() || op.fail("input of %s, expected a float type", type_name(x->type));
}

void set_whole(Op& op, bool whole) {
    Value* out = op.c.find_value(op.node.outputs[0]);
    if (out) out->whole = whole;
}

template <int kType>
bool unary(Op& op) {
    Value* x = op.in(0);
    if (!need_float(op, x) || !elementwise(op, x, "UnaryOp")) return false;
    op.c.model.layers.back().set("op_type", kType);
    set_whole(op, kType == UnaryOp::FLOOR || kType == UnaryOp::CEIL);
    return true;
}

// Integers too.
template <int kType, int kFloatType>
bool tensor_unary(Op& op) {
    Value* x = op.in(0);
    const bool fast = kFloatType >= 0 && x->floats();
    const std::string from = op.blob(x);
    if (from.empty()) return false;
    ModelLayer& layer = op.emit(fast ? "UnaryOp" : "TensorUnary", {from});
    layer.set("op_type", fast ? kFloatType : kType);
    op.set(0, x->type, x->shape, x->form, wrapped(op, layer.outputs[0], x->type));
    set_whole(op, fast && kFloatType == UnaryOp::ROUND);
    return true;
}

bool relu(Op& op) {
    Value* x = op.in(0);
    if (x->floats()) return elementwise(op, x, "ReLU");
    Broadcast b;
    Value* zero =
        op.c.add_constant(op.c.unique_value("zero"), Tensor::of_ints({0}, true).cast(x->type));
    if (!broadcast(op, {x, zero}, &b)) return false;
    ModelLayer& layer = op.emit("TensorBinary", b.blobs);
    layer.set("op_type", 7);
    op.set(0, x->type, b.shape, b.form, layer.outputs[0]);
    return true;
}

bool sigmoid(Op& op) { return need_float(op, op.in(0)) && elementwise(op, op.in(0), "Sigmoid"); }
bool tanh_layer(Op& op) { return need_float(op, op.in(0)) && elementwise(op, op.in(0), "TanH"); }
bool erf_layer(Op& op) { return need_float(op, op.in(0)) && elementwise(op, op.in(0), "Erf"); }
bool softplus(Op& op) { return need_float(op, op.in(0)) && elementwise(op, op.in(0), "Softplus"); }
bool mish(Op& op) { return need_float(op, op.in(0)) && elementwise(op, op.in(0), "Mish"); }

bool with_alpha(Op& op, const char* layer, const char* param, float def) {
    if (!need_float(op, op.in(0)) || !elementwise(op, op.in(0), layer)) return false;
    op.c.model.layers.back().set(param, op.attr_float("alpha", def));
    return true;
}
bool leaky_relu(Op& op) { return with_alpha(op, "ReLU", "slope", 0.01f); }
bool elu(Op& op) { return with_alpha(op, "ELU", "alpha", 1.f); }
bool celu(Op& op) { return with_alpha(op, "CELU", "alpha", 1.f); }

bool selu(Op& op) {
    if (!with_alpha(op, "SELU", "alpha", 1.6732632f)) return false;
    op.c.model.layers.back().set("lambda", op.attr_float("gamma", 1.050701f));
    return true;
}

bool hard_sigmoid(Op& op) {
    if (!with_alpha(op, "HardSigmoid", "alpha", 0.2f)) return false;
    op.c.model.layers.back().set("beta", op.attr_float("beta", 0.5f));
    return true;
}

bool hard_swish(Op& op) {
    if (!need_float(op, op.in(0)) || !elementwise(op, op.in(0), "HardSwish")) return false;
    op.c.model.layers.back().set("alpha", 1.f / 6.f);
    op.c.model.layers.back().set("beta", 0.5f);
    return true;
}

bool swish_of(Op& op, float alpha) {
    if (!need_float(op, op.in(0)) || !elementwise(op, op.in(0), "Swish")) return false;
    if (alpha != 1.f) op.c.model.layers.back().set("beta", alpha);  // ncnn has no factor
    return true;
}

// x sigmoid(alpha x)
bool swish(Op& op) { return swish_of(op, op.attr_float("alpha", 1.f)); }
bool quick_gelu(Op& op) { return swish_of(op, op.attr_float("alpha", 1.702f)); }

bool gelu(Op& op) {
    if (!need_float(op, op.in(0)) || !elementwise(op, op.in(0), "GELU")) return false;
    if (op.attr_string("approximate", "none") == "tanh")
        op.c.model.layers.back().set("fast_gelu", 1);
    return true;
}

bool shrink(Op& op) {
    if (!need_float(op, op.in(0)) || !elementwise(op, op.in(0), "Shrink")) return false;
    op.c.model.layers.back().set("bias", op.attr_float("bias", 0.f));
    op.c.model.layers.back().set("lambd", op.attr_float("lambd", 0.5f));
    return true;
}

// x / (1 + |x|)
bool softsign(Op& op) {
    Value* x = op.in(0);
    if (!need_float(op, x)) return false;
    const std::string from = op.blob(x);
    if (from.empty()) return false;
    ModelLayer& abs = op.emit("UnaryOp", {from});
    abs.set("op_type", UnaryOp::ABS);
    const std::string below = scalar_op(op, abs.outputs[0], kAdd, 1.f);
    ModelLayer& layer = op.emit("BinaryOp", {from, below});
    layer.set("op_type", kDiv);
    op.set(0, x->type, x->shape, x->form, layer.outputs[0]);
    return true;
}

// x where x > alpha, else 0, of infinities too: a choice, not a product
bool thresholded_relu(Op& op) {
    if (!need_float(op, op.in(0))) return false;
    Nodes n(op);
    const std::string above = n.add("Greater", {n.in(0), n.scalar(op.attr_float("alpha", 1.f))});
    return n.set(0, n.add("Where", {above, n.in(0), n.scalar(0.f)}));
}

// min(max(x, low), high) with bounds that are inputs
bool clip_tensor(Op& op) {
    Value* x = op.in(0);
    std::string blob;
    Form form = x->form;
    std::vector<Dim> shape = x->shape;
    for (int i = 1; i <= 2; i++) {
        if (!op.has(i)) continue;
        Broadcast b;
        if (!broadcast(op, {x, op.in(i)}, &b)) return false;
        if (!blob.empty()) b.blobs[0] = blob;
        ModelLayer& layer = op.emit("TensorBinary", b.blobs);
        layer.set("op_type", i == 1 ? 7 : 8);
        blob = layer.outputs[0], form = b.form, shape = b.shape;
    }
    if (blob.empty()) {
        op.alias(0, x);
        return true;
    }
    op.set(0, x->type, shape, form, blob);
    return true;
}

bool clip(Op& op) {
    Value* x = op.in(0);
    float low = op.attr_float("min", -FLT_MAX), high = op.attr_float("max", FLT_MAX);
    const bool constant =
        (!op.has(1) || uniform(op.in(1), &low)) && (!op.has(2) || uniform(op.in(2), &high));
    if (op.opset < 11) low = std::min(low, high);  // the upper bound comes last
    if (!x->floats() || !constant || low > high) return clip_tensor(op);
    if (low == 0.f && high == FLT_MAX) return elementwise(op, x, "ReLU");
    if (!elementwise(op, x, "Clip")) return false;
    op.c.model.layers.back().set("min", low);
    op.c.model.layers.back().set("max", high);
    return true;
}

// slope x where x < 0, else x: a choice, as a slope need not be finite
bool prelu_tensor(Op& op) {
    Nodes n(op);
    const std::string below = n.add("Less", {n.in(0), n.scalar(0.f)});
    return n.set(0, n.add("Where", {below, n.add("Mul", {n.in(0), n.in(1)}), n.in(0)}));
}

bool prelu(Op& op) {
    Value *x = op.in(0), *slope = op.in(1);
    if (!need_float(op, x)) return false;
    // One slope, or one per channel of a batch of images.
    const size_t count = slope->is_constant() ? slope->constant->count() : 0;
    const int rank = x->rank();
    const bool old = op.opset < 7 && slope->rank() == 1;
    const bool channels = rank >= 3 && rank <= 5 && (old || slope->rank() == rank - 1) &&
                          x->shape[1].is((int64_t)count) && slope->shape[0].is((int64_t)count);
    if (count != 1 && !channels) return prelu_tensor(op);
    const Form form = count == 1 ? x->form : Form::batched(rank);
    const std::string from = op.blob(x, form);
    if (from.empty()) return false;
    ModelLayer& layer = op.emit("PReLU", {from});
    layer.set("num_slope", (int)count);
    layer.set_weight("slope_data", slope->constant->weight());
    op.c.keep(*slope->constant);
    op.set(0, x->type, x->shape, form, layer.outputs[0]);
    return true;
}

bool logical_not(Op& op) {
    if (!elementwise(op, op.in(0), "TensorUnary")) return false;
    op.c.model.layers.back().set("op_type", 6);
    return true;
}

bool is_nan(Op& op) {
    if (!elementwise(op, op.in(0), "TensorUnary", ElementType::kBool)) return false;
    op.c.model.layers.back().set("op_type", 4);
    return true;
}

bool is_inf(Op& op) {
    if (!elementwise(op, op.in(0), "TensorUnary", ElementType::kBool)) return false;
    ModelLayer& layer = op.c.model.layers.back();
    layer.set("op_type", 5);
    layer.set("detect_negative", (int)(op.attr("detect_negative", 1) != 0));
    layer.set("detect_positive", (int)(op.attr("detect_positive", 1) != 0));
    return true;
}

// Whether values of one type may need rounding or wrapping to be some of another, of the same Mat
// type after CastTo.
bool narrows(ElementType from, ElementType to) {
    if (from == to || to == ElementType::kBool) return false;
    if (is_float(to)) return is_small_float(to);
    const ElementInfo &a = *element_info((int)from), &b = *element_info((int)to);
    const int room = b.bits - (b.is_signed && !a.is_signed ? 1 : 0);
    const bool fits = !is_float(from) && a.bits <= room && (b.is_signed || !a.is_signed);
    return b.bits <= 16 && b.bits != 8 && !fits;
}

bool cast_to(Op& op, Value* x, ElementType to) {
    if (!is_supported(to)) return op.fail("a cast to a type %s", type_name(to));
    if (!is_supported(x->type)) return op.fail("a cast from a type %s", type_name(x->type));
    if (to != x->type && (to == ElementType::kString || x->type == ElementType::kString))
        return op.fail(
            "a cast between strings and numbers: a string is known by its place in a table alone");
    const bool narrowed = to != ElementType::kString && narrows(x->type, to);
    if (x->is_constant() && !(narrowed && is_float(to))) {
        op.set_constant(0, x->constant->cast(to));
        return true;
    }
    if (to == ElementType::kFloat && op.c.find_value(x->as_float)) {
        op.alias(0, op.c.find_value(x->as_float));
        return true;
    }
    const bool same_mat = mat_type(x->type) == mat_type(to) && to != ElementType::kBool;
    if (same_mat && !narrowed) {
        Value* out = op.alias(0, x);
        if (out) out->type = to;
        return true;
    }
    std::string blob = op.blob(x);
    if (blob.empty()) return false;
    // Floats that a few bits do not hold wrap as integers do: by way of 32 bits.
    std::vector<ElementType> by = {to};
    if (narrowed && is_float(x->type) && is_byte(to)) by.insert(by.begin(), ElementType::kInt32);
    for (size_t i = 0; i < by.size() && !same_mat; i++) {
        ModelLayer& cast = op.emit("CastTo", {blob});
        cast.set("to", cast_code(by[i]));
        blob = cast.outputs[0];
    }
    if (narrowed) blob = narrow(op, blob, to);
    if (blob.empty()) return false;
    Value* const out = op.set(0, to, x->shape, x->form, blob);
    if (out && x->whole && (to == ElementType::kInt32 || to == ElementType::kInt64))
        out->as_float = x->name;
    if (x->has_content && !is_float(to) && to != ElementType::kBool && !narrowed)
        op.set_content(0, x->content);
    return true;
}

bool cast(Op& op) { return cast_to(op, op.in(0), (ElementType)op.attr("to", 1)); }
bool cast_like(Op& op) { return cast_to(op, op.in(0), op.in(1)->type); }

bool bit_cast(Op& op) {
    const Value* x = op.in(0);
    const ElementType to = (ElementType)op.attr("to", 0);
    if (bits_of(to) != bits_of(x->type) || bits_of(to) > 32 || bits_of(to) == 0)
        return op.fail("from %s to %s", type_name(x->type), type_name(to));
    if (!elementwise(op, op.in(0), "BitCast", to)) return false;
    op.c.model.layers.back().set("from", (int)x->type);
    op.c.model.layers.back().set("to", (int)to);
    return true;
}

bool identity(Op& op) {
    op.alias(0, op.in(0));
    return true;
}

bool dropout(Op& op) {
    float training = 0.f;
    if (op.has(2) && (!uniform(op.in(2), &training) || training != 0.f))
        return op.fail("training mode");
    op.alias(0, op.in(0));
    if (!op.wants(1)) return true;
    Value* x = op.in(0);
    if (!all_known(x->shape)) return op.fail("the mask of an input of unknown size");
    Tensor mask(ElementType::kBool, values_of(x->shape));
    for (size_t i = 0; i < mask.count(); i++) mask.set_int(i, 1);
    op.set_constant(1, mask);
    return true;
}

}  // namespace

std::string narrow(Op& op, const std::string& blob, ElementType to) {
    const std::string narrowed = op.c.narrow(blob, to);
    if (!is_small_float(to)) return narrowed;
    static const char* const kModes[] = {"nearest", "up", "down"};
    const bool powers = to == ElementType::kFloat8e8m0;
    const std::string mode = powers ? op.attr_string("round_mode", "up") : "nearest";
    int number = 0;
    while (number < 3 && mode != kModes[number]) number++;
    if (number == 3) {
        op.fail("round_mode %s", mode.c_str());
        return "";
    }
    ModelLayer& layer = op.c.model.layers.back();
    layer.set("saturate", op.attr("saturate", 1) == 1 ? 1 : 0);
    layer.set("round_mode", number);
    return narrowed;
}

std::string wrapped(Op& op, const std::string& blob, ElementType type) {
    const bool wraps =
        !is_float(type) && !is_byte(type) && bits_of(type) > 0 && bits_of(type) <= 16;
    return wraps ? op.c.narrow(blob, type) : blob;
}

OpTable unary_ops() {
    return {
        {"", "Abs", 1, 0, tensor_unary<0, UnaryOp::ABS>, "", 1, kOpElementwise},
        {"", "Neg", 1, 0, tensor_unary<1, UnaryOp::NEG>, "", 1, kOpElementwise},
        {"", "Sign", 9, 0, tensor_unary<2, UnaryOp::SIGN>, ""},
        {"", "Round", 11, 0, tensor_unary<3, UnaryOp::ROUND>, ""},
        {"", "BitwiseNot", 18, 0, tensor_unary<7, -1>, ""},
        {"", "Floor", 1, 0, unary<UnaryOp::FLOOR>, "", 1, kOpElementwise},
        {"", "Ceil", 1, 0, unary<UnaryOp::CEIL>, ""},
        {"", "Sqrt", 1, 0, unary<UnaryOp::SQRT>, "", 1, kOpElementwise},
        {"", "Exp", 1, 0, unary<UnaryOp::EXP>, "", 1, kOpElementwise},
        {"", "Log", 1, 0, unary<UnaryOp::LOG>, ""},
        {"", "Sin", 7, 0, unary<UnaryOp::SIN>, ""},
        {"", "Cos", 7, 0, unary<UnaryOp::COS>, ""},
        {"", "Tan", 7, 0, unary<UnaryOp::TAN>, ""},
        {"", "Asin", 7, 0, unary<UnaryOp::ASIN>, ""},
        {"", "Acos", 7, 0, unary<UnaryOp::ACOS>, ""},
        {"", "Atan", 7, 0, unary<UnaryOp::ATAN>, ""},
        {"", "Reciprocal", 1, 0, unary<UnaryOp::RECIPROCAL>, ""},
        {"", "Sinh", 9, 0, unary<UnaryOp::SINH>, ""},
        {"", "Cosh", 9, 0, unary<UnaryOp::COSH>, ""},
        {"", "Asinh", 9, 0, unary<UnaryOp::ASINH>, ""},
        {"", "Acosh", 9, 0, unary<UnaryOp::ACOSH>, ""},
        {"", "Atanh", 9, 0, unary<UnaryOp::ATANH>, ""},
        {"", "Relu", 1, 0, relu, "", 1, kOpElementwise},
        {"", "Sigmoid", 1, 0, sigmoid, "", 1, kOpElementwise},
        {"", "Tanh", 1, 0, tanh_layer, "", 1, kOpElementwise},
        {"", "Erf", 9, 0, erf_layer, ""},
        {"", "Softplus", 1, 0, softplus, "", 1, kOpElementwise},
        {"", "Mish", 18, 0, mish, "", 1, kOpElementwise},
        {"", "LeakyRelu", 1, 0, leaky_relu, "", 1, kOpElementwise},
        {"", "Elu", 1, 0, elu, "", 1, kOpElementwise},
        {"", "Celu", 12, 0, celu, ""},
        {"", "Selu", 1, 0, selu, "", 1, kOpElementwise},
        {"", "HardSigmoid", 1, 0, hard_sigmoid, "", 1, kOpElementwise},
        {"", "HardSwish", 14, 0, hard_swish, "", 1, kOpElementwise},
        {"", "Swish", 24, 0, swish, "", 1, kOpElementwise},
        {"com.microsoft", "QuickGelu", 1, 0, quick_gelu, ""},
        {"", "Gelu", 20, 0, gelu, "", 1, kOpElementwise},
        {"com.microsoft", "Gelu", 1, 0, gelu, ""},
        {"", "Shrink", 9, 0, shrink, ""},
        {"", "Softsign", 1, 0, softsign, ""},
        {"", "ThresholdedRelu", 10, 0, thresholded_relu, ""},
        {"", "Clip", 1, 0, clip, "", 1, kOpElementwise},
        {"", "PRelu", 1, 0, prelu, "", 2},
        {"", "Not", 1, 0, logical_not, ""},
        {"", "IsNaN", 9, 0, is_nan, ""},
        {"", "IsInf", 10, 0, is_inf, ""},
        {"", "Cast", 1, 0, cast, "numeric types; float16, bfloat16 and double become float32", 1,
         kOpFirstStrings},
        {"", "BitCast", 26, 0, bit_cast, "types of at most 32 bits"},
        {"", "CastLike", 15, 0, cast_like, "as Cast", 2, kOpFirstStrings | kOpSecondStrings},
        {"", "Identity", 1, 0, identity, "tensors", 1,
         kOpElementwise | kOpTakesSequences | kOpFirstStrings},
        {"", "Dropout", 1, 0, dropout, "inference"},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
