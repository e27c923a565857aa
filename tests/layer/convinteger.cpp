#include "layer_test.h"

namespace quoll {

static LayerCase conv(Shape x, const std::string& params) {
    x.dtype = DType::u8;
    return LayerCase({x}, params).range(0, 255).int8_weights().weights("weight_data", -127, 127);
}

static const std::vector<LayerCase> kCases = {
    conv(Shape(9, 8, 3), "0=4 1=3 6=108 22=120 -23323=1,3"),
    conv(Shape(9, 8, 4), "0=6 1=3 11=2 3=2 4=1 6=72 7=2 8=1 22=7 -23323=6,1,2,3,4,5,6"),
    conv(Shape(9, 8), "0=2 1=3 6=18 4=-233"),
    LayerCase({Shape(7, 6, 4, DType::s8), Shape(3, 2, 2, 6, DType::u8), Shape(1, DType::s8),
               Shape(6, DType::u8)},
              "7=2 19=1 20=1 21=1 4=1")
        .range(0, 100),
};
QUOLL_LAYER_CASES(ConvInteger, kCases)

TEST(ConvInteger, by_hand) {
    // ONNX's own example: 2 to 10 with zero point 1, a 2 x 2 kernel of ones.
    const Mat x = mat_of(Shape(3, 3, 1, DType::u8), {2, 3, 4, 5, 6, 7, 8, 9, 10});
    const Mat w = mat_of(Shape(4, DType::s8), {1, 1, 1, 1});
    expect_values("ConvInteger", "0=1 1=2 6=4 22=1", {w}, {x},
                  mat_of(Shape(2, 2, 1, DType::s32), {12, 16, 24, 28}));
    // Padding counts as the zero point.
    expect_values("ConvInteger", "0=1 1=2 4=1 6=4 22=1", {w}, {x},
                  mat_of(Shape(4, 4, 1, DType::s32),
                         {1, 3, 5, 3, 5, 12, 16, 9, 11, 24, 28, 15, 7, 15, 17, 9}));
    // -1 is 255 as u8; less its zero point 254.
    expect_values("ConvInteger", "0=1 1=1 6=1 8=1 -23323=1,254",
                  {mat_of(Shape(1, DType::s8), {-1})}, {mat_of(Shape(2, 1, 1, DType::s8), {-5, 7})},
                  mat_of(Shape(2, 1, 1, DType::s32), {-5, 7}));
}

TEST(ConvInteger, refuses_what_does_not_fit) {
    const Mat w = mat_of(Shape(4, DType::s8), {1, 1, 1, 1});
    EXPECT_EQ(nullptr, make_layer("ConvInteger", "0=3 1=2 6=4", {w}));
    EXPECT_EQ(nullptr, make_layer("ConvInteger", "0=1 1=2 6=4", {Mat(4)}));
    const LayerPtr layer = make_layer("ConvInteger", "0=1 1=2 6=4", {w});
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(4, 4, 1)}).empty());
    EXPECT_TRUE(run_layer(*layer, {mat_of(Shape(2, 1, 1, DType::s8), {1, 2})}).empty());
    EXPECT_TRUE(
        run_layer(*layer, {mat_of(Shape(2, 2, 2, DType::s8), std::vector<float>(8, 1))}).empty());
}

}  // namespace quoll
