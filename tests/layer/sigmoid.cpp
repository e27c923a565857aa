#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, "").range(-8, 8),       LayerCase({Shape(16)}, "").range(-8, 8),
    LayerCase({Shape(5, 8)}, "").range(-8, 8),     LayerCase({Shape(7, 5, 16)}, "").range(-8, 8),
    LayerCase({Shape(3, 5, 12)}, "").range(-8, 8), LayerCase({Shape(3, 2, 4, 32)}, "").range(-8, 8),
};
QUOLL_LAYER_CASES(Sigmoid, kCases)

TEST(Sigmoid, by_hand) {
    const Mat x = mat_of(Shape(2, 2), {0, 1, -200, 200});
    expect_values("Sigmoid", "", {}, {x}, mat_of(Shape(2, 2), {0.5f, 0.731058579f, 0, 1}));
}

}  // namespace quoll
