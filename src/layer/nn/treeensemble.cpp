#include "layer/nn/treeensemble.h"

#include <float.h>
#include <math.h>

#include <algorithm>

#include "layer/common/scratch.h"
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

// The value as an integer from low to high - 1; -1 if it is none.
static int whole(float v, int low, int high) {
    return v >= (float)low && v < (float)high && v == floorf(v) ? (int)v : -1;
}

// What a leaf adds to the distance to the node after it.
static const int kNodeBytes = (int)sizeof(TreeEnsemble::Node), kStay = -kNodeBytes;

// Flags of a step.
static const int kNegated = 1;     // a comparison that is not true goes to the node behind
static const int kMissing = 2;     // NaN is true, before that
static const int kExact = 4;       // == instead of <=
static const int kLeafNumber = 8;  // of a leaf, times its number; it has no other flag

// The comparison as `v <= threshold` or `v == threshold`, or the opposite of one of them.
static TreeEnsemble::Node step_of(int mode, int feature, float threshold, int skip) {
    typedef TreeEnsemble T;
    const int comparison = mode % T::kMissingIsTrue;
    const auto is = [=](int one, int two) { return comparison == one || comparison == two; };
    int flags = 0;
    if (is(T::kGreater, T::kGreaterEqual) || comparison == T::kNotEqual) flags |= kNegated;
    if (is(T::kEqual, T::kNotEqual)) flags |= kExact;
    const bool nan_is_true = mode >= T::kMissingIsTrue || comparison == T::kNotEqual;
    if (nan_is_true != ((flags & kNegated) != 0)) flags |= kMissing;
    if (is(T::kLess, T::kGreaterEqual)) {
        // Layers run with denormal numbers taken for 0.
        if (fabsf(threshold) < FLT_MIN)
            threshold = -FLT_MIN;
        else
            threshold = threshold == -INFINITY ? NAN : nextafterf(threshold, -INFINITY);
    }
    return {threshold, feature, skip, flags};
}

int TreeEnsemble::read_nodes() {
    const int kMostCode = 1 << 24;  // what a float counts to
    int branch = 0, entry = 0;
    for (int i = 0; i < node_count; i++) {
        const int code = whole(((const float*)codes.data)[i], 0, kMostCode);
        const int mode = code % kModes, number = code / kModes;
        const int comparison = mode % kMissingIsTrue;
        const bool leaf = mode == kLeaf;
        if (code < 0 || comparison > kNotEqual || (!leaf && comparison == kLeaf) ||
            (!leaf && (branch == branch_count || i + 1 == node_count)) ||
            (leaf && number > leaf_count - entry))
            return fail("node %d of %d: code %g", i, node_count, ((const float*)codes.data)[i]);
        if (leaf) {
            nodes_.push_back({NAN, 0, kStay, kLeafNumber * (int)leaf_begin_.size()});
            leaf_begin_.push_back(entry);
            entry += number;
            continue;
        }
        const float* const p = (const float*)branches.data + (size_t)branch++ * 2;
        const int other = whole(p[1], i + 1, node_count);
        if (other < 0) return fail("node %d of %d: other node %g", i, node_count, p[1]);
        nodes_.push_back(step_of(mode, number, p[0], (other - i) * kNodeBytes + kStay));
        plain_ = plain_ && (nodes_.back().flags & ~kMissing) == 0;
        missing_ = missing_ || (nodes_.back().flags & kMissing);
        features_ = std::max(features_, number + 1);
    }
    leaf_begin_.push_back(entry);
    if (branch == branch_count && entry == leaf_count) return kOk;
    return fail("%d branches and %d entries of leaves, expected %d and %d", branch, entry,
                branch_count, leaf_count);
}

