#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(5, 4, 21)}, "0=2 1=3 2=0.2 3=0.45 -23304=6,1,1.5,2,1,3,3").range(-2, 2),
    LayerCase({Shape(5, 4, 16), Shape(3, 2, 16)}, "0=3 1=2 2=0.05 3=0.6 -23304=4,1,1.5,2,1")
        .range(-2, 2),
};
QUOLL_LAYER_CASES(YoloDetectionOutput, kCases)

TEST(YoloDetectionOutput, by_hand) {
    // One place, one box of 0.5 x 0.25; box score sigmoid(0), classes 1 : 3.
    const Mat x = mat_of(Shape(1, 1, 7), {0, 0, 0, 0, 0, 0, 1.098612289f});
    expect_values("YoloDetectionOutput", "0=2 1=1 2=0.3 -23304=2,0.5,0.25", {}, {x},
                  mat_of(Shape(6, 1), {2, 0.375f, 0.25f, 0.375f, 0.75f, 0.625f}));
    // Nothing found: the map, with class probabilities.
    const char* params = "0=2 1=1 2=0.9 -23304=2,0.5,0.25";
    expect_values("YoloDetectionOutput", params, {}, {x},
                  mat_of(Shape(1, 1, 7), {0, 0, 0, 0, 0, 0.25f, 0.75f}));
    const LayerPtr layer = make_layer("YoloDetectionOutput", params);
    EXPECT_TRUE(run_layer(*layer, {Mat(1, 1, 8)}).empty());
    EXPECT_TRUE(run_layer(*make_layer("YoloDetectionOutput", "0=2 1=1 -23304=1,0.5"), {x}).empty());
}

}  // namespace quoll
