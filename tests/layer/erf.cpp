#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, "").range(-4, 4),       LayerCase({Shape(16)}, "").range(-4, 4),
    LayerCase({Shape(5, 8)}, "").range(-4, 4),     LayerCase({Shape(7, 5, 16)}, "").range(-4, 4),
    LayerCase({Shape(3, 5, 12)}, "").range(-4, 4), LayerCase({Shape(3, 2, 4, 32)}, "").range(-4, 4),
};
QUOLL_LAYER_CASES(Erf, kCases)

TEST(Erf, by_hand) {
    expect_values("Erf", "", {}, {mat_of(Shape(3), {-3, 0, 0.5})},
                  mat_of(Shape(3), {-0.999977910f, 0, 0.520499878f}));
}

}  // namespace quoll
