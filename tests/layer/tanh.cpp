#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, "").range(-8, 8),       LayerCase({Shape(16)}, "").range(-8, 8),
    LayerCase({Shape(5, 8)}, "").range(-8, 8),     LayerCase({Shape(7, 5, 16)}, "").range(-8, 8),
    LayerCase({Shape(3, 5, 12)}, "").range(-8, 8), LayerCase({Shape(3, 2, 4, 32)}, "").range(-8, 8),
};
QUOLL_LAYER_CASES(TanH, kCases)

TEST(TanH, by_hand) {
    const Mat x = mat_of(Shape(4), {0, 1, -1, 50});
    expect_values("TanH", "", {}, {x}, mat_of(Shape(4), {0, 0.761594156f, -0.761594156f, 1}));
}

}  // namespace quoll
