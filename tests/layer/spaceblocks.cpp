#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kDepthToSpace = {
    LayerCase({Shape(5, 3, 8)}, "0=2"),
    LayerCase({Shape(5, 3, 9, DType::s32)}, "0=3 1=1"),
    LayerCase({Shape(6, 4, 3)}, "0=2 2=1"),
    LayerCase({Shape(6, 4, 3, DType::s8)}, "0=2 1=1 2=1"),
};
QUOLL_LAYER_CASES(DepthToSpace, kDepthToSpace)

static Shape batch(Shape s, int n) {
    s.n = n;
    return s;
}

static const std::vector<LayerCase> kSpaceToBatch = {
    LayerCase({Shape(6, 4, 3)}, "0=2").items_not_alone(),
    LayerCase({Shape(5, 4, 3, DType::s32)}, "0=3 1=2 2=1 3=1 5=1").items_not_alone(),
    LayerCase({Shape(6, 4, 3)}, "0=1 2=1 3=1 6=1").items_not_alone(),
};
QUOLL_LAYER_CASES(SpaceToBatch, kSpaceToBatch)

TEST(DepthToSpace, by_hand) {
    const Mat deep = mat_of(Shape(1, 1, 8), {0, 1, 2, 3, 4, 5, 6, 7});
    expect_values("DepthToSpace", "0=2", {}, {deep},
                  mat_of(Shape(2, 2, 2), {0, 2, 4, 6, 1, 3, 5, 7}));
    expect_values("DepthToSpace", "0=2 1=1", {}, {deep},
                  mat_of(Shape(2, 2, 2), {0, 1, 2, 3, 4, 5, 6, 7}));
    expect_values("DepthToSpace", "0=2 2=1", {}, {mat_of(Shape(2, 2, 2), {0, 2, 4, 6, 1, 3, 5, 7})},
                  deep);
}

TEST(SpaceToBatch, by_hand) {
    const LayerPtr there = make_layer("SpaceToBatch", "0=1 1=2 4=1 5=1");
    const std::vector<Mat> got = run_layer(*there, {mat_of(Shape(4, 1, 1), {1, 2, 3, 4})});
    ASSERT_EQ(1u, got.size());
    ASSERT_EQ(batch(Shape(3, 1, 1), 2), got[0].logical_shape());
    const float want[2][3] = {{0, 2, 4}, {1, 3, 0}};
    for (int b = 0; b < 2; b++)
        for (int i = 0; i < 3; i++) EXPECT_EQ(want[b][i], got[0].batch(b)[i]);
    const LayerPtr back = make_layer("SpaceToBatch", "0=1 1=2 4=1 5=1 6=1");
    const std::vector<Mat> again = run_layer(*back, got);
    ASSERT_EQ(1u, again.size());
    EXPECT_TRUE(nearly_equal(again[0], mat_of(Shape(4, 1, 1), {1, 2, 3, 4}), Tolerance()));
}

}  // namespace quoll
