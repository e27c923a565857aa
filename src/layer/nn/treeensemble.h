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

private:
    struct Node {
        int mode, feature;  // of a leaf: 0, the first entry
        float threshold;
        int next[2];  // not true, true; of a leaf: the entries' end
    };
    struct Entry {
        int output;
        float value;
    };
    int read_nodes();
    const Node& leaf_of(const float* row, int root) const;
    void run_rows(const float* rows, int features, int count, std::vector<double>* sums,
                  float* out) const;

    std::vector<Node> nodes_;
    std::vector<Entry> entries_;
    int features_ = 0;  // that the nodes ask for
};

}  // namespace quoll

#endif
