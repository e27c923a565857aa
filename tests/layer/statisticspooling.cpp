#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(7)}, "").terms(7),
    LayerCase({Shape(5, 6)}, "0=1").terms(60),
    LayerCase({Shape(5, 6, 12)}, "0=0").terms(30),
    LayerCase({Shape(5, 6, 13)}, "0=1").terms(60),
    LayerCase({Shape(3, 2, 4, 16)}, "0=1").terms(48),
    LayerCase({Shape(1, 1, 3)}, "0=1"),
};
QUOLL_LAYER_CASES(StatisticsPooling, kCases)

TEST(StatisticsPooling, by_hand) {
    const Mat x = mat_of(Shape(2, 1, 2), {1, 3, 5, 5});
    expect_values("StatisticsPooling", "", {}, {x}, mat_of(Shape(2), {2, 5}));
    expect_values("StatisticsPooling", "0=1", {}, {x}, mat_of(Shape(4), {2, 5, 1, 0}));
}

}  // namespace quoll
