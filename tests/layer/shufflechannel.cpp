#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(5, 3, 12)}, "0=3"),
    LayerCase({Shape(5, 3, 32)}, "0=2"),
    LayerCase({Shape(5, 3, 24)}, "0=2"),
    LayerCase({Shape(5, 3, 48)}, "0=3"),
    LayerCase({Shape(5, 3, 48)}, "0=3 1=1"),
    LayerCase({Shape(5, 3, 16)}, "0=2 1=1"),
    LayerCase({Shape(5, 3, 40)}, "0=5 1=1"),
    LayerCase({Shape(5, 3, 16)}, "0=16"),
    LayerCase({Shape(5, 3, 16)}, "0=1"),
    LayerCase({Shape(5, 3, 2, 16)}, "0=4"),
    LayerCase({Shape(5, 3, 16, DType::s8)}, "0=4").range(-127, 127),
};
QUOLL_LAYER_CASES(ShuffleChannel, kCases)

TEST(ShuffleChannel, by_hand) {
    const Mat x = mat_of(Shape(1, 1, 6), {0, 1, 2, 3, 4, 5});
    expect_values("ShuffleChannel", "0=2", {}, {x}, mat_of(Shape(1, 1, 6), {0, 3, 1, 4, 2, 5}));
    expect_values("ShuffleChannel", "0=2 1=1", {}, {x}, mat_of(Shape(1, 1, 6), {0, 2, 4, 1, 3, 5}));
    const LayerPtr layer = make_layer("ShuffleChannel", "0=4");
    EXPECT_TRUE(run_layer(*layer, {x}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(4, 4)}).empty());
    EXPECT_EQ(nullptr, make_layer("ShuffleChannel", "0=0"));
}

}  // namespace quoll
