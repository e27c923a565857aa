// Cutting, joining, repeating.
#include <algorithm>

#include "onnx/nodes.h"
#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

namespace {

// ONNX's rule for one axis of Slice.
struct Cut {
    int64_t start, end, step;
};

// The size of a cut, as far as it is known.
Dim cut_size(Op& op, const Cut& cut, const Dim& size) {
    const bool to_end = cut.end >= 2147483647;
    if (!size.known()) {
        Symbols& s = op.c.symbols;
        if (cut.step == 1 && to_end && cut.start >= 0)
            return cut.start == 0 ? size : s.subtract(size, Dim(cut.start));
        if (cut.step == 1 && cut.start == 0 && cut.end < 0) return s.add(size, Dim(cut.end));
        // All of an axis that is shorter.
        if (cut.step == 1 && cut.start == -1 && to_end) return Dim(1);
        if (cut.step == 1 && cut.start < 0 && cut.start > INT32_MIN && to_end)
            return s.smaller(size, Dim(-cut.start));
        return Dim();
    }
    const int64_t n = size.value, low = cut.step > 0 ? 0 : -1, high = cut.step > 0 ? n : n - 1;
    const auto limit = [&](int64_t i, int64_t least) {
        return std::min(std::max(i < 0 ? i + n : i, least), high);
    };
    const int64_t span = (limit(cut.end, low) - limit(cut.start, 0)) * (cut.step > 0 ? 1 : -1);
    const int64_t by = cut.step > 0 ? cut.step : cut.step == INT64_MIN ? INT64_MAX : -cut.step;
    return Dim(span > 0 ? (span - 1) / by + 1 : 0);
}

std::vector<Dim> cut_content(const std::vector<Dim>& content, const Cut& cut) {
    std::vector<Dim> out;
    const int64_t n = (int64_t)content.size(), high = cut.step > 0 ? n : n - 1;
    const auto limit = [&](int64_t i, int64_t least) {
        return std::min(std::max(i < 0 ? i + n : i, least), high);
    };
    const int64_t start = limit(cut.start, 0), end = limit(cut.end, cut.step > 0 ? 0 : -1);
    // No step is longer than the list: sums of larger ones may be too large.
    const int64_t step = std::min(std::max(cut.step, -n - 1), n + 1);
    for (int64_t i = start; step > 0 ? i < end : i > end; i += step)
        out.push_back(content[(size_t)i]);
    return out;
}

// For rank 5 and above: one axis after the other, each in a form that supports it.
bool slice_axes_at_run_time(Op& op, Value* x, const std::vector<int64_t>& axes) {
    Nodes n(op);
    std::string now = n.in(0);
    for (size_t i = 0; i < axes.size() && n.ok(); i++) {
        const int64_t at = (int64_t)i;
        const auto element = [&](int input) { return n.slice(n.in(input), 0, at, at + 1); };
        const std::string start = element(1), end = element(2);
        const std::string step = op.has(4) ? element(4) : n.ints({1});
        now = n.emit("Slice", [&](Op& part) {
            Value* from = n.value(now);
            int axis = 0, mat_axis = 0;
            if (!part.axis(axes[i], x->rank(), &axis)) return false;
            const Form form = part.axis_form(from, axis, &mat_axis);
            std::vector<std::string> blobs = {part.blob(from, form)};
            for (const std::string& list : {start, end, n.ints({mat_axis}), step})
                blobs.push_back(n.ok() ? part.plain(n.value(list)) : "");
            if (std::count(blobs.begin(), blobs.end(), "") > 0) return false;
            std::vector<Dim> shape = from->shape;
            shape[(size_t)axis] = Dim();
            const std::string out = part.emit("StridedSlice", blobs).outputs[0];
            part.set(0, x->type, shape, form, out);
            return true;
        });
    }
    return n.set(0, now);
}

bool slice_at_run_time(Op& op, Value* x) {
    std::vector<int64_t> of_rank5;
    const std::string before = op.reason;
    const Dim some = op.in(1)->rank() == 1 ? op.in(1)->shape[0] : Dim();
    for (int64_t a = 0; !op.has(3) && some.known() && a < some.value && a < x->rank(); a++)
        of_rank5.push_back(a);
    if (x->rank() > 4 && (op.has(3) ? op.ints(3, "axes", &of_rank5) : some.known()))
        return slice_axes_at_run_time(op, x, of_rank5);
    op.reason = before;
    std::vector<std::string> from = {op.plain(x)};
    if (from[0].empty()) return false;
    std::vector<Dim> shape = x->shape;
    std::vector<int64_t> axes;
    const bool known_axes = op.has(3) && op.ints(3, "axes", &axes);
    for (int a = 0; a < x->rank(); a++)
        if (!known_axes || std::count_if(axes.begin(), axes.end(),
                                         [&](int64_t b) { return b == a || b + x->rank() == a; }))
            shape[a] = Dim();
    // [0 : n] of one axis: exporters cut to a size that is there. If it is not, all are taken.
    const Value *start = op.in(1), *end = op.in(2);
    std::vector<int64_t> steps(1, 1);
    const bool dense =
        !op.has(4) || (op.ints(4, "steps", &steps) && steps == std::vector<int64_t>{1});
    const bool one = start->has_content && start->content.size() == 1 && end->has_content &&
                     end->content.size() == 1;
    if (known_axes && dense && axes.size() == 1 && one && start->content[0].known() &&
        start->content[0].value >= 0 && !end->content[0].known()) {
        int a = 0;
        if (!op.axis(axes[0], x->rank(), &a)) return false;
        Symbols& s = op.c.symbols;
        const Dim have = s.subtract(x->shape[(size_t)a], start->content[0]);
        const Dim wanted = s.subtract(end->content[0], start->content[0]);
        if (!s.may_be_negative(have) && !s.may_be_negative(wanted))
            shape[(size_t)a] = s.smaller(have, wanted);
    }
    for (int i = 1; i < op.inputs(); i++) {
        Value* list = op.in(i);
        if (!list) {  // no axes, but steps: the axes in order
            if (!start->shape[0].known()) return op.fail("an unknown number of starts");
            axes.clear();
            for (int64_t a = 0; a < start->shape[0].value; a++) axes.push_back(a);
            list = op.c.add_constant(op.c.unique_value(op.node.label() + "/axes"),
                                     Tensor::of_ints(axes));
        }
        from.push_back(op.plain(list));
        if (from.back().empty()) return false;
    }
    const std::string out = op.emit("StridedSlice", from).outputs[0];
    op.set(0, x->type, shape, Form::plain(x->rank()), out);
    return true;
}

bool emit_slice(Op& op, Value* x, const std::vector<int>& axes, const std::vector<Cut>& cuts) {
    std::vector<Dim> shape = x->shape;
    Form form;
    std::vector<int> mat_axes;
    bool one_form = true;
    for (size_t i = 0; i < axes.size(); i++) {
        int mat_axis = 0;
        const Form f = op.axis_form(x, axes[i], &mat_axis);
        one_form = one_form && (i == 0 || f == form);
        form = f;
        mat_axes.push_back(mat_axis);
        shape[axes[i]] = cut_size(op, cuts[i], x->shape[axes[i]]);
    }
    if (!one_form && x->rank() <= 4) {
        form = Form::plain(x->rank());
        mat_axes = axes;
        one_form = true;
    }
    if (one_form) {
        const std::string from = op.blob(x, form);
        if (from.empty()) return false;
        std::vector<int> starts, ends, steps;
        for (const Cut& cut : cuts) {
            starts.push_back(to_ints({cut.start})[0]);
            ends.push_back(to_ints({cut.end})[0]);
            steps.push_back(to_ints({cut.step})[0]);
        }
        ModelLayer& layer = op.emit("StridedSlice", {from});
        layer.set("starts", starts);
        layer.set("ends", ends);
        layer.set("axes", mat_axes);
        layer.set("steps", steps);
        op.set(0, x->type, shape, form, layer.outputs[0]);
        return true;
    }
    // One axis after the other, each in a form that has it.
    Value part;
    part.name = op.node.outputs[0], part.type = x->type;
    Value* now = x;
    for (size_t i = 0; i < axes.size(); i++) {
        int mat_axis = 0;
        const Form f = op.axis_form(now, axes[i], &mat_axis);
        const std::string from = op.blob(now, f);
        if (from.empty()) return false;
        ModelLayer& layer = op.emit("StridedSlice", {from});
        layer.set("starts", to_ints({cuts[i].start}));
        layer.set("ends", to_ints({cuts[i].end}));
        layer.set("axes", std::vector<int>{mat_axis});
        layer.set("steps", to_ints({cuts[i].step}));
        std::vector<Dim> cut_shape = now->shape;
        cut_shape[axes[i]] = shape[axes[i]];
        part.shape = cut_shape, part.form = f;
        part.blobs.clear();
        part.blobs[{0, f}] = layer.outputs[0];
        now = &part;
    }
    op.set(0, x->type, part.shape, part.form, part.blobs[{0, part.form}]);
    return true;
}

// The numbers of a small integer tensor of which the outermost axis is cut.
std::vector<Dim> cut_rows(const Value* x, const Cut& cut) {
    std::vector<Dim> rows, content;
    if (!x->shape[0].known() || x->shape[0].value < 1) return content;
    const size_t width = x->content.size() / (size_t)x->shape[0].value;
    for (int64_t i = 0; i < x->shape[0].value; i++) rows.push_back(Dim(i));
    for (const Dim& row : cut_content(rows, cut)) {
        const auto from = x->content.begin() + (ptrdiff_t)(width * (size_t)row.value);
        content.insert(content.end(), from, from + (ptrdiff_t)width);
    }
    return content;
}

bool slice(Op& op) {
    Value* x = op.in(0);
    std::vector<int64_t> starts, ends, axes, steps;
    if (op.opset < 10) {
        starts = op.attr_ints("starts"), ends = op.attr_ints("ends"), axes = op.attr_ints("axes");
    } else {
        const std::string before = op.reason;
        if (!op.ints(1, "starts", &starts) || !op.ints(2, "ends", &ends) ||
            (op.has(3) && !op.ints(3, "axes", &axes)) ||
            (op.has(4) && !op.ints(4, "steps", &steps))) {
            op.reason = before;
            return slice_at_run_time(op, x);
        }
    }
    if (axes.empty())
        for (size_t i = 0; i < starts.size(); i++) axes.push_back((int64_t)i);
    if (steps.empty()) steps.assign(starts.size(), 1);
    if (ends.size() != starts.size() || axes.size() != starts.size() ||
        steps.size() != starts.size())
        return op.fail("%zu starts, %zu ends, %zu axes, %zu steps", starts.size(), ends.size(),
                       axes.size(), steps.size());
    std::vector<int> cut_axes;
    std::vector<Cut> cuts;
    for (size_t i = 0; i < starts.size(); i++) {
        int axis = 0;
        if (!op.axis(axes[i], x->rank(), &axis)) return false;
        if (steps[i] == 0) return op.fail("a step of 0");
        Cut cut = {starts[i], ends[i], steps[i]};
        // ncnn's Crop does not limit places before the first one.
        const Dim& size = x->shape[axis];
        if (cut.step == 1 && size.known() && cut.start < -size.value) cut.start = 0;
        if (cut.step == 1 && size.known() && cut.end < -size.value) cut.end = 0;
        const bool all =
            cut.start == 0 && cut.step == 1 &&
            (cut.end >= 2147483647 || (x->shape[axis].known() && cut.end >= x->shape[axis].value));
        if (all) continue;
        cut_axes.push_back(axis);
        cuts.push_back(cut);
    }
    if (cuts.empty()) {
        op.alias(0, x);
        return true;
    }
    if (!emit_slice(op, x, cut_axes, cuts)) return false;
    if (x->has_content && x->rank() == 1) op.set_content(0, cut_content(x->content, cuts[0]));
    if (x->has_content && x->rank() > 1 && cut_axes.size() == 1 && cut_axes[0] == 0)
        op.set_content(0, cut_rows(x, cuts[0]));
    return true;
}

// Sizes of the pieces: the attribute, the input, or equal ones.
bool split_sizes(Op& op, Value* x, int axis, std::vector<int64_t>* sizes) {
    bool given = false;
    if (!op.attr_or_input("split", 1, sizes, &given)) return false;
    const int count = op.outputs();
    if (given) {
        if ((int)sizes->size() != count)
            return op.fail("%zu sizes for %d outputs", sizes->size(), count);
        return true;
    }
    // Since opset 18 the last piece may be smaller than the others.
    const int64_t n = x->shape[axis].value, each = (n + count - 1) / count;
    for (int i = 0; i < count; i++)
        sizes->push_back(std::max<int64_t>(0, std::min(each, n - i * each)));
    return true;
}

// Equal pieces of a size that is known when it runs.
bool split_open(Op& op, Value* x, int axis) {
    int mat_axis = 0;
    const Form form = op.axis_form(x, axis, &mat_axis);
    const std::string from = op.blob(x, form);
    if (from.empty()) return false;
    const int equal_share = -233;
    ModelLayer& layer = op.emit("Slice", {from}, 0, op.outputs());
    layer.set("slices", std::vector<int>(op.outputs(), equal_share));
    layer.set("axis", mat_axis);
    layer.set("exact", 1);
    const std::vector<std::string> outs = layer.outputs;
    std::vector<Dim> shape = x->shape;
    shape[axis] = op.c.symbols.divide(shape[axis], Dim(op.outputs()));
    for (int i = 0; i < op.outputs(); i++) op.set(i, x->type, shape, form, outs[i]);
    return true;
}

// num_outputs pieces of a size that is known when it runs, the last of which may be smaller.
bool split_evenly(Op& op, int axis) {
    Nodes n(op);
    const int64_t count = op.outputs();
    const std::string size = n.slice(n.add("Shape", {n.in(0)}), 0, axis, axis + 1);
    const std::string each =
        n.add("Div", {n.add("Add", {size, n.ints({count - 1})}), n.ints({count})});
    for (int64_t i = 0; i < count; i++) {
        const std::string begin = n.add("Mul", {each, n.ints({i})});
        const std::string end = n.add("Add", {begin, each});
        const std::string part = n.add("Slice", {n.in(0), begin, end, n.ints({axis})});
        if (!n.ok()) return false;
        n.set((int)i, part);
    }
    return true;
}

// The same blob; a run whose axis has another size is an error.
std::string with_size(Op& op, const std::string& blob, int mat_axis, int64_t size) {
    ModelLayer& layer = op.emit("Slice", {blob}, op.outputs());
    layer.set("slices", to_ints({size}));
    layer.set("axis", mat_axis);
    layer.set("exact", 1);
    return layer.outputs[0];
}

bool split(Op& op) {
    Value* x = op.in(0);
    int axis = 0, mat_axis = 0;
    std::vector<int64_t> sizes;
    if (!op.axis(op.attr("axis", 0), x->rank(), &axis)) return false;
    const bool given = op.has_attr("split") || op.has(1);
    if (!given && !x->shape[axis].known())
        return op.opset < 18 ? split_open(op, x, axis) : split_evenly(op, axis);
    if (!split_sizes(op, x, axis, &sizes)) return false;
    const Form form = op.axis_form(x, axis, &mat_axis);
    std::string from = op.blob(x, form);
    if (from.empty()) return false;
    int64_t total = 0;
    bool zero = false;
    for (int64_t s : sizes) {
        if (s < 0) return op.fail("a piece of %lld", (long long)s);
        total += s, zero |= s == 0;
    }
    if (x->shape[axis].known() && total != x->shape[axis].value)
        return op.fail("pieces of %lld in all, the axis has %lld", (long long)total,
                       (long long)x->shape[axis].value);
    if (zero) {
        // Empty pieces are cut out one by one.
        if (!x->shape[axis].known()) from = with_size(op, from, mat_axis, total);
        int64_t at = 0;
        for (int i = 0; i < op.outputs(); at += sizes[i], i++) {
            ModelLayer& layer = op.emit("StridedSlice", {from}, i);
            layer.set("starts", to_ints({at}));
            layer.set("ends", to_ints({at + sizes[i]}));
            layer.set("axes", std::vector<int>{mat_axis});
            std::vector<Dim> shape = x->shape;
            shape[axis] = Dim(sizes[i]);
            op.set(i, x->type, shape, form, layer.outputs[0]);
        }
        return true;
    }
    ModelLayer& layer = op.emit("Slice", {from}, 0, op.outputs());
    layer.set("slices", to_ints(sizes));
    layer.set("axis", mat_axis);
    if (!x->shape[axis].known()) layer.set("exact", 1);
    const std::vector<std::string> outs = layer.outputs;
    size_t end = 0;
    for (int i = 0; i < op.outputs(); i++) {
        std::vector<Dim> shape = x->shape;
        shape[axis] = Dim(sizes[i]);
        op.set(i, x->type, shape, form, outs[i]);
        const size_t begin = end;
        end += (size_t)std::max<int64_t>(0, sizes[i]);
        if (x->has_content && x->rank() == 1 && end <= x->content.size())
            op.set_content(
                i, {x->content.begin() + (ptrdiff_t)begin, x->content.begin() + (ptrdiff_t)end});
    }
    return true;
}

bool concat(Op& op) {
    std::vector<Value*> all;
    Value* empty = nullptr;
    int axis = 0, mat_axis = 0;
    for (int i = 0; i < op.inputs(); i++) {
        Value* v = op.in(i);
        if (!v) continue;
        if (!op.axis(op.attr("axis", 1), v->rank(), &axis)) return false;
        // What has no values along the axis adds nothing.
        if (v->shape[axis].is(0))
            empty = v;
        else
            all.push_back(v);
    }
    if (all.empty() && empty) all.push_back(empty);
    if (all.empty()) return op.fail("no input");
    Value* x = all[0];
    for (Value* v : all)
        if (!v->is_constant() && (x->is_constant() || (v->form.batch && !x->form.batch))) x = v;
    if (!op.axis(op.attr("axis", 1), x->rank(), &axis)) return false;
    const Form form = op.axis_form(x, axis, &mat_axis);
    std::vector<std::string> blobs;
    std::vector<Dim> shape = x->shape, content;
    bool has_content = x->rank() == 1;
    shape[axis] = Dim(0);
    for (Value* v : all) {
        if (v->rank() != x->rank()) return op.fail("ranks %d and %d", v->rank(), x->rank());
        shape[axis] = op.c.symbols.add(shape[axis], v->shape[axis]);
        for (int a = 0; a < v->rank(); a++)
            if (a != axis && !shape[a].known() && v->shape[a].known()) shape[a] = v->shape[a];
        has_content = has_content && v->has_content;
        content.insert(content.end(), v->content.begin(), v->content.end());
    }
    if (has_content && all_known(content) && !x->floats()) {
        op.set_constant(0, Tensor::of_ints(values_of(content)).cast(x->type));
        return true;
    }
    for (Value* v : all) {
        blobs.push_back(op.blob(v, form));
        if (blobs.back().empty()) return false;
    }
    ModelLayer& layer = op.emit("Concat", blobs);
    layer.set("axis", mat_axis);
    op.set(0, x->type, shape, form, layer.outputs[0]);
    if (has_content && !x->floats()) op.set_content(0, content);
    return true;
}

// Repeats along an axis as often as a blob says: L x D, L being the axes in front, as L x 1 x D,
// then L x times x D. "" after op.fail().
std::string tile_at_run_time(Op& op, Value* x, int axis, const Dim& times, Form* form) {
    *form = Form{false, {}};
    if (axis > 0) form->groups.push_back(axis);
    form->groups.push_back(x->rank() - axis);
    const std::string sizes = op.c.size_blob(axis > 0 ? std::vector<Dim>{Dim(1), times, Dim(1)}
                                                      : std::vector<Dim>{times, Dim(1)});
    if (sizes.empty()) return op.fail("repeats is not constant"), "";
    const std::string from = op.blob(x, *form);
    if (from.empty()) return "";
    const std::vector<Dim> dims = op.c.mat_dims(x->shape, *form);
    std::vector<Dim> grown = dims;
    grown.insert(grown.end() - 1, times);
    ModelLayer& spread = op.emit("ExpandDims", {from});
    spread.set("axes", std::vector<int>{axis > 0 ? 1 : 0});
    const std::string wide = op.emit("Expand", {spread.outputs[0], sizes}).outputs[0];
    std::vector<Dim> to = dims;
    to.back() = op.c.symbols.multiply(times, dims.back());
    const std::string out = op.c.regroup(wide, grown, to, x->floats(), x->name);
    if (out.empty()) op.fail("%s", op.c.why.c_str());
    return out;
}

bool tile(Op& op) {
    Value* x = op.in(0);
    std::vector<Dim> repeats;
    if (op.has(1) && op.in(1)->has_content) {
        repeats = op.in(1)->content;
    } else if (op.has(1) && !op.in(1)->is_constant()) {
        const Value* list = op.in(1);
        if (list->rank() != 1 || (list->shape[0].known() && !list->shape[0].is(x->rank())))
            return op.fail("repeats for another rank than %d", x->rank());
        for (int a = 0; a < x->rank(); a++) {
            repeats.push_back(op.c.symbols.fresh());
            op.c.add_size_value(repeats.back(), op.in(1)->name, a);
        }
    } else {
        std::vector<int64_t> known;
        if (!op.ints(1, "repeats", &known)) return false;
        repeats = dims_of(known);
    }
    if ((int)repeats.size() != x->rank())
        return op.fail("%zu repeats for rank %d", repeats.size(), x->rank());
    Value part;
    part.name = op.node.outputs[0], part.type = x->type;
    Value* now = x;
    for (int a = 0; a < x->rank(); a++) {
        if (repeats[a].is(1)) continue;
        if (repeats[a].known() && (repeats[a].value < 0 || repeats[a].value > 2147483647))
            return op.fail("%lld repeats", (long long)repeats[a].value);
        int mat_axis = 0;
        Form form = op.axis_form(now, a, &mat_axis);
        std::string out;
        if (repeats[a].known() && !repeats[a].is(0)) {
            const std::string blob = op.blob(now, form);
            if (blob.empty()) return false;
            ModelLayer& layer = op.emit("Tile", {blob});
            layer.set("axis", mat_axis);
            layer.set("tiles", (int)repeats[a].value);
            out = layer.outputs[0];
        } else {
            out = tile_at_run_time(op, now, a, repeats[a], &form);
        }
        if (out.empty()) return false;
        std::vector<Dim> shape = now->shape;
        shape[a] = op.c.symbols.multiply(shape[a], repeats[a]);
        part.shape = shape, part.form = form;
        part.blobs.clear();
        part.blobs[{0, form}] = out;
        now = &part;
    }
    if (now == x) {
        op.alias(0, x);
        return true;
    }
    op.set(0, x->type, part.shape, part.form, part.blobs[{0, part.form}]);
    return true;
}

// The axes behind those of time and batch are one while it works.
bool reverse_long_sequence(Op& op) {
    Nodes n(op);
    const std::string y =
        n.add("ReverseSequence", {n.reshape(n.in(0), {0, 0, -1}), n.in(1)}, op.node.attributes);
    return n.set(0, n.add("Reshape", {y, n.add("Shape", {n.in(0)})}));
}

bool reverse_sequence(Op& op) {
    Value *x = op.in(0), *lengths = op.in(1);
    if (x->rank() > 4) return reverse_long_sequence(op);
    const std::string data = op.plain(x), steps = op.plain(lengths);
    if (data.empty() || steps.empty()) return false;
    ModelLayer& layer = op.emit("ReverseSequence", {data, steps});
    layer.set("batch_axis", (int)op.attr("batch_axis", 1));
    layer.set("time_axis", (int)op.attr("time_axis", 0));
    op.set(0, x->type, x->shape, Form::plain(x->rank()), layer.outputs[0]);
    return true;
}

bool trilu(Op& op) {
    Value* x = op.in(0);
    std::vector<int64_t> k(1, 0);
    if (op.has(1) && !op.ints(1, "k", &k)) return false;
    if (k.empty()) return op.fail("k has no value");
    if (x->rank() < 2) return op.fail("rank %d", x->rank());
    const int rank = x->rank();
    const bool batched = x->form.batch && rank >= 3 && rank <= 5;
    const Form form = batched     ? Form::batched(rank)
                      : rank <= 4 ? Form::plain(rank)
                                  : Form{false, {rank - 2, 1, 1}};
    const std::string blob = op.blob(x, form);
    if (blob.empty()) return false;
    ModelLayer& layer = op.emit("Trilu", {blob});
    layer.set("upper", (int)op.attr("upper", 1));
    layer.set("k", to_ints({k[0]})[0]);
    op.set(0, x->type, x->shape, form, layer.outputs[0]);
    return true;
}

}  // namespace

OpTable slice_ops() {
    return {
        {"", "Slice", 1, 0, slice,
         "rank of at most 4 when starts, ends, axes or steps are not constant",
         RequiredInputs(3, 10), kOpTakesSizes | kOpMovesValues | kOpFirstStrings},
        {"", "Split", 1, 0, split, "constant sizes", 1, kOpMovesValues | kOpFirstStrings},
        {"", "Concat", 1, 0, concat, "", 1, kOpStrings},
        {"", "Tile", 6, 0, tile, "", 2, kOpTakesSizes | kOpFirstStrings},
        {"", "ReverseSequence", 10, 0, reverse_sequence, "", 2, kOpFirstStrings},
        {"", "Trilu", 14, 0, trilu, "constant k"},
        {"com.microsoft", "Trilu", 1, 0, trilu, "constant k"},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