int TreeEnsemble::load_model(const ModelBin& mb) {
    QUOLL_RETURN_IF_ERROR(load_weights_by_schema(*this, mb));
    nodes_.clear(), entries_.clear(), leaf_begin_.clear(), features_ = 0, plain_ = true,
                                                           missing_ = false;
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

static const int kLanes = 8;  // walks at a time: each waits for its node, all of them together

static inline bool is_true(const TreeEnsemble::Node& node, float v) {
    bool yes = v <= node.threshold;
    if (node.flags & kExact) yes &= v == node.threshold;
    if (node.flags & kMissing) yes |= v != v;
    return yes != ((node.flags & kNegated) != 0);
}

// The leaves that kLanes walks reach, from the nodes at[i] over rows[i]. kPlain: no node has
// flags that matter for these rows.
template <bool kPlain>
static void walk(const float* const* rows, const TreeEnsemble::Node** at) {
    typedef TreeEnsemble::Node Node;
    const int kSteps = 2;  // between checks whether all have arrived
    const Node* now[kLanes];
    for (int i = 0; i < kLanes; i++) now[i] = at[i];
    for (int moved = 1; moved;) {
        for (int step = 0; step < kSteps; step++) {
            moved = 0;
#pragma GCC unroll 8
            for (int i = 0; i < kLanes; i++) {
                const Node& node = *now[i];
                const float v = rows[i][node.feature];
                const bool yes = kPlain ? v <= node.threshold : is_true(node, v);
                // Without a branch, which would be unpredictable.
                const int skip = kNodeBytes + (node.skip & -(int)!yes);
                moved |= skip;
                now[i] = (const Node*)((const char*)now[i] + skip);
            }
        }
    }
    for (int i = 0; i < kLanes; i++) at[i] = now[i];
}

static bool has_nan(const float* p, size_t n) {
    int nan = 0;
    for (size_t i = 0; i < n; i++) nan |= p[i] != p[i];
    return nan != 0;
}

// The leaf of each tree for each row, [tree, row]. Many rows walk through one tree at a time, so
// that it stays in the cache; a few rows walk through several.
void TreeEnsemble::find_leaves(const float* rows, int features, int count, int* leaves) const {
    static const float kNone = 0;  // what leaves compare
    const bool plain = plain_ && !(missing_ && has_nan(rows, (size_t)features * count));
    const int walks = roots.w * count;
    for (int begin = 0; begin < walks; begin += kLanes) {
        const float* row[kLanes];
        const Node* at[kLanes];
        for (int i = 0; i < kLanes; i++) {
            const int lane = std::min(begin + i, walks - 1);
            const int tree = count == 1 ? lane : lane / count;
            row[i] = features_ ? rows + (size_t)(lane - tree * count) * features : &kNone;
            at[i] = &nodes_[((const int*)roots.data)[tree]];
        }
        plain ? walk<true>(row, at) : walk<false>(row, at);
        for (int i = 0; i < std::min(kLanes, walks - begin); i++)
            leaves[begin + i] = at[i]->flags / kLeafNumber;
    }
}

void TreeEnsemble::run_rows(const float* rows, int features, int count, float* out) const {
    const bool least = aggregate == kMin, most = aggregate == kMax;
    const int trees = roots.empty() ? 0 : roots.w;
    const size_t values = (size_t)count * outputs;
    Scratch<double> sums;
    Scratch<int> leaves;
    Scratch<char> seen;
    sums->assign(values, 0.0);
    leaves->resize((size_t)trees * count);
    seen->assign(least || most ? values : 0, 0);
    if (trees) find_leaves(rows, features, count, leaves->data());
    for (size_t i = 0; i < leaves->size(); i++) {
        const int leaf = leaves[i];
        double* const to = &sums[count == 1 ? 0 : i % (size_t)count * (size_t)outputs];
        for (int e = leaf_begin_[leaf]; e < leaf_begin_[leaf + 1]; e++) {
            double& sum = to[entries_[e].output];
            const double v = entries_[e].value;
            char* const was = seen->empty() ? nullptr : &seen[(size_t)(&sum - sums->data())];
            if (!was)
                sum += v;
            else if (!*was || (least ? v < sum : v > sum))
                sum = v, *was = 1;
        }
    }
    const double scale = aggregate == kAverage && trees ? 1.0 / trees : 1.0;
    for (size_t i = 0; i < values; i++) out[i] = (float)(sums[i] * scale);
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
        const int begin = (int)b * kRows, count = std::min(kRows, rows - begin);
        run_rows((const float*)in.data + (size_t)begin * in.w, in.w, count,
                 (float*)tops[0].data + (size_t)begin * outputs);
    });
    return kOk;
}

QUOLL_DEFINE_LAYER(TreeEnsemble)

}  // namespace quoll
