#include "layer_test.h"

namespace quoll {

// Scores that stay the largest when they are rounded to another storage type.
static void distinct(std::vector<Mat>& inputs) {
    Mat& x = inputs[0];
    for (int q = 0; q < x.c; q++)
        for (int y = 0; y < x.h; y++)
            for (int i = 0; i < x.w; i++)
                x.channel(q).row(y)[i] = (float)((i * 7 + y * y * 5 + q * 3) % x.w);
}

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(7, 9)}, "").outputs(2).fill(distinct),
    LayerCase({Shape(5, 12)}, "0=0 1=0").fill(distinct),
    LayerCase({Shape(5, 12, 3)}, "0=-2 3=99").outputs(2).fill(distinct),
    LayerCase({Shape(5, 12, 3), Shape(3, DType::s32)}, "2=1")
        .range(1, 1, 12)
        .outputs(2)
        .fill(distinct),
};
QUOLL_LAYER_CASES(CTCGreedyDecoder, kCases)

TEST(CTCGreedyDecoder, by_hand) {
    // Best classes 1 1 2 0 2 2 (blank) 1, blank 2 (the last) or 0.
    const Mat x = mat_of(Shape(3, 6), {0, 1, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1, 1});
    const auto labels = [](std::vector<float> v) { return mat_of(Shape(6, DType::s32), v); };
    for (bool reference : {true, false}) {
        const auto run = [&](const char* params) {
            const LayerPtr layer = make_layer("CTCGreedyDecoder", params, {}, 1, 2, reference);
            return run_layer(*layer, {x});
        };
        std::vector<Mat> got = run("");
        ASSERT_EQ(2u, got.size());
        EXPECT_TRUE(nearly_equal(got[0], labels({1, 0, 1, -1, -1, -1}), Tolerance()));
        EXPECT_EQ(3, ((const int*)got[1].data)[0]);
        got = run("1=0");
        ASSERT_EQ(2u, got.size());
        EXPECT_TRUE(nearly_equal(got[0], labels({1, 1, 0, 1, 1, -1}), Tolerance()));
        got = run("0=0 3=7");
        ASSERT_EQ(2u, got.size());
        EXPECT_TRUE(nearly_equal(got[0], labels({1, 2, 1, 7, 7, 7}), Tolerance()));
    }
}

TEST(CTCGreedyDecoder, refuses_what_does_not_fit) {
    const LayerPtr layer = make_layer("CTCGreedyDecoder", "0=3", {}, 1, 1);
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(3, 6)}).empty());
    EXPECT_EQ(1u, run_layer(*layer, {Mat(4, 6)}).size());
    EXPECT_TRUE(run_layer(*layer, {Mat(4)}).empty());
}

}  // namespace quoll
