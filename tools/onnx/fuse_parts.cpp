// Parts of rows, as exporters take queries, keys and values from the rows that one product makes: a
// reshape that gives the parts an axis, transposes that bring it to the front, and picks of each.
// Here each part is cut out of the rows, and only then moved: rows of parts that a product makes
// become products of their own. And the other way round: products of all steps one by one, as
// exporters unroll Keras's TimeDistributed, become one.
#include <algorithm>

#include "onnx/fuse.h"

namespace quoll {
namespace onnx_tool {

namespace {

typedef std::vector<int64_t> Numbers;

// What has `index` along an axis of a value.
struct Pick {
    std::string from;
    int64_t axis = 0, index = 0;
};

// A slice of one, or one of the pieces, whose index counts what is in front of it.
bool is_piece(const Match& m, const std::string& name, int64_t axis, Pick* pick) {
    if (const Node* split = m.maker(name, "Split")) {
        pick->from = split->inputs[0];
        pick->axis = m.attr(*split, "axis", 0);
        pick->index = 0;
        for (const std::string& piece : split->outputs) {
            if (m.same(piece, name)) break;
            const Value* v = m.value(piece);
            if (!v || axis >= v->rank() || !v->shape[(size_t)axis].known()) return false;
            pick->index += v->shape[(size_t)axis].value;
        }
        return true;
    }
    const Node* slice = m.maker(name, "Slice");
    Numbers starts, axes, steps = {1};
    if (!slice || !m.ints(*slice, "starts", 1, &starts) || starts.size() != 1 ||
        !m.ints(*slice, "axes", 3, &axes) || axes.size() != 1 ||
        (slice->inputs.size() > 4 && !m.ints(*slice, "steps", 4, &steps)))
        return false;
    pick->from = slice->inputs[0];
    pick->axis = axes[0], pick->index = starts[0];
    const Value* v = m.value(name);
    return steps == Numbers{1} && v && axis < v->rank() && v->shape[(size_t)axis].is(1);
}

// A Gather of one index, or a Squeeze of such a piece.
bool find_pick(const Match& m, const Node& node, Pick* pick) {
    int64_t squeezed = 0;
    if (node.op == "Gather") {
        const Tensor* index = m.constant(node.inputs[1]);
        if (!index || index->rank() != 0 || is_float(index->type)) return false;
        *pick = {node.inputs[0], m.attr(node, "axis", 0), index->int_at(0)};
        squeezed = pick->axis;
    } else {
        Numbers axes;
        const Value* v = m.value(node.inputs[0]);
        if (!v || !m.ints(node, "axes", 1, &axes) || axes.size() != 1) return false;
        squeezed = axes[0] < 0 ? axes[0] + v->rank() : axes[0];
        if (squeezed < 0 || squeezed >= v->rank() || !v->shape[(size_t)squeezed].is(1) ||
            !is_piece(m, node.inputs[0], squeezed, pick))
            return false;
    }
    const Value* from = m.value(pick->from);
    if (!from) return false;
    for (int64_t* axis : {&pick->axis, &squeezed}) *axis += *axis < 0 ? from->rank() : 0;
    if (pick->axis != squeezed || squeezed < 0 || squeezed >= from->rank()) return false;
    const Dim& size = from->shape[(size_t)squeezed];
    if (size.known() && pick->index < 0) pick->index += size.value;
    return size.known() && pick->index >= 0 && pick->index < size.value;
}

// The value behind transposes and axes of size 1 that come and go, and which of its axes each axis
// of the given one is (-1: none).
bool find_source(const Match& m, const std::string& name, int depth, std::string* source,
                 Numbers* axes) {
    const Node* node = m.maker(m.root(name));
    const Value* v = m.value(name);
    if (!v || depth > 4) return false;
    if (node && !m.constant(name) && node->domain.empty() && node->op == "Transpose") {
        const Numbers order = m.order_of(*node);
        Numbers from;
        if (order.empty() || !find_source(m, node->inputs[0], depth + 1, source, &from))
            return false;
        for (int64_t p : order) axes->push_back(from[(size_t)p]);
        return true;
    }
    const bool fewer = node && node->op == "Squeeze", more = node && node->op == "Unsqueeze";
    Numbers ones;
    if (!node || !node->domain.empty() || (!fewer && !more) || !m.ints(*node, "axes", 1, &ones)) {
        *source = name;
        for (int64_t a = 0; a < v->rank(); a++) axes->push_back(a);
        return true;
    }
    const Value* before = m.value(node->inputs[0]);
    Numbers from;
    if (!before || !find_source(m, node->inputs[0], depth + 1, source, &from)) return false;
    const int64_t rank = fewer ? before->rank() : v->rank();
    for (int64_t& a : ones) a += a < 0 ? rank : 0;
    size_t at = 0;
    for (int64_t a = 0; a < rank; a++) {
        const bool one = std::count(ones.begin(), ones.end(), a) != 0;
        if (more || !one) axes->push_back(one ? -1 : from[at]);
        at += fewer || !one;
    }
    return true;
}

// Rows of the sizes `lead` that hold parts one behind the other, of the sizes `inner` each.
struct Rows {
    std::string name;
    std::vector<Dim> lead;
    Numbers inner;
    int64_t width = 1;  // of a part
};

bool find_rows(const Match& m, const std::string& parts, int64_t axis, Rows* rows) {
    const Node* reshape = m.maker(parts, "Reshape");
    const Value *v = m.value(parts), *x = reshape ? m.value(reshape->inputs[0]) : nullptr;
    if (!v || !x || x->is_constant() || x->rank() != axis + 1 || v->rank() < x->rank() + 1)
        return false;
    for (int64_t a = 0; a < v->rank(); a++) {
        const Dim& size = v->shape[(size_t)a];
        if (a < axis) {
            if (!same(size, x->shape[(size_t)a])) return false;
            rows->lead.push_back(size);
        } else if (!size.known()) {
            return false;
        } else if (a > axis) {
            rows->inner.push_back(size.value);
            rows->width *= size.value;
        }
    }
    rows->name = reshape->inputs[0];
    return true;
}

// Nothing reads the value but picks of it.
bool only_picked(const Match& m, const std::string& name) {
    const auto& readers = m.readers(m.root(name));
    return std::all_of(readers.begin(), readers.end(), [](const Node* n) {
        return n->op == "Gather" || n->op == "Slice" || n->op == "Split";
    });
}

bool part_of_rows(Match& m) {
    Pick pick;
    std::string parts;
    Numbers axes;
    if (!find_pick(m, m.last, &pick) || !find_source(m, pick.from, 0, &parts, &axes) ||
        m.same(parts, pick.from) || !only_picked(m, pick.from))
        return false;
    const int64_t axis = axes[(size_t)pick.axis];
    Rows rows;
    if (axis < 0 || !find_rows(m, parts, axis, &rows)) return false;
    // The axes that are left, as a transpose of those of the part.
    axes.erase(axes.begin() + pick.axis);
    for (int64_t& a : axes) a -= a > axis;
    Numbers sorted = axes;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < sorted.size(); i++)
        if (sorted[i] != (int64_t)i) return false;
    if (sorted.size() != rows.lead.size() + rows.inner.size()) return false;

