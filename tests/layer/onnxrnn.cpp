#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(3, 1, 6)}, "0=5 1=15").terms(8).outputs(2),
    LayerCase({Shape(3, 2, 6)}, "0=5 1=15 2=1 6=1").terms(9).outputs(2),
    LayerCase({Shape(4, 6, 3), Shape(5, 2, 3)}, "0=5 1=40 2=2 3=1 6=1 9=1 5=0.7")
        .terms(10)
        .outputs(2),
    LayerCase({Shape(4, 3, 6), Shape(3, DType::s32)}, "0=17 1=136 2=2 6=1 8=1 -23312=2,9,1")
        .range(1, 1, 6)
        .weights("recurrent_data", -.2f, .2f)
        .terms(22)
        .outputs(2),
    LayerCase({Shape(3, 2, 4), Shape(3, 3, 1), Shape(3, 3, 1)}, "0=3 11=1").terms(8),
    LayerCase({Shape(4, 5, 6)}, "0=80 1=640 2=2 6=1")
        .weights("recurrent_data", -.2f, .2f)
        .terms(85)
        .outputs(2),
};
QUOLL_LAYER_CASES(OnnxRNN, kCases)

TEST(OnnxRNN, by_hand) {
    // h = Relu(2 x - h + 1 / 2).
    const std::vector<Mat> weights = {mat_of(Shape(1), {2}), mat_of(Shape(1), {-1}),
                                      mat_of(Shape(2), {1, -0.5f})};
    const Mat x = mat_of(Shape(1, 3), {1, 2, -3});
    expect_values("OnnxRNN", "0=1 1=1 6=1 -23312=1,0", weights, {x},
                  mat_of(Shape(1, 1, 3), {2.5f, 2, 0}));
    expect_values("OnnxRNN", "0=1 1=1 2=1 6=1 -23312=1,0", weights, {x},
                  mat_of(Shape(1, 1, 3), {0, 4.5f, 0}));
    // Two sequences of lengths 3 and 1 in one batch; LeakyRelu of alpha 1 / 4.
    for (bool reference : {true, false}) {
        const LayerPtr layer = make_layer("OnnxRNN", "0=1 1=1 3=1 6=1 8=1 -23312=1,4 -23313=1,0.25",
                                          weights, 2, 2, reference);
        ASSERT_NE(nullptr, layer);
        const std::vector<Mat> got = run_layer(
            *layer, {mat_of(Shape(1, 3, 2), {1, 2, -3, 7, 8, 9}), mat_of(Shape(2), {3, 1})});
        ASSERT_EQ(2u, got.size());
        EXPECT_TRUE(nearly_equal(got[0], mat_of(Shape(1, 1, 3, 2), {2.5f, 2, -1.875f, 14.5f, 0, 0}),
                                 Tolerance()));
        EXPECT_TRUE(nearly_equal(got[1], mat_of(Shape(1, 1, 2), {-1.875f, 14.5f}), Tolerance()));
    }
}

}  // namespace quoll
