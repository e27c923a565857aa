#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, ""),
    LayerCase({Shape(16)}, "0=0.1"),
    LayerCase({Shape(5, 8)}, "0=-0.5"),
    LayerCase({Shape(7, 5, 16)}, ""),
    LayerCase({Shape(3, 5, 12)}, "0=0.25"),
    LayerCase({Shape(3, 2, 4, 32)}, "0=0.25"),
    LayerCase({Shape(7, 5, 16, DType::s8)}, "0=0.25").range(-127, 127),
};
QUOLL_LAYER_CASES(ReLU, kCases)

TEST(ReLU, by_hand) {
    const Mat x = mat_of(Shape(4), {-2, -0.5f, 0, 3});
    expect_values("ReLU", "", {}, {x}, mat_of(Shape(4), {0, 0, 0, 3}));
    expect_values("ReLU", "0=0.5", {}, {x}, mat_of(Shape(4), {-1, -0.25f, 0, 3}));
}

}  // namespace quoll
