#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(3, 1, 6)}, "0=5 1=45").terms(8).outputs(2),
    LayerCase({Shape(3, 2, 6)}, "0=5 1=45 2=1 4=1 6=1").terms(9).outputs(2),
    LayerCase({Shape(4, 6, 3), Shape(5, 2, 3)}, "0=5 1=120 2=2 3=1 6=1 9=1 5=0.7")
        .terms(10)
        .outputs(2),
    LayerCase({Shape(4, 3, 6), Shape(3, DType::s32)}, "0=17 1=408 2=2 4=1 6=1 8=1")
        .range(1, 1, 6)
        .weights("recurrent_data", -.2f, .2f)
        .terms(22)
        .outputs(2),
    LayerCase({Shape(4, 3, 6), Shape(3, DType::s32)}, "0=17 1=408 2=2 6=1 8=1")
        .range(1, 1, 6)
        .weights("recurrent_data", -.2f, .2f)
        .terms(22)
        .outputs(2),
    LayerCase({Shape(3, 7)}, "0=4 1=36 -23312=2,3,10 -23313=1,0.3 -23314=1,0.4")
        .terms(8)
        .outputs(2),
    LayerCase({Shape(3, 2, 4), Shape(3, 9, 1), Shape(3, 9, 1), Shape(18, 1)}, "0=3 11=1 6=1")
        .terms(8),
    LayerCase({Shape(4, 5, 30), Shape(32, 5, 2)}, "0=32 1=768 2=2 4=1 6=1 9=1")
        .weights("recurrent_data", -.2f, .2f)
        .terms(37)
        .outputs(2),
    LayerCase({Shape(4, 5, 30), Shape(5, DType::s32)}, "0=32 1=384 4=1 6=1 8=1")
        .range(1, 1, 30)
        .weights("recurrent_data", -.2f, .2f)
        .terms(37)
        .outputs(2),
};
QUOLL_LAYER_CASES(OnnxGRU, kCases)

TEST(OnnxGRU, by_hand) {
    // Biases z, r, h = 0, ln 3, 1 of the input and 4 of h's state: h = tanh(1 + 3/4 * 4) with
    // linear_before_reset, tanh(1 + 4) without; states are the mean of it and the last.
    const std::vector<Mat> weights = {mat_of(Shape(3), {0, 0, 0}), mat_of(Shape(3), {0, 0, 0}),
                                      mat_of(Shape(6), {0, 1, 1, 0, 0.0986123f, 4})};
    const float after = 0.99932930f, before = 0.99990920f;
    const Mat x = mat_of(Shape(1, 2), {5, -3});
    expect_values("OnnxGRU", "0=1 1=3 6=1 4=1", weights, {x},
                  mat_of(Shape(1, 1, 2), {after / 2, after * 3 / 4}));
    expect_values("OnnxGRU", "0=1 1=3 6=1", weights, {x},
                  mat_of(Shape(1, 1, 2), {before / 2, before * 3 / 4}));
    // The reset gate, 1/2, is applied to the state: h = 2 h / 2 + 1, z = 1/2.
    const std::vector<Mat> of_state = {mat_of(Shape(3), {0, 0, 1}), mat_of(Shape(3), {0, 0, 2})};
    expect_values("OnnxGRU", "0=1 1=3 -23312=2,2,0", of_state, {mat_of(Shape(1, 2), {1, 1})},
                  mat_of(Shape(1, 1, 2), {0.5f, 1}));
}

}  // namespace quoll
