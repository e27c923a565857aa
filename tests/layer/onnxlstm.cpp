#include <math.h>
#include <string.h>

#include "layer_test.h"

namespace quoll {

// W of n inputs: 4 * hidden * n values per direction.
static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(3, 1, 6)}, "0=5 1=60").terms(8).outputs(3),
    LayerCase({Shape(3, 2, 6)}, "0=5 1=60 2=1 6=1 7=1").terms(9).outputs(2),
    LayerCase({Shape(4, 6, 3), Shape(5, 2, 3), Shape(5, 2, 3)},
              "0=5 1=160 2=2 3=1 6=1 9=1 10=1 5=0.7")
        .terms(10)
        .outputs(3),
    LayerCase({Shape(4, 3, 6), Shape(3, DType::s32), Shape(17, 3, 2)}, "0=17 1=544 2=2 6=1 8=1 9=1")
        .range(1, 1, 6)
        .terms(22)
        .outputs(3),
    LayerCase({Shape(3, 7)}, "0=4 1=48 4=1 -23312=3,7,6,9 -23313=2,0.3,1.2 -23314=1,0.4")
        .terms(8)
        .outputs(3),
    LayerCase({Shape(3, 2, 4), Shape(3, 12, 1), Shape(3, 12, 1), Shape(24, 1), Shape(9, 1)},
              "0=3 11=1 6=1 7=1")
        .terms(8)
        .outputs(3),
    LayerCase({Shape(6, 2, 5)}, "0=5 1=240 2=2 6=1 15=1").terms(9).outputs(3),
    LayerCase({Shape(6, 2, 5)}, "0=5 1=240 2=2 6=1 15=1 16=1").int8_weights().terms(9).outputs(3),
    LayerCase({Shape(33, 1, 1)}, "0=5 1=660 15=1 16=1")
        .int8_weights()
        .terms(34),  // a gap behind the row
    LayerCase({Shape(33, 7)}, "0=40 1=5280 15=1 16=1").int8_weights().terms(41).outputs(3),
    // Sizes of tile units, whose products of the input are made in parts if there are no lengths.
    LayerCase({Shape(4, 3, 6), Shape(3, DType::s32), Shape(48, 3, 2)},
              "0=48 1=1536 2=2 6=1 8=1 9=1")
        .range(1, 1, 6)
        .weights("recurrent_data", -.2f, .2f)
        .terms(53)
        .outputs(3),
    LayerCase({Shape(4, 18, 9)}, "0=16 1=512 2=2 6=1")
        .weights("recurrent_data", -.2f, .2f)
        .terms(21)
        .outputs(3),
    LayerCase({Shape(4, 7, 18)}, "0=16 1=256 2=1 3=1 6=1")
        .weights("recurrent_data", -.2f, .2f)
        .terms(21)
        .outputs(3),
};
QUOLL_LAYER_CASES(OnnxLSTM, kCases)

// Weights 0 but for the biases, in the order i, o, f, c: i = o = 1/2, f = 3/4, c = tanh(20) = 1.
static std::vector<Mat> weights_of_one() {
    return {mat_of(Shape(4), {0, 0, 0, 0}), mat_of(Shape(4), {0, 0, 0, 0}),
            mat_of(Shape(8), {0, 0, 1, 12, 0, 0, 0.0986123f, 8})};
}

TEST(OnnxLSTM, by_hand) {
    // c = 1/2, then 7/8.
    expect_values("OnnxLSTM", "0=1 1=4 6=1", weights_of_one(), {mat_of(Shape(1, 1, 2), {5, -3})},
                  mat_of(Shape(1, 1, 1, 2), {0.23105858f, 0.35195280f}));
    // input_forget: f = 1/2, c = 1/2, then 3/4; h = Relu(c) / 2.
    expect_values("OnnxLSTM", "0=1 1=4 6=1 4=1 -23312=3,2,1,0", weights_of_one(),
                  {mat_of(Shape(1, 2), {5, -3})}, mat_of(Shape(1, 1, 2), {0.25f, 0.375f}));
    // clip to 1/2 makes c = tanh(1/2) i, f = i = sigmoid(ln 3 or 1/2).
    expect_values("OnnxLSTM", "0=1 1=4 6=1 5=0.5 -23312=3,0,1,0", weights_of_one(),
                  {mat_of(Shape(1, 2), {5, -3})}, mat_of(Shape(1, 1, 2), {0, 0}));
}

// Steps of 1 / 255: x is 100 of them and a half, which goes to the even number.
TEST(OnnxLSTM, rounds_inputs) {
    const std::vector<Mat> weights = {mat_of(Shape(8), {0, 0, 0, 0, 0, 0, 1, 0}),
                                      mat_of(Shape(4), {0, 0, 0, 0})};
    const float c = 0.5f * tanhf(100.f / 255), h = 0.5f * tanhf(c);
    expect_values("OnnxLSTM", "0=1 1=8 15=1", weights,
                  {mat_of(Shape(2, 1, 1), {100.5f / 255, 1.f})}, {mat_of(Shape(1, 1, 1, 1), {h})});
}

// The same with weights 100 / 127 and the rest 0.
TEST(OnnxLSTM, int8_weights) {
    Mat codes(Shape(8, DType::s8)), state(Shape(4, DType::s8));
    memset(codes.data, 0, 8), memset(state.data, 0, 4);
    ((signed char*)codes.data)[6] = 100;
    const Mat scales = mat_of(Shape(4), {100, 110, 120, 127});
    const float c = 0.5f * tanhf(100.f / 127 * 100.f / 255), h = 0.5f * tanhf(c);
    expect_values("OnnxLSTM", "0=1 1=8 15=1 16=1", {codes, state, scales, scales},
                  {mat_of(Shape(2, 1, 1), {100.5f / 255, 1.f})}, {mat_of(Shape(1, 1, 1, 1), {h})});
}

TEST(OnnxLSTM, refuses_what_does_not_fit) {
    EXPECT_EQ(nullptr, make_layer("OnnxLSTM", "0=3 1=10"));
    EXPECT_EQ(nullptr, make_layer("OnnxLSTM", "0=1 1=4 -23312=1,0"));
    EXPECT_EQ(nullptr, make_layer("OnnxLSTM", "0=1 1=4 16=1"));
    EXPECT_EQ(nullptr, make_layer("OnnxLSTM", "0=1 1=4 6=1 15=1 16=1", weights_of_one()));
    const LayerPtr layer = make_layer("OnnxLSTM", "0=1 1=4 8=1 6=1", weights_of_one(), 2);
    ASSERT_NE(nullptr, layer);
    const Mat x(1, 2, 3);
    EXPECT_TRUE(run_layer(*layer, {x}).empty());
    EXPECT_TRUE(run_layer(*layer, {x, mat_of(Shape(1), {1})}).empty());
    EXPECT_TRUE(run_layer(*layer, {x, mat_of(Shape(2), {1, 4})}).empty());
    EXPECT_TRUE(run_layer(*layer, {x, mat_of(Shape(2), {1, -1})}).empty());
    EXPECT_EQ(1u, run_layer(*layer, {x, mat_of(Shape(2), {1, 0})}).size());
}

}  // namespace quoll
