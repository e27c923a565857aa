#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(9, DType::s32)}, "1=1").range(-9999, 9999).term_magnitude(1e4),
    LayerCase({Shape(9, 8, DType::s32)}, "0=8").range(-9999, 9999).term_magnitude(1e4),
    LayerCase({Shape(5, 4, 12, DType::s32)}, "0=12 1=12").range(-9999, 9999).term_magnitude(1e4),
    LayerCase({Shape(5, 4, 3, 16, DType::s32)}, "1=16").range(-9999, 9999).term_magnitude(1e4),
};
QUOLL_LAYER_CASES(Dequantize, kCases)

TEST(Dequantize, by_hand) {
    const Mat x = mat_of(Shape(2, 2, DType::s32), {100, -200, 30, 0});
    expect_values("Dequantize", "", {mat_of(Shape(1), {0.01f})}, {x},
                  mat_of(Shape(2, 2), {1, -2, 0.3f, 0}));
    expect_values("Dequantize", "0=2 1=2",
                  {mat_of(Shape(2), {0.01f, 2}), mat_of(Shape(2), {5, -1})}, {x},
                  mat_of(Shape(2, 2), {6, 3, 59, -1}));
    // A 1-D blob takes the first scale and bias.
    expect_values("Dequantize", "0=2 1=2", {mat_of(Shape(2), {0.5f, 2}), mat_of(Shape(2), {5, -1})},
                  {mat_of(Shape(2, DType::s32), {1, 3})}, mat_of(Shape(2), {5.5f, 6.5f}));
}

TEST(Dequantize, refuses_what_does_not_fit) {
    EXPECT_EQ(nullptr, make_layer("Dequantize", "1=-1", {Mat(1)}));
    const LayerPtr layer = make_layer("Dequantize", "1=2", {Mat(1), Mat(2)});
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(Shape(4, 3, DType::s32))}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(Shape(4, 2, DType::s8))}).empty());
}

}  // namespace quoll
