#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(9)}, "").weights("scale_data", 20, 150),
    LayerCase({Shape(9, 8)}, "0=8").weights("scale_data", 20, 150),
    LayerCase({Shape(5, 4, 12)}, "0=12").weights("scale_data", 20, 150),
    LayerCase({Shape(5, 4, 3, 16)}, "0=1").weights("scale_data", 20, 150),
};
QUOLL_LAYER_CASES(Quantize, kCases)

TEST(Quantize, by_hand) {
    // Half away from zero; saturates at +-127.
    const Mat x = mat_of(Shape(4, 2), {0.25f, -0.25f, 0.2f, 100, 0.5f, 1, -1, -100});
    expect_values("Quantize", "", {mat_of(Shape(1), {2})}, {x},
                  mat_of(Shape(4, 2, DType::s8), {1, -1, 0, 127, 1, 2, -2, -127}));
    expect_values("Quantize", "0=2", {mat_of(Shape(2), {2, 10})}, {x},
                  mat_of(Shape(4, 2, DType::s8), {1, -1, 0, 127, 5, 10, -10, -127}));
    // A 1-D blob takes the first scale.
    expect_values("Quantize", "0=2", {mat_of(Shape(2), {2, 10})}, {mat_of(Shape(2), {1, 3})},
                  mat_of(Shape(2, DType::s8), {2, 6}));
}

TEST(Quantize, halves) {
    Mat x(Shape(254)), y(Shape(254, DType::s8));
    for (int i = 0; i < 127; i++) {
        x[(size_t)(2 * i)] = (float)i + 0.5f, x[(size_t)(2 * i + 1)] = -(float)i - 0.5f;
        ((signed char*)y.data)[2 * i] = (signed char)(i + 1);
        ((signed char*)y.data)[2 * i + 1] = (signed char)(-i - 1);
    }
    expect_values("Quantize", "", {mat_of(Shape(1), {1})}, {x}, y);
}

TEST(Quantize, refuses_what_does_not_fit) {
    EXPECT_EQ(nullptr, make_layer("Quantize", "0=0"));
    const LayerPtr layer = make_layer("Quantize", "0=2", {mat_of(Shape(2), {2, 10})});
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(4, 3)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(Shape(4, 2, DType::s32))}).empty());
}

}  // namespace quoll
