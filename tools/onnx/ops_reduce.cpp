// Along axes: reductions, softmax and their like.
#include <algorithm>
#include <limits>

#include "layer/elementwise/unaryop.h"
#include "layer/norm/softmax.h"
#include "layer/tensor/reduction.h"
#include "onnx/nodes.h"
#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

namespace {

// Reduced axes of the tensor as axes of a Mat; *to is the form of the output. False if they are too
// many.
bool reduced_form(Value* x, const std::vector<char>& reduced, bool keep, Form* form,
                  std::vector<int>* mat_axes, Form* to) {
    const int rank = x->rank();
    int left = 0;
    for (char r : reduced) left += !r;
    const bool batch = x->form.batch && !reduced[0] && rank <= 5 && (keep || left > 1);
    *form = Form{batch, {}};
    // Neighbours that are both reduced, or both not, share an axis where they have to.
    const int first = batch ? 1 : 0;
    for (int a = first; a < rank; a++) {
        if (a > first && rank - first > 4 && reduced[a] == reduced[a - 1])
            form->groups.back()++;
        else
            form->groups.push_back(1);
    }
    if (form->groups.size() > 4) return false;
    *to = Form{batch, {}};
    int axis = first;
    for (size_t i = 0; i < form->groups.size(); axis += form->groups[i], i++) {
        if (reduced[axis]) mat_axes->push_back((int)i);
        if (keep || !reduced[axis]) to->groups.push_back(form->groups[i]);
    }
    return true;
}

// f32 for what only floats are reduced in.
std::string widened(Op& op, Value* x, const std::string& blob) {
    if (!x->floats()) op.c.note("reductions of integers are computed in float32");
    return op.as_f32(blob, x->type);
}

// Integers of more than a byte have sums, products, extremes and means that are exact.
bool reduces_ints(const Value* x, int operation) {
    return !x->floats() && mat_type(x->type) == DType::s32 && operation <= Reduction::kL1;
}

// What the operators give for no values at all.
bool reduce_nothing(Op& op, const Value* x, int operation, const std::vector<int64_t>& shape) {
    const float infinity = std::numeric_limits<float>::infinity();
    float value = 0.f;
    if (operation == Reduction::kProd) value = 1.f;
    if (operation == Reduction::kMax || operation == Reduction::kLogSum ||
        operation == Reduction::kLogSumExp)
        value = -infinity;
    if (operation == Reduction::kMin) value = infinity;
    if (operation == Reduction::kMean) value = std::numeric_limits<float>::quiet_NaN();
    if (element_count(shape) < 0 || element_count(shape) > 1 << 20) return op.fail("its size");
    const bool least = value == -infinity;
    if (!x->floats() && value != 0.f && value != 1.f && x->type != ElementType::kBool)
        return op.fail("no value of %s is the %s of none", type_name(x->type), op.node.op.c_str());
    Tensor t(x->type, shape);
    for (size_t i = 0; i < t.count(); i++)
        x->type == ElementType::kBool ? t.set_int(i, least ? 0 : 1) : t.set_float(i, value);
    op.set_constant(0, t);
    return true;
}

// Axes that do not fit a blob: the reduced ones come last, so that they are one.
bool reduce_moved(Op& op, Value* x, const std::vector<char>& reduced, bool keep) {
    std::vector<int64_t> perm, last, ones;
    for (int pass = 0; pass < 2; pass++)
        for (int a = 0; a < x->rank(); a++)
            if (reduced[a] == pass) perm.push_back(a);
    for (int a = 0; a < x->rank(); a++)
        if (reduced[a]) last.push_back(-1 - (int64_t)last.size()), ones.push_back(a);
    Nodes n(op);
    const std::string moved = n.transpose(x->name, perm);
    const std::string sums =
        n.add(op.node.op, {moved, n.ints(last)}, {{"keepdims", attribute_of((int64_t)0)}});
    return n.set(0, keep ? n.add("Unsqueeze", {sums, n.ints(ones)}) : sums);
}

// Sizes that a list of sizes comes to: shapes are worked out by exporters, too.
void set_reduced_content(Op& op, const Value* x, int operation) {
    const bool is_size = operation == Reduction::kProd || operation == Reduction::kSum ||
                         operation == Reduction::kMax || operation == Reduction::kMin;
    if (!is_size || !x->has_content || x->floats() || x->rank() != 1 || x->content.empty()) return;
    Dim all = x->content[0];
    for (size_t i = 1; i < x->content.size(); i++) {
        const Dim& d = x->content[i];
        if (operation == Reduction::kProd)
            all = op.c.symbols.multiply(all, d);
        else if (operation == Reduction::kSum)
            all = op.c.symbols.add(all, d);
        else if (operation == Reduction::kMax)
            all = op.c.symbols.larger(all, d);
        else
            all = op.c.symbols.smaller(all, d);
    }
    op.set_content(0, {all});
}

bool reduce(Op& op, int operation, int axes_input_since) {
    Value* x = op.in(0);
    const int rank = x->rank();
    std::vector<int64_t> axes;
    const bool as_input = op.opset >= axes_input_since && op.has(1);
    // A number has no axes: ONNX Runtime does not look at computed ones.
    if (as_input && (rank > 0 || op.in(1)->is_constant())) {
        if (!op.ints(1, "axes", &axes)) return false;
    } else if (!as_input) {
        axes = op.attr_ints("axes");
    }
    if (axes.empty() && op.attr("noop_with_empty_axes", 0) == 1) {
        // Each value by itself: sums of one, and what is applied to sums.
        const bool absolute = operation == Reduction::kL1 || operation == Reduction::kL2;
        if (!absolute && operation != Reduction::kSumSq && operation != Reduction::kLogSum) {
            op.alias(0, x);
            return true;
        }
        std::string from = op.blob(x);
        if (from.empty()) return false;
        from = widened(op, x, from);
        ModelLayer& layer = op.emit("UnaryOp", {from});
        layer.set("op_type", absolute                          ? UnaryOp::ABS
                             : operation == Reduction::kLogSum ? UnaryOp::LOG
                                                               : UnaryOp::SQUARE);
        op.set(0, x->type, x->shape, x->form, op.from_f32(layer.outputs[0], x->type));
        return true;
    }
    std::vector<char> reduced((size_t)rank, axes.empty());
    for (int64_t a : axes) {
        int axis = 0;
        if (!op.axis(a, rank, &axis)) return false;
        reduced[axis] = 1;
    }
    const bool keep = op.attr("keepdims", 1) == 1;
    std::vector<Dim> shape;
    for (int a = 0; a < rank; a++)
        if (!reduced[a] || keep) shape.push_back(reduced[a] ? Dim(1) : x->shape[a]);
    bool nothing = false;
    for (int a = 0; a < rank; a++) nothing = nothing || (reduced[a] && x->shape[a].is(0));
    if (nothing && all_known(shape)) return reduce_nothing(op, x, operation, values_of(shape));
    if (rank == 0) reduced.assign(1, 1);
    Form form = Form::plain(0), to = Form::plain(0);
    std::vector<int> mat_axes = {0};
    if (rank > 0) {
        mat_axes.clear();
        if (!reduced_form(x, reduced, keep, &form, &mat_axes, &to))
            return reduce_moved(op, x, reduced, keep);
    }
    std::string from = op.blob(x, form);
    if (from.empty()) return false;
    const bool ints = reduces_ints(x, operation);
    if (!ints) from = widened(op, x, from);
    ModelLayer& layer = op.emit("Reduction", {from});
    layer.set("operation", operation);
    layer.set("reduce_all", 0);
    layer.set("axes", mat_axes);
    layer.set("keepdims", keep && rank > 0 ? 1 : 0);
    layer.set("fixbug0", 1);
    const std::string out = layer.outputs[0];
    op.set(0, x->type, shape, to, ints ? out : op.from_f32(out, x->type));
    set_reduced_content(op, x, operation);
    return true;
}

template <int kOperation, int kAxesInput>
bool reduce_op(Op& op) {
    return reduce(op, kOperation, kAxesInput);
}

// Softmax and the like: along an axis, or, before opset 13, over all axes from one on.
bool along_axis(Op& op, const char* layer_type) {
    Value* x = op.in(0);
    int axis = 0, mat_axis = 0;
    const bool together = op.opset < 13;
    if (!op.axis(op.attr("axis", together ? 1 : -1), std::max(1, x->rank()), &axis)) return false;
    Form form = x->rank() == 0 ? Form::plain(0) : op.axis_form(x, axis, &mat_axis);
    bool joined = false;
    for (int a = axis + 1; a < x->rank() && together; a++) joined |= !x->shape[a].is(1);
    if (joined) {
        const bool batch = x->form.batch && axis > 0;
        form = Form{batch, {}};
        if (axis > (batch ? 1 : 0)) form.groups.push_back(axis - (batch ? 1 : 0));
        form.groups.push_back(x->rank() - axis);
        mat_axis = (int)form.groups.size() - 1;
    }
    const std::string from = op.blob(x, form);
    if (from.empty()) return false;
    ModelLayer& layer = op.emit(layer_type, {from});
    layer.set("axis", mat_axis);
    if (layer.is<Softmax>()) layer.set("fixbug0", 1);
    op.set(0, x->type, x->shape, form, layer.outputs[0]);
    return true;
}
bool softmax(Op& op) { return along_axis(op, "Softmax"); }
bool log_softmax(Op& op) { return along_axis(op, "LogSoftmax"); }
bool hardmax(Op& op) { return along_axis(op, "Hardmax"); }

bool lp_normalization(Op& op) {
    Value* x = op.in(0);
    int axis = 0, mat_axis = 0;
    if (!op.axis(op.attr("axis", -1), x->rank(), &axis)) return false;
    const Form form = op.axis_form(x, axis, &mat_axis);
    const std::string from = op.blob(x, form);
    if (from.empty()) return false;
    ModelLayer& layer = op.emit("LpNormalization", {from});
    layer.set("axis", mat_axis);
    layer.set("p", (int)op.attr("p", 2));
    op.set(0, x->type, x->shape, form, layer.outputs[0]);
    return true;
}

bool mean_variance(Op& op) {
    Value* x = op.in(0);
    std::vector<int64_t> axes = op.attr_ints("axes");
    if (!op.has_attr("axes")) axes = {0, 2, 3};
    const std::string from = op.plain(x);
    if (from.empty()) return false;
    for (int64_t a : axes) {
        int axis = 0;
        if (!op.axis(a, x->rank(), &axis)) return false;
    }
    ModelLayer& layer = op.emit("MeanVarianceNormalization", {from});
    layer.set("axes", to_ints(axes));
    op.set(0, x->type, x->shape, Form::plain(x->rank()), layer.outputs[0]);
    return true;
}

bool cum_sum(Op& op) {
    Value* x = op.in(0);
    std::vector<int64_t> axes;
    int axis = 0, mat_axis = 0;
    if (!op.ints(1, "axis", &axes)) return false;
    if (axes.empty()) return op.fail("axis has no value");
    if (!op.axis(axes[0], x->rank(), &axis)) return false;
    const Form form = op.axis_form(x, axis, &mat_axis);
    const std::string from = op.blob(x, form);
    if (from.empty()) return false;
    ModelLayer& layer = op.emit("CumSum", {from});
    layer.set("axis", mat_axis);
    layer.set("exclusive", (int)op.attr("exclusive", 0));
    layer.set("reverse", (int)op.attr("reverse", 0));
    op.set(0, x->type, x->shape, form, layer.outputs[0]);
    return true;
}

}  // namespace

