#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, "").range(-4, 4),
    LayerCase({Shape(16)}, "0=2 1=0.5 2=0.25").range(-4, 4),
    LayerCase({Shape(5, 8)}, "1=0.5 2=-1").range(-4, 4),
    LayerCase({Shape(7, 5, 16)}, "").range(-4, 4),
    LayerCase({Shape(3, 5, 12)}, "0=2 1=0.5 2=0.25").range(-4, 4),
    LayerCase({Shape(3, 2, 4, 32)}, "1=0.5 2=-1").range(-4, 4),
};
QUOLL_LAYER_CASES(Exp, kCases)

TEST(Exp, by_hand) {
    expect_values("Exp", "0=2 1=3 2=1", {}, {mat_of(Shape(3), {-1, 0, 1})},
                  mat_of(Shape(3), {0.25f, 2, 16}));
    expect_values("Exp", "2=1", {}, {mat_of(Shape(2), {-1, 0})},
                  mat_of(Shape(2), {1, 2.718281828f}));
}

}  // namespace quoll
