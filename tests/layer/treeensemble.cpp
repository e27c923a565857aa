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
