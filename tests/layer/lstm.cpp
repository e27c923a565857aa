#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(16, 8)}, "0=7 1=448").terms(23),
    LayerCase({Shape(16, 8), Shape(7, 1), Shape(7, 1)}, "0=7 1=448 2=1").terms(23).outputs(3),
    LayerCase({Shape(3, 5), Shape(33, 2), Shape(33, 2)}, "0=33 1=792 2=2").terms(36),
    LayerCase({Shape(3, 5)}, "0=16 1=384 2=2").terms(19).outputs(3),
    LayerCase({Shape(3, 6)}, "0=5 1=132 3=11").terms(25).outputs(3),
    LayerCase({Shape(3, 6), Shape(20, 2), Shape(9, 2)}, "0=20 1=216 2=2 3=9").terms(30).outputs(3),
    LayerCase({Shape(16, 9), Shape(48, 2), Shape(48, 2)}, "0=48 1=6144 2=2")
        .terms(65)
        .outputs(3)
        .weights("weight_hc_data", -.2f, .2f),
};
QUOLL_LAYER_CASES(LSTM, kCases)

// One value: all weights 0, biases i, f, o, g = 0, ln 3, 0, 20: c = 3/4 c + 1/2, h = tanh(c) / 2.
static const std::vector<Mat> weights_of_one() {
    return {mat_of(Shape(4), {0, 0, 0, 0}), mat_of(Shape(4), {0, 1.0986123f, 0, 20}),
            mat_of(Shape(4), {0, 0, 0, 0})};
}

TEST(LSTM, by_hand) {
    // c = 1/2, then 7/8.
    expect_values("LSTM", "0=1 1=4", weights_of_one(), {mat_of(Shape(1, 2), {5, -3})},
                  mat_of(Shape(1, 2), {0.23105858f, 0.35195280f}));
    for (bool reference : {true, false}) {
        const LayerPtr layer = make_layer("LSTM", "0=1 1=4", weights_of_one(), 3, 3, reference);
        ASSERT_NE(nullptr, layer);
        // From c = 2: 3/2 + 1/2 = 2 again.
        const std::vector<Mat> got = run_layer(
            *layer, {mat_of(Shape(1, 1), {7}), mat_of(Shape(1, 1), {9}), mat_of(Shape(1, 1), {2})});
        ASSERT_EQ(3u, got.size());
        EXPECT_NEAR(0.48201379f, got[0][0], 1e-6f);
        EXPECT_NEAR(0.48201379f, got[1][0], 1e-6f);
        EXPECT_NEAR(2.f, got[2][0], 1e-6f);
    }
}

TEST(LSTM, refuses_sizes_that_do_not_fit) {
    EXPECT_EQ(nullptr, make_layer("LSTM", "0=3 1=10"));
    EXPECT_EQ(nullptr, make_layer("LSTM", "0=1 1=4 8=1", weights_of_one()));
    const LayerPtr layer = make_layer("LSTM", "0=1 1=4", weights_of_one(), 3, 3);
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(1, 4), Mat(1, 1)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(1, 4), Mat(1, 1), Mat(2, 1)}).empty());
}

}  // namespace quoll