OpTable reduce_ops() {
    const char* const axes = "constant axes";
    return {
        {"", "ReduceSum", 1, 0, reduce_op<Reduction::kSum, 13>, axes},
        {"", "ReduceSumSquare", 1, 0, reduce_op<Reduction::kSumSq, 18>, axes},
        {"", "ReduceMean", 1, 0, reduce_op<Reduction::kMean, 18>, axes},
        {"", "ReduceMax", 1, 0, reduce_op<Reduction::kMax, 18>, axes},
        {"", "ReduceMin", 1, 0, reduce_op<Reduction::kMin, 18>, axes},
        {"", "ReduceProd", 1, 0, reduce_op<Reduction::kProd, 18>, axes},
        {"", "ReduceL1", 1, 0, reduce_op<Reduction::kL1, 18>, axes},
        {"", "ReduceL2", 1, 0, reduce_op<Reduction::kL2, 18>, axes},
        {"", "ReduceLogSum", 1, 0, reduce_op<Reduction::kLogSum, 18>, axes},
        {"", "ReduceLogSumExp", 1, 0, reduce_op<Reduction::kLogSumExp, 18>, axes},
        {"", "Softmax", 1, 0, softmax, ""},
        {"", "LogSoftmax", 1, 0, log_softmax, ""},
        {"", "Hardmax", 1, 0, hardmax, ""},
        {"", "LpNormalization", 1, 0, lp_normalization, ""},
        {"", "MeanVarianceNormalization", 9, 0, mean_variance,
         "rank of at most 4; over one value 0, where ONNX Runtime may say NaN"},
        {"", "CumSum", 11, 0, cum_sum, "constant axis", 2},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
