#include "conv_case.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    conv_case(Shape(9, 1), 1, 1, "5=1"),
    conv_case(Shape(5, 16), 8, 2, "3=2 5=1 9=1"),
    conv_case(Shape(11, 8), 16, 4, "3=2 4=1 5=1 9=2 -23310=1,0.1"),
    conv_case(Shape(12, 13), 7, 3, "4=1 9=3 -23310=2,-0.3,0.4"),
    conv_case(Shape(6, 4), 12, 3, "2=2 3=3 4=2 15=0 5=1 9=4"),
    conv_case(Shape(5, 32), 4, 4, "3=2 4=-233 20=9 5=1 9=6 -23310=2,0.2,0.5"),
    conv_case(Shape(5, 3), 24, 3, "3=2 4=-234 20=10 18=1 9=5"),
    conv_case(Shape(33, 24), 3, 5, "3=2 4=2 18=1 5=1"),
    LayerCase({Shape(5, 4), Shape(3, 8, 4), Shape(8)}, "3=2 4=1 5=1 28=1").terms(12),
    LayerCase({Shape(5, 6), Shape(2, 3, 6)}, "4=-233 20=4 28=1 9=1").terms(12),
};
QUOLL_LAYER_CASES(Deconvolution1D, kCases)

TEST(Deconvolution1D, by_hand) {
    const Mat x = mat_of(Shape(2, 1), {1, 2}), kernel = mat_of(Shape(3), {1, 10, 100});
    expect_values("Deconvolution1D", "0=1 1=3 6=3", {kernel}, {x},
                  mat_of(Shape(4, 1), {1, 12, 120, 200}));
    expect_values("Deconvolution1D", "0=1 1=3 6=3 3=2 18=1 5=1 4=0 15=1",
                  {kernel, mat_of(Shape(1), {0.5f})}, {x},
                  mat_of(Shape(5, 1), {1.5f, 10.5f, 102.5f, 20.5f, 200.5f}));
    // Cut from 4 to 3: the odd one goes at the end (upper) or at the beginning (lower).
    expect_values("Deconvolution1D", "0=1 1=3 6=3 4=-233 20=3", {kernel}, {x},
                  mat_of(Shape(3, 1), {1, 12, 120}));
    expect_values("Deconvolution1D", "0=1 1=3 6=3 4=-234 20=3", {kernel}, {x},
                  mat_of(Shape(3, 1), {12, 120, 200}));
    // Two inputs, two outputs; as an input the weight is [input][output].
    const Mat y = mat_of(Shape(1, 2), {1, 2});
    expect_values("Deconvolution1D", "0=2 1=1 6=4", {mat_of(Shape(4), {1, 10, 100, 1000})}, {y},
                  mat_of(Shape(1, 2), {21, 2100}));
    expect_values("Deconvolution1D", "28=1", {}, {y, mat_of(Shape(1, 2, 2), {1, 100, 10, 1000})},
                  mat_of(Shape(1, 2), {21, 2100}));
}

}  // namespace quoll
