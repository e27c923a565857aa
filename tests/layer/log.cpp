#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, "").range(0.125f, 8),
    LayerCase({Shape(16)}, "0=2 1=0.5 2=0.25").range(0.125f, 8),
    LayerCase({Shape(5, 8)}, "0=10 1=1.5 2=1").range(0.125f, 8),
    LayerCase({Shape(7, 5, 16)}, "").range(0.125f, 8),
    LayerCase({Shape(3, 5, 12)}, "0=2 1=0.5 2=0.25").range(0.125f, 8),
    LayerCase({Shape(3, 2, 4, 32)}, "0=10 1=1.5 2=1").range(0.125f, 8),
};
QUOLL_LAYER_CASES(Log, kCases)

TEST(Log, by_hand) {
    expect_values("Log", "0=2 1=3 2=1", {}, {mat_of(Shape(3), {0, 1, 5})},
                  mat_of(Shape(3), {0, 2, 4}));
    expect_values("Log", "", {}, {mat_of(Shape(2), {1, 2.718281828f})}, mat_of(Shape(2), {0, 1}));
}

}  // namespace quoll
