// Constants and what is made from sizes.
#include <algorithm>

#include "onnx/nodes.h"
#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

namespace {

bool constant(Op& op) {
    for (const auto& entry : op.node.attributes) {
        const Attribute& a = entry.second;
        Tensor t;
        if (entry.first == "value") {
            t = a.t;
        } else if (entry.first == "value_float") {
            t = Tensor::of_float(a.f);
        } else if (entry.first == "value_floats") {
            t = Tensor(ElementType::kFloat, {(int64_t)a.floats.size()});
            for (size_t i = 0; i < a.floats.size(); i++) t.set_float(i, a.floats[i]);
        } else if (entry.first == "value_int") {
            t = Tensor::of_ints({a.i}, true);
        } else if (entry.first == "value_ints") {
            t = Tensor::of_ints(a.ints);
        } else if (entry.first == "value_string" || entry.first == "value_strings") {
            const bool one = entry.first == "value_string";
            const std::vector<std::string> texts = one ? std::vector<std::string>{a.s} : a.strings;
            t = Tensor::of_ints(op.c.strings->places_of(texts), one);
            t.type = ElementType::kString;
        } else {
            return op.fail("%s", entry.first.c_str());
        }
        op.set_constant(0, t);
        return true;
    }
    return op.fail("no value");
}

bool constant_of_shape(Op& op) {
    Value* sizes = op.in(0);
    Tensor value = Tensor::of_float(0.f);
    if (op.has_attr("value")) value = op.node.attributes.at("value").t;
    if (!is_supported(value.type) || value.count() != 1) return op.fail("its value");
    if (sizes->rank() != 1 || !sizes->shape[0].known()) return op.fail("a shape of unknown length");
    const int64_t rank = sizes->shape[0].value;
    std::vector<Dim> shape((size_t)std::min<int64_t>(rank, 64));
    if (sizes->has_content) shape = sizes->content;
    for (const Dim& d : shape)
        if (d.known() && d.value < 0) return op.fail("a size of %lld", (long long)d.value);
    const int64_t kMostValues = op.c.computes_large() ? 1 << 10 : 1 << 20;
    if (all_known(shape) && element_count(values_of(shape)) >= 0 &&
        element_count(values_of(shape)) <= kMostValues) {
        Tensor t(value.type, values_of(shape));
        for (size_t i = 0; i < t.count(); i++)
            is_float(t.type) ? t.set_float(i, value.float_at(0)) : t.set_int(i, value.int_at(0));
        op.set_constant(0, t);
        return true;
    }
    if (rank > 4) {  // one axis for all, which an Expand has
        Nodes n(op);
        return n.set(0, n.add("Expand", {n.constant(value.reshaped({})), n.in(0)}));
    }
    const std::string from = op.plain(sizes);
    if (from.empty()) return false;
    ModelLayer& layer = op.emit("ConstantOfShape", {from});
    layer.set("type", cast_code(value.type));
    layer.set("value", value.float_at(0));
    layer.set("int_value", to_ints({value.int_at(0)})[0]);
    op.set(0, value.type, shape, Form::plain((int)rank), layer.outputs[0]);
    return true;
}

bool range(Op& op) {
    std::vector<std::string> from;
    Dim count;
    for (int i = 0; i < 3; i++) {
        if (op.c.symbols.product(op.in(i)->shape).is(0))
            return op.fail("%s has no value", op.in(i)->name.c_str());
        from.push_back(op.plain(op.in(i)));
        if (from.back().empty()) return false;
    }
    const Value *start = op.in(0), *limit = op.in(1), *step = op.in(2);
    if (start->has_content && limit->has_content && step->has_content && step->content[0].is(1))
        count = op.c.symbols.subtract(limit->content[0], start->content[0]);
    if (count.known() && count.value < 0) count = Dim(0);
    const std::string out = op.emit("Range", from).outputs[0];
    op.set(0, start->type, {count}, Form::plain(1), out);
    return true;
}

bool eye_like(Op& op) {
    Value* x = op.in(0);
    const std::string from = op.plain(x);
    if (from.empty()) return false;
    const ElementType type = op.has_attr("dtype") ? (ElementType)op.attr("dtype", 1) : x->type;
    if (!is_supported(type)) return op.fail("type %s", type_name(type));
    ModelLayer& layer = op.emit("EyeLike", {from});
    layer.set("k", (int)op.attr("k", 0));
    layer.set("type", cast_code(type));
    op.set(0, type, x->shape, Form::plain(x->rank()), layer.outputs[0]);
    return true;
}

// Blobs of whole numbers, in a type that layers take.
std::string as_ints(Op& op, Value* v) {
    const std::string from = op.plain(v);
    if (from.empty() || mat_type(v->type) == DType::s32) return from;
    ModelLayer& cast = op.emit("CastTo", {from});
    cast.set("to", 3);
    return cast.outputs[0];
}

bool one_hot(Op& op) {
    Value *indices = op.in(0), *values = op.in(2);
    int axis = 0;
    const int rank = indices->rank() + 1;
    if (!op.axis(op.attr("axis", -1), rank, &axis)) return false;
    std::vector<int64_t> depth;
    const Value* d = op.in(1);
    const bool known = d->is_constant() && d->constant->count() == 1;
    if (known) depth.push_back(d->constant->int_at(0));
    std::vector<std::string> from = {as_ints(op, indices), op.plain(values)};
    if (!known) from.push_back(as_ints(op, op.in(1)));
    for (const std::string& blob : from)
        if (blob.empty()) return false;
    if (rank > 4) return op.fail("rank %d", rank);
    ModelLayer& layer = op.emit("OneHot", from);
    layer.set("axis", axis);
    if (known) layer.set("depth", to_ints(depth)[0]);
    if (indices->rank() == 0) layer.set("scalar", 1);
    std::vector<Dim> shape = indices->shape;
    shape.insert(shape.begin() + axis, known ? Dim(depth[0]) : Dim());
    op.set(0, values->type, shape, Form::plain(rank), layer.outputs[0]);
    return true;
}

// The same values in each run: of the seed that the model gives, else of one for this node.
int seed_of(const Op& op) {
    const std::string text =
        op.has_attr("seed") ? std::to_string(op.attr_float("seed", 0.f)) : op.node.label();
    uint32_t hash = 2166136261u;  // FNV-1a, 32 bits
    for (char ch : text) hash = (hash ^ (unsigned char)ch) * 16777619u;
    return (int)(hash >> 1);
}

// Random values in the shape of the node's input.
bool random_like(Op& op, bool normal) {
    Value* x = op.in(0);
    const ElementType own = x->floats() ? x->type : ElementType::kFloat;
    const ElementType type = op.has_attr("dtype") ? (ElementType)op.attr("dtype", 1) : own;
    if (!is_float(type) || !is_supported(type)) return op.fail("values of %s", type_name(type));
    op.c.note("random values are the same in each run, and for each item beyond the model's batch");
    // Not with a batch, in which each item has its own values.
    const int rank = x->rank();
    const Form form = !x->form.batch && !x->is_constant() ? x->form
                      : rank <= 4                         ? Form::plain(rank)
                                                          : Form{false, {rank}};
    const std::string from = op.blob(x, form);
    if (from.empty()) return false;
    ModelLayer& layer = op.emit("RandomFill", {from});
    layer.set("normal", normal ? 1 : 0);
    layer.set("a", normal ? op.attr_float("mean", 0.f) : op.attr_float("low", 0.f));
    layer.set("b", normal ? op.attr_float("scale", 1.f) : op.attr_float("high", 1.f));
    layer.set("seed", seed_of(op));
    op.set(0, type, x->shape, form, layer.outputs[0]);
    return true;
}
bool uniform_like(Op& op) { return random_like(op, false); }
bool normal_like(Op& op) { return random_like(op, true); }

// The node with its attribute shape as a tensor.
bool random_shape(Op& op) {
    Nodes n(op);
    Node like = op.node;
    like.op += "Like";
    like.attributes.erase("shape");
    like.inputs = {n.add("ConstantOfShape", {n.ints(op.attr_ints("shape"))})};
    return n.run(like);
}

bool bernoulli(Op& op) {
    Nodes n(op);
    Attributes attributes;
    if (op.has_attr("seed")) attributes["seed"] = attribute_of(op.attr_float("seed", 0.f));
    attributes["dtype"] = attribute_of((int64_t)ElementType::kFloat);
    const std::string u = n.add("RandomUniformLike", {n.in(0)}, attributes);
    const int64_t type = op.attr("dtype", (int64_t)op.in(0)->type);
    return n.set(0, n.cast(n.add("Less", {u, n.in(0)}), (ElementType)type));
}

// The largest of the logarithms with Gumbel's noise is drawn as often as its probability says.
bool multinomial(Op& op) {
    const int64_t draws = op.attr("sample_size", 1);
    if (op.in(0)->rank() != 2 || draws < 1 || draws > 1 << 20)
        return op.fail("rank %d, %lld draws", op.in(0)->rank(), (long long)draws);
    Nodes n(op);
    Attributes attributes;
    if (op.has_attr("seed")) attributes["seed"] = attribute_of(op.attr_float("seed", 0.f));
    attributes["low"] = attribute_of(1e-30f);
    const std::string rows =
        n.add("Tile", {n.add("Unsqueeze", {n.in(0), n.ints({1})}), n.ints({1, draws, 1})});
    const std::string u = n.add("RandomUniformLike", {rows}, attributes);
    const std::string noise = n.add("Log", {n.add("Neg", {n.add("Log", {u})})});
    const std::string best =
        n.add("ArgMax", {n.add("Sub", {rows, noise})},
              {{"axis", attribute_of((int64_t)2)}, {"keepdims", attribute_of((int64_t)0)}});
    return n.set(0, n.cast(best, (ElementType)op.attr("dtype", (int64_t)ElementType::kInt32)));
}

}  // namespace

OpTable fill_ops() {
    const char* const same_each_run = "the same values in each run";
    return {
        {"", "Constant", 1, 0, constant, "numeric tensors", 0, kOpMakesStrings},
        {"", "ConstantOfShape", 9, 0, constant_of_shape, ""},
        {"", "Range", 11, 0, range, "", 3},
        {"", "EyeLike", 9, 0, eye_like, ""},
        {"", "OneHot", 9, 0, one_hot, "rank of at most 3", 3},
        {"", "RandomUniform", 1, 0, random_shape, same_each_run, 0},
        {"", "RandomUniformLike", 1, 0, uniform_like, same_each_run},
        {"", "RandomNormal", 1, 0, random_shape, same_each_run, 0},
        {"", "RandomNormalLike", 1, 0, normal_like, same_each_run},
        {"", "Bernoulli", 15, 0, bernoulli, same_each_run},
        {"", "Multinomial", 7, 0, multinomial, same_each_run},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
