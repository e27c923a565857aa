#include "layer_test.h"

namespace quoll {

static LayerCase region(const char* params, Shape map, std::vector<float> corners) {
    return LayerCase({map, Shape(4)}, params).terms(30).fill([corners](std::vector<Mat>& inputs) {
        for (int i = 0; i < 4; i++) inputs[1][i] = corners[i];
    });
}

static const std::vector<LayerCase> kCases = {
    region("0=2 1=2 2=0.25 3=4", Shape(9, 7, 16), {3, 2, 27, 25}),
    region("0=3 1=1 2=0.25 3=2", Shape(9, 7, 6), {-9, 2, 50, 60}),
    region("3=1", Shape(4, 4, 49), {30, 2, 3, 60}),
};
QUOLL_LAYER_CASES(PSROIPooling, kCases)

TEST(PSROIPooling, by_hand) {
    const Mat x = mat_of(Shape(4, 1, 2), {1, 2, 3, 4, 5, 6, 7, 8});
    // Image columns 1 to 6 are 0.5 to 3.5 of the map: bin 0 covers [0, 2) of map 0, bin 1 [2, 4)
    // of map 1.
    expect_values("PSROIPooling", "0=2 1=1 2=0.5 3=1", {}, {x, mat_of(Shape(4), {1, 0, 6, 1})},
                  mat_of(Shape(2, 1, 1), {1.5f, 7.5f}));
    expect_values("PSROIPooling", "0=2 1=1 2=0.5 3=1", {}, {x, mat_of(Shape(4), {50, 0, 60, 1})},
                  mat_of(Shape(2, 1, 1), {0, 0}));
}

TEST(PSROIPooling, refuses) {
    EXPECT_EQ(nullptr, make_layer("PSROIPooling", "", {}, 2));
    const LayerPtr layer = make_layer("PSROIPooling", "0=2 1=2 3=1", {}, 2);
    EXPECT_TRUE(run_layer(*layer, {Mat(4, 3, 3), Mat(4)}).empty());
}

}  // namespace quoll
