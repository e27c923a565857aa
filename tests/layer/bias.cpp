#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, "0=1"),           LayerCase({Shape(7, 8)}, "0=1"),
    LayerCase({Shape(5, 7, 24)}, "0=24"),    LayerCase({Shape(5, 7, 13)}, "0=13"),
    LayerCase({Shape(5, 6, 7, 24)}, "0=24"), LayerCase({Shape(3, 2, 5, 12)}, "0=12"),
};
QUOLL_LAYER_CASES(Bias, kCases)

TEST(Bias, by_hand) {
    expect_values("Bias", "0=2", {mat_of(Shape(2), {10, 20})},
                  {mat_of(Shape(2, 1, 2), {1, 2, 3, 4})}, mat_of(Shape(2, 1, 2), {11, 12, 23, 24}));
    // A 1-D or 2-D blob is one channel.
    expect_values("Bias", "0=2", {mat_of(Shape(2), {10, 20})}, {mat_of(Shape(2), {1, 2})},
                  mat_of(Shape(2), {11, 12}));
}

TEST(Bias, refuses_other_channel_counts) {
    const LayerPtr layer = make_layer("Bias", "0=2", {Mat(2)});
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(4, 4, 3)}).empty());
}

}  // namespace quoll
