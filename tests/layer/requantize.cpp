#include "layer_test.h"

namespace quoll {

static LayerCase requantize(Shape in, const std::string& params) {
    in.dtype = DType::s32;
    return LayerCase({in}, params)
        .range(-9999, 9999)
        .weights("scale_in_data", 0.001f, 0.003f)
        .weights("scale_out_data", 3, 9);
}

static const std::vector<LayerCase> kCases = {
    requantize(Shape(9), "2=1 3=1"),
    requantize(Shape(9, 8), "0=8 3=2 -23304=1,0.1"),
    requantize(Shape(5, 4, 12), "0=12 1=12 2=12 3=3 -23304=2,-5,10"),
    requantize(Shape(5, 4, 3, 16), "1=16 2=1 3=6 -23304=2,0.2,0.5"),
};
QUOLL_LAYER_CASES(Requantize, kCases)

TEST(Requantize, by_hand) {
    const Mat x = mat_of(Shape(2, 2, DType::s32), {100, -200, 30, 3000});
    const Mat in = mat_of(Shape(1), {0.01f}), out = mat_of(Shape(1), {10});
    expect_values("Requantize", "", {in, out}, {x},
                  mat_of(Shape(2, 2, DType::s8), {10, -20, 3, 127}));
    expect_values("Requantize", "3=1 2=2", {in, out, mat_of(Shape(2), {0.5f, -1})}, {x},
                  mat_of(Shape(2, 2, DType::s8), {15, 0, 0, 127}));
    expect_values("Requantize", "0=2 1=2",
                  {mat_of(Shape(2), {0.01f, 0.1f}), mat_of(Shape(2), {4, 2})}, {x},
                  mat_of(Shape(2, 2, DType::s8), {4, -8, 6, 127}));
}

TEST(Requantize, refuses_what_does_not_fit) {
    EXPECT_EQ(nullptr, make_layer("Requantize", "3=2", {Mat(1), Mat(1)}));
    const LayerPtr layer = make_layer("Requantize", "1=2", {Mat(1), Mat(2)});
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(Shape(4, 3, DType::s32))}).empty());
}

}  // namespace quoll
