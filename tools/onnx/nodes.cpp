#include "onnx/nodes.h"

namespace quoll {
namespace onnx_tool {

Attribute attribute_of(int64_t value) {
    Attribute a;
    a.kind = Attribute::kInt, a.i = value;
    return a;
}
Attribute attribute_of(float value) {
    Attribute a;
    a.kind = Attribute::kFloat, a.f = value;
    return a;
}
Attribute attribute_of(const std::string& value) {
    Attribute a;
    a.kind = Attribute::kString, a.s = value;
    return a;
}
Attribute attribute_of(const std::vector<int64_t>& values) {
    Attribute a;
    a.kind = Attribute::kInts, a.ints = values;
    return a;
}

Nodes::Nodes(Op& op) : op_(op), opset_(op.c.opset("")) { op.c.set_opset(20); }
Nodes::~Nodes() { op_.c.set_opset(opset_); }

std::string Nodes::in(int i) const { return op_.has(i) ? op_.node.inputs[i] : ""; }

bool Nodes::run(const Node& node) {
    if (!ok_) return false;
    std::vector<Problem>& problems = op_.c.problems;
    const size_t before = problems.size();
    op_.c.run_node(node);
    bool made = problems.size() == before;
    for (const std::string& output : node.outputs) {
        const Value* v = output.empty() ? nullptr : value(output);
        made = made && (output.empty() || (v && !v->bad));
    }
    if (made) return true;
    if (problems.size() > before) {
        const Problem& p = problems[before];
        op_.fail("%s",
                 (p.op + (p.op == op_.node.op ? "" : " " + p.node) + ": " + p.reason).c_str());
    } else {
        op_.fail("%s: an input could not be made", node.op.c_str());
    }
    problems.resize(before);
    return ok_ = false;
}

Node Nodes::node_of(const std::string& type, int outputs) const {
    Node node;
    node.op = type;
    const std::string own = op_.node.outputs.empty() || op_.node.outputs[0].empty()
                                ? op_.node.label()
                                : op_.node.outputs[0];
    node.name = op_.c.unique_value(op_.node.label() + "/" + type);
    for (int i = 0; i < outputs; i++) node.outputs.push_back(op_.c.unique_value(own + "/" + type));
    return node;
}

std::string Nodes::emit(const std::string& type, const std::function<bool(Op&)>& convert) {
    if (!ok_) return "";
    const Node node = node_of(type, 1);
    Op op(op_.c, node, op_.c.opset(""));
    ok_ = convert(op);
    if (!ok_) op_.fail("%s: %s", type.c_str(), op.reason.c_str());
    return ok_ ? node.outputs[0] : "";
}

std::vector<std::string> Nodes::add_many(const std::string& type,
                                         const std::vector<std::string>& inputs,
                                         const Attributes& attributes, int outputs) {
    Node node = node_of(type, outputs);
    node.inputs = inputs, node.attributes = attributes;
    if (run(node)) return node.outputs;
    return std::vector<std::string>((size_t)outputs);
}

std::string Nodes::add(const std::string& type, const std::vector<std::string>& inputs,
                       const Attributes& attributes) {
    return add_many(type, inputs, attributes, 1)[0];
}

std::string Nodes::constant(const Tensor& tensor) {
    const std::string name = op_.c.unique_value(op_.node.label() + "/constant");
    op_.c.add_constant(name, tensor);
    return name;
}

std::string Nodes::reshape(const std::string& x, const std::vector<int64_t>& sizes) {
    return add("Reshape", {x, ints(sizes)});
}

std::string Nodes::transpose(const std::string& x, const std::vector<int64_t>& perm) {
    return add("Transpose", {x}, {{"perm", attribute_of(perm)}});
}

std::string Nodes::slice(const std::string& x, int64_t axis, int64_t start, int64_t end) {
    return add("Slice", {x, ints({start}), ints({end}), ints({axis})});
}

std::string Nodes::cast(const std::string& x, ElementType type) {
    return add("Cast", {x}, {{"to", attribute_of((int64_t)type)}});
}

std::string Nodes::as_type(const std::string& x, ElementType type) {
    const Value* v = value(x);
    if (!v) return "";
    if (v->is_constant()) {
        Tensor same = *v->constant;
        same.type = type;
        return constant(same);
    }
    Value* out = op_.c.add_value(op_.c.unique_value(x));
    out->type = type;
    out->shape = v->shape, out->form = v->form, out->blobs = v->blobs;
    return out->name;
}

bool Nodes::set(int output, const std::string& name) {
    if (!ok_ || name.empty()) return false;
    op_.alias(output, value(name));
    return true;
}

}  // namespace onnx_tool
}  // namespace quoll
