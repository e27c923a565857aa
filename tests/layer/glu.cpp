#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(10)}, "0=0").range(-5, 5),
    LayerCase({Shape(7)}, "0=3"),
    LayerCase({Shape(6, 8)}, "0=0").range(-5, 5),
    LayerCase({Shape(6, 8)}, "0=-1"),
    LayerCase({Shape(6, 7, 24)}, "0=0").range(-9, 9),
    LayerCase({Shape(6, 7, 24)}, "0=1"),
    LayerCase({Shape(7, 6, 12)}, "0=-1"),
    LayerCase({Shape(5, 8, 3, 4)}, "0=-2"),
    LayerCase({Shape(5, 8, 3, 4)}, "0=0"),
    LayerCase({Shape(5, 8, 3, 4)}, "0=1"),
    LayerCase({Shape(5, 8, 3, 4)}, "0=3"),
};
QUOLL_LAYER_CASES(GLU, kCases)

TEST(GLU, by_hand) {
    // sigmoid(0) = 1/2, sigmoid(ln 3) = 3/4.
    expect_values("GLU", "0=0", {}, {mat_of(Shape(2, 2), {2, 4, 0, 1.0986123f})},
                  mat_of(Shape(2, 1), {1, 3}));
    expect_values("GLU", "0=1", {}, {mat_of(Shape(2, 2), {2, 0, 4, 1.0986123f})},
                  mat_of(Shape(1, 2), {1, 3}));
}

TEST(GLU, refuses_an_axis_without_halves) {
    const LayerPtr layer = make_layer("GLU", "0=1");
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(1, 4)}).empty());
}

}  // namespace quoll
