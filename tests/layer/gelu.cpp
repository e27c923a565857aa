#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, "0=0").range(-8, 8),
    LayerCase({Shape(16)}, "0=1").range(-8, 8),
    LayerCase({Shape(5, 8)}, "0=0").range(-8, 8),
    LayerCase({Shape(7, 5, 16)}, "0=1").range(-8, 8),
    LayerCase({Shape(3, 5, 12)}, "0=0").range(-8, 8),
    LayerCase({Shape(3, 2, 4, 32)}, "0=1").range(-8, 8),
};
QUOLL_LAYER_CASES(GELU, kCases)

TEST(GELU, by_hand) {
    // x times the normal distribution's Phi(1) = 0.841344746, Phi(-2) = 0.022750132.
    const Mat x = mat_of(Shape(3), {0, 1, -2});
    expect_values("GELU", "", {}, {x}, mat_of(Shape(3), {0, 0.841344746f, -0.045500264f}));
    expect_values("GELU", "0=1", {}, {x}, mat_of(Shape(3), {0, 0.841191991f, -0.045402306f}));
}

}  // namespace quoll
