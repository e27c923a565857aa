#include <math.h>

#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(16, 8)}, "0=7 1=112").terms(23),
    LayerCase({Shape(16, 8), Shape(7, 1)}, "0=7 1=112 2=1").terms(23).outputs(2),
    LayerCase({Shape(3, 5)}, "0=33 1=198 2=2")
        .terms(36)
        .outputs(2)
        .weights("weight_hc_data", -.2f, .2f),
    LayerCase({Shape(3, 5), Shape(16, 2)}, "0=16 1=96 2=2")
        .terms(19)
        .weights("weight_hc_data", -.2f, .2f),
    LayerCase({Shape(5)}, "0=4 1=20").terms(9),
    LayerCase({Shape(3, 5), Shape(80, 2)}, "0=80 1=480 2=2")
        .terms(83)
        .weights("weight_hc_data", -.2f, .2f),
};
QUOLL_LAYER_CASES(RNN, kCases)

TEST(RNN, by_hand) {
    // h = tanh(2 x + h / 2 - 1): x = 1 gives tanh(1), then x = 0 tanh(tanh(1) / 2 - 1).
    const std::vector<Mat> weights = {mat_of(Shape(1), {2}), mat_of(Shape(1), {-1}),
                                      mat_of(Shape(1), {0.5f})};
    const Mat x = mat_of(Shape(1, 2), {1, 0});
    expect_values("RNN", "0=1 1=1", weights, {x}, mat_of(Shape(1, 2), {0.76159416f, -0.55057281f}));
    // Reverse: x = 0 comes first and gives tanh(-1), then tanh(1 - tanh(1) / 2).
    expect_values("RNN", "0=1 1=1 2=1", weights, {x},
                  mat_of(Shape(1, 2), {0.55057281f, -0.76159416f}));
}

TEST(RNN, int8_by_hand) {
    // Rows are rounded to 127 of their largest magnitude: 1, -1/2 to 127, -64 and, with the sums
    // and scales here, W x = (1270 - 1280) / 127 / 10; of h is taken 50 / 100.
    const std::vector<Mat> weights = {mat_of(Shape(2, DType::s8), {10, 20}), mat_of(Shape(1), {1}),
                                      mat_of(Shape(1, DType::s8), {50}), mat_of(Shape(1), {10}),
                                      mat_of(Shape(1), {100})};
    const float first = tanhf(1 - 1 / 127.f), second = tanhf(1 + first / 2);
    expect_values("RNN", "0=1 1=2 8=1", weights, {mat_of(Shape(2, 2), {1, -0.5f, 0, 0})},
                  mat_of(Shape(1, 2), {first, second}));
    const std::vector<Mat> f32(5, mat_of(Shape(2), {1, 1}));
    EXPECT_EQ(nullptr, make_layer("RNN", "0=1 1=2 8=1", f32));
    EXPECT_EQ(nullptr, make_layer("RNN", "0=1 1=2", weights));
}

TEST(RNN, refuses_sizes_that_do_not_fit) {
    EXPECT_EQ(nullptr, make_layer("RNN", "0=3 1=10"));
    const LayerPtr layer = make_layer("RNN", "0=1 1=2", {Mat(2), Mat(1), Mat(1)}, 2);
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(3, 4), Mat(1, 1)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 4), Mat(2, 1)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 4, 2)}).empty());
}

}  // namespace quoll
