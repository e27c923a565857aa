#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(16, 8)}, "1=2 20=5").terms(4),
    LayerCase({Shape(190, 96)}, "1=4 2=1 3=1 4=2 11=2 12=1 13=2 14=2 20=18 21=17").terms(8),
    LayerCase({Shape(20, 27)}, "1=3 2=2 3=2 4=1 20=11 21=9").terms(9),
    LayerCase({Shape(12, 4)}, "1=1 3=2 20=7 21=5"),
};
QUOLL_LAYER_CASES(Fold, kCases)

TEST(Fold, by_hand) {
    // Two windows of 2 x 1 that share the middle column.
    expect_values("Fold", "1=2 11=1 20=3 21=1", {}, {mat_of(Shape(2, 2), {1, 2, 3, 4})},
                  mat_of(Shape(3, 1, 1), {1, 5, 4}));
    // One column of padding takes the first value.
    expect_values("Fold", "1=2 11=1 4=1 15=0 14=0 20=2 21=1", {},
                  {mat_of(Shape(2, 2), {1, 2, 3, 4})}, mat_of(Shape(2, 1, 1), {5, 4}));
}

TEST(Fold, refuses_sizes_that_do_not_fit) {
    const LayerPtr layer = make_layer("Fold", "1=2 20=5");
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(15, 8)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(16, 9)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(16, 8, 1)}).empty());
}

}  // namespace quoll
