#include <math.h>

#include "layer_test.h"

namespace quoll {

static LayerCase region(const char* params, Shape map, std::vector<float> corners) {
    return LayerCase({map, Shape(4)}, params).terms(64).fill([corners](std::vector<Mat>& inputs) {
        for (int i = 0; i < 4; i++) inputs[1][i] = corners[i];
    });
}

static const std::vector<LayerCase> kCases = {
    region("0=2 1=2 2=0.25", Shape(9, 7, 16), {3, 2, 27, 25}),
    region("0=2 1=2 2=0.25 3=3 4=1", Shape(9, 7, 16), {3, 2, 27, 25}),
    region("0=7 1=5 2=0.25 5=1", Shape(9, 7, 3), {-9, 2, 50, 60}),
    region("0=7 1=5 2=0.25 3=2 4=1 5=1", Shape(9, 7, 3), {9, 2, 5, 1}),
    region("0=3 1=3", Shape(9, 7), {2, 2, 2, 2}),
};
QUOLL_LAYER_CASES(ROIAlign, kCases)

TEST(ROIAlign, by_hand) {
    const Mat x = mat_of(Shape(4, 1, 1), {1, 2, 4, 8});
    // Bins [0, 1) and [1, 2), a sample at 0.5 and at 1.5.
    expect_values("ROIAlign", "0=2 1=1", {}, {x, mat_of(Shape(4), {0, 0, 2, 1})},
                  mat_of(Shape(2, 1, 1), {1.5f, 3}));
    // Aligned: the same bins are [-0.5, 0.5) and [0.5, 1.5), samples at 0 and 1.
    expect_values("ROIAlign", "0=2 1=1 3=1 4=1 5=1", {}, {x, mat_of(Shape(4), {0, 0, 2, 1})},
                  mat_of(Shape(2, 1, 1), {1, 2}));
    // Bin [2, 6) of one row, samples at 2.5, 3.5, 4.5, 5.5: the last two are zeros.
    expect_values("ROIAlign", "0=1 1=1 5=1", {}, {x, mat_of(Shape(4), {2, 0, 6, 1})},
                  mat_of(Shape(1, 1, 1), {(6 + 8) / 4.f}));
    expect_values("ROIAlign", "0=1 1=1", {}, {x, mat_of(Shape(4), {9, 0, 12, 1})},
                  mat_of(Shape(1, 1, 1), {0}));
}

TEST(ROIAlign, refuses_regions_without_end) {
    for (const char* params : {"0=1 1=1", "0=1 1=1 5=1", "0=1 1=1 3=2000000000"}) {
        const LayerPtr layer = make_layer("ROIAlign", params, {}, 2);
        for (float x : {NAN, INFINITY, -INFINITY, 1e30f, 1e8f})
            EXPECT_TRUE(run_layer(*layer, {Mat(4, 3, 1), mat_of(Shape(4), {-x, 0, x, 1})}).empty());
    }
    for (const char* params : {"0=1 1=1 3=4", "0=1 1=1 3=4 4=1", "0=1 1=1 3=4 5=1"}) {
        const LayerPtr layer = make_layer("ROIAlign", params, {}, 2);
        for (float x : {NAN, INFINITY}) {
            EXPECT_TRUE(run_layer(*layer, {Mat(4, 3, 1), mat_of(Shape(4), {0, 0, x, 1})}).empty());
            EXPECT_TRUE(run_layer(*layer, {Mat(4, 3, 1), mat_of(Shape(4), {0, 0, 2, x})}).empty());
        }
    }
}

}  // namespace quoll
