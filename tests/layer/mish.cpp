#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, "").range(-8, 8),       LayerCase({Shape(16)}, "").range(-8, 8),
    LayerCase({Shape(5, 8)}, "").range(-8, 8),     LayerCase({Shape(7, 5, 16)}, "").range(-8, 8),
    LayerCase({Shape(3, 5, 12)}, "").range(-8, 8), LayerCase({Shape(3, 2, 4, 32)}, "").range(-8, 8),
};
QUOLL_LAYER_CASES(Mish, kCases)

TEST(Mish, by_hand) {
    // x tanh(log(1 + e^x)); beyond e^x's range it is x.
    const Mat x = mat_of(Shape(4), {0, 1, -1, 200});
    expect_values("Mish", "", {}, {x}, mat_of(Shape(4), {0, 0.865098388f, -0.303401461f, 200}));
}

}  // namespace quoll
