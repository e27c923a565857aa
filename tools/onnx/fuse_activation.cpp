// Activation functions that exporters write as several nodes.
#include <math.h>

#include "onnx/fuse.h"

namespace quoll {
namespace onnx_tool {

namespace {

// Calls f(x, gate) for each way to see the last node as factor * x * gate, until it is true.
bool gated(const Match& m, double factor,
           const std::function<bool(const std::string& x, const std::string& gate)>& f) {
    for (const Product& p : m.products(m.last.outputs[0])) {
        if (p.values.size() != 2 || !m.near(p.factor, factor)) continue;
        if (f(p.values[0], p.values[1]) || f(p.values[1], p.values[0])) return true;
    }
    return false;
}

// sqrt(2 / pi) (x + 0.044715 x^3), or the same with x outside.
bool is_tanh_argument(const Match& m, const std::string& u, const std::string& x) {
    const double kCubic = 0.044715, kOuter = sqrt(2 / M_PI);
    for (const Product& p : m.products(u)) {
        if (!m.near(p.factor, kOuter) || p.values.empty() || p.values.size() > 2) continue;
        for (size_t i = 0; i < p.values.size(); i++) {
            const Node* sum = m.maker(p.values[i], "Add");
            const bool outside = p.values.size() == 2;
            if (!sum || (outside && !m.same(p.values[1 - i], x))) continue;
            for (int j = 0; j < 2; j++) {
                double k = 0;
                const bool one =
                    outside ? m.is_number(sum->inputs[j], 1) : m.same(sum->inputs[j], x);
                if (one && m.power(sum->inputs[1 - j], x, outside ? 2 : 3, &k) && m.near(k, kCubic))
                    return true;
            }
        }
    }
    return false;
}

// 1 + f(u), of which *u is returned.
bool one_plus(const Match& m, const std::string& gate, const char* f, std::string* u) {
    const Node* sum = m.maker(gate, "Add");
    for (int i = 0; sum && i < 2; i++) {
        const Node* function = m.maker(sum->inputs[i], f);
        if (!function || !m.is_number(sum->inputs[1 - i], 1)) continue;
        *u = function->inputs[0];
        return true;
    }
    return false;
}

// x / 2 (1 + erf(x / sqrt 2)), or tanh of a cubic.
bool gelu(Match& m) {
    return gated(m, 0.5, [&](const std::string& x, const std::string& gate) {
        std::string u;
        double k = 0;
        Node node = m.node("Gelu", {x});
        if (one_plus(m, gate, "Erf", &u) && m.multiple(u, x, &k) && m.near(k, sqrt(0.5)))
            return m.replace(node);
        if (!one_plus(m, gate, "Tanh", &u) || !is_tanh_argument(m, u, x)) return false;
        set_string(&node, "approximate", "tanh");
        return m.replace(node);
    });
}

// x sigmoid(k x): SiLU, or GELU by a sigmoid.
bool swish(Match& m) {
    return gated(m, 1, [&](const std::string& x, const std::string& gate) {
        const Node* sigmoid = m.maker(gate, "Sigmoid");
        double k = 0;
        if (!sigmoid || !m.multiple(sigmoid->inputs[0], x, &k) || k <= 0) return false;
        Node node = m.node("Swish", {x});
        if (k != 1) set_float(&node, "alpha", (float)k);
        return m.replace(node);
    });
}

// x / (1 + exp(-x))
bool swish_quotient(Match& m) {
    const std::string x = m.last.inputs[0];
    const Node* sum = m.maker(m.last.inputs[1], "Add");
    for (int i = 0; sum && i < 2; i++) {
        const Node* e = m.maker(sum->inputs[i], "Exp");
        double k = 0;
        if (e && m.is_number(sum->inputs[1 - i], 1) && m.multiple(e->inputs[0], x, &k) && k == -1)
            return m.replace(m.node("Swish", {x}));
    }
    return false;
}

// factor * value as a x + b limited to [0, 1].
bool unit_line(const Match& m, const std::string& value, double factor, std::string* x, double* a,
               double* b) {
    double low = 0, high = 0;
    std::string line;
    if (!m.clipped(value, &low, &high, &line) || low != 0 || !m.near(high * factor, 1))
        return false;
    *x = line, *a = factor, *b = 0;
    std::string inner;
    double v = 0;
    const Node* sum = m.maker(m.root(line));
    if (m.with_number(sum, "Add", &v, &inner))
        *b = v * factor, *x = inner;
    else if (m.with_number(sum, "Sub", &v, &inner))
        *b = -v * factor, *x = inner;
    for (const Product& p : m.products(*x, 2)) {
        if (p.values.size() != 1 || p.factor == 1) continue;
        *a *= p.factor, *x = p.values[0];
        break;
    }
    return true;
}

bool hard_swish(Match& m) {
    for (const Product& p : m.products(m.last.outputs[0])) {
        if (p.values.size() != 2) continue;
        for (int i = 0; i < 2; i++) {
            const std::string x = p.values[i], gate = p.values[1 - i];
            std::string from;
            double a = 0, b = 0;
            const Node* hard = m.maker(gate, "HardSigmoid");
            if (hard && p.factor == 1) {
                from = hard->inputs[0];
                a = m.attr_float(*hard, "alpha", 0.2f), b = m.attr_float(*hard, "beta", 0.5f);
            } else if (!unit_line(m, gate, p.factor, &from, &a, &b)) {
                continue;
            }
            if (m.same(from, x) && m.near(a, 1 / 6.) && m.near(b, 0.5) &&
                m.replace(m.node("HardSwish", {x})))
                return true;
        }
    }
    return false;
}

bool hard_sigmoid(Match& m) {
    for (const Product& p : m.products(m.last.outputs[0])) {
        std::string x;
        double a = 0, b = 0;
        if (p.values.size() != 1 || p.factor <= 0 ||
            !unit_line(m, p.values[0], p.factor, &x, &a, &b) || a == 1)
            continue;
        Node node = m.node("HardSigmoid", {x});
        set_float(&node, "alpha", (float)a);
        set_float(&node, "beta", (float)b);
        if (m.replace(node)) return true;
    }
    return false;
}

// log(1 + exp x)
bool softplus(Match& m) {
    std::string x;
    return one_plus(m, m.last.inputs[0], "Exp", &x) && m.replace(m.node("Softplus", {x}));
}

bool mish(Match& m) {
    return gated(m, 1, [&](const std::string& x, const std::string& gate) {
        const Node* tanh = m.maker(gate, "Tanh");
        const Node* soft = tanh ? m.maker(tanh->inputs[0], "Softplus") : nullptr;
        return soft && m.same(soft->inputs[0], x) && m.replace(m.node("Mish", {x}));
    });
}

bool clip(Match& m) {
    double low = 0, high = 0;
    std::string x;
    if (!m.clipped(m.last.outputs[0], &low, &high, &x)) return false;
    if (m.same(x, m.last.inputs[0]) || (m.last.inputs.size() > 1 && m.same(x, m.last.inputs[1])))
        return false;  // one limit by itself
    if (std::isinf(low) || std::isinf(high)) return false;
    const std::string from = m.add_constant(Tensor::of_float((float)low));
    return m.replace(m.node("Clip", {x, from, m.add_constant(Tensor::of_float((float)high))}), {x});
}

// x where x > 0, slope x elsewhere.
bool leaky(Match& m, const std::string& x, double k, const std::string& slope) {
    double one = 1;
    if (slope.empty() || m.number(slope, &one)) {
        Node node = m.node("LeakyRelu", {x});
        set_float(&node, "alpha", (float)(k * one));
        return m.replace(node);
    }
    const Tensor* t = m.constant(slope);
    const Value* v = m.value(x);
    if (!t || !v || !v->floats() || !is_float(t->type) || t->rank() > v->rank()) return false;
    for (int a = 0; a < t->rank(); a++) {
        const Dim& d = v->shape[(size_t)(v->rank() - t->rank() + a)];
        if (t->dims[a] != 1 && !d.is(t->dims[a])) return false;
    }
    Tensor scaled(ElementType::kFloat, t->dims);
    for (size_t i = 0; i < t->count(); i++) scaled.set_float(i, (float)(k * t->float_at(i)));
    return m.replace(m.node("PRelu", {x, m.add_constant(scaled)}), {x});
}

// Whether value is k * slope * x, where x < 0, and 0 elsewhere.
bool below_zero(const Match& m, const std::string& value, const std::string& x, double* k,
                std::string* slope) {
    for (const Product& p : m.products(value)) {
        if (p.values.empty() || p.values.size() > 2) continue;
        for (size_t i = 0; i < p.values.size(); i++) {
            const Node* part = m.maker(m.root(p.values[i]));
            *slope = p.values.size() == 2 ? p.values[1 - i] : "";
            if (!part || !part->domain.empty() || (!slope->empty() && !m.constant(*slope)))
                continue;
            double v = 0;
            std::string from;
            *k = p.factor;
            if (part->op == "Relu" && m.multiple(part->inputs[0], x, &v) && v == -1) {
                *k = -*k;
                return true;
            }
            if (m.with_number(part, "Min", &v, &from) && v == 0 && m.same(from, x)) return true;
            if (part->op == "Sub" && m.same(part->inputs[0], x)) {  // x - |x|
                const Node* abs = m.maker(part->inputs[1], "Abs");
                *k *= 2;
                if (abs && m.same(abs->inputs[0], x)) return true;
            }
        }
    }
    return false;
}

// relu(x) + slope min(x, 0) in its forms.
bool prelu_sum(Match& m) {
    for (int i = 0; i < 2; i++) {
        const Node* relu = m.maker(m.last.inputs[i], "Relu");
        if (!relu || (i == 1 && m.last.op == "Sub")) continue;
        const std::string x = relu->inputs[0];
        double k = 0;
        std::string slope;
        if (below_zero(m, m.last.inputs[1 - i], x, &k, &slope))
            return leaky(m, x, m.last.op == "Sub" ? -k : k, slope);
    }
    return false;
}

// where(x > 0, x, slope x)
bool prelu_where(Match& m) {
    const Node* test = m.maker(m.root(m.last.inputs[0]));
    if (!test || test->inputs.size() != 2 || !m.is_number(test->inputs[1], 0)) return false;
    const bool above = test->op == "Greater" || test->op == "GreaterOrEqual";
    if (!above && test->op != "Less" && test->op != "LessOrEqual") return false;
    const std::string x = m.last.inputs[above ? 1 : 2], other = m.last.inputs[above ? 2 : 1];
    if (!m.same(test->inputs[0], x)) return false;
    for (const Product& p : m.products(other)) {
        for (size_t i = 0; i < p.values.size() && p.values.size() <= 2; i++) {
            const std::string slope = p.values.size() == 2 ? p.values[1 - i] : "";
            if (!m.same(p.values[i], x) || (!slope.empty() && !m.constant(slope))) continue;
            return leaky(m, x, p.factor, slope);
        }
    }
    return false;
}

// max(x, slope x), slope in [0, 1]
bool prelu_max(Match& m) {
    for (int i = 0; i < 2 && m.last.inputs.size() == 2; i++) {
        const std::string x = m.last.inputs[i];
        double k = 0;
        if (m.constant(x) || m.same(x, m.last.inputs[1 - i])) continue;
        if (m.multiple(m.last.inputs[1 - i], x, &k) && k >= 0 && k <= 1) return leaky(m, x, k, "");
    }
    return false;
}

}  // namespace

std::vector<Pattern> activation_patterns() {
    return {
        {"Mul", "Gelu", gelu},
        {"Mul", "HardSwish", hard_swish},
        {"Mul", "Swish", swish},
        {"Mul", "Mish", mish},
        {"Mul", "HardSigmoid", hard_sigmoid},
        {"Div", "Gelu", gelu},
        {"Div", "HardSwish", hard_swish},
        {"Div", "Swish", swish_quotient},
        {"Div", "HardSigmoid", hard_sigmoid},
        {"Log", "Softplus", softplus},
        {"Min", "Clip", clip},
        {"Max", "Clip", clip},
        {"Max", "PRelu", prelu_max},
        {"Clip", "Clip", clip},
        {"Add", "PRelu", prelu_sum},
        {"Sub", "PRelu", prelu_sum},
        {"Where", "PRelu", prelu_where},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
