#include <math.h>

#include "layer_test.h"

namespace quoll {

// A kernel of `kernel` x `kernel` that gives outw x outh.
static LayerCase deformable(Shape in, int outputs, int kernel, int outw, int outh, bool mask,
                            const std::string& more = "") {
    const int taps = kernel * kernel, terms = in.c * taps;
    std::vector<Shape> inputs = {in, Shape(outw, outh, 2 * taps)};
    if (mask) inputs.push_back(Shape(outw, outh, taps));
    return LayerCase(inputs, "0=" + std::to_string(outputs) + " 1=" + std::to_string(kernel) +
                                 " 6=" + std::to_string(outputs * terms) + " " + more)
        .range(1, -2.5f, 2.5f)
        .terms(terms * 4);
}

static const std::vector<LayerCase> kCases = {
    deformable(Shape(6, 5, 1), 1, 1, 6, 5, true, "5=1"),
    deformable(Shape(7, 6, 5), 8, 3, 7, 6, true, "4=1 5=1 9=1"),
    deformable(Shape(7, 6, 16), 4, 3, 4, 3, false, "4=1 3=2 9=2 -23310=1,0.1"),
    deformable(Shape(9, 8, 3), 7, 2, 8, 9, true, "2=2 4=1 15=0 14=2 16=1 5=1 9=4"),
};
QUOLL_LAYER_CASES(DeformableConv2D, kCases)

TEST(DeformableConv2D, by_hand) {
    const Mat x = mat_of(Shape(2, 2, 1), {1, 2, 3, 4}), two = mat_of(Shape(1), {2});
    const Mat still = mat_of(Shape(2, 2, 2), {0, 0, 0, 0, 0, 0, 0, 0});
    expect_values("DeformableConv2D", "0=1 1=1 6=1", {two}, {x, still},
                  mat_of(Shape(2, 2, 1), {2, 4, 6, 8}));
    // Half a row down, a quarter column to the right; then a mask.
    const Mat moved = mat_of(Shape(2, 2, 2), {0.5f, 0, 0, 0, 0, 0.25f, 1, -2});
    expect_values("DeformableConv2D", "0=1 1=1 6=1", {two}, {x, moved},
                  mat_of(Shape(2, 2, 1), {4, 3, 8, 0}));
    const Mat mask = mat_of(Shape(2, 2, 1), {0.5f, 1, 2, 1});
    expect_values("DeformableConv2D", "0=1 1=1 6=1 5=1", {two, mat_of(Shape(1), {10})},
                  {x, moved, mask}, mat_of(Shape(2, 2, 1), {12, 13, 26, 10}));
    // The offsets of a tap are y, then x, tap after tap.
    expect_values("DeformableConv2D", "0=1 1=2 11=1 6=2", {mat_of(Shape(2), {1, 10})},
                  {mat_of(Shape(2, 1, 1), {1, 2}), mat_of(Shape(1, 1, 4), {0, 1, 0, -1})},
                  mat_of(Shape(1, 1, 1), {12}));
}

TEST(DeformableConv2D, offsets_that_are_no_place) {
    const float inf = INFINITY;
    expect_values("DeformableConv2D", "0=1 1=1 6=1", {mat_of(Shape(1), {2})},
                  {mat_of(Shape(2, 2, 1), {1, 2, 3, 4}),
                   mat_of(Shape(2, 2, 2), {NAN, inf, -inf, 1e30f, 0, 0, 0, 0})},
                  mat_of(Shape(2, 2, 1), {0, 0, 0, 0}));
}

TEST(DeformableConv2D, a_mask_of_infinity_beside_the_image) {
    expect_values("DeformableConv2D", "0=1 1=1 6=1", {mat_of(Shape(1), {2})},
                  {mat_of(Shape(2, 1, 1), {1, 2}), mat_of(Shape(2, 1, 2), {9, 9, 0, 0}),
                   mat_of(Shape(2, 1, 1), {INFINITY, 1})},
                  mat_of(Shape(2, 1, 1), {NAN, 0}));
}

TEST(DeformableConv2D, refuses_what_does_not_fit) {
    EXPECT_EQ(nullptr, make_layer("DeformableConv2D", "0=2 1=3 6=17", {Mat(17)}, 2));
    const LayerPtr layer = make_layer("DeformableConv2D", "0=1 1=1 6=1", {Mat(1)}, 2);
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 2, 1)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 2, 1), Mat(2, 2, 1)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 2, 1), Mat(2, 1, 2)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 2, 1), Mat(2, 2, 2), Mat(2, 2, 2)}).empty());
}

}  // namespace quoll
