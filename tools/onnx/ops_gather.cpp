// Picking and placing by index; searching.
#include <algorithm>

#include "onnx/nodes.h"
#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

namespace {

void gather_content(Op& op, const Value* x, const Value* indices) {
    if (!x->has_content || x->rank() != 1 || !indices->has_content || indices->rank() > 1) return;
    std::vector<Dim> content;
    const int64_t n = (int64_t)x->content.size();
    for (const Dim& d : indices->content) {
        const int64_t i = d.known() && d.value < 0 ? d.value + n : d.value;
        content.push_back(d.known() && i >= 0 && i < n ? x->content[(size_t)i] : Dim());
    }
    op.set_content(0, content);
}

// One part of an axis: a slice, which keeps the form, and a reshape.
bool gather_one(Op& op, Value* x, int axis, int64_t index) {
    int mat_axis = 0;
    const Form form = op.axis_form(x, axis, &mat_axis);
    const std::string from = op.blob(x, form);
    if (from.empty()) return false;
    if (x->shape[axis].known() && (index < -x->shape[axis].value || index >= x->shape[axis].value))
        return op.fail("index %lld of %lld", (long long)index, (long long)x->shape[axis].value);
    ModelLayer& layer = op.emit("StridedSlice", {from});
    layer.set("starts", to_ints({index}));
    layer.set("ends", to_ints({index == -1 ? 2147483647 : index + 1}));
    layer.set("axes", std::vector<int>{mat_axis});
    std::vector<Dim> cut = x->shape, shape = x->shape;
    cut[axis] = Dim(1);
    shape.erase(shape.begin() + axis);
    Form to = form;
    to.groups.erase(to.groups.begin() + mat_axis);
    const std::string out = op.c.regroup(layer.outputs[0], op.c.mat_dims(cut, form),
                                         op.c.mat_dims(shape, to), x->floats(), op.node.outputs[0]);
    if (out.empty()) return op.fail("%s", op.c.why.c_str());
    op.set(0, x->type, shape, to, out);
    return true;
}

// Rows of a table for tokens of which there are any number of sequences: those are items from here
// on, which need no sizes at run time.
bool make_items(Op& op, const Value* table, const Value* tokens) {
    if (!op.c.default_batch() || !table->is_constant() || !table->floats() || table->rank() != 2 ||
        tokens->rank() != 2 || tokens->form.batch || tokens->shape[0].known())
        return true;
    Value* rows = op.c.find_value(op.node.outputs[0]);
    const Form items = Form::batched(3);
    if (op.blob(rows, items).empty()) return false;
    rows->form = items;
    return true;
}

bool gather(Op& op) {
    Value *x = op.in(0), *indices = op.in(1);
    int axis = 0;
    if (!op.axis(op.attr("axis", 0), x->rank(), &axis)) return false;
    std::vector<Dim> shape(x->shape.begin(), x->shape.begin() + axis);
    shape.insert(shape.end(), indices->shape.begin(), indices->shape.end());
    shape.insert(shape.end(), x->shape.begin() + axis + 1, x->shape.end());
    const bool one = indices->is_constant() && indices->constant->count() == 1;
    const bool single_batch = x->form.batch && x->rank() == 2 && axis == 1;
    // For an axis of open size, which may be shorter: Gather checks whether the index exists.
    const int64_t index = one ? indices->constant->int_at(0) : 0;
    const bool there = x->shape[axis].known() || index == 0 || index == -1;
    if (one && there && indices->rank() == 0 && !x->is_constant() && !single_batch) {
        if (!gather_one(op, x, axis, index)) return false;
        gather_content(op, x, indices);
        return true;
    }
    // data as outer, axis, inner; the indices as one axis.
    int mat_axis = axis;
    Form from = Form::plain(x->rank());
    Form index_form = Form::plain(indices->rank()), to = Form::plain((int)shape.size());
    const bool scalar = indices->rank() == 0;
    // A single value of each item is no item: those become a plain tensor.
    const bool batch = x->form.batch && axis > 0 && x->rank() <= 5 && !(single_batch && scalar);
    if (x->rank() > 4 || shape.size() > 4 || batch) {
        from = Form{batch, {}};
        const int before = axis - (batch ? 1 : 0), behind = x->rank() - axis - 1;
        if (before > 0) from.groups.push_back(before);
        mat_axis = (int)from.groups.size();
        to = from;
        from.groups.push_back(1);
        index_form = Form{false, {indices->rank()}};
        if (!scalar) to.groups.push_back(indices->rank());
        if (behind > 0) from.groups.push_back(behind), to.groups.push_back(behind);
        if (scalar) index_form = Form::plain(0);
    }
    const std::string data = op.blob(x, from), at = op.blob(indices, index_form);
    if (data.empty() || at.empty()) return false;
    ModelLayer& layer = op.emit("Gather", {data, at});
    layer.set("axis", mat_axis);
    if (scalar) layer.set("scalar", 1);
    op.set(0, x->type, shape, to, layer.outputs[0]);
    gather_content(op, x, indices);
    return axis != 0 || make_items(op, x, indices);
}

// The form for data of which elements along an axis are indexed, *mat_axis being that: plain, or,
// of higher rank, with the axes before and behind as one each. False after op.fail().
bool elements_form(Op& op, Value* x, const Value* indices, Form* form, int* mat_axis) {
    int axis = 0;
    const int rank = x->rank();
    if (!op.axis(op.attr("axis", 0), rank, &axis)) return false;
    if (indices->rank() != rank) return op.fail("ranks %d and %d", rank, indices->rank());
    *form = Form::plain(rank), *mat_axis = axis;
    if (rank <= 4) return true;
    for (int a = 0; a < rank; a++)
        if (a != axis && !same(x->shape[a], indices->shape[a]))
            return op.fail("a part of the data, of rank %d", rank);
    *form = Form{false, {axis, 1, rank - axis - 1}}, *mat_axis = 1;
    return true;
}

// The data as far as the indices go along all axes but the one that they count along. One of more
// than four axes is cut along one after the other, with those before and behind it as one each.
// Null after op.fail().
Value* as_far_as(Op& op, Value* x, const Value* indices) {
    int axis = 0;
    const int rank = x->rank();
    if (rank <= 4 || indices->rank() != rank) return x;
    if (!op.axis(op.attr("axis", 0), rank, &axis)) return nullptr;
    Nodes n(op);
    for (int a = 0; a < rank; a++) {
        const Dim end = indices->shape[(size_t)a];
        if (a == axis || same(x->shape[(size_t)a], end)) continue;
        const Form form = Form{false, {a, 1, rank - a - 1}};
        const std::string from = n.emit("rows", [&](Op& made) {
            const std::string blob = made.blob(x, form);
            if (blob.empty()) return false;
            made.set(0, x->type, {Dim(), x->shape[(size_t)a], Dim()}, Form::plain(3), blob);
            return true;
        });
        const std::string size = end.known()
                                     ? n.ints({end.value})
                                     : n.slice(n.add("Shape", {indices->name}), 0, a, a + 1);
        Value* part = n.value(n.add("Slice", {from, n.ints({0}), size, n.ints({1})}));
        std::vector<Dim> shape = x->shape;
        shape[(size_t)a] = end;
        x = n.value(n.emit("part", [&](Op& made) {
            const std::string blob = made.blob(part, Form::plain(3));
            return !blob.empty() && (made.set(0, part->type, shape, form, blob), true);
        }));
        if (!n.ok()) return nullptr;
    }
    return x;
}

bool gather_elements(Op& op) {
    Value *x = as_far_as(op, op.in(0), op.in(1)), *indices = op.in(1);
    Form form;
    int axis = 0;
    if (!x) return false;
    if (!elements_form(op, x, indices, &form, &axis)) return false;
    const std::string data = op.blob(x, form), at = op.blob(indices, form);
    if (data.empty() || at.empty()) return false;
    ModelLayer& layer = op.emit("GatherElements", {data, at});
    layer.set("axis", axis);
    op.set(0, x->type, indices->shape, form, layer.outputs[0]);
    return true;
}

// Indices of several axes as those of one that they are merged to, in rows of one. Null after
// op.fail().
Value* linear_indices(Op& op, Value* indices, const std::vector<Dim>& shape) {
    const int64_t length = indices->shape.back().value;
    std::vector<Dim> sizes(shape.begin(), shape.begin() + length);
    Nodes n(op);
    const std::string counts = n.emit("sizes", [&](Op& made) {
        const std::string blob = made.c.size_blob(sizes);
        if (blob.empty()) return made.fail("sizes of %s that no blob has", op.node.label().c_str());
        made.set(0, ElementType::kInt64, {Dim(length)}, Form::plain(1), blob);
        return true;
    });
    const std::string rows = n.reshape(indices->name, {-1, length});
    const std::string negative = n.add("Less", {rows, n.ints({0})});
    const std::string from_zero = n.add("Where", {negative, n.add("Add", {rows, counts}), rows});
    std::string at = n.slice(from_zero, 1, 0, 1);
    for (int64_t a = 1; a < length; a++) {
        at = n.add("Mul", {at, n.slice(counts, 0, a, a + 1)});
        at = n.add("Add", {at, n.slice(from_zero, 1, a, a + 1)});
    }
    return n.ok() ? n.value(at) : nullptr;
}

// Indices of no axes: the whole tensor for each of them.
bool gather_whole(Op& op, const Value* x, const Value& indices) {
    std::vector<int64_t> sizes;
    for (int a = 0; a < indices.rank() - 1; a++) {
        if (!indices.shape[a].known()) return op.fail("indices of no axes, unknown in number");
        sizes.push_back(indices.shape[a].value);
    }
    sizes.insert(sizes.end(), (size_t)x->rank(), 1);
    Nodes n(op);
    return n.set(0, n.add("Expand", {n.in(0), n.ints(sizes)}));
}

bool gather_nd(Op& op) {
    Value *x = op.in(0), *indices = op.in(1);
    const int64_t batch_dims = op.attr("batch_dims", 0);
    const int q = indices->rank();
    if (q < 1 || !indices->shape[q - 1].known()) return op.fail("indices of unknown length");
    const int64_t length = indices->shape[q - 1].value;
    if (batch_dims < 0 || batch_dims >= q || batch_dims + length > x->rank())
        return op.fail("batch_dims %lld and indices of %lld for rank %d", (long long)batch_dims,
                       (long long)length, x->rank());
    if (length == 0 && batch_dims == 0) return gather_whole(op, x, *indices);
    std::vector<Dim> shape(indices->shape.begin(), indices->shape.end() - 1);
    shape.insert(shape.end(), x->shape.begin() + batch_dims + length, x->shape.end());
    Form form = Form::plain((int)shape.size()), rows = Form::plain(q);
    const bool merged = (q > 4 || shape.size() > 4) && batch_dims == 0 && q > 1;
    if (merged) {
        // The axes of the indices, and those that follow the ones indexed, as one each.
        rows.groups = {q - 1, 1};
        form.groups = {q - 1};
        if ((int)shape.size() >= q) form.groups.push_back((int)shape.size() - q + 1);
    }
    Form whole = Form::plain(x->rank());
    if (merged && (int)shape.size() > q) {
        whole.groups.resize((size_t)length);
        whole.groups.push_back(x->rank() - (int)length);
    }
    if (whole.groups.size() > 4 && batch_dims == 0) {
        indices = linear_indices(op, indices, x->shape);
        if (!indices) return false;
        rows = Form::plain(2), form.groups = {q - 1}, whole.groups = {(int)length};
        if (x->rank() > length) {
            whole.groups.push_back(x->rank() - (int)length);
            form.groups.push_back(x->rank() - (int)length);
        }
    }
    if (whole.groups.size() > 4 || rows.groups.size() > 4 || form.groups.size() > 4)
        return op.fail("ranks %d and %d", x->rank(), q);
    const std::string data = op.blob(x, whole), at = op.blob(indices, rows);
    if (data.empty() || at.empty()) return false;
    ModelLayer& layer = op.emit("GatherND", {data, at});
    layer.set("batch_dims", (int)batch_dims);
    op.set(0, x->type, shape, form, layer.outputs[0]);
    return true;
}

bool set_reduction(Op& op, ModelLayer* layer) {
    const std::string name = op.attr_string("reduction", "none");
    layer->set("reduction", name == "add"   ? 1
                            : name == "mul" ? 2
                            : name == "max" ? 3
                            : name == "min" ? 4
                                            : 0);
    return name == "none" || op.need_numbers();
}

bool scatter_elements(Op& op) {
    Value *x = op.in(0), *indices = op.in(1);
    Form form;
    int axis = 0;
    if (!elements_form(op, x, indices, &form, &axis)) return false;
    const std::string data = op.blob(x, form), at = op.blob(indices, form),
                      updates = op.blob(op.in(2), form);
    if (data.empty() || at.empty() || updates.empty()) return false;
    ModelLayer& layer = op.emit("ScatterElements", {data, at, updates});
    layer.set("axis", axis);
    if (!set_reduction(op, &layer)) return false;
    op.set(0, x->type, x->shape, form, layer.outputs[0]);
    return true;
}

bool scatter_nd(Op& op) {
    Value *x = op.in(0), *indices = op.in(1), *parts = op.in(2);
    const int q = indices->rank(), rank = x->rank();
    if (q < 1 || !indices->shape[q - 1].known()) return op.fail("indices of unknown length");
    const int64_t length = indices->shape[q - 1].value;
    for (int a = 0; a + 1 < q; a++)
        if (indices->shape[a].is(0)) return op.alias(0, x) != nullptr;  // nothing is written
    if (length < 1 || length > rank || parts->rank() != q - 1 + rank - (int)length)
        return op.fail("indices of %lld for rank %d", (long long)length, rank);
    Form whole = Form::plain(rank), rows = Form::plain(q), some = Form::plain(parts->rank());
    if (rank > 4 || q > 4 || parts->rank() > 4) {
        // The axes of the indices, and those that follow the ones indexed, as one each.
        const int behind = rank - (int)length;
        if (length + (behind > 0) > 4) {
            indices = linear_indices(op, indices, x->shape);
            if (!indices) return false;
            whole.groups = {rank - behind}, rows = Form::plain(2);
        } else {
            whole.groups.assign((size_t)length, 1);
            rows.groups = {q - 1, 1};
        }
        if (behind > 0) whole.groups.push_back(behind);
        some.groups = {q - 1};
        if (behind > 0) some.groups.push_back(behind);
    }
    const std::string data = op.blob(x, whole), at = op.blob(indices, rows),
                      updates = op.blob(parts, some);
    if (data.empty() || at.empty() || updates.empty()) return false;
    ModelLayer& layer = op.emit("ScatterND", {data, at, updates});
    if (!set_reduction(op, &layer)) return false;
    op.set(0, x->type, x->shape, whole, layer.outputs[0]);
    return true;
}

bool compress(Op& op) {
    Value* x = op.in(0);
    // ONNX Runtime takes a condition of any rank as a list.
    const std::string condition = op.blob(op.in(1), Form{false, {op.in(1)->rank()}});
    if (condition.empty()) return false;
    std::vector<Dim> shape = {Dim()};
    Form form = Form::plain(1), from{false, {x->rank()}};
    int mat_axis = -233;
    if (op.has_attr("axis")) {
        int axis = 0;
        if (!op.axis(op.attr("axis", 0), x->rank(), &axis)) return false;
        shape = x->shape;
        shape[axis] = Dim();
        form = from = op.axis_form(x, axis, &mat_axis);
    }
    const std::string data = op.blob(x, from);
    if (data.empty()) return false;
    ModelLayer& layer = op.emit("Compress", {data, condition});
    layer.set("axis", mat_axis);
    op.set(0, x->type, shape, form, layer.outputs[0]);
    return true;
}

bool non_zero(Op& op) {
    Value* x = op.in(0);
    const std::string data = op.plain(x);
    if (data.empty()) return false;
    const std::string out = op.emit("NonZero", {data}).outputs[0];
    op.set(0, ElementType::kInt64, {Dim(std::max(1, x->rank())), Dim()}, Form::plain(2), out);
    return true;
}

bool top_k(Op& op) {
    Value* x = op.in(0);
    int axis = 0, mat_axis = 0;
    if (!op.axis(op.attr("axis", -1), x->rank(), &axis)) return false;
    std::vector<int64_t> k;
    const std::string before = op.reason;
    bool known = true;
    if (op.opset < 10) {
        k.push_back(op.attr("k", 1));
    } else if (!op.ints(1, "k", &k) || k.empty()) {
        op.reason = before;
        known = false;
    }
    const Form form = op.axis_form(x, axis, &mat_axis);
    std::vector<std::string> from = {op.blob(x, form)};
    if (!known) from.push_back(op.plain(op.in(1)));
    if (from.back().empty() || from[0].empty()) return false;
    ModelLayer& layer = op.emit("TopK", from, 0, 2);
    const std::vector<std::string> outs = layer.outputs;
    if (known) layer.set("k", to_ints({k[0]})[0]);
    layer.set("axis", mat_axis);
    layer.set("largest", (int)op.attr("largest", 1));
    layer.set("sorted", (int)op.attr("sorted", 1));
    std::vector<Dim> shape = x->shape;
    shape[axis] = known ? Dim(k[0]) : Dim();
    op.set(0, x->type, shape, form, outs[0]);
    op.set(1, ElementType::kInt64, shape, form, outs[1]);
    return true;
}

bool unique(Op& op) {
    Value* x = op.in(0);
    Form from{false, {x->rank()}}, form = Form::plain(1);
    std::vector<Dim> shape = {Dim()};
    int mat_axis = -233;
    if (op.has_attr("axis")) {
        int axis = 0;
        if (!op.axis(op.attr("axis", 0), x->rank(), &axis)) return false;
        if (x->rank() > 4) return op.fail("rank %d", x->rank());
        form = from = Form::plain(x->rank());
        mat_axis = axis;
        shape = x->shape;
        shape[axis] = Dim();
    }
    const std::string data = op.blob(x, from);
    if (data.empty()) return false;
    ModelLayer& layer = op.emit("Unique", {data}, 0, op.outputs());
    layer.set("axis", mat_axis);
    layer.set("sorted", (int)op.attr("sorted", 1));
    const std::vector<std::string> outs = layer.outputs;
    op.set(0, x->type, shape, form, outs[0]);
    for (int i = 1; i < op.outputs(); i++)
        op.set(i, ElementType::kInt64, {Dim()}, Form::plain(1), outs[i]);
    return true;
}

bool arg_reduce(Op& op, bool min) {
    Value* x = op.in(0);
    int axis = 0, mat_axis = 0;
    if (!op.axis(op.attr("axis", 0), x->rank(), &axis)) return false;
    const bool keep = op.attr("keepdims", 1) == 1;
    Form form = op.axis_form(x, axis, &mat_axis);
    if (!keep && form.batch && form.groups.size() == 1) {
        // A single value of each item is no item: those become a plain tensor.
        form = Form::plain(x->rank());
        mat_axis = axis;
    }
    const std::string data = op.blob(x, form);
    if (data.empty()) return false;
    ModelLayer& layer = op.emit("ArgReduce", {data});
    layer.set("min", min ? 1 : 0);
    layer.set("axis", mat_axis);
    layer.set("select_last_index", (int)op.attr("select_last_index", 0));
    std::vector<Dim> shape = x->shape;
    Form to = form;
    shape[axis] = Dim(1);
    std::string out = layer.outputs[0];
    if (!keep) {
        const std::vector<Dim> kept = op.c.mat_dims(shape, form);
        shape.erase(shape.begin() + axis);
        to.groups.erase(to.groups.begin() + mat_axis);
        out = op.c.regroup(out, kept, op.c.mat_dims(shape, to), false, op.node.outputs[0]);
        if (out.empty()) return op.fail("%s", op.c.why.c_str());
    }
    op.set(0, ElementType::kInt64, shape, to, out);
    return true;
}
bool arg_max(Op& op) { return arg_reduce(op, false); }
bool arg_min(Op& op) { return arg_reduce(op, true); }

}  // namespace

