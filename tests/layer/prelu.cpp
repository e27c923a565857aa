#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(127)}, "0=127"),
    LayerCase({Shape(128)}, "0=1"),
    LayerCase({Shape(9, 24)}, "0=24"),
    LayerCase({Shape(9, 13)}, "0=1"),
    LayerCase({Shape(5, 7, 24)}, "0=24"),
    LayerCase({Shape(5, 7, 13)}, "0=13"),
    LayerCase({Shape(5, 7, 12)}, "0=1"),
    LayerCase({Shape(3, 5, 3, 13)}, "0=13"),
    LayerCase({Shape(5, 3, 2, 16)}, "0=1"),
    LayerCase({Shape(7, 5, 16, DType::s8)}, "0=1").range(-127, 127),
};
QUOLL_LAYER_CASES(PReLU, kCases)

TEST(PReLU, by_hand) {
    const Mat x = mat_of(Shape(2, 1, 2), {-1, 2, -3, 4});
    expect_values("PReLU", "0=2", {mat_of(Shape(2), {0.5f, 2})}, {x},
                  mat_of(Shape(2, 1, 2), {-0.5f, 2, -6, 4}));
    expect_values("PReLU", "0=1", {mat_of(Shape(1), {0.5f})}, {x},
                  mat_of(Shape(2, 1, 2), {-0.5f, 2, -1.5f, 4}));
    expect_values("PReLU", "0=2", {mat_of(Shape(2), {0.5f, 2})}, {mat_of(Shape(2), {-1, -1})},
                  mat_of(Shape(2), {-0.5f, -2}));
}

// Fusion makes a ReLU of it, which takes them.
TEST(PReLU, one_slope_takes_s8_and_several_do_not) {
    expect_values("PReLU", "0=1", {mat_of(Shape(1), {0.25f})},
                  {mat_of(Shape(4, DType::s8), {-100, -1, 0, 100})},
                  mat_of(Shape(4, DType::s8), {-25, 0, 0, 100}));
    const LayerPtr layer = make_layer("PReLU", "0=4", {Mat(4)});
    EXPECT_TRUE(run_layer(*layer, {Mat(Shape(4, DType::s8))}).empty());
}

}  // namespace quoll
