// ai.onnx.ml: support vector machines.
#include <numeric>

#include "onnx/ops_ml.h"

namespace quoll {
namespace onnx_tool {

using namespace ml;

namespace {

// The kernels of each row with each support vector [rows, supports].
std::string kernels(Op& op, Nodes& n, int64_t supports) {
    const Floats vectors = op.attr_floats("support_vectors"),
                 given = op.attr_floats("kernel_params");
    const std::string kernel = op.attr_string("kernel_type", "LINEAR");
    const float gamma = given.size() > 0 ? given[0] : 0, coef0 = given.size() > 1 ? given[1] : 0,
                degree = given.size() > 2 ? given[2] : 0;
    const std::string k = linear(op, n, vectors, {}, supports);
    if (k.empty() || kernel == "LINEAR") return k;
    if (kernel == "RBF") {
        // |x - v|^2 = |x|^2 - 2 x v + |v|^2
        const std::string x = matrix_input(op, n);
        const size_t features = vectors.size() / (size_t)supports;
        Floats squares((size_t)supports, 0.f);
        for (size_t i = 0; i < vectors.size(); i++)
            squares[i / features] += vectors[i] * vectors[i];
        const std::string norm = n.add("ReduceSumSquare", {x, n.ints({1})});
        const std::string sum =
            n.add("Add", {norm, n.constant(floats_tensor(squares, {supports}))});
        const std::string distance = n.add("Sub", {sum, n.add("Mul", {k, n.scalar(2.f)})});
        return n.add("Exp", {n.add("Mul", {distance, n.scalar(-gamma)})});
    }
    if (kernel != "POLY" && kernel != "SIGMOID") {
        op.fail("kernel_type %s", kernel.c_str());
        return "";
    }
    const std::string y = n.add("Add", {n.add("Mul", {k, n.scalar(gamma)}), n.scalar(coef0)});
    return kernel == "POLY" ? n.add("Pow", {y, n.scalar(degree)}) : n.add("Tanh", {y});
}

// A sum as the output: on which side of the border it is where there is one class.
bool set_sum(Op& op, Nodes& n, std::string y) {
    if (op.attr("one_class", 0))
        return n.set(0, n.add("Where", {n.add("Greater", {y, n.scalar(0.f)}), n.scalar(1.f),
                                        n.scalar(-1.f)}));
    return post_transform(op, n, op.attr_string("post_transform", "NONE"), &y) && n.set(0, y);
}

bool svm_regressor(Op& op) {
    Nodes n(op);
    const Floats coefficients = op.attr_floats("coefficients"), rho = op.attr_floats("rho");
    const int64_t supports = op.attr("n_supports", 0);
    if (rho.size() != 1) return op.fail("%zu values of rho", rho.size());
    if (supports == 0) {
        std::string y = linear(op, n, coefficients, rho, 1);
        return !y.empty() && set_sum(op, n, y);
    }
    const std::string k = kernels(op, n, supports);
    if (k.empty()) return false;
    if (coefficients.size() != (size_t)supports)
        return op.fail("%zu coefficients for %lld vectors", coefficients.size(),
                       (long long)supports);
    std::string y = n.add("Gemm", {k, n.constant(floats_tensor(coefficients, {supports, 1})),
                                   n.constant(floats_tensor(rho, {1}))});
    return set_sum(op, n, y);
}

// Support vectors of all classes, one class behind the other.
struct Machines {
    Ints first;        // of each class, and the end
    Floats decisions;  // [supports, pairs]: what a vector adds to the decision between two classes
    Floats votes;    // [pairs, classes]: of a decision for the first of two rather than the second
    Floats seconds;  // [classes]: votes if all decisions were for the second
};

bool read_machines(Op& op, Machines* m) {
    const Floats coefficients = op.attr_floats("coefficients");
    const Ints counts = op.attr_ints("vectors_per_class");
    const size_t classes = counts.size();
    const int64_t kMost = 512;  // classes, as PairwiseCoupling takes
    m->first.assign(1, 0);
    for (int64_t count : counts) {
        if (count < 0 || count > (int64_t)coefficients.size())
            return op.fail("vectors_per_class %lld", (long long)count);
        m->first.push_back(m->first.back() + count);
    }
    const size_t supports = (size_t)m->first.back(), pairs = classes * (classes - 1) / 2;
    if (classes < 2 || classes > (size_t)kMost || classes != label_count(op) || supports == 0)
        return op.fail("%zu vectors of %zu classes, %zu labels", supports, classes,
                       label_count(op));
    if (coefficients.size() != (classes - 1) * supports)
        return op.fail("%zu coefficients, expected %zu of each of %zu vectors", coefficients.size(),
                       classes - 1, supports);
    const size_t kMostDecisions = 1 << 26;
    if (supports > kMostDecisions / pairs)
        return op.fail("%zu vectors for %zu pairs of classes", supports, pairs);
    m->decisions.assign(supports * pairs, 0.f);
    m->votes.assign(pairs * classes, 0.f);
    m->seconds.assign(classes, 0.f);
    size_t pair = 0;
    for (size_t i = 0; i < classes; i++) {
        for (size_t j = i + 1; j < classes; j++, pair++) {
            for (auto v = (size_t)m->first[i]; v < (size_t)m->first[i + 1]; v++)
                m->decisions[v * pairs + pair] = coefficients[(j - 1) * supports + v];
            for (auto v = (size_t)m->first[j]; v < (size_t)m->first[j + 1]; v++)
                m->decisions[v * pairs + pair] = coefficients[i * supports + v];
            m->votes[pair * classes + i] = 1, m->votes[pair * classes + j] = -1;
            m->seconds[j] += 1;
        }
    }
    return true;
}

// Probabilities of the classes [rows, classes], by sigmoids of the decisions.
std::string probabilities(Op& op, Nodes& n, const std::string& decisions, int64_t classes) {
    const Floats a = op.attr_floats("prob_a"), b = op.attr_floats("prob_b");
    const int64_t pairs = classes * (classes - 1) / 2;
    if ((int64_t)a.size() != pairs || (int64_t)b.size() != pairs) {
        op.fail("%zu and %zu values of prob_a and prob_b for %lld pairs of classes", a.size(),
                b.size(), (long long)pairs);
        return "";
    }
    const std::string scaled = n.add("Mul", {decisions, n.constant(floats_tensor(a, {pairs}))});
    const std::string of_pairs = n.add(
        "Sigmoid", {n.add("Neg", {n.add("Add", {scaled, n.constant(floats_tensor(b, {pairs}))})})});
    const std::string from = n.ok() ? op.plain(n.value(of_pairs)) : "";
    if (from.empty()) return "";
    ModelLayer& layer = op.emit("PairwiseCoupling", {from});
    layer.set("classes", (int)classes);
    return matrix_of(op, layer.outputs[0], {n.value(of_pairs)->shape[0], Dim(classes)});
}

bool svm_classifier(Op& op) {
    Nodes n(op);
    const Floats rho = op.attr_floats("rho");
    const std::string transform = op.attr_string("post_transform", "NONE");
    if (op.attr_ints("vectors_per_class")
            .empty()) {  // a linear model, of which the first rho counts
        const auto classes = (int64_t)label_count(op);
        if (classes < 2 || rho.empty())
            return op.fail("%lld labels, %zu values of rho", (long long)classes, rho.size());
        std::string y =
            linear(op, n, op.attr_floats("coefficients"), Floats((size_t)classes, rho[0]), classes);
        return !y.empty() && set_labels(op, n, best_of(n, y)) &&
               post_transform(op, n, transform, &y) && (!op.wants(1) || n.set(1, y));
    }
    Machines m;
    if (!read_machines(op, &m)) return false;
    const auto supports = m.first.back(), classes = (int64_t)m.seconds.size();
    const int64_t pairs = classes * (classes - 1) / 2;
    if ((int64_t)rho.size() != pairs)
        return op.fail("%zu values of rho for %lld pairs of classes", rho.size(), (long long)pairs);
    const std::string k = kernels(op, n, supports);
    if (k.empty()) return false;
    std::string y = n.add("Gemm", {k, n.constant(floats_tensor(m.decisions, {supports, pairs})),
                                   n.constant(floats_tensor(rho, {pairs}))});
    const std::string first = n.cast(n.add("Greater", {y, n.scalar(0.f)}), ElementType::kFloat);
    const std::string votes =
        n.add("Gemm", {first, n.constant(floats_tensor(m.votes, {pairs, classes})),
                       n.constant(floats_tensor(m.seconds, {classes}))});
    if (!set_labels(op, n, best_of(n, votes))) return false;
    if (!op.attr_floats("prob_a").empty())
        y = probabilities(op, n, y, classes);
    else if (classes == 2)
        return set_two_scores(op, n, y, transform == "NONE" ? kOpposite : kComplement) && n.ok();
    return !y.empty() && post_transform(op, n, transform, &y) && (!op.wants(1) || n.set(1, y));
}

}  // namespace

OpTable svm_ops() {
    const char* const domain = "ai.onnx.ml";
    return {
        {domain, "SVMClassifier", 1, 0, svm_classifier, kStringsLimit, 1, kOpMakesStrings},
        {domain, "SVMRegressor", 1, 0, svm_regressor, ""},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
