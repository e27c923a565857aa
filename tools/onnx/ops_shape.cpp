// Operators that change a tensor's sizes and leave the order of its values, and Transpose.
#include <math.h>

#include <algorithm>
#include <numeric>

#include "layer/tensor/permute.h"
#include "onnx/nodes.h"
#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

namespace {

// The values of x in another shape: no layer if the Mat can stay as it is.
bool reshape_to(Op& op, Value* x, const std::vector<Dim>& shape) {
    if (x->is_constant() && all_known(shape)) {
        op.set_constant(0, x->constant->reshaped(values_of(shape)));
        return true;
    }
    const int rank = (int)shape.size();
    const bool keep_batch =
        x->form.batch && rank >= 2 && x->rank() >= 2 && same(shape[0], x->shape[0]);
    Form to = op.c.default_form(rank);
    if (keep_batch && !to.batch)
        to = rank <= 5 ? Form::batched(rank) : Form{true, {rank - 4, 1, 1, 1}};
    Form from = x->form;
    if (to.batch && !keep_batch) to = Form{false, {1, 1, 1, rank - 3}};
    if (!to.batch && from.batch) from = op.c.default_form(x->rank());
    if (!to.batch && from.batch) from = Form{false, {1, 1, 1, x->rank() - 3}};
    const std::string blob = op.blob(x, from);
    if (blob.empty()) return false;
    const std::string out = op.c.regroup(blob, op.c.mat_dims(x->shape, from),
                                         op.c.mat_dims(shape, to), x->floats(), op.node.outputs[0]);
    if (out.empty()) return op.fail("%s", op.c.why.c_str());
    op.set(0, x->type, shape, to, out);
    if (x->has_content) op.set_content(0, x->content);
    return true;
}

// The target of Reshape with -1 and 0 resolved as far as symbols go.
std::vector<Dim> resolve(Op& op, const Value* x, const std::vector<Dim>& wanted, bool allow_zero) {
    Symbols& s = op.c.symbols;
    std::vector<Dim> shape;
    int rest = -1;
    Dim others(1);
    for (size_t i = 0; i < wanted.size(); i++) {
        Dim d = wanted[i];
        if (d.is(0) && !allow_zero) d = i < x->shape.size() ? x->shape[i] : Dim();
        if (d.is(-1)) {
            rest = (int)i;
            d = Dim();
        } else {
            others = s.multiply(others, d);
        }
        shape.push_back(d);
    }
    if (rest >= 0) shape[rest] = s.divide(s.product(x->shape), others);
    // A single size of which nothing is known is what the others leave.
    int unknown = -1, count = 0;
    Dim known(1);
    for (size_t i = 0; i < shape.size(); i++) {
        if (shape[i].symbol == 0)
            unknown = (int)i, count++;
        else
            known = s.multiply(known, shape[i]);
    }
    if (count == 1) shape[unknown] = s.divide(s.product(x->shape), known);
    return shape;
}

// The same for any rank: sizes without -1 and 0, then axes merged as far as blobs ask for it.
bool reshape_by_sizes(Op& op, Value* x, int64_t rank, bool allow_zero) {
    Nodes n(op);
    std::string sizes = n.cast(n.in(1), ElementType::kInt64);
    const std::string zero = n.ints({0}), one = n.ints({1});
    if (!allow_zero) {
        const std::string all = n.cast(n.add("Shape", {n.in(0)}), ElementType::kInt64);
        const std::vector<int64_t> ones((size_t)std::max<int64_t>(rank - x->rank(), 1), 1);
        const std::string own = x->rank() < rank ? n.add("Concat", {all, n.ints(ones)},
                                                         {{"axis", attribute_of((int64_t)0)}})
                                                 : n.slice(all, 0, 0, rank);
        sizes = n.add("Where", {n.add("Equal", {sizes, zero}), own, sizes});
    }
    const std::string rest = n.add("Less", {sizes, zero});
    std::string known = one;
    for (int64_t i = 0; i < rank; i++)
        known = n.add("Mul", {known, n.slice(n.add("Where", {rest, one, sizes}), 0, i, i + 1)});
    const std::string total = n.reshape(n.add("Size", {n.in(0)}), {1});
    const std::string left = n.add("Div", {total, n.add("Max", {known, one})});
    sizes = n.add("Where", {rest, left, sizes});
    if (!n.ok()) return false;
    std::vector<Dim> shape;
    for (int64_t i = 0; i < rank; i++) {
        shape.push_back(op.c.symbols.fresh());
        op.c.add_size_value(shape.back(), sizes, (int)i);
    }
    return reshape_to(op, x, shape);
}

// The shape is known only at run time: a layer with two inputs.
bool reshape_at_run_time(Op& op, Value* x, Value* sizes, const std::vector<Dim>& shape,
                         bool allow_zero) {
    if (shape.size() > 4 || x->rank() > 4)
        return reshape_by_sizes(op, x, (int64_t)shape.size(), allow_zero);
    const std::string data = op.plain(x), target = op.plain(sizes);
    if (data.empty() || target.empty()) return false;
    ModelLayer& layer = op.emit("ReshapeTo", {data, target});
    layer.set("allowzero", allow_zero ? 1 : 0);
    op.set(0, x->type, shape, Form::plain((int)shape.size()), layer.outputs[0]);
    return true;
}

// Integers that are there as floats are so, too, in their new shape.
bool reshape_as_float(Op& op, const Value* x, const std::vector<Dim>& shape) {
    Value* const out = op.c.find_value(op.node.outputs[0]);
    if (!out || x->as_float.empty() || !all_known(shape)) return true;
    Nodes n(op);
    Value* const reshaped = n.value(n.reshape(x->as_float, values_of(shape)));
    if (!reshaped) return false;
    reshaped->whole = true;
    out->as_float = reshaped->name;
    return true;
}

bool reshape(Op& op) {
    Value *x = op.in(0), *sizes = op.in(1);
    const bool allow_zero = op.attr("allowzero", 0) == 1;
    if (!sizes) return op.fail("no shape");
    if (!sizes->has_content) {
        if (sizes->rank() != 1 || !sizes->shape[0].known())
            return op.fail("to a shape of unknown length");
        std::vector<Dim> shape((size_t)std::min<int64_t>(sizes->shape[0].value, 64));
        return reshape_at_run_time(op, x, sizes, shape, allow_zero);
    }
    const std::vector<Dim> shape = resolve(op, x, sizes->content, allow_zero);
    if (x->is_constant() && all_known(shape) &&
        element_count(values_of(shape)) != (int64_t)x->constant->count())
        return op.fail("the shape has another number of values");
    const std::string before = op.reason;
    if (reshape_to(op, x, shape)) return reshape_as_float(op, x, shape);
    op.reason = before;
    return reshape_at_run_time(op, x, sizes, shape, allow_zero);
}

bool flatten(Op& op) {
    Value* x = op.in(0);
    int axis = 0;
    const int64_t wanted = op.attr("axis", 1);
    if (wanted == x->rank())
        axis = x->rank();
    else if (!op.axis(wanted, x->rank(), &axis))
        return false;
    Symbols& s = op.c.symbols;
    const Dim rows = s.product({x->shape.begin(), x->shape.begin() + axis});
    const Dim columns = s.product({x->shape.begin() + axis, x->shape.end()});
    return reshape_to(op, x, {rows, columns});
}

// Axes of open sizes go where their size is 1. Each is a choice that the net makes when it runs.
bool squeeze_open(Op& op, const std::vector<int>& open) {
    const size_t kMostOpen = 3;
    if (open.size() > kMostOpen)
        return op.fail("without axes, of %zu open sizes; say which of them are 1 with --shape",
                       open.size());
    Nodes n(op);
    Value* x = op.in(0);
    std::vector<int64_t> always;
    for (int a = 0; a < x->rank(); a++)
        if (x->shape[a].is(1)) always.push_back(a);
    const std::string sizes = n.add("Shape", {n.in(0)});
    // By the open axes that go, bit i for the last but i.
    std::vector<std::string> made;
    for (unsigned gone = 0; gone < 1u << open.size(); gone++) {
        std::vector<int64_t> axes = always;
        for (size_t i = 0; i < open.size(); i++)
            if (gone >> i & 1) axes.push_back(open[open.size() - 1 - i]);
        std::sort(axes.begin(), axes.end());
        made.push_back(axes.empty() ? n.in(0) : n.squeeze(n.in(0), axes));
    }
    const std::string one = n.constant(Tensor::of_ints({1}, true));
    for (size_t i = 0; i < open.size() && n.ok(); i++) {
        const std::string axis = n.constant(Tensor::of_ints({open[open.size() - 1 - i]}, true));
        const std::string is_one = n.add("Equal", {n.add("Gather", {sizes, axis}), one});
        const int choice = op.c.add_choice(is_one);
        std::vector<std::string> joined;
        for (size_t k = 0; k + 1 < made.size(); k += 2) {
            joined.push_back(op.c.unique_value(op.node.label() + "/squeezed"));
            if (!op.c.join(joined.back(), choice, {made[k + 1], made[k]})) return false;
        }
        made.swap(joined);
    }
    return n.set(0, made[0]);
}

// Open axes go that have to be 1 when it runs: sizes taken from the input make other ones an error.
// False without a reason: the forms of the two leave that to reshape_to.
bool squeeze_checked(Op& op, Value* x, const std::vector<char>& gone,
                     const std::vector<Dim>& shape) {
    const bool batch = x->form.batch && x->rank() <= 5 && !gone[0];
    const int rank = x->rank(), axes = rank - batch;
    if (!x->floats() || axes > 4 || shape.size() < 1u + batch) return false;
    const std::string blob = op.blob(x, batch ? Form::batched(rank) : Form::plain(rank));
    if (blob.empty()) return false;
    const std::string names = axes == 4 ? "whdc" : "whc";
    std::string sizes;
    for (int i = 0; i < axes; i++)
        if (!gone[rank - 1 - i]) sizes += (sizes.empty() ? "0" : ",0") + names.substr(i, 1);
    ModelLayer& layer = op.emit("Reshape", {blob});
    layer.set("shape_expr", sizes);
    const int left = (int)shape.size();
    op.set(0, x->type, shape, batch ? Form::batched(left) : Form::plain(left), layer.outputs[0]);
    return true;
}

bool squeeze(Op& op) {
    Value* x = op.in(0);
    std::vector<int64_t> axes;
    bool given = false;
    if (!op.attr_or_input("axes", 1, &axes, &given)) return false;
    std::vector<char> gone((size_t)x->rank(), 0);
    for (int64_t a : axes) {
        int axis = 0;
        if (!op.axis(a, x->rank(), &axis)) return false;
        gone[axis] = 1;
    }
    std::vector<int> open;
    for (int a = 0; a < x->rank() && !given; a++)
        if (!x->shape[a].known()) open.push_back(a);
    if (!open.empty()) return squeeze_open(op, open);
    std::vector<Dim> shape;
    bool checks = false;
    for (int a = 0; a < x->rank(); a++) {
        checks |= gone[a] && !x->shape[a].known();
        if (!(given ? gone[a] != 0 : x->shape[a].is(1))) shape.push_back(x->shape[a]);
    }
    return (checks && squeeze_checked(op, x, gone, shape)) || reshape_to(op, x, shape);
}

bool unsqueeze(Op& op) {
    Value* x = op.in(0);
    std::vector<int64_t> axes;
    bool given = false;
    if (!op.attr_or_input("axes", 1, &axes, &given)) return false;
    const int rank = x->rank() + (int)axes.size();
    std::vector<char> added((size_t)rank, 0);
    for (int64_t a : axes) {
        int axis = 0;
        if (!op.axis(a, rank, &axis)) return false;
        added[axis] = 1;
    }
    std::vector<Dim> shape;
    size_t at = 0;
    for (int a = 0; a < rank; a++)
        shape.push_back(added[a] || at >= x->shape.size() ? Dim(1) : x->shape[at++]);
    return reshape_to(op, x, shape);
}

// The order_type for output axis i being input axis source[i] (from the outermost); -1: none.
int order_type(const std::vector<int>& source) {
    Permute permute;
    for (permute.order_type = 0; permute.order_type < 24; permute.order_type++) {
        const int orders[] = {1, 1, 2, 6, 24};
        if (permute.order_type >= orders[source.size()]) break;
        int found[4];
        if (permute.axis_order((int)source.size(), found) == 0 &&
            std::equal(source.begin(), source.end(), found))
            return permute.order_type;
    }
    return -1;
}

// Groups of input axes that stay neighbours. moved[i] is the group that
// output group i is.
struct Moves {
    std::vector<int> in_groups, out_groups, moved;
};

Moves merge_axes(const std::vector<int>& perm, int first) {
    // Runs of output axes whose input axes follow one another.
    std::vector<std::vector<int>> runs;
    for (size_t i = (size_t)first; i < perm.size(); i++) {
        if (!runs.empty() && runs.back().back() + 1 == perm[i])
            runs.back().push_back(perm[i]);
        else
            runs.push_back({perm[i]});
    }
    Moves moves;
    std::vector<std::pair<int, int>> by_input;
    for (size_t i = 0; i < runs.size(); i++) by_input.push_back({runs[i][0], (int)i});
    std::sort(by_input.begin(), by_input.end());
    std::vector<int> place(runs.size());
    for (size_t i = 0; i < by_input.size(); i++) {
        place[by_input[i].second] = (int)i;
        moves.in_groups.push_back((int)runs[by_input[i].second].size());
    }
    for (size_t i = 0; i < runs.size(); i++) {
        moves.out_groups.push_back((int)runs[i].size());
        moves.moved.push_back(place[i]);
    }
    return moves;
}

bool permute_blob(Op& op, Value* x, const Form& from, const Form& to, const std::vector<int>& moved,
                  const std::vector<Dim>& shape) {
    const std::string blob = op.blob(x, from);
    if (blob.empty()) return false;
    const int type = order_type(moved);
    if (type < 0) return op.fail("an order of %zu axes", moved.size());
    ModelLayer& layer = op.emit("Permute", {blob});
    layer.set("order_type", type);
    op.set(0, x->type, shape, to, layer.outputs[0]);
    return true;
}

// What a value costs to move in this order: values that follow each other before and after are
// moved together.
double cost_of_order(const std::vector<int>& perm, const std::vector<Dim>& dims) {
    const int kUnknown = 16;
    double together = 1;
    for (int a = (int)perm.size() - 1; a >= 0 && perm[a] == a; a--)
        together *= dims[a].known() ? (double)dims[a].value : kUnknown;
    return 1 / together;
}

// The orders to apply one after the other so that each moves at most four groups of axes, and the
// longest rows.
bool split_order(const std::vector<int>& perm, const std::vector<Dim>& dims,
                 std::vector<std::vector<int>>* steps) {
    if (merge_axes(perm, 0).in_groups.size() <= 4) {
        steps->assign(1, perm);
        return true;
    }
    std::vector<int> one((size_t)perm.size());
    std::iota(one.begin(), one.end(), 0);
    double least = HUGE_VAL;
    do {
        if (merge_axes(one, 0).in_groups.size() > 4) continue;
        // The second order makes of `one` what perm asks for.
        std::vector<int> two;
        for (int p : perm) two.push_back((int)(std::find(one.begin(), one.end(), p) - one.begin()));
        if (merge_axes(two, 0).in_groups.size() > 4) continue;
        std::vector<Dim> between;
        for (int p : one) between.push_back(dims[p]);
        const double cost = cost_of_order(one, dims) + cost_of_order(two, between);
        if (cost >= least) continue;
        least = cost;
        steps->assign({one, two});
    } while (std::next_permutation(one.begin(), one.end()));
    return !steps->empty();
}

// Any rank: axes of size 1 do not move anything, and of the others neighbours go together.
bool transpose_groups(Op& op, Value* x, const std::vector<int>& perm, const std::vector<Dim>& shape,
                      bool batch) {
    const int rank = x->rank(), first = batch ? 1 : 0;
    std::vector<int> place(perm.size(), -1), kept;
    std::vector<Dim> dims;
    for (int a = first; a < rank; a++) {
        if (x->shape[a].is(1)) continue;
        place[a] = (int)dims.size();
        dims.push_back(x->shape[a]);
    }
    for (int p : perm)
        if (place[p] >= 0) kept.push_back(place[p]);
    std::vector<std::vector<int>> steps;
    if (std::is_sorted(kept.begin(), kept.end())) return reshape_to(op, x, shape);
    if (kept.size() > 7 || !split_order(kept, dims, &steps))
        return op.fail("it moves %zu axes", kept.size());
    const bool flat = !batch && (x->form.batch || x->is_constant());
    const Form source = flat ? Form{false, {rank}} : x->form;
    std::string blob = op.blob(x, source);
    std::vector<Dim> now = op.c.mat_dims(x->shape, source);
    for (const std::vector<int>& step : steps) {
        if (blob.empty()) return false;
        const Moves moves = merge_axes(step, 0);
        blob = op.c.regroup(blob, now, op.c.mat_dims(dims, Form{false, moves.in_groups}),
                            x->floats(), x->name);
        if (blob.empty()) return op.fail("%s", op.c.why.c_str());
        ModelLayer& layer = op.emit("Permute", {blob});
        layer.set("order_type", order_type(moves.moved));
        blob = layer.outputs[0];
        std::vector<Dim> moved;
        for (int p : step) moved.push_back(dims[p]);
        dims = moved;
        now = op.c.mat_dims(dims, Form{false, moves.out_groups});
    }
    Form to = batch ? (rank <= 5 ? Form::batched(rank) : Form{true, {rank - 4, 1, 1, 1}})
                    : op.c.default_form(rank);
    if (!batch && to.batch) to = Form{false, {1, 1, 1, rank - 3}};
    const std::string out =
        op.c.regroup(blob, now, op.c.mat_dims(shape, to), x->floats(), op.node.outputs[0]);
    if (out.empty()) return op.fail("%s", op.c.why.c_str());
    op.set(0, x->type, shape, to, out);
    return true;
}

// The numbers of a small integer tensor, in the order of the transposed one.
void transpose_content(Op& op, const Value* x, const std::vector<int>& perm) {
    if (!x->has_content || x->content.empty() || !all_known(x->shape)) return;
    const size_t rank = perm.size();
    std::vector<int64_t> sizes = values_of(x->shape), steps(rank, 1), at(rank, 0);
    for (size_t a = rank - 1; a > 0; a--) steps[a - 1] = steps[a] * sizes[a];
    std::vector<Dim> content;
    while (content.size() < x->content.size()) {
        int64_t from = 0;
        for (size_t a = 0; a < rank; a++) from += at[a] * steps[(size_t)perm[a]];
        content.push_back(x->content[(size_t)from]);
        for (size_t a = rank; a-- > 0;) {
            if (++at[a] < sizes[(size_t)perm[a]]) break;
            at[a] = 0;
        }
    }
    op.set_content(0, content);
}

bool transpose_blob(Op& op, Value* x, const std::vector<int>& perm, const std::vector<Dim>& shape) {
    const int rank = x->rank();
    const bool batch = x->form.batch && perm[0] == 0;
    const int first = batch ? 1 : 0;
    const Moves moves = merge_axes(perm, first);
    const Form merged{batch, moves.in_groups};
    const bool separate = rank - first <= 4;
    if (separate && (x->form.separate() || moves.in_groups.size() > 4) && x->form != merged) {
        std::vector<int> moved;
        for (int a = first; a < rank; a++) moved.push_back(perm[a] - first);
        const Form form = batch ? Form::batched(rank) : Form::plain(rank);
        return permute_blob(op, x, form, form, moved, shape);
    }
    if (moves.in_groups.size() <= 4)
        return permute_blob(op, x, merged, Form{batch, moves.out_groups}, moves.moved, shape);
    return transpose_groups(op, x, perm, shape, batch);
}

bool transpose(Op& op) {
    Value* x = op.in(0);
    const int rank = x->rank();
    std::vector<int> perm = to_ints(op.attr_ints("perm"));
    if (perm.empty())
        for (int a = rank - 1; a >= 0; a--) perm.push_back(a);
    std::vector<char> seen((size_t)rank, 0);
    for (int p : perm) {
        if (p < 0 || p >= rank || seen[p]) return op.fail("perm is no order of %d axes", rank);
        seen[p] = 1;
    }
    if ((int)perm.size() != rank) return op.fail("perm is no order of %d axes", rank);
    if (x->is_constant() && is_supported(x->type)) {
        op.set_constant(0, x->constant->transposed(perm));
        return true;
    }
    std::vector<Dim> shape;
    for (int p : perm) shape.push_back(x->shape[p]);
    if (std::is_sorted(perm.begin(), perm.end())) {
        op.alias(0, x);
        return true;
    }
    if (!transpose_blob(op, x, perm, shape)) return false;
    transpose_content(op, x, perm);
    return true;
}

bool shape_of(Op& op) {
    Value* x = op.in(0);
    const int rank = x->rank();
    const auto clamp = [rank](int64_t v) {
        if (v < 0) v += rank;
        return (int)std::min<int64_t>(std::max<int64_t>(v, 0), rank);
    };
    const int start = clamp(op.attr("start", 0));
    const int end = op.has_attr("end") ? clamp(op.attr("end", 0)) : rank;
    std::vector<Dim> content;
    for (int a = start; a < end; a++) content.push_back(x->shape[a]);
    if (all_known(content)) {
        op.set_constant(0, Tensor::of_ints(values_of(content)));
        return true;
    }
    Form form = x->form;
    if (!form.separate()) {
        const std::string sizes = content.empty() ? "" : op.c.size_blob(content);
        if (!sizes.empty()) {
            op.set(0, ElementType::kInt64, {Dim((int64_t)content.size())}, Form::plain(1), sizes);
            op.set_content(0, content);
            return true;
        }
        form = op.c.default_form(rank);
    }
    if (!form.separate()) return op.fail("of a tensor of rank %d with unknown sizes", rank);
    const std::string blob = op.blob(x, form);
    if (blob.empty()) return false;
    ModelLayer& layer = op.emit("ShapeOf", {blob});
    layer.set("start", start);
    layer.set("end", end);
    if (form.batch) layer.set("batch", 1);
    op.set(0, ElementType::kInt64, {Dim((int64_t)content.size())}, Form::plain(1),
           layer.outputs[0]);
    op.set_content(0, content);
    return true;
}

bool size_of(Op& op) {
    Value* x = op.in(0);
    const Dim product = op.c.symbols.product(x->shape);
    if (product.known()) {
        op.set_constant(0, Tensor::of_ints({product.value}, true));
        return true;
    }
    Form form = x->form;
    if (!form.separate()) form = op.c.default_form(x->rank());
    const std::string blob = op.blob(x, form);
    if (blob.empty()) return false;
    ModelLayer& layer = op.emit("ShapeOf", {blob});
    layer.set("product", 1);
    if (form.batch) layer.set("batch", 1);
    op.set(0, ElementType::kInt64, {}, Form::plain(0), layer.outputs[0]);
    op.set_content(0, {product});
    return true;
}

// Expand to a shape that is known, or made of sizes that blobs have: axes that grow, axes that do
// not, each merged with their like to at most four, and axes of which only the run tells. 1: done,
// 0: there is no such form, -1: op.fail().
int expand_groups(Op& op, Value* x, const std::vector<Dim>& shape, const std::vector<Dim>& wanted) {
    enum Growth : char { kStays, kGrows, kOpen };
    const int rank = (int)shape.size();
    std::vector<Growth> growth;
    for (int a = 0; a < rank; a++) {
        const int own = a - (rank - x->rank());
        const bool one = own < 0 || x->shape[own].is(1);
        const bool open = !one && !x->shape[own].known() && !same(x->shape[own], shape[a]);
        if (open && rank <= 4) return 0;
        growth.push_back(open ? kOpen : one && !shape[a].is(1) ? kGrows : kStays);
    }
    Form form{false, {}};
    std::vector<Dim> target;
    for (int a = 0; a < rank; a++) {
        if (rank > 4 && a > 0 && growth[a] == growth[a - 1] && growth[a] != kOpen)
            form.groups.back()++;
        else
            form.groups.push_back(1), target.push_back(Dim(1));
        if (growth[a] == kGrows) target.back() = op.c.symbols.multiply(target.back(), shape[a]);
        const int own = a - (rank - (int)wanted.size());
        if (growth[a] == kOpen && own >= 0) target.back() = wanted[own];
    }
    if (form.groups.size() > 4) return op.fail("rank %d", rank), -1;
    std::string sizes;
    if (!all_known(target)) {
        sizes = op.c.size_blob(target);
        if (sizes.empty()) return 0;
    }
    const std::string data = op.blob(x, form, rank);
    if (data.empty()) return -1;
    std::vector<std::string> inputs = {data};
    if (!sizes.empty()) inputs.push_back(sizes);
    ModelLayer& layer = op.emit("Expand", inputs);
    if (sizes.empty()) layer.set("shape", to_ints(values_of(target)));
    op.set(0, x->type, shape, form, layer.outputs[0]);
    if (x->has_content && rank == 1 && x->content.size() == 1 && shape[0].known())
        op.set_content(
            0, std::vector<Dim>((size_t)std::min<int64_t>(shape[0].value, 64), x->content[0]));
    return 1;
}

bool expand(Op& op) {
    Value *x = op.in(0), *sizes = op.in(1);
    if (!sizes->has_content) {
        if (sizes->rank() != 1 || !sizes->shape[0].known())
            return op.fail("to a shape of unknown length");
        const int rank = std::max(x->rank(), (int)std::min<int64_t>(sizes->shape[0].value, 64));
        const std::string data = op.plain(x), target = op.plain(sizes);
        if (rank > 4) return op.fail("to a shape known only at run time, of rank %d", rank);
        if (data.empty() || target.empty()) return false;
        const std::string out = op.emit("Expand", {data, target}).outputs[0];
        op.set(0, x->type, std::vector<Dim>((size_t)rank), Form::plain(rank), out);
        return true;
    }
    Value wanted;
    wanted.shape = sizes->content;
    std::vector<Dim> shape;
    if (!broadcast_shape(op, {x, &wanted}, &shape)) return false;
    const int rank = (int)shape.size();
    bool grows = rank != x->rank();
    for (int a = 0; a < rank && !grows; a++)
        grows = !op.c.symbols.equal_if_broadcast(x->shape[a], shape[a]);
    if (!grows) {
        Value* out = op.alias(0, x);
        if (out && !x->is_constant()) out->shape = shape;
        return true;
    }
    const int grown = expand_groups(op, x, shape, sizes->content);
    if (grown != 0) return grown > 0;
    const std::string data = op.plain(x), target = op.plain(sizes);
    if (rank > 4) return op.fail("to a shape known only at run time, of rank %d", rank);
    if (data.empty() || target.empty()) return false;
    const std::string out = op.emit("Expand", {data, target}).outputs[0];
    op.set(0, x->type, shape, Form::plain(rank), out);
    return true;
}

bool depth_space(Op& op, bool inverse) {
    Value* x = op.in(0);
    const int64_t b = op.attr("blocksize", 0);
    if (x->rank() != 4 || b < 1 || b > 32768)
        return op.fail("rank %d, blocksize %lld", x->rank(), (long long)b);
    const std::string from = op.batched(x);
    if (from.empty()) return false;
    Symbols& s = op.c.symbols;
    std::vector<Dim> shape = x->shape;
    shape[1] = inverse ? s.multiply(shape[1], Dim(b * b)) : s.divide(shape[1], Dim(b * b));
    for (int a = 2; a < 4; a++)
        shape[a] = inverse ? s.divide(shape[a], Dim(b)) : s.multiply(shape[a], Dim(b));
    const bool crd = op.attr_string("mode", "DCR") == "CRD";
    const bool fast = !inverse && x->floats();
    ModelLayer& layer = op.emit(fast ? "PixelShuffle" : "DepthToSpace", {from});
    layer.set(fast ? "upscale_factor" : "blocksize", (int)b);
    if (fast)
        layer.set("mode", crd ? 0 : 1);
    else
        layer.set("mode", crd ? 1 : 0), layer.set("inverse", inverse ? 1 : 0);
    op.set(0, x->type, shape, Form::batched(4), layer.outputs[0]);
    return true;
}
bool depth_to_space(Op& op) { return depth_space(op, false); }
bool space_to_depth(Op& op) { return depth_space(op, true); }

}  // namespace

