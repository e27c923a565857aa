#include <math.h>

#include "layer_test.h"

namespace quoll {

static LayerCase boxes(const char* params, int w, int h, int outputs) {
    return LayerCase({Shape(w, h, 18), Shape(w, h, 36), Shape(3)}, params)
        .outputs(outputs)
        .range(1, -0.3f, 0.3f)
        .fill([](std::vector<Mat>& inputs) {
            const float image[] = {200, 300, 1};
            for (int i = 0; i < 3; i++) inputs[2][i] = image[i];
        });
}

static const std::vector<LayerCase> kCases = {
    boxes("", 5, 4, 1),
    boxes("0=8 1=8 2=20 3=5 4=0.5 5=8", 5, 4, 2),
    boxes("5=10000", 5, 4, 2),
};
QUOLL_LAYER_CASES(Proposal, kCases)

TEST(Proposal, by_hand) {
    // One position; every anchor but the square one of scale 8 has a low score, and all overlap.
    Mat scores(1, 1, 18), moves(1, 1, 36), image = mat_of(Shape(3), {1000, 1000, 1});
    scores.fill(0.f);
    moves.fill(0.f);
    scores.channel(9 + 3)[0] = 0.9f;
    moves.channel(4 * 3)[0] = 2.f;             // by twice the width of 128 to the right
    moves.channel(4 * 3 + 1)[0] = 1.f;         // by its height down
    moves.channel(4 * 3 + 2)[0] = logf(0.5f);  // half as wide
    const LayerPtr layer = make_layer("Proposal", "3=1", {}, 3, 2);
    const std::vector<Mat> got = run_layer(*layer, {scores, moves, image});
    ASSERT_EQ(2u, got.size());
    // Centre (8 + 256, 8 + 128), size 64 x 128.
    Tolerance rounding;
    rounding.magnitude = 512;
    EXPECT_TRUE(nearly_equal(got[0], mat_of(Shape(4, 1, 1), {232, 72, 296, 200}), rounding));
    EXPECT_TRUE(nearly_equal(got[1], mat_of(Shape(1, 1, 1), {0.9f}), Tolerance()));
}

TEST(Proposal, refuses) {
    const LayerPtr layer = make_layer("Proposal", "", {}, 3);
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 2, 17), Mat(2, 2, 36), Mat(3)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 2, 18), Mat(2, 3, 36), Mat(3)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 2, 18), Mat(2, 2, 36), Mat(2)}).empty());
}

}  // namespace quoll
