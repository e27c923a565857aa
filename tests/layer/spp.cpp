#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(8, 8, 4)}, "0=0 1=3"), LayerCase({Shape(7, 5, 3)}, "0=1 1=3").terms(35),
    LayerCase({Shape(3, 2, 8)}, "0=0 1=4"), LayerCase({Shape(3, 2, 8)}, "0=1 1=4").terms(6),
    LayerCase({Shape(9, 7)}, "1=2"),        LayerCase({Shape(5)}, "0=1 1=2").terms(5),
};
QUOLL_LAYER_CASES(SPP, kCases)

TEST(SPP, by_hand) {
    const Mat x = mat_of(Shape(2, 2, 2), {1, 2, 3, 4, -1, -2, -3, -4});
    expect_values("SPP", "1=2", {}, {x}, mat_of(Shape(10), {4, -1, 1, 2, 3, 4, -1, -2, -3, -4}));
    expect_values("SPP", "0=1 1=1", {}, {x}, mat_of(Shape(2), {2.5f, -2.5f}));
    // Three columns in two windows of two: one column of zeros before the first.
    expect_values("SPP", "1=2", {}, {mat_of(Shape(3, 2), {-1, -2, -3, -4, -5, -6})},
                  mat_of(Shape(5), {-1, 0, -2, 0, -5}));
    expect_values("SPP", "0=1 1=2", {}, {mat_of(Shape(3, 2), {2, 4, 6, 8, 10, 12})},
                  mat_of(Shape(5), {7, 1, 5, 4, 11}));
}

}  // namespace quoll
