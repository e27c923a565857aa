#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(101)}, "0=0").terms(101),       LayerCase({Shape(9, 8)}, "0=0").terms(8),
    LayerCase({Shape(9, 8)}, "0=-1").terms(9),       LayerCase({Shape(5, 6, 12)}, "0=0").terms(12),
    LayerCase({Shape(5, 6, 12)}, "0=1").terms(6),    LayerCase({Shape(5, 6, 12)}, "0=2").terms(5),
    LayerCase({Shape(5, 4, 3, 6)}, "0=-4").terms(6), LayerCase({Shape(5, 4, 3, 6)}, "0=1").terms(3),
    LayerCase({Shape(5, 4, 3, 6)}, "0=2").terms(4),  LayerCase({Shape(5, 4, 3, 6)}, "0=3").terms(5),
};
QUOLL_LAYER_CASES(CumulativeSum, kCases)

TEST(CumulativeSum, by_hand) {
    expect_values("CumulativeSum", "0=0", {}, {mat_of(Shape(2, 3), {1, 2, 3, 4, 5, 6})},
                  mat_of(Shape(2, 3), {1, 2, 4, 6, 9, 12}));
    expect_values("CumulativeSum", "0=1", {}, {mat_of(Shape(2, 3), {1, 2, 3, 4, 5, 6})},
                  mat_of(Shape(2, 3), {1, 3, 3, 7, 5, 11}));
    // One axis: the parameter is not looked at.
    expect_values("CumulativeSum", "0=5", {}, {mat_of(Shape(3), {1, 2, 3})},
                  mat_of(Shape(3), {1, 3, 6}));
}

TEST(CumulativeSum, refuses_an_axis_that_is_not_there) {
    const LayerPtr layer = make_layer("CumulativeSum", "0=2");
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(4, 4)}).empty());
}

}  // namespace quoll
