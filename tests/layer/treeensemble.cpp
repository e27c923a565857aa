#include <math.h>

#include "layer_test.h"

namespace quoll {

// Leaves without entries: all outputs are 0. What trees do is tested by hand, and beside ONNX
// Runtime.
static const std::vector<LayerCase> kTrees = {
    LayerCase({Shape(6, 70)}, "2=3"),
    LayerCase({Shape(6)}, "0=2 2=2 -23304=2,0,1").weights("codes", 0, 0),
};
QUOLL_LAYER_CASES(TreeEnsemble, kTrees)

// x1 <= 0.5 ? (x0 > 2 ? 10 : 20) : 30, and a tree that is one leaf of 1.
static const char kTwoTrees[] = "0=6 1=4 5=2 -23304=2,0,5";
static std::vector<Mat> two_trees() {
    const float leaf = 16, less_equal = 1 + 16 * 1, greater = 4 + 8 + 16 * 0;
    return {mat_of(Shape(6), {less_equal, greater, leaf, leaf, leaf, leaf}),
            mat_of(Shape(4), {0.5f, 4, 2, 3}), mat_of(Shape(4), {10, 20, 30, 1})};
}

TEST(TreeEnsemble, by_hand) {
    const Mat x = mat_of(Shape(2, 4), {3, 0, 1, 0.5f, 3, 1, NAN, 0});  // NaN: as if true
    expect_values("TreeEnsemble", kTwoTrees, two_trees(), {x},
                  mat_of(Shape(1, 4), {11, 21, 31, 11}));
    expect_values("TreeEnsemble", std::string(kTwoTrees) + " 3=1", two_trees(), {x},
                  mat_of(Shape(1, 4), {5.5f, 10.5f, 15.5f, 5.5f}));
    expect_values("TreeEnsemble", std::string(kTwoTrees) + " 3=2", two_trees(), {x},
                  mat_of(Shape(1, 4), {1, 1, 1, 1}));
    expect_values("TreeEnsemble", std::string(kTwoTrees) + " 3=3", two_trees(), {x},
                  mat_of(Shape(1, 4), {10, 20, 30, 10}));
}

static bool follows(int mode, float v, float t) {
    if (v != v && mode >= 8) return true;
    switch (mode % 8) {
        case 1:
            return v <= t;
        case 2:
            return v < t;
        case 3:
            return v >= t;
        case 4:
            return v > t;
        case 5:
            return v == t;
        default:
            return v != t;
    }
}

// Chains of comparisons, each against a whole number: a walk ends at the first that is not true.
static void expect_chain(const std::vector<int>& modes, const std::vector<float>& thresholds,
                         int rows) {
    const int n = (int)modes.size(), nodes = 2 * n + 1;
    Mat codes(nodes), branches(2 * n), leaves(n + 1), x(n, rows), want(1, rows);
    for (int i = 0; i < n; i++) {
        codes[i] = (float)(modes[i] + 16 * i);
        branches[2 * i] = thresholds[i];
        branches[2 * i + 1] = (float)(nodes - 1 - i);
    }
    for (int i = n; i < nodes; i++) codes[i] = 16;  // leaves: the end first, then backwards
    leaves[0] = -1;
    for (int i = 0; i < n; i++) leaves[n - i] = (float)i;
    const float values[] = {-INFINITY, -1, 0, 1, 2, NAN, INFINITY};
    for (int r = 0; r < rows; r++) {
        want[r] = -1;
        for (int i = 0; i < n; i++) {
            const int number = r * 31 + i * 17 + r * i;
            x.row(r)[i] = values[number % (rows % 2 ? 5 : 7)];  // NaN in some calls alone
            if (want[r] == -1 && !follows(modes[i], x.row(r)[i], thresholds[i])) want[r] = (float)i;
        }
    }
    const std::string params = "0=" + std::to_string(nodes) + " 1=" + std::to_string(n + 1) +
                               " 5=" + std::to_string(n) + " -23304=1,0";
    expect_values("TreeEnsemble", params.c_str(), {codes, branches, leaves}, {x}, want);
}

TEST(TreeEnsemble, all_comparisons) {
    for (int rows : {1, 2, 7, 8, 70, 131}) {
        for (int mode = 1; mode <= 6; mode++)
            for (int missing : {0, 8})
                for (float threshold : {0.f, 1.f, -INFINITY, INFINITY})
                    expect_chain(std::vector<int>(12, mode + missing),
                                 std::vector<float>(12, threshold), rows);
        expect_chain({9, 1, 6, 14, 4, 12, 3, 11, 2, 10, 5, 13},
                     {2, 2, 7, 8, -2, -2, -1, -1, 2, 3, 1, 0}, rows);
    }
}

TEST(TreeEnsemble, damaged) {
    const float bad[] = {-1, 0.5f, 7, 8, 16 * 5, 1e9f, NAN};
    for (float code : bad) {
        std::vector<Mat> weights = two_trees();
        weights[0][1] = code;
        EXPECT_EQ(nullptr, make_layer("TreeEnsemble", kTwoTrees, weights)) << code;
    }
    for (float node : {0.f, 6.f, -1.f, 2.5f}) {  // before it, behind all
        std::vector<Mat> weights = two_trees();
        weights[1][1] = node;
        EXPECT_EQ(nullptr, make_layer("TreeEnsemble", kTwoTrees, weights)) << node;
    }
    EXPECT_EQ(nullptr, make_layer("TreeEnsemble", "0=6 1=4 5=2 -23304=1,6", two_trees()));
}

}  // namespace quoll
