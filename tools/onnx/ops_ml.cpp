// ai.onnx.ml: trees, linear models and what prepares their inputs.
#include <math.h>

#include <algorithm>

#include "layer/nn/treeensemble.h"
#include "onnx/nodes.h"
#include "onnx/ops.h"
#include "onnx/ops_ml.h"

namespace quoll {
namespace onnx_tool {

using namespace ml;

namespace {

// An attribute of floats, or the tensor that newer exporters write in its place.
Floats floats_of(const Op& op, const std::string& name) {
    const auto tensor = op.node.attributes.find(name + "_as_tensor");
    if (tensor != op.node.attributes.end() && tensor->second.t.count())
        return tensor->second.t.floats();
    const auto own = op.node.attributes.find(name);
    if (own != op.node.attributes.end() && own->second.kind == Attribute::kTensor)
        return own->second.t.count() ? own->second.t.floats() : Floats();
    return op.attr_floats(name.c_str());
}

// Trees before they are laid out.
struct TreeNode {
    int mode = TreeEnsemble::kLeaf;
    int64_t feature = 0;
    float threshold = 0;
    int yes = -1, no = -1;
    bool chained = false;                            // `no` is that of the node `yes`, too
    std::vector<std::pair<int64_t, float>> entries;  // of a leaf
};
struct Trees {
    std::vector<TreeNode> nodes;
    std::vector<int> roots;
    int outputs = 1, aggregate = TreeEnsemble::kSum;
};

int mode_of(const std::string& name) {
    const char* const names[] = {"LEAF",      "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                 "BRANCH_GT", "BRANCH_EQ",  "BRANCH_NEQ"};
    for (int i = 0; i < 7; i++)
        if (name == names[i]) return i;
    return -1;
}

// What TreeEnsemble holds of them.
struct TreeWeights {
    Floats codes, branches, leaves;
    std::vector<int> roots;
};

// Each node, and right behind it what follows where its comparison is true. False after fail().
bool lay_out(Op& op, const Trees& trees, TreeWeights* w) {
    std::vector<int> order, place(trees.nodes.size(), -1);
    for (int root : trees.roots) {
        w->roots.push_back((int)order.size());
        std::vector<int> open = {root};
        while (!open.empty()) {
            const int at = open.back();
            open.pop_back();
            if (at < 0 || (size_t)at >= trees.nodes.size() || place[(size_t)at] >= 0)
                return op.fail("a node that is not there, or follows from two");
            place[(size_t)at] = (int)order.size();
            order.push_back(at);
            const TreeNode& node = trees.nodes[(size_t)at];
            if (node.mode == TreeEnsemble::kLeaf) continue;
            if (!node.chained) open.push_back(node.no);
            open.push_back(node.yes);
        }
    }
    if (order.size() != trees.nodes.size())
        return op.fail("%zu nodes that no tree reaches", trees.nodes.size() - order.size());
    const int64_t kMost = 1 << 20;
    if (order.size() >= 1 << 24) return op.fail("%zu nodes", order.size());
    for (int at : order) {
        const TreeNode& node = trees.nodes[(size_t)at];
        const bool leaf = node.mode == TreeEnsemble::kLeaf;
        const int64_t number = leaf ? (int64_t)node.entries.size() : node.feature;
        if (number < 0 || number >= kMost) return op.fail("feature %lld", (long long)number);
        w->codes.push_back((float)(number * 16 + node.mode));
        if (!leaf)
            w->branches.insert(w->branches.end(), {node.threshold, (float)place[(size_t)node.no]});
        for (const auto& entry : node.entries) {
            if (!leaf || entry.first < 0 || entry.first >= trees.outputs)
                return op.fail("a value for output %lld of %d, or of a node that is no leaf",
                               (long long)entry.first, trees.outputs);
            if (trees.outputs > 1) w->leaves.push_back((float)entry.first);
            w->leaves.push_back(entry.second);
        }
    }
    return true;
}

// The trees' values [rows, outputs]; "" after fail().
std::string run_trees(Op& op, Nodes& n, const Trees& trees) {
    TreeWeights w;
    const std::string x = matrix_input(op, n);
    if (x.empty() || !lay_out(op, trees, &w)) return "";
    const std::string from = op.plain(n.value(x));
    if (from.empty()) return "";
    const std::vector<Dim> shape = {n.value(x)->shape[0], Dim(trees.outputs)};
    ModelLayer& layer = op.emit("TreeEnsemble", {from});
    layer.set("node_count", (int)w.codes.size());
    layer.set("branch_count", (int)w.branches.size() / 2);
    layer.set("leaf_count", (int)w.leaves.size() / (trees.outputs > 1 ? 2 : 1));
    layer.set("outputs", trees.outputs);
    layer.set("aggregate", trees.aggregate);
    layer.set("roots", w.roots);
    const auto set = [&](const char* name, const Floats& values) {
        if (values.empty()) return;
        const Tensor t = floats_tensor(values, {(int64_t)values.size()});
        op.c.keep(t);
        layer.set_weight(name, t.weight());
    };
    set("codes", w.codes);
    set("branches", w.branches);
    set("leaf_data", w.leaves);
    return matrix_of(op, layer.outputs[0], shape);
}

// Which entry of the lists is node `id` of tree `tree`. Files have them in order, or nearly so.
class NodeNumbers {
public:
    NodeNumbers(const Ints& tree, const Ints& id) {
        nodes_.reserve(id.size());
        for (size_t i = 0; i < id.size(); i++) nodes_.push_back({{tree[i], id[i]}, (int)i});
        if (!std::is_sorted(nodes_.begin(), nodes_.end())) std::sort(nodes_.begin(), nodes_.end());
    }
    // One that comes once more, -1 if none does.
    int twice() const {
        const auto found =
            std::adjacent_find(nodes_.begin(), nodes_.end(),
                               [](const Entry& a, const Entry& b) { return a.first == b.first; });
        return found == nodes_.end() ? -1 : found->second;
    }
    size_t trees() const {
        size_t count = 0;
        for (size_t i = 0; i < nodes_.size(); i++)
            count += i == 0 || nodes_[i].first.first != nodes_[i - 1].first.first;
        return count;
    }
    // -1 if there is none.
    int find(int64_t tree, int64_t id) const {
        const Entry wanted = {{tree, id}, 0};
        const auto found = std::lower_bound(nodes_.begin(), nodes_.end(), wanted);
        return found == nodes_.end() || found->first != wanted.first ? -1 : found->second;
    }

private:
    typedef std::pair<std::pair<int64_t, int64_t>, int> Entry;
    std::vector<Entry> nodes_;
};

// The trees that nodes_* attributes describe, and the attributes that say the leaves' values.
bool read_trees(Op& op, const std::string& leaf, const std::string& ids, Trees* trees) {
    const Ints tree = op.attr_ints("nodes_treeids"), id = op.attr_ints("nodes_nodeids");
    const Ints feature = op.attr_ints("nodes_featureids"),
               missing = op.attr_ints("nodes_missing_value_tracks_true");
    const Ints yes = op.attr_ints("nodes_truenodeids"), no = op.attr_ints("nodes_falsenodeids");
    const Floats threshold = floats_of(op, "nodes_values");
    const std::vector<std::string>& modes = strings_of(op, "nodes_modes");
    const size_t count = id.size();
    for (size_t size : {tree.size(), feature.size(), yes.size(), no.size(), threshold.size(),
                        modes.size(), missing.empty() ? count : missing.size()})
        if (size != count) return op.fail("lists of %zu and %zu nodes", count, size);
    trees->nodes.reserve(count);
    const NodeNumbers numbers(tree, id);
    const int twice = numbers.twice();
    if (twice >= 0)
        return op.fail("node %lld of tree %lld comes twice", (long long)id[(size_t)twice],
                       (long long)tree[(size_t)twice]);
    const auto find = [&](int64_t t, int64_t i) { return numbers.find(t, i); };
    std::vector<char> follows(count, 0);
    for (size_t i = 0; i < count; i++) {
        TreeNode node;
        node.mode = mode_of(modes[i]);
        if (node.mode < 0) return op.fail("nodes_modes %s", modes[i].c_str());
        if (node.mode != TreeEnsemble::kLeaf) {
            node.feature = feature[i], node.threshold = threshold[i];
            node.yes = find(tree[i], yes[i]), node.no = find(tree[i], no[i]);
            if (node.yes < 0 || node.no < 0)
                return op.fail("node %lld of tree %lld leads nowhere", (long long)id[i],
                               (long long)tree[i]);
            follows[(size_t)node.yes] = follows[(size_t)node.no] = 1;
            if (!missing.empty() && missing[i]) node.mode += TreeEnsemble::kMissingIsTrue;
        }
        trees->nodes.push_back(std::move(node));
    }
    for (size_t i = 0; i < count; i++)
        if (!follows[i]) trees->roots.push_back((int)i);
    if (trees->roots.size() != numbers.trees())
        return op.fail("a tree that begins nowhere, or at several nodes");
    const Ints leaf_tree = op.attr_ints((leaf + "_treeids").c_str()),
               leaf_node = op.attr_ints((leaf + "_nodeids").c_str()),
               output = op.attr_ints(ids.c_str());
    const Floats weight = floats_of(op, leaf + "_weights");
    if (leaf_tree.size() != weight.size() || leaf_node.size() != weight.size() ||
        output.size() != weight.size())
        return op.fail("lists of %zu and %zu leaves", weight.size(), output.size());
    for (size_t i = 0; i < weight.size(); i++) {
        const int at = find(leaf_tree[i], leaf_node[i]);
        if (at < 0) return op.fail("a value for a leaf that is not there");
        trees->nodes[(size_t)at].entries.emplace_back(output[i], weight[i]);
    }
    return true;
}

int aggregate_of(const std::string& name) {
    return name == "AVERAGE" ? TreeEnsemble::kAverage
           : name == "MIN"   ? TreeEnsemble::kMin
           : name == "MAX"   ? TreeEnsemble::kMax
                             : TreeEnsemble::kSum;
}

bool tree_regressor(Op& op) {
    Nodes n(op);
    Trees trees;
    trees.outputs = (int)op.attr("n_targets", 1);
    trees.aggregate = aggregate_of(op.attr_string("aggregate_function", "SUM"));
    if (trees.outputs < 1) return op.fail("n_targets %d", trees.outputs);
    if (!read_trees(op, "target", "target_ids", &trees)) return false;
    std::string y = run_trees(op, n, trees);
    const Floats base = floats_of(op, "base_values");
    if (y.empty()) return false;
    if (!base.empty())
        y = n.add("Add", {y, n.constant(floats_tensor(base, {(int64_t)base.size()}))});
    return post_transform(op, n, op.attr_string("post_transform", "NONE"), &y) && n.set(0, y);
}

bool tree_classifier(Op& op) {
    Nodes n(op);
    Trees trees;
    const size_t classes = label_count(op);
    if (classes < 1) return op.fail("it has no labels");
    trees.outputs = (int)classes;
    if (!read_trees(op, "class", "class_ids", &trees)) return false;
    bool one = classes == 2, positive = true;
    int64_t only = -1;
    for (const TreeNode& node : trees.nodes) {
        for (const auto& entry : node.entries) {
            one = one && (only < 0 || entry.first == only);
            only = entry.first;
            positive = positive && entry.second >= 0;
        }
    }
    const Floats base = floats_of(op, "base_values");
    // The second class alone has scores: those of the first are 0.
    const bool second = one && only == 1;
    if (second && !base.empty())
        return op.fail("base_values where the second of two classes alone has scores");
    one = one && !second;
    if (one) {
        for (TreeNode& node : trees.nodes)
            for (auto& entry : node.entries) entry.first = 0;
        trees.outputs = 1;
    }
    std::string y = run_trees(op, n, trees);
    if (y.empty()) return false;
    if (base.size() == 1 || base.size() == classes) {
        const Floats added = one ? Floats{base.back()} : base;
        y = n.add("Add", {y, n.constant(floats_tensor(added, {(int64_t)added.size()}))});
    } else if (!base.empty()) {
        return op.fail("%zu base_values for %zu classes", base.size(), classes);
    }
    if (one)
        return set_two_classes(op, n, y, positive ? 0.5f : 0.f, positive ? kComplement : kOpposite);
    const std::string labels =
        second ? n.cast(n.squeeze(n.add("Greater",
                                        {n.slice(y, 1, 1, 2), n.scalar(positive ? 0.5f : 0.f)}),
                                  {1}),
                        ElementType::kInt64)
               : best_of(n, y);
    return post_transform(op, n, op.attr_string("post_transform", "NONE"), &y) &&
           (!op.wants(1) || n.set(1, y)) && set_labels(op, n, labels);
}

// The numbers before the next NaN, which goes with them, from the end on.
Floats take_set(Floats* members) {
    Floats set;
    while (!members->empty() && members->back() == members->back()) {
        set.push_back(members->back());
        members->pop_back();
    }
    if (!members->empty()) members->pop_back();
    return set;
}

// Whether a feature is one of a set: comparisons one behind the other, each of which goes on where
// it is none of the numbers so far.
void expand_member(size_t at, Floats set, Trees* trees) {
    const TreeNode whole = trees->nodes[at];
    std::vector<TreeNode> chain;
    TreeNode link = whole;
    std::swap(link.yes, link.no);
    if (whole.mode >= TreeEnsemble::kMissingIsTrue) {
        link.mode = TreeEnsemble::kLessEqual, link.threshold = INFINITY;  // of NaN: no
        chain.push_back(link);
    }
    if (set.empty()) set.push_back(NAN);
    for (float member : set) {
        link.mode = TreeEnsemble::kNotEqual, link.threshold = member;
        chain.push_back(link);
    }
    for (size_t i = 0; i + 1 < chain.size(); i++) {
        chain[i].yes = (int)(trees->nodes.size() + i);
        chain[i].chained = true;
    }
    trees->nodes[at] = chain[0];
    trees->nodes.insert(trees->nodes.end(), chain.begin() + 1, chain.end());
}

// The newest form: nodes and leaves are lists of their own.
bool tree_ensemble(Op& op) {
    Nodes n(op);
    Trees trees;
    const Ints roots = op.attr_ints("tree_roots"), feature = op.attr_ints("nodes_featureids"),
               yes = op.attr_ints("nodes_truenodeids"), no = op.attr_ints("nodes_falsenodeids"),
               yes_leaf = op.attr_ints("nodes_trueleafs"),
               no_leaf = op.attr_ints("nodes_falseleafs"),
               missing = op.attr_ints("nodes_missing_value_tracks_true"),
               target = op.attr_ints("leaf_targetids");
    const Floats split = floats_of(op, "nodes_splits"), weight = floats_of(op, "leaf_weights"),
                 mode = floats_of(op, "nodes_modes");
    const int aggregates[] = {TreeEnsemble::kAverage, TreeEnsemble::kSum, TreeEnsemble::kMin,
                              TreeEnsemble::kMax};
    const int64_t aggregate = op.attr("aggregate_function", 1);
    const size_t count = feature.size();
    Floats members = floats_of(op, "membership_values");
    std::reverse(members.begin(), members.end());  // the next one is the last
    trees.outputs = (int)op.attr("n_targets", 1);
    if (aggregate < 0 || aggregate > 3 || trees.outputs < 1)
        return op.fail("aggregate_function %lld, n_targets %d", (long long)aggregate,
                       trees.outputs);
    trees.aggregate = aggregates[aggregate];
    for (size_t size : {yes.size(), no.size(), yes_leaf.size(), no_leaf.size(), split.size(),
                        mode.size(), missing.empty() ? count : missing.size()})
        if (size != count) return op.fail("lists of %zu and %zu nodes", count, size);
    if (target.size() != weight.size())
        return op.fail("lists of %zu and %zu leaves", target.size(), weight.size());
    trees.nodes.reserve(count + 1 + std::min(count + 1, target.size()));
    trees.nodes.resize(count);
    // A leaf may follow from several nodes; each gets its own.
    const auto follower = [&](int64_t at, bool leaf) {
        if (!leaf) return at >= 0 && at < (int64_t)count ? (int)at : -1;
        if (at < 0 || at >= (int64_t)target.size()) return -1;
        trees.nodes.emplace_back();
        trees.nodes.back().entries.emplace_back(target[(size_t)at], weight[(size_t)at]);
        return (int)trees.nodes.size() - 1;
    };
    for (size_t i = 0; i < count; i++) {
        if (!(mode[i] >= 0 && mode[i] <= 6)) return op.fail("nodes_modes %g", mode[i]);
        TreeNode node;
        node.mode = 1 + (int)mode[i];
        if (!missing.empty() && missing[i]) node.mode += TreeEnsemble::kMissingIsTrue;
        node.feature = feature[i], node.threshold = split[i];
        node.yes = follower(yes[i], yes_leaf[i] != 0), node.no = follower(no[i], no_leaf[i] != 0);
        if (node.yes < 0 || node.no < 0) return op.fail("node %zu leads nowhere", i);
        trees.nodes[i] = node;
        if (mode[i] == 6) expand_member(i, take_set(&members), &trees);
    }
    for (int64_t root : roots) trees.roots.push_back(root < (int64_t)count ? (int)root : -1);
    const char* const transforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
    const int64_t transform = op.attr("post_transform", 0);
    if (transform < 0 || transform > 4) return op.fail("post_transform %lld", (long long)transform);
    std::string y = run_trees(op, n, trees);
    return !y.empty() && post_transform(op, n, transforms[transform], &y) && n.set(0, y);
}

bool linear_regressor(Op& op) {
    Nodes n(op);
    std::string y = linear(op, n, op.attr_floats("coefficients"), op.attr_floats("intercepts"),
                           op.attr("targets", 1));
    return !y.empty() && post_transform(op, n, op.attr_string("post_transform", "NONE"), &y) &&
           n.set(0, y);
}

bool linear_classifier(Op& op) {
    Nodes n(op);
    const Floats coefficients = op.attr_floats("coefficients"),
                 intercepts = op.attr_floats("intercepts");
    const size_t classes = label_count(op);
    const int64_t outputs = intercepts.empty() ? (int64_t)classes : (int64_t)intercepts.size();
    if (outputs < 1 || (outputs == 1 && classes != 2))
        return op.fail("scores of %lld classes for %zu labels", (long long)outputs, classes);
    std::string y = linear(op, n, coefficients, intercepts, outputs);
    if (y.empty()) return false;
    if (outputs == 1) return set_two_classes(op, n, y, 0.f, kComplement);
    const std::string labels = best_of(n, y);
    return post_transform(op, n, op.attr_string("post_transform", "NONE"), &y) &&
           (!op.wants(1) || n.set(1, y)) && set_labels(op, n, labels);
}

std::string as_floats(Op& op, Nodes& n) {
    return op.in(0)->floats() ? op.node.inputs[0] : n.cast(op.node.inputs[0], ElementType::kFloat);
}

bool scaler(Op& op) {
    Nodes n(op);
    const Floats offset = op.attr_floats("offset"), scale = op.attr_floats("scale");
    std::string y = as_floats(op, n);
    if (!offset.empty())
        y = n.add("Sub", {y, n.constant(floats_tensor(offset, {(int64_t)offset.size()}))});
    if (!scale.empty())
        y = n.add("Mul", {y, n.constant(floats_tensor(scale, {(int64_t)scale.size()}))});
    return n.set(0, offset.empty() && scale.empty() ? n.add("Identity", {y}) : y);
}

bool normalizer(Op& op) {
    Nodes n(op);
    const std::string norm = op.attr_string("norm", "MAX"), x = as_floats(op, n);
    const std::string axis = n.ints({-1});
    std::string size;
    if (norm == "MAX")
        size = n.add("ReduceMax", {x, axis});
    else if (norm == "L1")
        size = n.add("ReduceL1", {x, axis});
    else if (norm == "L2")
        size = n.add("ReduceL2", {x, axis});
    else
        return op.fail("norm %s", norm.c_str());
    const std::string none = n.add("Equal", {size, n.scalar(0.f)});
    return n.set(0, n.add("Div", {x, n.add("Where", {none, n.scalar(1.f), size})}));
}

bool binarizer(Op& op) {
    Nodes n(op);
    const std::string above =
        n.add("Greater", {as_floats(op, n), n.scalar(op.attr_float("threshold", 0.f))});
    return n.set(0, n.cast(above, ElementType::kFloat));
}

bool imputer(Op& op) {
    Nodes n(op);
    const std::string x = op.node.inputs[0];
    const bool floats = op.in(0)->floats();
    const Floats values = op.attr_floats("imputed_value_floats");
    const Ints ints = op.attr_ints("imputed_value_int64s");
    if (floats ? values.empty() : ints.empty()) return op.fail("it has no values of its type");
    const float replaced = op.attr_float("replaced_value_float", 0.f);
    std::string missing;
    if (!floats)
        missing =
            n.add("Equal", {x, n.constant(Tensor::of_ints({op.attr("replaced_value_int64", 0)}))});
    else
        missing =
            replaced != replaced ? n.add("IsNaN", {x}) : n.add("Equal", {x, n.scalar(replaced)});
    const std::string filled =
        floats ? n.constant(floats_tensor(values, {(int64_t)values.size()})) : n.ints(ints);
    return n.set(0, n.add("Where", {missing, filled, x}));
}

bool array_feature_extractor(Op& op) {
    Nodes n(op);
    const std::string at = n.reshape(op.node.inputs[1], {-1});
    std::string x = op.node.inputs[0];
    if (op.in(0)->rank() == 1) x = n.reshape(x, {1, -1});
    return n.set(0, n.add("Gather", {x, at}, {{"axis", attribute_of((int64_t)-1)}}));
}

bool feature_vectorizer(Op& op) {
    Nodes n(op);
    std::vector<std::string> parts;
    for (int i = 0; i < op.inputs(); i++)
        parts.push_back(op.in(i)->floats() ? op.node.inputs[i]
                                           : n.cast(op.node.inputs[i], ElementType::kFloat));
    return n.set(0, n.add("Concat", parts, {{"axis", attribute_of((int64_t)-1)}}));
}

// Maps of labels to scores are the scores.
bool zip_map(Op& op) {
    op.c.note("maps are given as arrays, a column each label (" + op.node.label() + ")");
    return op.alias(0, op.in(0)) != nullptr;
}

}  // namespace

OpTable ml_ops() {
    const char* const domain = "ai.onnx.ml";
    const char* const labels = kStringsLimit;
    return {
        {domain, "ArrayFeatureExtractor", 1, 0, array_feature_extractor, "", 2, kOpFirstStrings},
        {domain, "Binarizer", 1, 0, binarizer, ""},
        {domain, "FeatureVectorizer", 1, 0, feature_vectorizer, ""},
        {domain, "Imputer", 1, 0, imputer, ""},
        {domain, "LinearClassifier", 1, 0, linear_classifier, labels, 1, kOpMakesStrings},
        {domain, "LinearRegressor", 1, 0, linear_regressor, ""},
        {domain, "Normalizer", 1, 0, normalizer, ""},
        {domain, "Scaler", 1, 0, scaler, ""},
        {domain, "TreeEnsemble", 5, 0, tree_ensemble, ""},
        {domain, "TreeEnsembleClassifier", 1, 0, tree_classifier, labels, 1, kOpMakesStrings},
        {domain, "TreeEnsembleRegressor", 1, 0, tree_regressor, ""},
        {domain, "ZipMap", 1, 0, zip_map, "the array that it takes"},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
