#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, "").range(-8, 8),
    LayerCase({Shape(16)}, "0=0.166667 1=0.5").range(-8, 8),
    LayerCase({Shape(5, 8)}, "0=-0.1 1=0.2").range(-8, 8),
    LayerCase({Shape(7, 5, 16)}, "").range(-8, 8),
    LayerCase({Shape(3, 5, 12)}, "0=0.166667 1=0.5").range(-8, 8),
    LayerCase({Shape(3, 2, 4, 32)}, "0=-0.1 1=0.2").range(-8, 8),
};
QUOLL_LAYER_CASES(HardSwish, kCases)

TEST(HardSwish, by_hand) {
    const Mat x = mat_of(Shape(4), {-4, 0, 1, 4});
    expect_values("HardSwish", "", {}, {x}, mat_of(Shape(4), {0, 0, 0.7f, 4}));
}

}  // namespace quoll
