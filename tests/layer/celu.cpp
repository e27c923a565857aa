#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, "").range(-8, 8),
    LayerCase({Shape(16)}, "0=1.5").range(-8, 8),
    LayerCase({Shape(5, 8)}, "0=0.3").range(-8, 8),
    LayerCase({Shape(7, 5, 16)}, "").range(-8, 8),
    LayerCase({Shape(3, 5, 12)}, "0=1.5").range(-8, 8),
    LayerCase({Shape(3, 2, 4, 32)}, "0=0.3").range(-8, 8),
};
QUOLL_LAYER_CASES(CELU, kCases)

TEST(CELU, by_hand) {
    expect_values("CELU", "0=2", {}, {mat_of(Shape(3), {-2, 0, 3})},
                  mat_of(Shape(3), {-1.264241118f, 0, 3}));
}

}  // namespace quoll
