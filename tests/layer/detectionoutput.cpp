#include "layer_test.h"

#include <math.h>

namespace quoll {

// Priors of a grid in the middle of the image, with variances (Caffe) or without (MXNet).
static void set_priors(std::vector<Mat>& inputs) {
    Mat& priors = inputs[2];
    const bool mxnet = priors.w == 4;
    const int count = mxnet ? priors.h : priors.w / 4;
    for (int i = 0; i < count; i++) {
        const float x = 0.1f + 0.07f * (i % 8), y = 0.1f + 0.09f * (i / 8);
        const float box[] = {x, y, x + 0.15f, y + 0.2f}, variance[] = {0.1f, 0.1f, 0.2f, 0.2f};
        for (int k = 0; k < 4; k++) {
            (mxnet ? priors.row(i)[k] : priors.row(0)[i * 4 + k]) = box[k];
            if (!mxnet) priors.row(1)[i * 4 + k] = variance[k];
        }
    }
}

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(32 * 4), Shape(32 * 3), Shape(32 * 4, 2)}, "0=3 1=0.45 2=100 4=0.25")
        .range(1, 0, 1)
        .fill(set_priors),
    LayerCase({Shape(32 * 4), Shape(32 * 5), Shape(32 * 4, 2)}, "0=5 1=0.6 2=5 3=7 4=0.1")
        .range(1, 0, 1)
        .fill(set_priors),
    LayerCase({Shape(4, 32), Shape(2, 32), Shape(32 * 4, 2)}, "0=2 2=-1 3=-1")
        .range(1, 0, 1)
        .fill(set_priors),
    LayerCase({Shape(32 * 4), Shape(32, 4), Shape(4, 32)}, "0=-233 1=0.5 4=0.3 5=0.2")
        .range(1, 0, 1)
        .fill(set_priors),
};
QUOLL_LAYER_CASES(DetectionOutput, kCases)

TEST(DetectionOutput, by_hand) {
    // Two boxes that overlap by more than half and one aside; classes: background, cat, dog.
    const Mat priors = mat_of(
        Shape(12, 2), {0.1f, 0.1f, 0.3f, 0.3f, 0.1f, 0.1f, 0.3f, 0.28f, 0.5f, 0.5f, 0.7f, 0.9f,
                       0.1f, 0.1f, 0.2f, 0.2f, 0.1f, 0.1f, 0.2f, 0.2f,  0.1f, 0.1f, 0.2f, 0.2f});
    // The third box: centre moved by 0.1 * 1 of the width, width times e^(0.2 * 5 ln 2) = 2.
    const Mat locations = mat_of(Shape(12), {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 3.465735903f, 0});
    const Mat scores = mat_of(Shape(9), {0.1f, 0.8f, 0.1f, 0.1f, 0.9f, 0, 0.05f, 0.25f, 0.7f});
    expect_values("DetectionOutput", "0=3 1=0.5 4=0.2", {}, {locations, scores, priors},
                  mat_of(Shape(6, 3), {1, 0.9f, 0.1f, 0.1f, 0.3f, 0.28f, 2, 0.7f, 0.42f, 0.5f,
                                       0.82f, 0.9f, 1, 0.25f, 0.42f, 0.5f, 0.82f, 0.9f}));
    expect_values("DetectionOutput", "0=3 1=0.5 3=1 4=0.2", {}, {locations, scores, priors},
                  mat_of(Shape(6, 1), {1, 0.9f, 0.1f, 0.1f, 0.3f, 0.28f}));
}

TEST(DetectionOutput, without_boxes_has_no_rows) {
    const LayerPtr layer = make_layer("DetectionOutput", "0=2", {}, 3);
    Mat zero(8), priors(8, 2);
    zero.fill(0.f), priors.fill(0.f);
    const std::vector<Mat> out =
        run_layer(*layer, {zero, mat_of(Shape(4), {1, 0, 1, NAN}), priors});
    ASSERT_EQ(1u, out.size());
    EXPECT_EQ(2, out[0].dims);
    EXPECT_EQ(6, out[0].w);
    EXPECT_EQ(0, out[0].h);
    EXPECT_TRUE(out[0].empty());
}

TEST(DetectionOutput, refuses_what_does_not_fit) {
    const LayerPtr layer = make_layer("DetectionOutput", "0=2", {}, 3);
    EXPECT_TRUE(run_layer(*layer, {Mat(8), Mat(4), Mat(8)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(8), Mat(3), Mat(8, 2)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(4), Mat(4), Mat(8, 2)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(8), Mat(4), Mat(6, 2)}).empty());
}

}  // namespace quoll
