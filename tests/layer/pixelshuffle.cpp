#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(5, 3, 16)}, "0=2"),
    LayerCase({Shape(5, 3, 36)}, "0=3"),
    LayerCase({Shape(5, 3, 32)}, "0=2 1=1"),
    LayerCase({Shape(5, 3, 48)}, "0=4 1=1"),
    LayerCase({Shape(5, 3, 16)}, "0=1"),
    LayerCase({Shape(9, 7, 64)}, "0=2"),
    LayerCase({Shape(9, 7, 64)}, "0=2 1=1"),
    LayerCase({Shape(9, 7, 48)}, "0=2"),
    LayerCase({Shape(9, 7, 27)}, "0=3 1=1"),
    LayerCase({Shape(40, 30, 12)}, "0=2"),
    LayerCase({Shape(5, 3, 16, DType::s8)}, "0=4").range(-127, 127),
};
QUOLL_LAYER_CASES(PixelShuffle, kCases)

TEST(PixelShuffle, by_hand) {
    const Mat x = mat_of(Shape(1, 1, 8), {0, 1, 2, 3, 4, 5, 6, 7});
    expect_values("PixelShuffle", "0=2", {}, {x}, mat_of(Shape(2, 2, 2), {0, 1, 2, 3, 4, 5, 6, 7}));
    expect_values("PixelShuffle", "0=2 1=1", {}, {x},
                  mat_of(Shape(2, 2, 2), {0, 2, 4, 6, 1, 3, 5, 7}));
    EXPECT_TRUE(run_layer(*make_layer("PixelShuffle", "0=3"), {x}).empty());
}

}  // namespace quoll
