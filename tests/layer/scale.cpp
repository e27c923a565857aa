#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(128)}, "0=128"),
    LayerCase({Shape(127)}, "0=127 1=1"),
    LayerCase({Shape(9, 12)}, "0=12 1=1"),
    LayerCase({Shape(9, 13)}, "0=13"),
    LayerCase({Shape(5, 7, 24)}, "0=24 1=1"),
    LayerCase({Shape(5, 7, 15)}, "0=15"),
    LayerCase({Shape(5, 3, 2, 16)}, "0=16 1=1"),
    LayerCase({Shape(16), Shape(16)}, "0=-233"),
    LayerCase({Shape(9, 12), Shape(12)}, "0=-233"),
    LayerCase({Shape(5, 7, 24), Shape(24)}, "0=-233"),
    LayerCase({Shape(5, 7, 13), Shape(1, 1, 13)}, "0=-233"),
    LayerCase({Shape(5, 7, 24), Shape(24)}, "0=-233").outputs(2),
    LayerCase({Shape(5, 3, 2, 24), Shape(24)}, "0=-233").outputs(2),
};
QUOLL_LAYER_CASES(Scale, kCases)

TEST(Scale, by_hand) {
    const Mat x = mat_of(Shape(2, 1, 2), {1, 2, 3, 4});
    const Mat scale = mat_of(Shape(2), {10, -1}), bias = mat_of(Shape(2), {0.5f, 0});
    expect_values("Scale", "0=2", {scale}, {x}, mat_of(Shape(2, 1, 2), {10, 20, -3, -4}));
    expect_values("Scale", "0=2 1=1", {scale, bias}, {x},
                  mat_of(Shape(2, 1, 2), {10.5f, 20.5f, -3, -4}));
    expect_values("Scale", "0=-233", {}, {x, scale}, mat_of(Shape(2, 1, 2), {10, 20, -3, -4}));
    expect_values("Scale", "0=2", {scale}, {mat_of(Shape(1, 2), {1, 2})},
                  mat_of(Shape(1, 2), {10, -2}));
}

TEST(Scale, refuses_what_does_not_fit) {
    EXPECT_EQ(nullptr, make_layer("Scale", "0=-1", {}));
    EXPECT_EQ(nullptr, make_layer("Scale", "0=-233 1=1", {}, 2));
    const LayerPtr layer = make_layer("Scale", "0=-233", {}, 2);
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(4, 4, 3), Mat(4)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(4, 4, 3)}).empty());
}

}  // namespace quoll
