#include "conv_case.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    conv_case(Shape(9, 1), 1, 1, "5=1", 1),
    conv_case(Shape(5, 16), 16, 2, "3=2 5=1 9=1", 16),
    conv_case(Shape(11, 8), 8, 4, "3=2 4=1 5=1 9=2 -23310=1,0.1", 8),
    conv_case(Shape(12, 13), 13, 3, "4=1 9=3 -23310=2,-0.3,0.4", 13),
    conv_case(Shape(6, 48), 48, 3, "2=2 3=3 4=2 15=0 18=2 5=1 9=4", 48),
    conv_case(Shape(5, 32), 16, 4, "3=2 4=-233 20=9 5=1 9=6 -23310=2,0.2,0.5", 2),
    conv_case(Shape(5, 6), 9, 3, "3=2 4=-234 20=10 18=1 9=5", 3),
    LayerCase({Shape(5, 8), Shape(3, 1, 8), Shape(8)}, "3=2 4=1 5=1 7=8 28=1").terms(3),
    LayerCase({Shape(5, 6), Shape(2, 3, 6)}, "4=-233 20=4 7=2 28=1 9=1").terms(6),
};
QUOLL_LAYER_CASES(DeconvolutionDepthWise1D, kCases)

TEST(DeconvolutionDepthWise1D, by_hand) {
    const Mat x = mat_of(Shape(2, 2), {1, 2, 3, 4});
    expect_values("DeconvolutionDepthWise1D", "0=2 1=2 6=4 7=2 5=1",
                  {mat_of(Shape(4), {1, 10, 100, 1000}), mat_of(Shape(2), {0.5f, 0})}, {x},
                  mat_of(Shape(3, 2), {1.5f, 12.5f, 20.5f, 300, 3400, 4000}));
    EXPECT_EQ(nullptr, make_layer("DeconvolutionDepthWise1D", "0=3 1=1 6=3 7=2", {Mat(3)}));
}

}  // namespace quoll
