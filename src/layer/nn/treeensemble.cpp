#include "layer/nn/treeensemble.h"

#include <math.h>

#include <algorithm>

#include "runtime/thread_pool.h"

namespace quoll {

static const int kModes = 16;

void TreeEnsemble::params(TreeEnsemble& s, ParamVisitor& v) {
    v(0, "node_count", s.node_count, 0, "nodes, leaves among them", at_least(0));
    v(5, "branch_count", s.branch_count, 0, "nodes that are no leaves", at_least(0));
    v(1, "leaf_count", s.leaf_count, 0, "entries of leaves", at_least(0));
    v(2, "outputs", s.outputs, 1, "numbers a row", at_least(1));
    v(3, "aggregate", s.aggregate, 0, "of the trees' values: 0 sum, 1 average, 2 min, 3 max",
      between(0, 3));
    v.ints(4, "roots", s.roots, "the first node of each tree", at_least(0));
}

void TreeEnsemble::weights(TreeEnsemble& s, WeightVisitor& v) {
    v(s.node_count > 0, "codes", s.codes, s.node_count, WeightKind::kRaw, "[node_count]");
    v(s.branch_count > 0, "branches", s.branches, (int64_t)s.branch_count * 2, WeightKind::kRaw,
      "[branch_count, threshold other_node]");
    v(s.leaf_count > 0, "leaf_data", s.leaf_data, (int64_t)s.leaf_count * (s.outputs > 1 ? 2 : 1),
      WeightKind::kRaw, "[leaf_count, output value] or [leaf_count]");
}

int TreeEnsemble::shape(const TreeEnsemble& s, const std::vector<Shape>& in,
                        std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 1));
    QUOLL_RETURN_IF_ERROR(expect_dtype(s, "input", in[0].dtype, DType::f32));
    if (in[0].dims > 2) return s.fail("expected 1 or 2 axes, got %s", shape_text(in[0]).c_str());
    out.assign(1, in[0]);
    out[0].w = s.outputs;
    return kOk;
}

// A whole number from low to high - 1; -1 if it is none.
static int whole(float v, int low, int high) {
    return v >= (float)low && v < (float)high && v == floorf(v) ? (int)v : -1;
}

int TreeEnsemble::read_nodes() {
    const int kMostCode = 1 << 24;  // what a float counts to
    int branch = 0, entry = 0;
    for (int i = 0; i < node_count; i++) {
        const int code = whole(((const float*)codes.data)[i], 0, kMostCode);
        Node node = {code % kModes, code / kModes, 0.f, {0, i + 1}};
        const int comparison = node.mode % kMissingIsTrue;
        const bool leaf = node.mode == kLeaf;
        if (code < 0 || comparison > kNotEqual || (!leaf && comparison == kLeaf) ||
            (!leaf && (branch == branch_count || i + 1 == node_count)) ||
            (leaf && node.feature > leaf_count - entry))
            return fail("node %d of %d: code %g", i, node_count, ((const float*)codes.data)[i]);
        if (leaf) {
            node = {kLeaf, entry, 0.f, {entry + node.feature, 0}};
            entry = node.next[0];
        } else {
            const float* const p = (const float*)branches.data + (size_t)branch++ * 2;
            node.threshold = p[0];
            node.next[0] = whole(p[1], i + 1, node_count);
            if (node.next[0] < 0) return fail("node %d of %d: other node %g", i, node_count, p[1]);
            features_ = std::max(features_, node.feature + 1);
        }
        nodes_.push_back(node);
    }
    if (branch == branch_count && entry == leaf_count) return kOk;
    return fail("%d branches and %d entries of leaves, expected %d and %d", branch, entry,
                branch_count, leaf_count);
}

int TreeEnsemble::load_model(const ModelBin& mb) {
    QUOLL_RETURN_IF_ERROR(load_weights_by_schema(*this, mb));
    nodes_.clear(), entries_.clear(), features_ = 0;
    QUOLL_RETURN_IF_ERROR(read_nodes());
    const int numbers = outputs > 1 ? 2 : 1;
    for (int i = 0; i < leaf_count; i++) {
        const float* p = (const float*)leaf_data.data + (size_t)i * numbers;
        entries_.push_back({numbers > 1 ? whole(p[0], 0, outputs) : 0, p[numbers - 1]});
        if (entries_.back().output < 0) return fail("a leaf's output %g of %d", p[0], outputs);
    }
    for (int i = 0; !roots.empty() && i < roots.w; i++)
        if (((const int*)roots.data)[i] >= node_count)
            return fail("tree %d begins at node %d of %d", i, ((const int*)roots.data)[i],
                        node_count);
    return kOk;
}

const TreeEnsemble::Node& TreeEnsemble::leaf_of(const float* row, int root) const {
    const Node* node = &nodes_[root];
    while (node->mode != kLeaf) {
        const float v = row[node->feature], t = node->threshold;
        bool goes = false;
        switch (node->mode % kMissingIsTrue) {
            case kLessEqual:
                goes = v <= t;
                break;
            case kLess:
                goes = v < t;
                break;
            case kGreaterEqual:
                goes = v >= t;
                break;
            case kGreater:
                goes = v > t;
                break;
            case kEqual:
                goes = v == t;
                break;
            default:
                goes = v != t;
        }
        if (v != v && node->mode >= kMissingIsTrue) goes = true;
        node = &nodes_[node->next[goes]];
    }
    return *node;
}

// Tree by tree, so that its nodes stay in the cache for all rows.
void TreeEnsemble::run_rows(const float* rows, int features, int count, std::vector<double>* sums,
                            float* out) const {
    const bool least = aggregate == kMin, most = aggregate == kMax;
    const int trees = roots.empty() ? 0 : roots.w;
    const size_t values = (size_t)count * outputs;
    sums->assign(values, 0.0);
    std::vector<char> seen(least || most ? values : 0, 0);
    for (int t = 0; t < trees; t++) {
        const int root = ((const int*)roots.data)[t];
        for (int r = 0; r < count; r++) {
            const Node& leaf = leaf_of(rows + (size_t)r * features, root);
            for (int e = leaf.feature; e < leaf.next[0]; e++) {
                const size_t at = (size_t)r * outputs + entries_[e].output;
                const double v = entries_[e].value;
                double& sum = (*sums)[at];
                if (seen.empty())
                    sum += v;
                else if (!seen[at] || (least ? v < sum : v > sum))
                    sum = v, seen[at] = 1;
            }
        }
    }
    const double scale = aggregate == kAverage && trees ? 1.0 / trees : 1.0;
    for (size_t i = 0; i < values; i++) out[i] = (float)((*sums)[i] * scale);
}

int TreeEnsemble::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                          const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat& in = bottoms[0];
    const int kRows = 64;  // at a time
    const int rows = in.dims == 1 ? 1 : in.h;
    if (in.w < features_) return fail("%d features, expected %d", in.w, features_);
    if (tops[0].empty()) return kOk;
    const int blocks = (rows + kRows - 1) / kRows;
    parallel_for(blocks, opt.num_threads, [&](int64_t b) {
        std::vector<double> sums;
        const int begin = (int)b * kRows, count = std::min(kRows, rows - begin);
        run_rows((const float*)in.data + (size_t)begin * in.w, in.w, count, &sums,
                 (float*)tops[0].data + (size_t)begin * outputs);
    });
    return kOk;
}

QUOLL_DEFINE_LAYER(TreeEnsemble)

}  // namespace quoll