    const auto ints = [&](const Numbers& values) {
        return m.add_constant(Tensor::of_ints(values));
    };
    std::string last = rows.name;
    Node node = m.node("Slice", {rows.name, ints({pick.index * rows.width}),
                                 ints({(pick.index + 1) * rows.width}), ints({axis})});
    const auto then = [&](const char* op, const std::vector<std::string>& more) {
        last =
            m.emit(node.op.c_str(), node.inputs, [&](Node* n) { n->attributes = node.attributes; });
        std::vector<std::string> inputs = {last};
        inputs.insert(inputs.end(), more.begin(), more.end());
        node = m.node(op, inputs);
        return !last.empty();
    };
    if (rows.inner.size() > 1) {
        Numbers shape(rows.lead.size(), 0);  // as they are
        shape.insert(shape.end(), rows.inner.begin(), rows.inner.end());
        if (!then("Reshape", {ints(shape)})) return false;
    }
    if (!std::is_sorted(axes.begin(), axes.end())) {
        if (!then("Transpose", {})) return false;
        set_ints(&node, "perm", axes);
    }
    return m.replace_open(node);
}

// What is picked of a value, times weights, plus a bias that may be missing (""), with the axis
// back.
struct Step {
    Pick pick;
    std::string weights, bias;
};

bool find_step(const Match& m, const std::string& name, int64_t axis, Step* step) {
    const Node* wide = m.maker(name, "Unsqueeze");
    const Value* v = m.value(name);
    Numbers axes;
    if (!wide || !v || !m.ints(*wide, "axes", 1, &axes) || axes.size() != 1 ||
        axes[0] + (axes[0] < 0 ? v->rank() : 0) != axis)
        return false;
    std::string result = wide->inputs[0];
    if (const Node* sum = m.maker(result, "Add")) {
        const size_t i = m.constant(sum->inputs[0]) ? 0 : 1;
        const Tensor* bias = m.constant(sum->inputs[i]);
        if (!bias || bias->rank() > 1) return false;
        step->bias = sum->inputs[i], result = sum->inputs[1 - i];
    }
    const Node* product = m.maker(result, "MatMul");
    const Tensor* weights = product ? m.constant(product->inputs[1]) : nullptr;
    const Node* pick = product ? m.maker(product->inputs[0]) : nullptr;
    if (!weights || weights->rank() != 2 || !pick || !pick->domain.empty() ||
        (pick->op != "Gather" && pick->op != "Squeeze") || !find_pick(m, *pick, &step->pick))
        return false;
    step->weights = product->inputs[1];
    // A row of less than two axes would be a product of another kind.
    const Value* from = m.value(step->pick.from);
    return step->pick.axis == axis && from->rank() >= 3 && axis < from->rank() - 1;
}

// Steps in time, each a product by the same weights: one product of all.
bool steps_of_product(Match& m) {
    const Value* v = m.value(m.last.inputs[0]);
    const size_t count = m.last.inputs.size();
    int64_t axis = m.attr(m.last, "axis", 0);
    if (!v || count < 2) return false;
    axis += axis < 0 ? v->rank() : 0;
    Step first;
    for (size_t i = 0; i < count; i++) {
        Step step;
        if (!find_step(m, m.last.inputs[i], axis, &step) || step.pick.index != (int64_t)i)
            return false;
        if (i == 0) first = step;
        if (!m.same(step.pick.from, first.pick.from) || step.weights != first.weights ||
            step.bias != first.bias)
            return false;
    }
    const std::string& from = first.pick.from;
    if (!m.value(from)->shape[(size_t)axis].is((int64_t)count) || !m.closed({from})) return false;
    if (first.bias.empty()) return m.replace(m.node("MatMul", {from, first.weights}), {from});
    const std::string product = m.emit("MatMul", {from, first.weights});
    return !product.empty() && m.replace(m.node("Add", {product, first.bias}), {from, product});
}

}  // namespace

std::vector<Pattern> part_patterns() {
    return {{"Gather", "parts of rows", part_of_rows},
            {"Squeeze", "parts of rows", part_of_rows},
            {"Concat", "steps of a product", steps_of_product}};
}

}  // namespace onnx_tool
}  // namespace quoll
