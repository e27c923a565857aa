#include <algorithm>

#include "onnx/nodes.h"
#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

static Dim size_at(const Value* v, int axis, int rank) {
    const int own = axis - (rank - v->rank());
    return own < 0 ? Dim(1) : v->shape[own];
}

bool broadcast_shape(Op& op, const std::vector<Value*>& inputs, std::vector<Dim>* shape) {
    int rank = 0;
    for (const Value* v : inputs) rank = std::max(rank, v->rank());
    shape->assign((size_t)rank, Dim(1));
    for (int a = 0; a < rank; a++) {
        Dim& out = (*shape)[a];
        for (const Value* v : inputs) {
            const Dim d = size_at(v, a, rank);
            // A table cut to n rows is added to n of them, or there is but one row of it.
            if (d.is(1) || same(d, out) || op.c.symbols.is_limited(d, out)) continue;
            if (out.is(1) || op.c.symbols.is_limited(out, d))
                out = d;
            else if (out.known() && d.known())
                return op.fail("sizes %lld and %lld on axis %d", (long long)out.value,
                               (long long)d.value, a);
            else
                out = out.known() ? out : d.known() ? d : Dim();
        }
    }
    return true;
}

namespace {

// Whether the axes from `first` to `last` may share an axis of the Mat: each input has all of them
// in full, or none.
bool alike(const std::vector<Value*>& inputs, const std::vector<Dim>& shape, int first, int last) {
    const int rank = (int)shape.size();
    for (const Value* v : inputs) {
        if (v->is_constant() && v->constant->count() == 1) continue;
        bool full = true, none = true;
        for (int a = first; a <= last; a++) {
            const Dim d = size_at(v, a, rank);
            full = full && same(d, shape[a]);
            none = none && d.is(1);
        }
        if (!full && !none) return false;
    }
    return true;
}

bool fits(const std::vector<Value*>& inputs, const std::vector<Dim>& shape, const Form& form) {
    int axis = form.batch ? 1 : 0;
    for (int g : form.groups) {
        if (g > 1 && !alike(inputs, shape, axis, axis + g - 1)) return false;
        axis += g;
    }
    return true;
}

bool choose_form(Op& op, const std::vector<Value*>& inputs, Broadcast* b) {
    const int rank = (int)b->shape.size();
    bool batch = false;
    const Value* widest = nullptr;
    for (const Value* v : inputs) {
        if (v->is_constant() || v->rank() != rank) continue;
        batch |= v->form.batch;
        if (!widest || v->form.batch > widest->form.batch) widest = v;
    }
    if (widest && widest->form.batch == batch && fits(inputs, b->shape, widest->form)) {
        b->form = widest->form;
        return true;
    }
    batch =
        batch || (rank == 5 && !op.c.default_form(5).groups.empty() && op.c.default_form(5).batch);
    b->form = Form{batch, {}};
    for (int a = batch ? 1 : 0; a < rank; a++) {
        const bool first = a == (batch ? 1 : 0);
        const bool must_join = rank - (batch ? 1 : 0) > 4;
        if (!first && must_join && alike(inputs, b->shape, a - b->form.groups.back(), a))
            b->form.groups.back()++;
        else
            b->form.groups.push_back(1);
    }
    if (b->form.groups.size() <= 4) return true;
    return op.fail("broadcasting of rank %d needs %zu axes", rank, b->form.groups.size());
}

}  // namespace

// The value spread to the known sizes of a shape, one axis after the other; null if it cannot be.
static Value* spread(Op& op, Value* v, const std::vector<Dim>& shape) {
    if (v->is_constant() && v->constant->count() == 1) return v;
    Nodes n(op);
    std::string now = v->name;
    const int rank = (int)shape.size();
    for (int a = 0; a < rank; a++) {
        if (!shape[a].known() || !size_at(v, a, rank).is(1) || shape[a].is(1)) continue;
        std::vector<int64_t> to((size_t)rank, 1);
        to[(size_t)a] = shape[a].value;
        now = n.add("Expand", {now, n.ints(to)});
        if (now.empty()) return nullptr;
    }
    return n.value(now);
}

bool broadcast(Op& op, const std::vector<Value*>& given, Broadcast* b, bool keep_scalar) {
    std::vector<Value*> inputs = given;
    if (!broadcast_shape(op, inputs, &b->shape)) return false;
    if (!choose_form(op, inputs, b)) {
        // Too many axes that only some of the inputs have.
        for (Value*& v : inputs)
            if (!(v = spread(op, v, b->shape))) return false;
        if (!choose_form(op, inputs, b)) return false;
        op.reason.clear();
    }
    for (Value* v : inputs) {
        float value;
        if (keep_scalar && uniform(v, &value) && v->constant->count() == 1) {
            b->blobs.push_back("");
            continue;
        }
        // One value goes with everything, whatever the form.
        const bool one = v->is_constant() && v->constant->count() == 1;
        Form form = b->form;
        if (one) form.groups.assign(std::max<size_t>(1, form.groups.size()), 1);
        std::string name;
        if (one) {
            const Tensor t = v->constant->reshaped(std::vector<int64_t>(form.groups.size(), 1));
            name = op.blob(op.c.add_constant(op.c.unique_value(v->name), t),
                           Form::plain((int)form.groups.size()));
        } else {
            name = op.blob(v, b->form, (int)b->shape.size());
        }
        if (name.empty()) return false;
        b->blobs.push_back(name);
    }
    return true;
}

// Before opset 7 the second operand's axes stood on the first one's from `axis` on.
Value* legacy_operand(Op& op, Value* x, Value* y) {
    if (op.opset >= 7 || !op.attr("broadcast", 0) || !op.has_attr("axis")) return y;
    const int64_t axis = op.attr("axis", 0);
    const int behind = x->rank() - (int)(axis < 0 ? axis + x->rank() : axis) - y->rank();
    if (behind <= 0) return y;
    std::vector<Dim> shape = y->shape;
    shape.resize(y->shape.size() + (size_t)behind, Dim(1));
    const std::string name = op.c.unique_value(y->name + "_spread");
    if (y->is_constant()) return op.c.add_constant(name, y->constant->reshaped(values_of(shape)));
    const Form form{false, {(int)shape.size()}};
    const std::string flat = op.blob(y, Form{false, {y->rank()}});
    if (flat.empty()) return nullptr;
    Value* out = op.c.add_value(name);
    out->type = y->type, out->shape = shape, out->form = form;
    out->blobs[{0, form}] = flat;
    return out;
}

bool uniform(const Value* v, float* value) {
    if (!v->is_constant() || !is_supported(v->type)) return false;
    const Tensor& t = *v->constant;
    if (t.count() == 0) return false;
    *value = t.float_at(0);
    for (size_t i = 1; i < t.count(); i++)
        if (t.float_at(i) != *value) return false;
    return true;
}

bool elementwise(Op& op, Value* x, const char* layer, ElementType type) {
    const std::string from = op.blob(x);
    if (from.empty()) return false;
    const std::string to = op.emit(layer, {from}).outputs[0];
    op.set(0, type, x->shape, x->form, to);
    return true;
}

bool elementwise(Op& op, Value* x, const char* layer) { return elementwise(op, x, layer, x->type); }

std::string scalar_op(Op& op, const std::string& blob, int op_type, float b) {
    ModelLayer& layer = op.emit("BinaryOp", {blob});
    layer.set("op_type", op_type);
    layer.set("with_scalar", 1);
    layer.set("b", b);
    return layer.outputs[0];
}

}  // namespace onnx_tool
}  // namespace quoll
