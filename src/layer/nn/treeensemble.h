#ifndef QUOLL_LAYER_TREEENSEMBLE_H
#define QUOLL_LAYER_TREEENSEMBLE_H

#include <vector>

#include "layer/common/tensor.h"

namespace quoll {

// Decision trees: input [rows, features] (or one row), output [rows, outputs] of what the leaves
// that a row reaches say, added up or otherwise taken together. ONNX TreeEnsemble without its base
// values and what follows.
class TreeEnsemble : public Operator<TreeEnsemble> {
public:
    TreeEnsemble() { support_zero_size = true; }
    static void params(TreeEnsemble& s, ParamVisitor& v);
    static void weights(TreeEnsemble& s, WeightVisitor& v);
    static int shape(const TreeEnsemble& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_model(const ModelBin& mb) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    enum Aggregate { kSum, kAverage, kMin, kMax };
    // How a value is compared with the threshold of its node.
    enum Mode { kLeaf, kLessEqual, kLess, kGreaterEqual, kGreater, kEqual, kNotEqual };
    // Added to the mode: NaN goes where a true comparison goes.
    static const int kMissingIsTrue = 8;

    int node_count = 0, branch_count = 0, leaf_count = 0, outputs = 1, aggregate = kSum;
    Mat roots;  // s32, a tree each
    // A number for each node, those where a comparison is true right behind it: mode + 16 *
    // feature, of a leaf 16 * how many entries of leaf_data it has.
    Mat codes;
    // Of each node that is no leaf, in their order: the threshold, and the node where the
    // comparison is not true, which comes later.
    Mat branches;
    Mat leaf_data;  // entries of leaves, in their order: output (unless there is one), value

    // A step of a walk: to the node behind this one, where the comparison is not true `skip` bytes
    // further. A leaf stays.
    struct Node {
        float threshold;
        int feature, skip;
        int flags;  // of treeensemble.cpp; a leaf has its number there
    };

private:
    struct Entry {
        int output;
        float value;
    };
    int read_nodes();
    void find_leaves(const float* rows, int features, int count, int* leaves) const;
    void run_rows(const float* rows, int features, int count, float* out) const;

    std::vector<Node> nodes_;
    std::vector<int> leaf_begin_;  // of each leaf: its first entry; one number more
    std::vector<Entry> entries_;
    bool plain_ = true, missing_ = false;  // no flags but kMissing; that
    int features_ = 0;                     // that the nodes ask for
};

}  // namespace quoll

#endif
