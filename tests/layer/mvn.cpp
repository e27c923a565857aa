#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(9)}, "0=1").terms(9),
    LayerCase({Shape(5, 6)}, "0=1 2=0.001").terms(30),
    LayerCase({Shape(5, 6, 12)}, "").terms(30),
    LayerCase({Shape(5, 6, 13)}, "1=1").terms(390),
    LayerCase({Shape(5, 6, 16)}, "0=1").terms(30),
    LayerCase({Shape(5, 6, 16)}, "0=1 1=1 2=0.001").terms(480),
    LayerCase({Shape(3, 3, 2, 8)}, "0=1 1=1").terms(144),
    LayerCase({Shape(3, 3, 2, 8)}, "0=1").terms(18),
};
QUOLL_LAYER_CASES(MVN, kCases)

TEST(MVN, by_hand) {
    // Means 3 and 14, deviations 1 and 2, eps 1.
    expect_values("MVN", "0=1 2=1.0", {}, {mat_of(Shape(2, 1, 2), {2, 4, 12, 16})},
                  mat_of(Shape(2, 1, 2), {-0.5f, 0.5f, -2 / 3.f, 2 / 3.f}));
    expect_values("MVN", "1=1", {}, {mat_of(Shape(2, 1, 2), {1, 3, 5, 7})},
                  mat_of(Shape(2, 1, 2), {-3, -1, 1, 3}));
    // Fewer than three axes become three.
    expect_values("MVN", "", {}, {mat_of(Shape(3), {1, 2, 6})},
                  mat_of(Shape(3, 1, 1), {-2, -1, 3}));
}

}  // namespace quoll
