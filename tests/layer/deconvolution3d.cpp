#include "conv_case.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    conv_case(Shape(4, 3, 5, 1), 1, 1, "5=1"),
    conv_case(Shape(4, 3, 2, 16), 8, 2, "3=2 5=1 9=1"),
    conv_case(Shape(4, 5, 3, 8), 12, 3, "3=2 13=1 23=3 4=1 5=1 9=2 -23310=1,0.1"),
    conv_case(Shape(3, 4, 5, 5), 7, 3, "2=2 4=1 24=2 17=0 16=2 5=1 9=4"),
    conv_case(Shape(4, 3, 5, 4), 4, 2, "3=2 4=-233 25=7 26=5 27=9 9=6 -23310=2,0.2,0.5"),
    conv_case(Shape(4, 3, 5, 4), 4, 2, "3=2 4=-234 25=7 26=5 27=9 5=1 9=5"),
    conv_case(Shape(3, 3, 3, 4), 6, 3, "3=3 4=-234 18=2 19=1 20=0"),
    conv_case(Shape(5, 4, 3, 32), 24, 3, "3=2 13=1 23=2 4=1 24=1 5=1 9=1"),
    conv_case(Shape(5, 4, 3, 16), 16, 2, "3=2 5=1"),
    LayerCase({Shape(4, 3, 5, 4), Shape(3, 2, 2, 24), Shape(6)}, "0=6 3=2 5=1 28=1 9=1").terms(48),
};
QUOLL_LAYER_CASES(Deconvolution3D, kCases)

// Channels of the weight: of input 0 for output 0 and 1, of input 1 for the same.
TEST(Deconvolution3D, weight_input) {
    const Mat x = mat_of(Shape(1, 1, 1, 2), {1, 2});
    const Mat weight = mat_of(Shape(1, 1, 2, 4), {1, 10, 2, 20, 3, 30, 4, 40});
    expect_values("Deconvolution3D", "0=2 28=1", {}, {x, weight},
                  mat_of(Shape(1, 1, 2, 2), {7, 70, 10, 100}));
    const LayerPtr layer = make_layer("Deconvolution3D", "0=2 28=1", {}, 2);
    EXPECT_TRUE(run_layer(*layer, {x, mat_of(Shape(1, 1, 1, 3), {1, 2, 3})}).empty());
}

TEST(Deconvolution3D, by_hand) {
    const Mat x = mat_of(Shape(1, 1, 2, 1), {1, 2});
    // A kernel of 2 x 1 x 3 (w, h, d).
    const Mat kernel = mat_of(Shape(6), {1, 2, 10, 20, 100, 200});
    const std::string params = "0=1 1=2 11=1 21=3 6=6 ";
    expect_values("Deconvolution3D", params, {kernel}, {x},
                  mat_of(Shape(2, 1, 4, 1), {1, 2, 12, 24, 120, 240, 200, 400}));
    expect_values(
        "Deconvolution3D", params + "5=1 23=3 20=1", {kernel, mat_of(Shape(1), {1})}, {x},
        mat_of(Shape(2, 1, 7, 1), {2, 3, 11, 21, 101, 201, 3, 5, 21, 41, 201, 401, 1, 1}));
    expect_values("Deconvolution3D", params + "4=0 24=1 17=2", {kernel}, {x},
                  mat_of(Shape(2, 1, 1, 1), {12, 24}));
    // Cut from 4 slices to 3: the last (upper) or the first (lower) goes.
    expect_values("Deconvolution3D", params + "4=-233 25=2 26=1 27=3", {kernel}, {x},
                  mat_of(Shape(2, 1, 3, 1), {1, 2, 12, 24, 120, 240}));
    expect_values("Deconvolution3D", params + "4=-234 25=2 26=1 27=3", {kernel}, {x},
                  mat_of(Shape(2, 1, 3, 1), {12, 24, 120, 240, 200, 400}));
}

}  // namespace quoll
