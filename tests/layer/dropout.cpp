#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(128)}, ""),
    LayerCase({Shape(15, 24)}, "0=0.25"),
    LayerCase({Shape(7, 5, 13)}, "0=2"),
    LayerCase({Shape(5, 6, 7, 24)}, "0=0.5"),
};
QUOLL_LAYER_CASES(Dropout, kCases)

TEST(Dropout, by_hand) {
    const Mat x = mat_of(Shape(3), {-1, 2, 3});
    expect_values("Dropout", "", {}, {x}, x);
    expect_values("Dropout", "0=0.5", {}, {x}, mat_of(Shape(3), {-0.5f, 1, 1.5f}));
}

}  // namespace quoll
