#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, "").range(-8, 8),       LayerCase({Shape(16)}, "").range(-8, 8),
    LayerCase({Shape(5, 8)}, "").range(-8, 8),     LayerCase({Shape(7, 5, 16)}, "").range(-8, 8),
    LayerCase({Shape(3, 5, 12)}, "").range(-8, 8), LayerCase({Shape(3, 2, 4, 32)}, "").range(-8, 8),
};
QUOLL_LAYER_CASES(AbsVal, kCases)

TEST(AbsVal, by_hand) {
    expect_values("AbsVal", "", {}, {mat_of(Shape(3), {-2, 0, 3})}, mat_of(Shape(3), {2, 0, 3}));
}

}  // namespace quoll
