#include "layer_test.h"

namespace quoll {

// Input 4, recurrent 3, cell 5, output 6: weights_a has 20 rows of 7.
static const char kSizes[] = " 3=3 4=5 5=6 6=140";

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(4, 6)}, std::string("0=-1 1=-1") + kSizes).terms(12).outputs(3),
    LayerCase({Shape(4, 6), Shape(3, 2), Shape(5, 3)}, std::string("0=-2 1=-3 2=2 9=0.9") + kSizes)
        .terms(12)
        .outputs(3),
    LayerCase({Shape(4, 6), Shape(3, 1), Shape(5, 2)},
              std::string("0=-3 1=-6 10=3 7=0 8=0 -23311=3,0,3,5 -23312=1,2 -23313=2,1,0") + kSizes)
        .terms(12)
        .outputs(3),
    LayerCase({Shape(4, 2)}, std::string("0=-4 1=-3") + kSizes).terms(12).outputs(3),
};
QUOLL_LAYER_CASES(DynamicLSTM, kCases)

static std::vector<Mat> weights_of_one() {
    // i = sigmoid(x + r), f = sigmoid(c / 2), g = tanh(x), o = sigmoid(c); y = 2 m + 1.
    return {mat_of(Shape(8), {1, 1, 0, 0, 1, 0, 0, 0}), mat_of(Shape(3), {0, 0.5f, 1}),
            mat_of(Shape(1), {2}), mat_of(Shape(4), {0, 0, 0, 0}), mat_of(Shape(1), {1})};
}

TEST(DynamicLSTM, by_hand) {
    const std::string params = "0=-1 1=-1 3=1 4=1 5=1 6=8 9=0.5";
    const LayerPtr layer = make_layer("DynamicLSTM", params, weights_of_one(), 3, 3);
    ASSERT_NE(nullptr, layer);
    // x = 0, r = 0, c' = 2: c = 2 sigmoid(1), y = 2 sigmoid(c) tanh(c) + 1; halves are kept.
    const std::vector<Mat> got = run_layer(
        *layer, {mat_of(Shape(1, 1), {0}), mat_of(Shape(1, 1), {0}), mat_of(Shape(1, 1), {2})});
    ASSERT_EQ(3u, got.size());
    EXPECT_NEAR(2.45819618f, got[0][0], 2e-6f);
    EXPECT_NEAR(2.45819618f / 2, got[1][0], 2e-6f);
    EXPECT_NEAR(0.73105858f, got[2][0], 1e-6f);
}

// A stream in chunks, each begun with what the one before handed out, is the stream as a whole.
TEST(DynamicLSTM, chunks_are_the_whole) {
    const std::string params = "0=-2 1=-3 2=1 9=0.8" + std::string(kSizes);
    std::vector<Mat> weights;
    for (int count : {140, 15, 30, 20, 6}) {
        std::vector<float> values(count);
        for (int i = 0; i < count; i++) values[i] = (float)((i * 37 + count) % 41) / 20 - 1;
        weights.push_back(mat_of(Shape(count), values));
    }
    std::vector<float> frames(4 * 11);
    for (size_t i = 0; i < frames.size(); i++) frames[i] = (float)(i * 29 % 31) / 15 - 1;
    const Mat x = mat_of(Shape(4, 11), frames);
    const LayerPtr layer = make_layer("DynamicLSTM", params, weights, 3, 3);
    ASSERT_NE(nullptr, layer);
    std::vector<Mat> state = {Mat(3, 2), Mat(5, 3)};
    for (Mat& m : state) m.fill(0.25f);
    const std::vector<Mat> whole = run_layer(*layer, {x, state[0], state[1]});
    ASSERT_EQ(3u, whole.size());
    int done = 0;
    for (int rows : {1, 4, 1, 1, 3, 1}) {
        const std::vector<Mat> part =
            run_layer(*layer, {x.row_range(done, rows).clone(), state[0], state[1]});
        ASSERT_EQ(3u, part.size());
        for (int y = 0; y < rows; y++)
            for (int i = 0; i < 6; i++)
                EXPECT_NEAR(whole[0].row(done + y)[i], part[0].row(y)[i], 1e-6f) << done + y;
        state = {part[1], part[2]};
        done += rows;
    }
    ASSERT_EQ(11, done);
    EXPECT_TRUE(nearly_equal(state[0], whole[1], Tolerance()));
    EXPECT_TRUE(nearly_equal(state[1], whole[2], Tolerance()));
}

TEST(DynamicLSTM, refuses_what_does_not_fit) {
    for (const char* params : {"0=-3 1=-2 10=2 3=1 4=1 5=1 6=8", "0=-1 1=-1 2=1 3=1 4=1 5=1 6=8",
                               "0=-1 1=-1 3=2 4=1 5=2 6=8", "0=0 1=-1 3=1 4=1 5=1 6=8"})
        EXPECT_EQ(nullptr, make_layer("DynamicLSTM", params, weights_of_one(), 3, 3)) << params;
    const LayerPtr layer =
        make_layer("DynamicLSTM", "0=-1 1=-1 3=1 4=1 5=1 6=8 -23311=1,2", weights_of_one(), 1, 1);
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(1, 2)}).empty());
    EXPECT_EQ(1u, run_layer(*layer, {Mat(1, 3)}).size());
}

}  // namespace quoll
