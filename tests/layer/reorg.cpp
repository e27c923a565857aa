#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(6, 7, 1)}, "0=1"),
    LayerCase({Shape(6, 7, 4)}, "0=2"),
    LayerCase({Shape(9, 9, 16)}, "0=3"),
    LayerCase({Shape(9, 9, 4)}, "0=3 1=1"),
    LayerCase({Shape(4, 4, 4)}, "0=4 1=1"),
    LayerCase({Shape(5, 6)}, "0=2 1=1"),
    LayerCase({Shape(4, 6, 3, DType::s8)}, "0=2").range(-9, 9),
};
QUOLL_LAYER_CASES(Reorg, kCases)

TEST(Reorg, by_hand) {
    const Mat x = mat_of(Shape(2, 2, 2), {1, 2, 3, 4, 5, 6, 7, 8});
    expect_values("Reorg", "0=2", {}, {x}, mat_of(Shape(1, 1, 8), {1, 2, 3, 4, 5, 6, 7, 8}));
    expect_values("Reorg", "0=2 1=1", {}, {x}, mat_of(Shape(1, 1, 8), {1, 5, 2, 6, 3, 7, 4, 8}));
    // The last row and column make no whole patch.
    expect_values("Reorg", "0=2", {}, {mat_of(Shape(3, 3, 1), {1, 2, 3, 4, 5, 6, 7, 8, 9})},
                  mat_of(Shape(1, 1, 4), {1, 2, 4, 5}));
}

TEST(Reorg, refuses_patches_that_do_not_fit) {
    EXPECT_EQ(nullptr, make_layer("Reorg", "0=0"));
    const LayerPtr layer = make_layer("Reorg", "0=3");
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 4, 1)}).empty());
}

}  // namespace quoll
