#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(16, 8)}, "0=7 1=336").terms(23),
    LayerCase({Shape(16, 8), Shape(7, 1)}, "0=7 1=336 2=1").terms(23).outputs(2),
    LayerCase({Shape(3, 5), Shape(33, 2)}, "0=33 1=594 2=2")
        .terms(36)
        .weights("weight_hc_data", -.2f, .2f),
    LayerCase({Shape(3, 5)}, "0=16 1=288 2=2")
        .terms(19)
        .outputs(2)
        .weights("weight_hc_data", -.2f, .2f),
    LayerCase({Shape(3, 5), Shape(64, 1)}, "0=64 1=576 2=1")
        .terms(67)
        .weights("weight_hc_data", -.2f, .2f),
};
QUOLL_LAYER_CASES(GRU, kCases)

TEST(GRU, by_hand) {
    // Biases r, u, n, n' = ln 3, 0, 1, 4 and weights 0: n = tanh(1 + 3/4 * 4) = tanh(4) always,
    // h = (n + h) / 2.
    const std::vector<Mat> weights = {mat_of(Shape(3), {0, 0, 0}),
                                      mat_of(Shape(4), {1.0986123f, 0, 1, 4}),
                                      mat_of(Shape(3), {0, 0, 0})};
    const float n = 0.99932930f;
    expect_values("GRU", "0=1 1=3", weights, {mat_of(Shape(1, 2), {5, -3})},
                  mat_of(Shape(1, 2), {n / 2, n * 3 / 4}));
    for (bool reference : {true, false}) {
        const LayerPtr layer = make_layer("GRU", "0=1 1=3 2=1", weights, 2, 2, reference);
        ASSERT_NE(nullptr, layer);
        const std::vector<Mat> got =
            run_layer(*layer, {mat_of(Shape(1, 2), {5, -3}), mat_of(Shape(1, 1), {1})});
        ASSERT_EQ(2u, got.size());
        EXPECT_NEAR((n + 1) / 2, got[0][1], 1e-6f);
        EXPECT_NEAR(n * 3 / 4 + 0.25f, got[0][0], 1e-6f);
        EXPECT_EQ(got[0][0], got[1][0]);
    }
}

TEST(GRU, refuses_sizes_that_do_not_fit) {
    EXPECT_EQ(nullptr, make_layer("GRU", "0=3 1=10"));
    EXPECT_EQ(nullptr, make_layer("GRU", "0=1 1=3 2=3"));
}

}  // namespace quoll
