#include <math.h>

#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, ""),
    LayerCase({Shape(5, 8)}, "0=1 1=7"),
    LayerCase({Shape(5, 3, 16)}, "0=1 1=240"),
    LayerCase({Shape(5, 3, 2, 4)}, "1=3"),
};
QUOLL_LAYER_CASES(ArgMax, kCases)

TEST(ArgMax, by_hand) {
    const std::vector<float> values = {3, 1, 3, 7, 2, 7, 5, 0};
    expect_values("ArgMax", "0=1 1=4", {}, {mat_of(Shape(2, 2, 2), values)},
                  mat_of(Shape(4, 2), {7, 7, 5, 3, 5, 3, 6, 2}));
    expect_values("ArgMax", "1=2", {}, {mat_of(Shape(3, 1, 2), {1, 2, 6, 3, 4, 5})},
                  mat_of(Shape(2, 1), {2, 5}));
    expect_values("ArgMax", "1=3", {}, {mat_of(Shape(4), {1, NAN, INFINITY, NAN})},
                  mat_of(Shape(3, 1), {3, 1, 2}));
    const LayerPtr layer = make_layer("ArgMax", "1=5");
    EXPECT_TRUE(run_layer(*layer, {Mat(4)}).empty());
}

}  // namespace quoll
