#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, "").range(-8, 8),
    LayerCase({Shape(16)}, "").range(-8, 8),
    LayerCase({Shape(5, 8)}, "").range(-8, 8),
    LayerCase({Shape(7, 5, 16)}, "").range(-8, 8),
    LayerCase({Shape(3, 5, 12)}, "0=1.702").range(-8, 8),
    LayerCase({Shape(3, 2, 4, 32)}, "").range(-8, 8),
};
QUOLL_LAYER_CASES(Swish, kCases)

TEST(Swish, by_hand) {
    const Mat x = mat_of(Shape(3), {0, 1, -2});
    expect_values("Swish", "", {}, {x}, mat_of(Shape(3), {0, 0.731058579f, -0.238405844f}));
    expect_values("Swish", "0=2", {}, {x}, mat_of(Shape(3), {0, 0.880797078f, -0.0359724199f}));
}

}  // namespace quoll