OpTable shape_ops() {
    return {
        {"", "Reshape", 5, 0, reshape, "", 2,
         kOpTakesSizes | kOpMovesValues | kOpReshapes | kOpFirstStrings},
        {"", "Flatten", 1, 0, flatten, "", 1, kOpMovesValues | kOpReshapes | kOpFirstStrings},
        {"", "Squeeze", 1, 0, squeeze, "constant axes, or none and at most 3 open sizes", 1,
         kOpTakesSizes | kOpMovesValues | kOpReshapes | kOpFirstStrings},
        {"", "Unsqueeze", 1, 0, unsqueeze, "constant axes", 1,
         kOpTakesSizes | kOpMovesValues | kOpReshapes | kOpFirstStrings},
        {"", "Transpose", 1, 0, transpose, "at most 7 axes that are not 1", 1,
         kOpMovesValues | kOpFirstStrings},
        {"", "Shape", 1, 0, shape_of, "", 1, kOpFirstStrings},
        {"", "Size", 1, 0, size_of, "", 1, kOpFirstStrings},
        {"", "Expand", 8, 0, expand, "", 2, kOpTakesSizes | kOpFirstStrings},
        {"", "DepthToSpace", 1, 0, depth_to_space, "", 1, kOpFirstStrings},
        {"", "SpaceToDepth", 1, 0, space_to_depth, "", 1, kOpFirstStrings},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