OpTable gather_ops() {
    return {
        {"", "Gather", 1, 0, gather, "", 2, kOpFirstStrings},
        {"", "GatherElements", 11, 0, gather_elements, "", 2, kOpFirstStrings},
        {"", "GatherND", 11, 0, gather_nd, "ranks of at most 4 with batch_dims", 2,
         kOpFirstStrings},
        {"", "Scatter", 9, 10, scatter_elements, "of a rank above 4: all of the other axes", 3,
         kOpFirstStrings | kOpOtherStrings},
        {"", "ScatterElements", 11, 0, scatter_elements, "of a rank above 4: all of the other axes",
         3, kOpFirstStrings | kOpOtherStrings},
        {"", "ScatterND", 11, 0, scatter_nd, "", 3, kOpFirstStrings | kOpOtherStrings},
        {"", "Compress", 9, 0, compress, "", 2, kOpFirstStrings},
        {"", "NonZero", 9, 0, non_zero, "rank of at most 4"},
        {"", "TopK", 1, 0, top_k, "", RequiredInputs(2, 10)},
        {"", "Unique", 11, 0, unique, "rank of at most 4 with an axis"},
        {"", "ArgMax", 1, 0, arg_max, ""},
        {"", "ArgMin", 1, 0, arg_min, ""},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
