// Reshapes and transposes that undo one another, or that together are one layer.
#include <algorithm>

#include "layer/nn/innerproduct.h"
#include "onnx/fuse.h"
#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

namespace {

typedef std::vector<int64_t> Order;

Order inverse(const Order& perm) {
    Order back(perm.size());
    for (size_t i = 0; i < perm.size(); i++) back[(size_t)perm[i]] = (int64_t)i;
    return back;
}

// Two transposes are one, or none.
bool transposes(Match& m) {
    const Node* first = m.maker(m.last.inputs[0], "Transpose");
    if (!first) return false;
    const Order one = m.order_of(*first), two = m.order_of(m.last);
    if (one.empty() || one.size() != two.size()) return false;
    Order both;
    for (int64_t p : two) both.push_back(one[(size_t)p]);
    if (std::is_sorted(both.begin(), both.end()))
        return m.replace_open(m.node("Identity", {first->inputs[0]}));
    Node node = m.node("Transpose", {first->inputs[0]});
    set_ints(&node, "perm", both);
    return m.replace(node);
}

// What a reshape is made from when what lies between changes sizes only.
bool reshapes(Match& m) {
    const Value* sizes = m.last.inputs.size() > 1 ? m.value(m.last.inputs[1]) : nullptr;
    if (!sizes || !sizes->has_content || !all_known(sizes->content)) return false;
    for (const Dim& d : sizes->content)
        if (d.is(0)) return false;  // means a size of the input
    const Node* first = m.maker(m.last.inputs[0], kOpReshapes);
    const Value* x = first ? m.value(first->inputs[0]) : nullptr;
    return x && !x->is_constant() &&
           m.replace(m.node("Reshape", {first->inputs[0], m.last.inputs[1]}),
                     {first->inputs[0], m.last.inputs[1]});
}

// Reshape, Transpose, Reshape.
struct Chain {
    std::string x;
    std::vector<Dim> from, middle, to;
    Order perm;
};

bool find_chain(const Match& m, Chain* c) {
    const Node* t = m.maker(m.last.inputs[0], "Transpose");
    const Node* split = t ? m.maker(t->inputs[0], "Reshape") : nullptr;
    const Value *middle = split ? m.value(t->inputs[0]) : nullptr,
                *x = split ? m.value(split->inputs[0]) : nullptr,
                *sizes = m.last.inputs.size() > 1 ? m.value(m.last.inputs[1]) : nullptr;
    if (!middle || !x || !sizes || !sizes->has_content || x->rank() != 4 || !x->floats())
        return false;
    c->perm = m.order_of(*t);
    c->x = split->inputs[0];
    c->from = x->shape, c->middle = middle->shape, c->to = sizes->content;
    return !c->perm.empty() && same(c->from[0], c->middle[0]) && c->to.size() == 4;
}

// Whether the last reshape asks for these sizes; at most one may be left open.
bool asks_for(const Chain& c, const std::vector<Dim>& shape) {
    int open = 0;
    for (size_t i = 0; i < shape.size(); i++) {
        const bool zero = c.to[i].is(0), rest = c.to[i].is(-1);
        open += rest;
        if (zero || (!rest && !same(c.to[i], shape[i]))) return false;
    }
    return open <= 1;
}

// [n][g][c / g][h][w] with the groups and their channels exchanged.
bool shuffle(Match& m) {
    Chain c;
    const bool five = find_chain(m, &c) && c.perm == Order({0, 2, 1, 3, 4});
    if (!five || !c.middle[1].known() || !same(c.from[2], c.middle[3]) ||
        !same(c.from[3], c.middle[4]) || !asks_for(c, c.from))
        return false;
    const int group = (int)c.middle[1].value;
    return m.replace_by(m.node("ShuffleChannel", {c.x}), {c.x}, [&](Op& op) {
        const std::string from = op.batched(op.in(0));
        if (from.empty()) return false;
        ModelLayer& layer = op.emit("ShuffleChannel", {from});
        layer.set("group", group);
        op.set(0, op.in(0)->type, c.from, Form::batched(4), layer.outputs[0]);
        return true;
    });
}

// Blocks of r x r channels as pixels, in one of the two orders of channels.
bool depth_to_space(Match& m) {
    Chain c;
    if (!find_chain(m, &c) || c.middle.size() != 6) return false;
    const bool crd = c.perm == Order({0, 1, 4, 2, 5, 3});
    if (!crd && c.perm != Order({0, 3, 4, 1, 5, 2})) return false;
    const Dim &r = c.middle[crd ? 2 : 1], &other = c.middle[crd ? 3 : 2],
              &channels = c.middle[crd ? 1 : 3];
    Symbols& s = m.c.symbols;
    if (!r.known() || !same(r, other) || !same(c.middle[4], c.from[2]) ||
        !same(c.middle[5], c.from[3]) ||
        !asks_for(c, {c.from[0], channels, s.multiply(c.from[2], r), s.multiply(c.from[3], r)}))
        return false;
    Node node = m.node("DepthToSpace", {c.x});
    set_int(&node, "blocksize", r.value);
    set_string(&node, "mode", crd ? "CRD" : "DCR");
    return m.replace(node);
}

// Blocks of pixels as channels: those of one place together (SpaceToDepth), or those of a channel.
bool space_to_depth(Match& m) {
    Chain c;
    if (!find_chain(m, &c) || c.middle.size() != 6) return false;
    const bool places = c.perm == Order({0, 3, 5, 1, 2, 4});
    const Dim& r = c.middle[3];
    if ((!places && c.perm != Order({0, 1, 3, 5, 2, 4})) || !r.known() || r.value < 1 ||
        !same(r, c.middle[5]) || !same(c.middle[1], c.from[1]) || !all_known(c.from) ||
        c.from[2].value % r.value != 0 || c.from[3].value % r.value != 0 ||
        !c.middle[2].is(c.from[2].value / r.value) || !c.middle[4].is(c.from[3].value / r.value))
        return false;
    const std::vector<Dim> shape = {c.from[0], Dim(c.from[1].value * r.value * r.value),
                                    Dim(c.from[2].value / r.value), Dim(c.from[3].value / r.value)};
    if (!asks_for(c, shape)) return false;
    return m.replace_by(m.node("SpaceToDepth", {c.x}), {c.x}, [&](Op& op) {
        const std::string from = op.batched(op.in(0));
        if (from.empty()) return false;
        ModelLayer& layer = op.emit("Reorg", {from});
        layer.set("stride", (int)r.value);
        layer.set("mode", places ? 1 : 0);
        op.set(0, op.in(0)->type, shape, Form::batched(4), layer.outputs[0]);
        return true;
    });
}

// A product of the rows of a tensor that is reshaped to a matrix and back: PyTorch's addmm.
bool rows_of_product(Match& m) {
    const Node* product = m.maker(m.last.inputs[0], "Gemm");
    const Node* flat = product ? m.maker(product->inputs[0], "Reshape") : nullptr;
    const Value *x = flat ? m.value(flat->inputs[0]) : nullptr,
                *matrix = flat ? m.value(product->inputs[0]) : nullptr,
                *y = product ? m.value(m.last.inputs[0]) : nullptr,
                *sizes = m.last.inputs.size() > 1 ? m.value(m.last.inputs[1]) : nullptr;
    const int rank = sizes && sizes->has_content ? (int)sizes->content.size() : 0;
    if (!x || !y || x->is_constant() || rank < 3 || rank > x->rank()) return false;
    const auto inner = x->shape.begin() + (rank - 1);  // a row's axes
    if (!same(m.c.symbols.product({inner, x->shape.end()}), matrix->shape.back())) return false;
    std::vector<Dim> shape(x->shape.begin(), inner);
    shape.push_back(y->shape.back());
    int open = 0;
    for (size_t a = 0; a < shape.size(); a++) {
        open += sizes->content[a].is(-1);
        if (!sizes->content[a].is(-1) && !same(sizes->content[a], shape[a])) return false;
    }
    const std::string blob = y->blobs.count({0, y->form}) ? y->blobs.at({0, y->form}) : "";
    const auto& layers = m.c.model.layers;
    const auto layer = std::find_if(layers.rbegin(), layers.rend(), [&](const ModelLayer& l) {
        return l.is<InnerProduct>() && l.outputs[0] == blob;
    });
    // One of int8 does not take the floats that stand for x.
    if (open > 1 || layer == layers.rend() || layer->params.get(8, 0) != 0) return false;
    const ParamDict params = layer->params;
    const std::vector<ModelWeight> weights = layer->weights;
    return m.replace_by(m.node("Gemm", {flat->inputs[0]}), {flat->inputs[0]}, [&](Op& op) {
        const bool items = x->form.batch;
        const int lead = rank - (items ? 2 : 1);
        const Form form{items, {lead, 1}};
        const std::string from = op.blob(op.in(0), {items, {lead, x->rank() - rank + 1}});
        if (from.empty()) return false;
        ModelLayer& made = op.emit("InnerProduct", {from});
        made.params = params, made.weights = weights;
        op.set(0, op.in(0)->type, shape, form, made.outputs[0]);
        return true;
    });
}

// Whether a transpose that went on behind this value would meet its inverse.
bool meets_inverse(const Match& m, const std::string& value, const Order& perm, int depth) {
    for (const Node* reader : m.readers(value)) {
        if (!reader->domain.empty()) continue;
        if (reader->op == "Transpose" && m.order_of(*reader) == inverse(perm)) return true;
        const auto found = reader->attributes.find("perm");
        if (reader->op == "Transpose" && found != reader->attributes.end() &&
            found->second.ints == inverse(perm))
            return true;
        if (depth < 12 && (has_trait(*reader, kOpElementwise) || reader->op == "Concat") &&
            !reader->outputs.empty() && meets_inverse(m, reader->outputs[0], perm, depth + 1))
            return true;
    }
    return false;
}

// f(transpose(x)) as transpose(f(x)), if that brings a transpose to its inverse.
bool sink(Match& m) {
    Order perm;
    const bool concat = m.last.op == "Concat";
    std::vector<std::string> inputs = m.last.inputs, ends;
    if (!concat && !has_trait(m.last, kOpElementwise)) return false;
    const bool unary = m.last.op == "Clip";  // other inputs are numbers
    for (size_t i = 0; i < inputs.size(); i++) {
        if (inputs[i].empty() || (unary && i > 0)) continue;
        const Node* t = m.maker(inputs[i], "Transpose");
        const Value* v = m.value(inputs[i]);
        if (t) {
            const Order own = m.order_of(*t);
            if (own.empty() || (!perm.empty() && own != perm)) return false;
            perm = own;
            inputs[i] = t->inputs[0];
            ends.push_back(inputs[i]);
        } else if (concat || !v || !v->is_constant() || v->constant->count() != 1 ||
                   v->rank() > 1) {
            return false;
        }
    }
    if (perm.empty() || !meets_inverse(m, m.last.outputs[0], perm, 0)) return false;
    const std::string moved = m.emit(m.last.op.c_str(), inputs, [&](Node* n) {
        n->attributes = m.last.attributes;
        const int64_t rank = (int64_t)perm.size(), axis = m.attr(m.last, "axis", 0);
        if (concat && axis >= -rank && axis < rank)
            set_int(n, "axis", perm[(size_t)(axis < 0 ? axis + rank : axis)]);
    });
    if (moved.empty()) return false;
    Node node = m.node("Transpose", {moved});
    set_ints(&node, "perm", perm);
    return m.replace_open(node);
}

// An operand that is repeated to the sizes of the other, which the operator does by itself.
bool repeated_operand(Match& m) {
    for (size_t i = 0; i < 2 && m.last.inputs.size() == 2; i++) {
        const Node* expand = m.maker(m.last.inputs[i], "Expand");
        const Value *wide = m.value(m.last.inputs[i]), *other = m.value(m.last.inputs[1 - i]);
        if (!expand || m.constant(m.last.inputs[i]) || !wide || !other ||
            !same(wide->shape, other->shape))
            continue;
        Node node = m.node(m.last.op.c_str(), m.last.inputs);
        node.inputs[i] = expand->inputs[0];
        return m.replace_open(node);
    }
    return false;
}

}  // namespace

std::vector<Pattern> layout_patterns() {
    std::vector<Pattern> all = {
        {"Transpose", "transposes", transposes},
        {"Reshape", "ShuffleChannel", shuffle},
        {"Reshape", "PixelShuffle", depth_to_space},
        {"Reshape", "Reorg", space_to_depth},
        {"Reshape", "reshapes", reshapes},
        {"Reshape", "rows of a product", rows_of_product},
    };
    all.push_back({"Concat", "transposes moved", sink});
    for (const OpEntry* entry : all_ops())
        if (!*entry->domain && (entry->traits & kOpElementwise)) {
            all.push_back({entry->op, "repeated operand", repeated_operand});
            all.push_back({entry->op, "transposes moved", sink});
        }
    return all;
}

}  // namespace onnx_tool
}  // namespace quoll
