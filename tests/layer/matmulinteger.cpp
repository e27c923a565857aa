#include "layer_test.h"

namespace quoll {

static const DType u8 = DType::u8, s8 = DType::s8;

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(5, 4, u8), Shape(3, 5, s8)}, "-23304=1,9 -23305=3,1,2,3").range(0, 120),
    LayerCase({Shape(5, 4, s8), Shape(3, 5, s8)}, "0=1 1=1 -23304=4,1,2,3,4").range(-120, 120),
    LayerCase({Shape(5, s8), Shape(3, 5, u8)}, "").range(0, 120),
    LayerCase({Shape(5, 4, s8), Shape(5, u8)}, "").range(0, 120),
    LayerCase({Shape(5, s8), Shape(5, u8)}, "").range(0, 120),
    LayerCase(
        {Shape(5, 4, 2, 3, u8), Shape(6, 5, 2, s8), Shape(1, 4, 2, 3, u8), Shape(6, 1, 2, s8)},
        "2=1 3=1")
        .range(0, 120),
    LayerCase({Shape(5, 4, u8), Shape(6, 5, 3, s8), Shape(4, u8), Shape(6, s8)}, "2=1 3=1")
        .range(0, 120),
};
QUOLL_LAYER_CASES(MatMulInteger, kCases)

TEST(MatMulInteger, by_hand) {
    // ONNX's own example: zero points 12 and 0.
    const Mat a = mat_of(Shape(3, 4, u8), {11, 7, 3, 10, 6, 2, 9, 5, 1, 8, 4, 0});
    const Mat b = mat_of(Shape(2, 3, u8), {1, 4, 2, 5, 3, 6});
    expect_values("MatMulInteger", "-23304=1,12 -23305=1,0", {}, {a, b},
                  mat_of(Shape(2, 4, DType::s32), {-38, -83, -44, -98, -50, -113, -56, -128}));
    // A zero point a row, and one a column.
    expect_values("MatMulInteger", "-23304=2,1,2 -23305=2,3,4", {},
                  {mat_of(Shape(1, 2, u8), {3, 3}), mat_of(Shape(2, 1, s8), {5, -6})},
                  mat_of(Shape(2, 2, DType::s32), {4, -20, 2, -10}));
}

TEST(MatMulInteger, refuses_what_does_not_fit) {
    const LayerPtr layer = make_layer("MatMulInteger", "-23304=2,1,2", {}, 2);
    ASSERT_NE(nullptr, layer);
    const Mat row = mat_of(Shape(2, 1, s8), {1, 2}), two = mat_of(Shape(2, 2, s8), {1, 2, 3, 4});
    EXPECT_TRUE(run_layer(*layer, {row, two}).empty());
    EXPECT_TRUE(run_layer(*layer, {two, row}).empty());
    EXPECT_TRUE(run_layer(*layer, {two, Mat(2, 2)}).empty());
    EXPECT_EQ(1u, run_layer(*layer, {two, two}).size());
}

}  // namespace quoll
