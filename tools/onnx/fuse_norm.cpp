// Normalisation that exporters write as means, squares and roots.
#include <algorithm>

#include "onnx/fuse.h"

namespace quoll {
namespace onnx_tool {

namespace {

// What is normalised, over which axes (sorted, from 0), and how.
struct Norm {
    std::string x;
    std::vector<int> axes;
    double eps = 0;
};

bool same_shape(const Match& m, const std::string& a, const std::string& b) {
    const Value *x = m.value(a), *y = m.value(b);
    return x && y && same(x->shape, y->shape);
}

// The value behind nodes that change its shape alone.
std::string unshaped(const Match& m, std::string name) {
    while (const Node* node = m.constant(name) ? nullptr : m.maker(name)) {
        const bool shapes = node->op == "Reshape" || node->op == "Unsqueeze" ||
                            node->op == "Squeeze" ||
                            (node->op == "Expand" && same_shape(m, node->inputs[0], name));
        if (!node->domain.empty() || !shapes) break;
        name = node->inputs[0];
    }
    return name;
}

// Whether a value that has a number for each that the axes of x leave has the sizes of x, with 1 at
// the axes. One size that is not known to be that of x is so, since there are as many numbers.
bool kept(const Match& m, const std::string& name, const std::string& x,
          const std::vector<int>& axes) {
    const Value *v = m.value(name), *from = m.value(x);
    if (!v || !from || v->rank() != from->rank()) return false;
    int open = 0;
    for (int a = 0; a < v->rank(); a++) {
        const bool one = std::count(axes.begin(), axes.end(), a) != 0;
        const Dim &size = v->shape[(size_t)a], &own = from->shape[(size_t)a];
        if (one ? !size.is(1) : size.known() && own.known() && !same(size, own)) return false;
        open += !one && !same(size, own);
    }
    return open <= 1;
}

// The mean over known axes, whether these are kept or not: also as a sum and its share.
bool any_mean(const Match& m, const std::string& value, std::string* x, std::vector<int>* axes) {
    const std::string name = unshaped(m, value);
    std::string sum;
    double share = 1;
    const Node* node = m.maker(name, "ReduceMean");
    const bool sums = !node;
    if (sums) {
        if (m.with_number(m.maker(name, "Div"), "Div", &share, &sum))
            share = 1 / share;
        else if (!m.with_number(m.maker(name, "Mul"), "Mul", &share, &sum))
            return false;
        node = m.maker(sum, "ReduceSum");
    }
    const Value* v = node ? m.value(node->inputs[0]) : nullptr;
    std::vector<int64_t> list;
    if (!v || !m.ints(*node, "axes", 1, &list) || list.empty()) return false;
    axes->clear();
    for (int64_t a : list) {
        axes->push_back((int)(a < 0 ? a + v->rank() : a));
        if (!sums) continue;
        const Dim& size = v->shape[(size_t)axes->back()];
        if (!size.known()) return false;
        share *= (double)size.value;
    }
    std::sort(axes->begin(), axes->end());
    *x = node->inputs[0];
    return !sums || m.near(share, 1);
}

// The mean over known axes that are kept.
bool mean_of(const Match& m, const std::string& value, std::string* x, std::vector<int>* axes) {
    const Node* node = m.maker(value, "ReduceMean");
    return any_mean(m, value, x, axes) &&
           (node ? m.attr(*node, "keepdims", 1) == 1 : kept(m, value, *x, *axes));
}

// x minus its mean.
bool centred(const Match& m, const std::string& value, std::string* x, std::vector<int>* axes) {
    const Node* node = m.maker(value, "Sub");
    std::string mean_x;
    if (!node || !mean_of(m, node->inputs[1], &mean_x, axes) || !m.same(mean_x, node->inputs[0]))
        return false;
    *x = node->inputs[0];
    return true;
}

bool square_of(const Match& m, const std::string& value, std::string* base) {
    const Node* pow = m.maker(value, "Pow");
    double two = 0;
    if (pow) return m.with_number(pow, "Pow", &two, base) && two == 2;
    const Node* product = m.maker(value, "Mul");
    if (!product || !m.same(product->inputs[0], product->inputs[1])) return false;
    *base = product->inputs[0];
    return true;
}

// The mean of the squares of a value.
bool mean_of_squares(const Match& m, const std::string& value, std::string* base,
                     std::vector<int>* axes) {
    std::string square;
    return mean_of(m, value, &square, axes) && square_of(m, square, base);
}

// sqrt(value + eps)
bool root_of_sum(const Match& m, const std::string& name, std::string* value, double* eps) {
    double half = 0;
    std::string under;
    const Node* root = m.maker(name, "Sqrt");
    if (root)
        under = root->inputs[0];
    else if (!m.with_number(m.maker(name, "Pow"), "Pow", &half, &under) || half != 0.5)
        return false;
    return m.with_number(m.maker(under, "Add"), "Add", eps, value) && *eps >= 0;
}

// 1 / sqrt(value + eps)
bool inverse_root(const Match& m, const std::string& name, std::string* value, double* eps) {
    double power = 0;
    std::string under;
    if (const Node* node = m.maker(name, "Reciprocal"))
        return root_of_sum(m, node->inputs[0], value, eps);
    if (const Node* node = m.maker(name, "Div"))
        return m.is_number(node->inputs[0], 1) && root_of_sum(m, node->inputs[1], value, eps);
    return m.with_number(m.maker(name, "Pow"), "Pow", &power, &under) && power == -0.5 &&
           m.with_number(m.maker(under, "Add"), "Add", eps, value) && *eps >= 0;
}

// gamma / sqrt(value + eps); without the constant gamma, that is null.
bool scaled_inverse(const Match& m, const std::string& name, std::string* value, double* eps,
                    const Tensor** gamma) {
    std::string inverse = name;
    const Node* scaled = m.maker(name, "Mul");
    for (int k = 0; scaled && !*gamma && k < 2; k++)
        if ((*gamma = m.constant(scaled->inputs[k]))) inverse = scaled->inputs[1 - k];
    return inverse_root(m, inverse, value, eps);
}

// The mean of the squares of x less the square of its mean, which cancels where the mean is large;
// not below 0, if the graph says so.
bool difference_of_moments(const Match& m, const std::string& value, Norm* n) {
    std::string name = unshaped(m, value);
    if (const Node* max = m.maker(name, "Max")) {
        double zero = 1;
        const int k = m.number(max->inputs[0], &zero) ? 0 : 1;
        if (max->inputs.size() != 2 || !m.number(max->inputs[(size_t)k], &zero) || zero != 0)
            return false;
        name = unshaped(m, max->inputs[(size_t)(1 - k)]);
    }
    const Node* node = m.maker(name, "Sub");
    std::string square, mean, mean_x;
    std::vector<int> axes;
    return node && same_shape(m, node->inputs[0], node->inputs[1]) &&
           any_mean(m, node->inputs[0], &square, &n->axes) && square_of(m, square, &n->x) &&
           square_of(m, node->inputs[1], &mean) && any_mean(m, mean, &mean_x, &axes) &&
           m.same(mean_x, n->x) && axes == n->axes && kept(m, value, n->x, axes);
}

// Value as the variance of x.
bool variance(const Match& m, const std::string& value, Norm* n) {
    std::string difference;
    std::vector<int> axes;
    return (mean_of_squares(m, value, &difference, &n->axes) &&
            centred(m, difference, &n->x, &axes) && axes == n->axes) ||
           difference_of_moments(m, value, n);
}

// Whether the axes are all from some one on.
bool trailing(const std::vector<int>& axes, int rank) {
    for (size_t i = 0; i < axes.size(); i++)
        if (axes[i] != rank - (int)axes.size() + (int)i) return false;
    return !axes.empty();
}

// Images with channels last, normalised one channel at a time; scale and bias may be null.
bool channels_last(Match& m, const Norm& n, const Tensor* scale, const Tensor* bias) {
    const Value* x = m.value(n.x);
    const int rank = x->rank();
    if (rank < 3 || (int)n.axes.size() != rank - 2 || n.axes[0] != 1 || n.axes.back() != rank - 2)
        return false;
    std::vector<std::string> inputs(1);
    for (const Tensor* t : {scale, bias}) {
        const Dim& channels = x->shape.back();
        if (!t) continue;
        if (!channels.known() || t->rank() < 1 || t->dims.back() != channels.value ||
            (int64_t)t->count() != channels.value)
            return false;
        inputs.push_back(m.add_constant(t->reshaped({channels.value})));
    }
    if (inputs.size() == 2 || !m.closed({n.x})) return false;
    std::vector<int64_t> first = {0, rank - 1}, last = {0};
    for (int a = 1; a < rank - 1; a++) first.push_back(a), last.push_back(a + 1);
    last.push_back(1);
    inputs[0] = m.emit("Transpose", {n.x}, [&](Node* t) { set_ints(t, "perm", first); });
    if (inputs[0].empty()) return false;
    const std::string normal = m.emit("InstanceNormalization", inputs,
                                      [&](Node* t) { set_float(t, "epsilon", (float)n.eps); });
    if (normal.empty()) return false;
    Node node = m.node("Transpose", {normal});
    set_ints(&node, "perm", last);
    return m.replace(node, {n.x, normal});
}

Node layer_norm_of(const Match& m, const Norm& n) {
    Node node = m.node("LayerNormalization", {n.x});
    set_int(&node, "axis", n.axes[0]);
    set_float(&node, "epsilon", (float)n.eps);
    return node;
}

// x / sqrt(mean of squares + eps)
bool rms(Match& m) {
    const bool quotient = m.last.op == "Div";
    for (int i = 0; i < (quotient ? 1 : 2); i++) {
        Norm n;
        std::string square;
        const std::string other = m.last.inputs[1 - i];
        n.x = m.last.inputs[i];
        std::string base;
        if (!(quotient ? root_of_sum(m, other, &square, &n.eps)
                       : inverse_root(m, other, &square, &n.eps)) ||
            !mean_of_squares(m, square, &base, &n.axes) || !m.same(base, n.x))
            continue;
        const Value* x = m.value(base);
        if (!x || !x->floats() || !trailing(n.axes, x->rank())) return false;
        Node node = m.node("RMSNormalization", {base});
        set_int(&node, "axis", n.axes[0]);
        set_float(&node, "epsilon", (float)n.eps);
        return m.replace(node, {base, n.x});
    }
    return false;
}

// A constant as one value for each of `dims`; false when it is spread in another way.
bool spread(const Tensor& t, const std::vector<int64_t>& dims, Tensor* full) {
    std::vector<int64_t> own = t.dims;
    while (!own.empty() && own[0] == 1) own.erase(own.begin());
    std::vector<int64_t> want = dims;
    while (!want.empty() && want[0] == 1) want.erase(want.begin());
    if (t.count() != 1 && own != want) return false;
    *full = Tensor(ElementType::kFloat, dims);
    for (size_t i = 0; i < full->count(); i++)
        full->set_float(i, t.float_at(t.count() == 1 ? 0 : i));
    return true;
}

// The sizes that the scale of a norm has, if t is to be one; *channels: one value per channel.
bool affine_dims(const Match& m, const Node& norm, const Tensor& t, std::vector<int64_t>* dims,
                 bool* channels) {
    const Value* x = m.value(norm.inputs[0]);
    if (!x || t.rank() > x->rank()) return false;
    const int rank = x->rank();
    const bool rows = norm.op == "LayerNormalization" || norm.op == "RMSNormalization";
    int axis = rows ? (int)m.attr(norm, "axis", -1) : 1;
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return false;
    std::vector<int64_t> all((size_t)(rank - t.rank()), 1);
    all.insert(all.end(), t.dims.begin(), t.dims.end());
    // A norm of planes, with one number per channel: an InstanceNormalization.
    const bool plane = norm.op == "LayerNormalization" && norm.inputs.size() == 1 && axis == 2 &&
                       all[1] > 1 && t.count() == (size_t)all[1];
    *channels = !rows || plane;
    dims->clear();
    for (int i = *channels ? 1 : axis; i < rank; i++) {
        if (*channels && i > 1) {
            dims->push_back(1);
            continue;
        }
        if (!x->shape[i].known()) return false;
        dims->push_back(x->shape[i].value);
    }
    return !dims->empty();
}

// The norm with its result multiplied by one constant and another added; either may be null.
bool with_affine(Match& m, const Node& norm, const Tensor* factor, const Tensor* term, Node* made) {
    const bool rms = norm.op == "RMSNormalization";
    std::vector<int64_t> dims;
    bool channels = false;
    if ((rms && term) || norm.outputs.size() != 1 ||
        !affine_dims(m, norm, factor ? *factor : *term, &dims, &channels))
        return false;
    Tensor full[2];  // the present scale and bias
    for (size_t k = 0; k < 2; k++) {
        const bool given = k + 1 < norm.inputs.size();
        const Tensor* have = given ? m.constant(norm.inputs[k + 1]) : nullptr;
        full[k] = Tensor(ElementType::kFloat, dims);
        if (given && (!have || have->count() != full[k].count())) return false;
        for (size_t i = 0; i < full[k].count(); i++)
            full[k].set_float(i, have ? have->float_at(i) : k == 0 ? 1.f : 0.f);
    }
    Tensor by, plus;
    if ((factor && !spread(*factor, dims, &by)) || (term && !spread(*term, dims, &plus)))
        return false;
    for (size_t i = 0; i < full[0].count(); i++) {
        const float k = factor ? by.float_at(i) : 1.f;
        full[0].set_float(i, full[0].float_at(i) * k);
        full[1].set_float(i, full[1].float_at(i) * k + (term ? plus.float_at(i) : 0.f));
    }
    *made = norm;
    made->outputs = m.last.outputs;
    if (channels && norm.op == "LayerNormalization") made->op = "InstanceNormalization";
    made->inputs.resize(1);
    for (size_t k = 0; k < (rms ? 1u : 2u); k++)
        made->inputs.push_back(m.add_constant(channels ? full[k].reshaped({dims[0]}) : full[k]));
    return true;
}

// One axis that is not the last: it is the last in between.
bool inner_axis(Match& m, const Norm& n, const Tensor* gamma) {
    const Value* x = m.value(n.x);
    const int rank = x->rank(), axis = n.axes[0];
    if (n.axes.size() != 1 || axis == 0 || !x->shape[(size_t)axis].known() || !m.closed({n.x}))
        return false;
    std::vector<std::string> inputs(1);
    if (gamma) {
        const int64_t size = x->shape[(size_t)axis].value;
        const int at = axis - rank + gamma->rank();
        if (at < 0 || gamma->dims[(size_t)at] != size || (int64_t)gamma->count() != size)
            return false;
        inputs.push_back(m.add_constant(gamma->reshaped({size})));
    }
    std::vector<int64_t> order;
    for (int a = 0; a < rank; a++) order.push_back(a);
    std::swap(order[(size_t)axis], order.back());
    inputs[0] = m.emit("Transpose", {n.x}, [&](Node* t) { set_ints(t, "perm", order); });
    if (inputs[0].empty()) return false;
    const std::string normal = m.emit("LayerNormalization", inputs,
                                      [&](Node* t) { set_float(t, "epsilon", (float)n.eps); });
    if (normal.empty()) return false;
    Node node = m.node("Transpose", {normal});
    set_ints(&node, "perm", order);
    return m.replace(node, {n.x, normal});
}

// LayerNormalization, InstanceNormalization if sizes are not known; gamma may be null.
bool replace_norm(Match& m, const Norm& n, const Tensor* gamma) {
    const Value* x = m.value(n.x);
    if (!x || !x->floats()) return false;
    if (!trailing(n.axes, x->rank()))
        return channels_last(m, n, gamma, nullptr) || inner_axis(m, n, gamma);
    Node node = layer_norm_of(m, n);
    if (gamma)
        return m.closed({n.x}) && with_affine(m, layer_norm_of(m, n), gamma, nullptr, &node) &&
               m.replace(node, {n.x});
    if (m.replace(node)) return true;
    node.op = "InstanceNormalization";
    return n.axes[0] == 2 && m.replace(node);
}

// (x - mean) / sqrt(variance + eps), or that times gamma, which is multiplied by the root first
bool normalised(Match& m) {
    const bool quotient = m.last.op == "Div";
    for (int i = 0; i < (quotient ? 1 : 2); i++) {
        Norm n;
        std::string x, var;
        std::vector<int> axes;
        const Tensor* gamma = nullptr;
        const std::string other = m.last.inputs[(size_t)(1 - i)];
        if (centred(m, m.last.inputs[(size_t)i], &x, &axes) &&
            (quotient ? root_of_sum(m, other, &var, &n.eps)
                      : scaled_inverse(m, other, &var, &n.eps, &gamma)) &&
            variance(m, var, &n) && m.same(n.x, x) && axes == n.axes)
            return replace_norm(m, n, gamma);
    }
    return false;
}

// A constant that a norm is multiplied by, or that is added to it.
bool affine(Match& m) {
    const bool sum = m.last.op == "Add";
    for (int i = 0; i < 2; i++) {
        const Tensor* t = m.constant(m.last.inputs[1 - i]);
        if (!t || !is_float(t->type)) continue;
        const Node* norm = m.maker(m.last.inputs[i], kOpNormalizes);
        Node made;
        if (norm && m.closed({norm->inputs[0]}) &&
            with_affine(m, *norm, sum ? nullptr : t, sum ? t : nullptr, &made))
            return m.replace(made, {norm->inputs[0]});
    }
    return false;
}

// x mul + (beta - mean mul), mul = gamma / sqrt(variance + eps): moments as TensorFlow has them.
bool moments_of(Match& m, const std::string& x, const std::string& mul, const std::string& mean,
                const std::string& beta) {
    std::string mean_x, var;
    const Tensor *gamma = nullptr, *bias = m.constant(beta);
    Norm n;
    std::vector<int> axes;
    if (!mean_of(m, mean, &mean_x, &axes) || !m.same(mean_x, x) ||
        !scaled_inverse(m, mul, &var, &n.eps, &gamma) || !variance(m, var, &n) || !m.same(n.x, x) ||
        axes != n.axes || !bias || !m.closed({x}))
        return false;
    n.x = x;
    const Value* v = m.value(x);
    if (!v || !v->floats()) return false;
    if (!trailing(n.axes, v->rank())) return channels_last(m, n, gamma, bias);
    Node made;
    return with_affine(m, layer_norm_of(m, n), gamma, bias, &made) && m.replace(made, {x});
}

bool moments(Match& m) {
    for (int i = 0; i < 2; i++) {
        const Node* product = m.maker(m.last.inputs[i], "Mul");
        const Node* rest = m.maker(m.last.inputs[1 - i], "Sub");
        const Node* shift = rest ? m.maker(rest->inputs[1], "Mul") : nullptr;
        for (int j = 0; product && shift && j < 4; j++) {
            const std::string x = product->inputs[j / 2], mul = product->inputs[1 - j / 2];
            if (m.same(shift->inputs[j % 2], mul) &&
                moments_of(m, x, mul, shift->inputs[1 - j % 2], rest->inputs[0]))
                return true;
        }
    }
    return false;
}

// Whether the sizes that a Reshape asks for are those.
bool reshapes_to(const Match& m, const Node& reshape, const std::vector<Dim>& shape) {
    const Value* sizes = reshape.inputs.size() > 1 ? m.value(reshape.inputs[1]) : nullptr;
    if (!sizes || !sizes->has_content || sizes->content.size() != shape.size()) return false;
    int rest = 0;
    for (size_t i = 0; i < shape.size(); i++) {
        rest += sizes->content[i].is(-1);
        if (!sizes->content[i].is(-1) && !same(sizes->content[i], shape[i])) return false;
    }
    return rest <= 1;
}

// x as groups of channels, an InstanceNormalization of these, and x's shape again.
bool group_norm(Match& m) {
    const Node* norm = m.maker(m.last.inputs[0], "InstanceNormalization");
    const Node* split = norm ? m.maker(norm->inputs[0], "Reshape") : nullptr;
    if (!split || norm->inputs.size() != 3) return false;
    const Value *x = m.value(split->inputs[0]), *groups = m.value(norm->inputs[0]);
    const Tensor *scale = m.constant(norm->inputs[1]), *bias = m.constant(norm->inputs[2]);
    if (!x || !groups || !scale || !bias || x->rank() < 3 || groups->rank() < 3 ||
        !x->shape[1].known() || !groups->shape[1].known() || !same(x->shape[0], groups->shape[0]) ||
        !reshapes_to(m, m.last, x->shape))
        return false;
    const int64_t channels = x->shape[1].value, count = groups->shape[1].value;
    if (count < 1 || channels % count != 0 || (int64_t)scale->count() != count ||
        (int64_t)bias->count() != count || !m.closed({split->inputs[0]}))
        return false;
    Tensor gamma(ElementType::kFloat, {channels}), beta(ElementType::kFloat, {channels});
    for (int64_t i = 0; i < channels; i++) {
        gamma.set_float((size_t)i, scale->float_at((size_t)(i / (channels / count))));
        beta.set_float((size_t)i, bias->float_at((size_t)(i / (channels / count))));
    }
    Node node = m.node("GroupNormalization",
                       {split->inputs[0], m.add_constant(gamma), m.add_constant(beta)});
    set_int(&node, "num_groups", count);
    set_float(&node, "epsilon", m.attr_float(*norm, "epsilon", 1e-5f));
    return m.replace(node, {split->inputs[0]});
}

}  // namespace

std::vector<Pattern> norm_patterns() {
    return {
        {"Div", "LayerNormalization", normalised},
        {"Mul", "LayerNormalization", normalised},
        {"Div", "RMSNormalization", rms},
        {"Mul", "RMSNormalization", rms},
        {"Mul", "scale of a norm", affine},
        {"Add", "bias of a norm", affine},
        {"Add", "moments", moments},
        {"Reshape", "GroupNormalization", group_norm},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
