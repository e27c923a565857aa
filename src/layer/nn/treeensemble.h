#ifndef QUOLL_LAYER_TREEENSEMBLE_H
#define QUOLL_LAYER_TREEENSEMBLE_H

#include <vector>

#include "layer/common/tensor.h"

namespace quoll {

// Decision trees: the input is [rows, features] (or one row), the output [rows, outputs] the values
// of the leaves that a row reaches, added up or aggregated otherwise. ONNX TreeEnsemble without
// base values and post-transforms.
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
    // A number for each node: mode + 16 * feature, or for a leaf 16 * the number of its entries in
    // leaf_data. The node for a true comparison follows immediately.
    Mat codes;
    // For each node that is no leaf, in order: the threshold, and the node for a comparison that is
    // not true, which comes later.
    Mat branches;
    Mat leaf_data;  // entries of leaves, in their order: output (unless there is one), value

    // A step of a walk: to the next node, or, if the comparison is not true, `skip` bytes further.
    // At a leaf the walk stays.
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
