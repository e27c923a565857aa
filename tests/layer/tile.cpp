#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(16)}, "1=3"),
    LayerCase({Shape(16)}, "-23302=2,2,3"),
    LayerCase({Shape(16)}, "-23302=4,2,1,3,2"),
    LayerCase({Shape(5, 16)}, "0=0 1=2"),
    LayerCase({Shape(5, 16)}, "0=1 1=3"),
    LayerCase({Shape(5, 16)}, "0=2 1=3"),
    LayerCase({Shape(5, 8)}, "-23302=3,3,2,2"),
    LayerCase({Shape(5, 3, 16)}, "0=0 1=2"),
    LayerCase({Shape(5, 3, 16)}, "0=1 1=2"),
    LayerCase({Shape(5, 3, 16)}, "0=2 1=2"),
    LayerCase({Shape(5, 3, 16)}, "-23302=3,2,3,1"),
    LayerCase({Shape(5, 3, 16)}, "-23302=2,2,3"),
    LayerCase({Shape(5, 3, 16)}, "-23302=4,2,3,1,2"),
    LayerCase({Shape(5, 3, 2, 16)}, "0=1 1=3"),
    LayerCase({Shape(5, 3, 2, 16)}, "-23302=4,1,2,2,3"),
    LayerCase({Shape(5, 3, 2, 16)}, "-23302=3,3,1,2"),
    LayerCase({Shape(5, 3, 16, DType::s8)}, "-23302=3,2,1,2").range(-127, 127),
    LayerCase({Shape(5, 3, 16)}, ""),
};
QUOLL_LAYER_CASES(Tile, kCases)

TEST(Tile, by_hand) {
    const Mat x = mat_of(Shape(2, 2), {1, 2, 3, 4});
    expect_values("Tile", "0=1 1=2", {}, {x}, mat_of(Shape(4, 2), {1, 2, 1, 2, 3, 4, 3, 4}));
    expect_values("Tile", "1=2", {}, {x}, mat_of(Shape(2, 4), {1, 2, 3, 4, 1, 2, 3, 4}));
    expect_values("Tile", "-23302=1,2", {}, {x}, mat_of(Shape(4, 2), {1, 2, 1, 2, 3, 4, 3, 4}));
    expect_values("Tile", "-23302=3,2,1,1", {}, {x},
                  mat_of(Shape(2, 2, 2), {1, 2, 3, 4, 1, 2, 3, 4}));
    // With 3 axes and 4 repeats the third axis stays c.
    expect_values("Tile", "-23302=4,1,2,1,1", {}, {mat_of(Shape(1, 1, 2), {1, 2})},
                  mat_of(Shape(1, 1, 2, 2), {1, 1, 2, 2}));
}

TEST(Tile, refuses) {
    for (const char* params : {"0=-1 1=2", "0=4 1=2", "1=0", "-23302=1,0", "-23302=5,1,1,1,1,2",
                               "0=1 1=2147483647", "-23302=2,2147483647,1"}) {
        const LayerPtr layer = make_layer("Tile", params);
        EXPECT_TRUE(!layer || run_layer(*layer, {Mat(3, 2)}).empty()) << params;
    }
}

}  // namespace quoll
