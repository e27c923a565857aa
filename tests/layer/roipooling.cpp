#include <math.h>

#include "layer_test.h"

namespace quoll {

// A region that is given, in an image four times as large as the map.
static LayerCase region(const char* params, Shape map, std::vector<float> corners) {
    return LayerCase({map, Shape(4)}, params).fill([corners](std::vector<Mat>& inputs) {
        for (int i = 0; i < 4; i++) inputs[1][i] = corners[i];
    });
}

static const std::vector<LayerCase> kCases = {
    region("0=2 1=2 2=0.25", Shape(9, 7, 16), {3, 2, 27, 25}),
    region("0=7 1=5 2=0.25", Shape(9, 7, 3), {-9, 2, 50, 60}),
    region("0=3 1=3", Shape(9, 7), {2, 2, 2, 2}),
};
QUOLL_LAYER_CASES(ROIPooling, kCases)

TEST(ROIPooling, by_hand) {
    const Mat x = mat_of(Shape(4, 3, 1), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
    // Columns 1 to 3 in two bins that share column 2; rows 0 and 1.
    expect_values("ROIPooling", "0=2 1=1 2=0.5", {}, {x, mat_of(Shape(4), {2, 0, 6, 2})},
                  mat_of(Shape(2, 1, 1), {7, 8}));
    // Columns 0 to 3: the second bin begins with column 1.
    const Mat falling = mat_of(Shape(4), {4, 3, 2, 1});
    expect_values("ROIPooling", "0=2 1=1", {}, {falling, mat_of(Shape(4), {0, 0, 3, 0})},
                  mat_of(Shape(2, 1, 1), {4, 3}));
    expect_values("ROIPooling", "0=2 1=1 20=1", {}, {falling, mat_of(Shape(4), {0, 0, 3, 0})},
                  mat_of(Shape(2, 1, 1), {4, 2}));
    // Outside the map, and without a meaning.
    expect_values("ROIPooling", "0=1 1=1", {}, {x, mat_of(Shape(4), {9, 9, 10, 10})},
                  mat_of(Shape(1, 1, 1), {0}));
    expect_values("ROIPooling", "0=1 1=1", {}, {x, mat_of(Shape(4), {NAN, 0, 1e30f, 1})},
                  mat_of(Shape(1, 1, 1), {0}));
    const Mat odd = mat_of(Shape(4), {1, NAN, 3, 2});
    expect_values("ROIPooling", "0=3 1=1", {}, {odd, mat_of(Shape(4), {0, 0, 3, 0})},
                  mat_of(Shape(3, 1, 1), {NAN, NAN, 3}));
}

TEST(ROIPooling, refuses) {
    EXPECT_EQ(nullptr, make_layer("ROIPooling", "0=1", {}, 2));
    const LayerPtr layer = make_layer("ROIPooling", "0=1 1=1", {}, 2);
    EXPECT_TRUE(run_layer(*layer, {Mat(4, 3, 1), Mat(3)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(4, 3, 1)}).empty());
}

}  // namespace quoll
