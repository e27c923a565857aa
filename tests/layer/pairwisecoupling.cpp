#include <math.h>

#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCouplings = {
    LayerCase({Shape(1, 5)}, "").range(0, 1),
    LayerCase({Shape(3, 1)}, "0=3").range(0, 1),
    LayerCase({Shape(10, 9)}, "0=5").range(-0.5f, 1.5f),
};
QUOLL_LAYER_CASES(PairwiseCoupling, kCouplings)

TEST(PairwiseCoupling, by_hand) {
    // Two classes: the pair's own. Pairs that agree with 0.5, 0.3, 0.2: those, within the
    // rounding at which it stops. A sure winner.
    expect_values("PairwiseCoupling", "", {}, {mat_of(Shape(1, 1), {0.5f})},
                  mat_of(Shape(2, 1), {0.5f, 0.5f}));
    const LayerPtr layer = make_layer("PairwiseCoupling", "0=3", {});
    ASSERT_NE(nullptr, layer);
    std::vector<Mat> tops(1);
    const Mat pairs = mat_of(Shape(3, 2), {5 / 8.f, 5 / 7.f, 3 / 5.f, 1, 1, 0.5f});
    ASSERT_EQ(0, layer->forward({pairs}, tops, Option()));
    const float* p = (const float*)tops[0].data;
    const float want[] = {0.5f, 0.3f, 0.2f, 1, 0, 0};
    for (int i = 0; i < 6; i++) EXPECT_NEAR(want[i], p[i], 0.01f) << i;
    EXPECT_NEAR(1, p[0] + p[1] + p[2], 1e-6f);
}

TEST(PairwiseCoupling, other_inputs_are_refused) {
    const LayerPtr layer = make_layer("PairwiseCoupling", "0=4", {});
    std::vector<Mat> tops(1);
    EXPECT_NE(0, layer->forward({mat_of(Shape(5, 1), {0, 0, 0, 0, 0})}, tops, Option()));
    EXPECT_EQ(nullptr, make_layer("PairwiseCoupling", "0=1", {}));
}

}  // namespace quoll
