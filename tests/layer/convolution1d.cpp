#include "conv_case.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    conv_case(Shape(9, 1), 1, 1, "5=1"),
    conv_case(Shape(9, 16), 24, 1, "5=1 9=1"),
    conv_case(Shape(25, 8), 16, 3, "4=1 5=1 9=2 -23310=1,0.1"),
    conv_case(Shape(26, 13), 7, 5, "3=2 4=2 15=3 5=1 18=0.5 9=4"),
    conv_case(Shape(40, 32), 48, 4, "2=3 4=-233 9=6 -23310=2,0.2,0.5"),
    conv_case(Shape(17, 12), 20, 3, "3=3 4=-234 5=1 9=5"),
    conv_case(Shape(5, 4), 8, 2, "2=2 4=4 15=6 9=3 -23310=2,-0.3,0.4"),
    LayerCase({Shape(9)}, "0=4 1=3 6=12 4=1").terms(3),
    LayerCase({Shape(9, 4), Shape(3, 4, 8), Shape(8)}, "1=3 4=1 5=1 19=1 9=1").terms(12),
    LayerCase({Shape(9, 6), Shape(2, 6, 5)}, "3=2 4=-233 19=1").terms(12),
    LayerCase({Shape(25, 8), Shape(25, 16)}, "0=16 1=3 4=1 5=1 6=384 9=1 29=1").terms(24),
    LayerCase({Shape(25, 8), Shape(1, 16)}, "0=16 1=3 4=1 5=1 6=384 9=1 29=1").terms(24),
    // int8 products, in packs that fill registers and that do not, and rounded outputs.
    conv_case(Shape(25, 16), 32, 3, "4=1 5=1 8=1 9=1"),
    conv_case(Shape(26, 13), 7, 5, "3=2 4=2 15=3 5=1 8=1 18=0.5 9=4"),
    conv_case(Shape(41, 32), 24, 4, "2=3 4=-233 8=1 9=6 -23310=2,0.2,0.5"),
    conv_case(Shape(19, 5), 3, 3, "4=1 8=101 5=1").weights("top_blob_int8_scales", 20, 30),
    conv_case(Shape(33, 64), 48, 3, "4=1 8=101 5=1 9=1").weights("top_blob_int8_scales", 20, 30),
    LayerCase({Shape(25, 8), Shape(25, 16)}, "0=16 1=3 4=1 5=1 6=384 8=1 9=1 29=1").terms(24),
    affine(conv_case(Shape(30, 16, DType::s8), 24, 3, "4=1 5=1 8=1 26=1 27=-100 9=1")),
    int16(conv_case(Shape(30, 16), 24, 3, "4=1 5=1 8=1 26=3 9=1")),
    affine(conv_case(Shape(31, 3, DType::s8), 16, 3, "4=1 3=2 5=1 8=101 26=1 27=7 28=-128")),
};
QUOLL_LAYER_CASES(Convolution1D, kCases)

TEST(Convolution1D, by_hand) {
    const Mat x = mat_of(Shape(3, 2), {1, 2, 3, 40, 50, 60});
    const Mat weight = mat_of(Shape(4), {1, 10, 0.1f, 1});
    expect_values("Convolution1D", "0=1 1=2 6=4", {weight}, {x}, mat_of(Shape(2, 1), {75, 97}));
    expect_values("Convolution1D", "0=1 1=2 6=4 4=1 15=0 5=1 18=2", {weight, mat_of(Shape(1), {3})},
                  {x}, mat_of(Shape(3, 1), {55.2f, 78, 100}));
    // Two outputs, and the same weights as an input.
    const Mat two = mat_of(Shape(1, 2, 2), {1, 0, 2, 1});
    expect_values("Convolution1D", "0=2 1=1 6=4", {two.reshape(4)}, {x},
                  mat_of(Shape(3, 2), {1, 2, 3, 42, 54, 66}));
    expect_values("Convolution1D", "19=1", {}, {x, two},
                  mat_of(Shape(3, 2), {1, 2, 3, 42, 54, 66}));
}

TEST(Convolution1D, zero_points_by_hand) {
    // Steps of 0.5 (x) and 0.25 (w) around the zero point 3, which is what the padding holds.
    Mat weight(2, (size_t)1u);
    ((signed char*)weight.data)[0] = 1, ((signed char*)weight.data)[1] = -2;
    const std::vector<Mat> weights = {weight, mat_of(Shape(1), {4}), mat_of(Shape(1), {2})};
    const Mat x = mat_of(Shape(2, 1, DType::s8), {-128, 127});
    expect_values("Convolution1D", "0=1 1=2 4=1 6=2 8=1 26=1 27=3", weights, {x},
                  mat_of(Shape(3, 1), {32.75f, -47.375f, 15.5f}));
    const LayerPtr layer = make_layer("Convolution1D", "0=1 1=2 4=1 6=2 8=1 26=1 27=3", weights);
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 1)}).empty());
}

TEST(Convolution1D, refuses_what_does_not_fit) {
    EXPECT_EQ(nullptr, make_layer("Convolution1D", "0=2 1=3 6=17", {Mat(17)}));
    const LayerPtr layer = make_layer("Convolution1D", "0=2 1=3 6=12", {Mat(12)});
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(5, 3)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 2)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(5, 2, 1)}).empty());
    const LayerPtr dynamic = make_layer("Convolution1D", "19=1", {}, 2);
    ASSERT_NE(nullptr, dynamic);
    EXPECT_TRUE(run_layer(*dynamic, {Mat(5, 2), Mat(3, 1, 2, 4)}).empty());
    EXPECT_TRUE(run_layer(*dynamic, {Mat(5, 2), Mat(3, 3, 4)}).empty());
}

}  // namespace quoll
