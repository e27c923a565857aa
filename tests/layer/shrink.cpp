#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, "").range(-8, 8),
    LayerCase({Shape(16)}, "0=0.3 1=0.7").range(-8, 8),
    LayerCase({Shape(5, 8)}, "0=0.5 1=0").range(-8, 8),
    LayerCase({Shape(7, 5, 16)}, "").range(-8, 8),
    LayerCase({Shape(3, 5, 12)}, "0=0.3 1=0.7").range(-8, 8),
    LayerCase({Shape(3, 2, 4, 32)}, "0=0.5 1=0").range(-8, 8),
};
QUOLL_LAYER_CASES(Shrink, kCases)

TEST(Shrink, by_hand) {
    expect_values("Shrink", "0=0.25 1=1", {}, {mat_of(Shape(4), {-2, -1, 0.5f, 3})},
                  mat_of(Shape(4), {-1.75f, 0, 0, 2.75f}));
}

}  // namespace quoll
