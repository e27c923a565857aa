#include "conv_case.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    conv_case(Shape(5, 4, 6, 1), 1, 1, "5=1", 1),
    conv_case(Shape(5, 4, 3, 15), 15, 1, "5=1 9=1", 15),
    conv_case(Shape(6, 7, 5, 16), 16, 3, "4=1 5=1 9=2 -23310=1,0.1", 16),
    conv_case(Shape(7, 6, 8, 8), 8, 2, "3=2 4=1 24=0 17=2 16=2 5=1 18=0.5 9=4", 8),
    conv_case(Shape(9, 8, 7, 12), 8, 3, "2=2 4=-233 9=6 -23310=2,0.2,0.5", 4),
    conv_case(Shape(8, 6, 10, 4), 12, 2, "3=2 13=1 23=3 4=-234 5=1 9=5", 2),
    LayerCase({Shape(6, 5, 4, 6), Shape(2, 2, 3, 12)}, "0=4 7=2 19=1 4=1").terms(36),
};
QUOLL_LAYER_CASES(ConvolutionDepthWise3D, kCases)

TEST(ConvolutionDepthWise3D, by_hand) {
    const Mat x = mat_of(Shape(1, 2, 2, 2), {1, 2, 3, 4, 5, 6, 7, 8});
    // Taps above each other in h, then in d.
    const Mat weight = mat_of(Shape(4), {1, 10, 100, 1000}), bias = mat_of(Shape(2), {0.5f, 0});
    expect_values("ConvolutionDepthWise3D", "0=2 1=1 11=2 21=1 6=4 7=2 5=1", {weight, bias}, {x},
                  mat_of(Shape(1, 1, 2, 2), {21.5f, 43.5f, 6500, 8700}));
    expect_values("ConvolutionDepthWise3D", "0=2 1=1 11=1 21=2 6=4 7=2 5=1", {weight, bias}, {x},
                  mat_of(Shape(1, 2, 1, 2), {31.5f, 42.5f, 7500, 8600}));
    EXPECT_EQ(nullptr, make_layer("ConvolutionDepthWise3D", "0=3 1=1 6=3 7=2", {Mat(3)}));
}

}  // namespace quoll
