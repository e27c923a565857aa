// A convolution of each part of the channels, side by side, as one convolution with groups.
#include <string.h>

#include "onnx/fuse.h"

namespace quoll {
namespace onnx_tool {

namespace {

bool same_attribute(const Attribute& a, const Attribute& b) {
    return a.kind == b.kind && a.i == b.i && a.s == b.s && a.ints == b.ints;
}

bool same_window(const Node& a, const Node& b) {
    if (a.attributes.size() != b.attributes.size() || a.inputs.size() != b.inputs.size())
        return false;
    for (const auto& entry : a.attributes) {
        const auto found = b.attributes.find(entry.first);
        if (found == b.attributes.end() || !same_attribute(entry.second, found->second))
            return false;
    }
    return true;
}

// The value that a Split or a Slice takes channels [*first, *first + *count) of.
bool channels_of(const Match& m, const std::string& part, std::string* x, int64_t* first,
                 int64_t* count) {
    const Value* v = m.value(part);
    if (!v || v->rank() < 3 || !v->shape[1].known()) return false;
    *count = v->shape[1].value;
    if (const Node* split = m.maker(part, "Split")) {
        const Value* whole = m.value(split->inputs[0]);
        const int64_t axis = m.attr(*split, "axis", 0);
        if (!whole || (axis != 1 && axis != 1 - whole->rank())) return false;
        *x = split->inputs[0], *first = 0;
        for (const std::string& o : split->outputs) {
            const Value* before = m.value(o);
            if (o == m.root(part)) return true;
            if (!before || before->rank() < 2 || !before->shape[1].known()) return false;
            *first += before->shape[1].value;
        }
        return false;
    }
    const Node* slice = m.maker(part, "Slice");
    std::vector<int64_t> starts, axes, steps = {1};
    if (!slice || !m.ints(*slice, "starts", 1, &starts) || !m.ints(*slice, "axes", 3, &axes))
        return false;
    if (slice->inputs.size() > 4 && !m.ints(*slice, "steps", 4, &steps)) return false;
    if (starts.size() != 1 || starts[0] < 0 || axes != std::vector<int64_t>{1} ||
        steps != std::vector<int64_t>{1})
        return false;
    *x = slice->inputs[0], *first = starts[0];
    return true;
}

// Tensors one behind the other along axis 0; all of the same sizes.
bool join(const std::vector<const Tensor*>& parts, Tensor* all) {
    std::vector<int64_t> dims = parts[0]->dims;
    for (const Tensor* t : parts)
        if (t->type != ElementType::kFloat || t->dims != parts[0]->dims || dims.empty())
            return false;
    dims[0] *= (int64_t)parts.size();
    if (element_count(dims) < 1) return false;
    *all = Tensor(ElementType::kFloat, dims);
    const size_t bytes = parts[0]->count() * sizeof(float);
    for (size_t i = 0; i < parts.size(); i++)
        memcpy(all->bytes() + i * bytes, parts[i]->bytes(), bytes);
    return true;
}

bool grouped(Match& m) {
    const Value* out = m.value(m.last.inputs[0]);
    const int64_t axis = m.attr(m.last, "axis", 0);
    const size_t groups = m.last.inputs.size();
    if (!out || groups < 2 || (axis != 1 && axis != 1 - out->rank())) return false;
    const Node* first_conv = m.maker(m.last.inputs[0], "Conv");
    std::vector<const Tensor*> weights, biases;
    std::string x;
    int64_t at = 0;
    for (const std::string& name : m.last.inputs) {
        const Node* conv = m.maker(name, "Conv");
        std::string from;
        int64_t first = 0, count = 0;
        if (!first_conv || !conv || conv->inputs.size() < 2 || !same_window(*conv, *first_conv) ||
            m.attr(*conv, "group", 1) != 1 ||
            !channels_of(m, conv->inputs[0], &from, &first, &count))
            return false;
        if (first != at || (!x.empty() && !m.same(from, x))) return false;
        x = from, at += count;
        weights.push_back(m.constant(conv->inputs[1]));
        biases.push_back(conv->inputs.size() > 2 ? m.constant(conv->inputs[2]) : nullptr);
        if (!weights.back() || (conv->inputs.size() > 2 && !biases.back())) return false;
    }
    const Value* whole = m.value(x);
    Tensor weight, bias;
    if (!whole || whole->rank() < 3 || !whole->shape[1].is(at) || !join(weights, &weight) ||
        (biases[0] && !join(biases, &bias)) || !m.closed({x}))
        return false;
    Node node = *first_conv;
    node.outputs = m.last.outputs;
    node.inputs = {x, m.add_constant(weight)};
    if (biases[0]) node.inputs.push_back(m.add_constant(bias));
    set_int(&node, "group", (int64_t)groups);
    return m.replace(node, {x});
}

}  // namespace

std::vector<Pattern> conv_patterns() { return {{"Concat", "grouped convolution", grouped}}; }

}  // namespace onnx_tool
}  // namespace quoll
