#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, "").range(0.125f, 8),
    LayerCase({Shape(16)}, "0=2.5 1=1.5 2=0.25").range(0.125f, 8),
    LayerCase({Shape(5, 8)}, "0=-0.5 1=0.5 2=1").range(0.125f, 8),
    LayerCase({Shape(7, 5, 16)}, "1=2 2=-3").range(0.125f, 8),
    LayerCase({Shape(3, 5, 12)}, "0=2").range(0.125f, 8),
    LayerCase({Shape(3, 2, 4, 32)}, "").range(0.125f, 8),
};
QUOLL_LAYER_CASES(Power, kCases)

TEST(Power, by_hand) {
    expect_values("Power", "0=2 1=3 2=1", {}, {mat_of(Shape(3), {-1, 0, 1})},
                  mat_of(Shape(3), {4, 1, 16}));
    expect_values("Power", "1=2 2=1", {}, {mat_of(Shape(2), {-1, 3})}, mat_of(Shape(2), {-1, 7}));
}

}  // namespace quoll
