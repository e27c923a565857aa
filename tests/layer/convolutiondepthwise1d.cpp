#include "conv_case.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    conv_case(Shape(9, 1), 1, 1, "5=1", 1),
    conv_case(Shape(15, 15), 15, 1, "5=1 9=4", 15),
    conv_case(Shape(25, 16), 16, 3, "4=1 5=1 9=1", 16),
    conv_case(Shape(26, 24), 24, 5, "3=2 4=2 15=3 5=1 18=0.5 9=2 -23310=1,0.1", 24),
    conv_case(Shape(40, 7), 7, 4, "2=3 3=2 4=-233 18=-0.5 9=6 -23310=2,0.2,0.5", 7),
    conv_case(Shape(17, 12), 20, 3, "3=3 4=-234 5=1 9=5", 4),
    conv_case(Shape(12, 32), 16, 2, "2=2 4=4 9=3 -23310=2,-0.3,0.4", 2),
    LayerCase({Shape(9, 8), Shape(3, 1, 8), Shape(8)}, "4=1 5=1 7=8 19=1").terms(3),
    LayerCase({Shape(9, 8), Shape(2, 4, 6)}, "3=2 7=2 19=1 9=1").terms(8),
    // int8: a window a channel, with channels that fill registers and that do not; groups.
    conv_case(Shape(25, 32), 32, 3, "4=1 5=1 8=1 9=1", 32),
    conv_case(Shape(26, 13), 13, 5, "3=2 4=2 15=3 5=1 8=2 9=2 -23310=1,0.1", 13),
    conv_case(Shape(27, 16), 16, 3, "4=1 8=101", 16).weights("top_blob_int8_scales", 20, 30),
    conv_case(Shape(17, 12), 20, 3, "3=3 4=-234 5=1 8=1 9=5", 4),
    affine(conv_case(Shape(29, 24, DType::s8), 24, 3, "4=1 3=2 8=101 26=1 27=20 28=-128", 24)),
    affine(conv_case(Shape(19, 7, DType::s8), 7, 5, "4=2 5=1 8=102 26=1 27=-128 28=127 9=4", 7)),
    affine(conv_case(Shape(23, 16, DType::s8), 8, 3, "4=1 5=1 8=101 26=1 27=-3 28=5", 2)),
};
QUOLL_LAYER_CASES(ConvolutionDepthWise1D, kCases)

TEST(ConvolutionDepthWise1D, by_hand) {
    const Mat x = mat_of(Shape(2, 2), {1, 2, 3, 4});
    expect_values("ConvolutionDepthWise1D", "0=2 1=2 6=4 7=2 5=1",
                  {mat_of(Shape(4), {1, 10, 100, 1000}), mat_of(Shape(2), {0.5f, 0})}, {x},
                  mat_of(Shape(1, 2), {21.5f, 4300}));
    // Two outputs of each input row.
    expect_values("ConvolutionDepthWise1D", "0=4 1=1 6=4 7=2", {mat_of(Shape(4), {1, -1, 2, 0.5f})},
                  {x}, mat_of(Shape(2, 4), {1, 2, -1, -2, 6, 8, 1.5f, 2}));
    EXPECT_EQ(nullptr, make_layer("ConvolutionDepthWise1D", "0=3 1=1 6=3 7=2", {Mat(3)}));
}

}  // namespace quoll
