#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, "").range(-8, 8),       LayerCase({Shape(16)}, "").range(-8, 8),
    LayerCase({Shape(5, 8)}, "").range(-8, 8),     LayerCase({Shape(7, 5, 16)}, "").range(-8, 8),
    LayerCase({Shape(3, 5, 12)}, "").range(-8, 8), LayerCase({Shape(3, 2, 4, 32)}, "").range(-8, 8),
};
QUOLL_LAYER_CASES(Softplus, kCases)

TEST(Softplus, by_hand) {
    expect_values("Softplus", "", {}, {mat_of(Shape(4), {-1, 0, 2, 100})},
                  mat_of(Shape(4), {0.313261688f, 0.693147181f, 2.126928011f, 100}));
}

}  // namespace quoll
