// What classical models share: attributes, sums, what follows them, labels.
#include "onnx/ops_ml.h"

#include <algorithm>

namespace quoll {
namespace onnx_tool {
namespace ml {

const char* const kStringsLimit = "strings as places in a table";

Tensor floats_tensor(const Floats& values, const Ints& dims) {
    Tensor t = Tensor::unset(ElementType::kFloat, dims);
    std::copy(values.begin(), values.end(), (float*)t.bytes());
    return t;
}

const std::vector<std::string>& strings_of(const Op& op, const char* name) {
    static const std::vector<std::string> kNone;
    const auto found = op.node.attributes.find(name);
    return found == op.node.attributes.end() ? kNone : found->second.strings;
}

std::string matrix_input(Op& op, Nodes& n) {
    const Value* x = op.in(0);
    if (x->rank() > 2) {
        op.fail("rank %d, expected 1 or 2", x->rank());
        return "";
    }
    std::string name = op.node.inputs[0];
    if (!x->floats()) name = n.cast(name, ElementType::kFloat);
    return x->rank() == 2 ? name : n.reshape(name, {1, -1});
}

std::string linear(Op& op, Nodes& n, const Floats& coefficients, const Floats& intercepts,
                   int64_t outputs) {
    const std::string x = matrix_input(op, n);
    if (x.empty()) return "";
    if (outputs < 1 || coefficients.size() % (size_t)outputs != 0 ||
        (!intercepts.empty() && intercepts.size() != (size_t)outputs)) {
        op.fail("%zu coefficients and %zu intercepts for %lld outputs", coefficients.size(),
                intercepts.size(), (long long)outputs);
        return "";
    }
    const int64_t features = (int64_t)coefficients.size() / outputs;
    std::vector<std::string> inputs = {
        x, n.constant(floats_tensor(coefficients, {outputs, features}))};
    if (!intercepts.empty()) inputs.push_back(n.constant(floats_tensor(intercepts, {outputs})));
    return n.add("Gemm", inputs, {{"transB", attribute_of((int64_t)1)}});
}

std::string matrix_of(Op& op, const std::string& blob, const std::vector<Dim>& shape) {
    Value* v = op.c.add_value(op.c.unique_value(op.node.label() + "/" + blob));
    v->type = ElementType::kFloat, v->shape = shape, v->form = Form::plain(2);
    v->blobs[{0, v->form}] = blob;
    op.c.add_sizes(blob, shape, v->form);
    return v->name;
}

namespace {

// Softmax of the scores that are not 0, which stay 0.
std::string softmax_of_others(Nodes& n, const std::string& x) {
    const std::string axis = n.ints({-1});
    const std::string zero = n.add("Equal", {x, n.scalar(0.f)});
    const std::string power = n.add("Exp", {n.add("Sub", {x, n.add("ReduceMax", {x, axis})})});
    const std::string kept = n.add("Where", {zero, n.scalar(0.f), power});
    return n.add("Div", {kept, n.add("ReduceSum", {kept, axis})});
}

// The quantile function of the normal distribution, sqrt(2) * inverse of erf(2 x - 1), by
// Winitzki's formula with a = 0.147, which ONNX Runtime has, too: good to 2e-3.
std::string probit(Nodes& n, const std::string& x) {
    const float a = 0.147f, pi = 3.14159265f;
    const std::string at = n.add("Sub", {n.add("Mul", {x, n.scalar(2.f)}), n.scalar(1.f)});
    const std::string log = n.add("Log", {n.add("Sub", {n.scalar(1.f), n.add("Mul", {at, at})})});
    const std::string half =
        n.add("Add", {n.add("Mul", {log, n.scalar(0.5f)}), n.scalar(2.f / (pi * a))});
    const std::string root = n.add(
        "Sqrt", {n.add("Sub", {n.add("Mul", {half, half}), n.add("Mul", {log, n.scalar(1 / a)})})});
    const std::string size = n.add("Sqrt", {n.add("Sub", {root, half})});
    return n.add("Mul", {n.add("Sign", {at}), n.add("Mul", {size, n.scalar(1.41421356f)})});
}

}  // namespace

bool post_transform(Op& op, Nodes& n, const std::string& name, std::string* x) {
    if (name == "SOFTMAX")
        *x = n.add("Softmax", {*x}, {{"axis", attribute_of((int64_t)-1)}});
    else if (name == "LOGISTIC")
        *x = n.add("Sigmoid", {*x});
    else if (name == "SOFTMAX_ZERO")
        *x = softmax_of_others(n, *x);
    else if (name == "PROBIT")
        *x = probit(n, *x);
    else if (name != "NONE")
        return op.fail("post_transform %s", name.c_str());
    return n.ok();
}

bool set_labels(Op& op, Nodes& n, const std::string& indexes) {
    Ints labels = op.attr_ints("classlabels_int64s");
    if (labels.empty()) labels = op.attr_ints("classlabels_ints");
    if (!op.wants(0)) return true;
    if (!labels.empty()) return n.set(0, n.add("Gather", {n.ints(labels), indexes}));
    Tensor places = Tensor::of_ints(op.c.strings->places_of(strings_of(op, "classlabels_strings")));
    places.type = ElementType::kString;
    return n.set(0, n.add("Gather", {n.constant(places), indexes}));
}

size_t label_count(const Op& op) {
    return std::max({op.attr_ints("classlabels_int64s").size(),
                     op.attr_ints("classlabels_ints").size(),
                     strings_of(op, "classlabels_strings").size()});
}

std::string best_of(Nodes& n, const std::string& scores) {
    return n.add("ArgMax", {scores},
                 {{"axis", attribute_of((int64_t)1)}, {"keepdims", attribute_of((int64_t)0)}});
}

bool set_two_classes(Op& op, Nodes& n, const std::string& score, float limit, TwoScores other) {
    const std::string positive =
        n.cast(n.squeeze(n.add("Greater", {score, n.scalar(limit)}), {1}), ElementType::kInt64);
    return set_two_scores(op, n, score, other) && set_labels(op, n, positive) && n.ok();
}

bool set_two_scores(Op& op, Nodes& n, std::string score, TwoScores other) {
    const std::string transform = op.attr_string("post_transform", "NONE");
    if (transform == "PROBIT") return op.fail("post_transform PROBIT of one score");
    std::string first = n.add("Neg", {score});
    if (transform == "LOGISTIC") {
        first = n.add("Sigmoid", {first});
        score = n.add("Sigmoid", {score});
    } else if (other == kComplement) {
        first = n.add("Sub", {n.scalar(1.f), score});
    }
    return !op.wants(1) ||
           n.set(1, n.add("Concat", {first, score}, {{"axis", attribute_of((int64_t)1)}}));
}

}  // namespace ml
}  // namespace onnx_tool
}  // namespace quoll
