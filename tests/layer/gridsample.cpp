#include <math.h>

#include "layer_test.h"

namespace quoll {

// A point on the edge between two pixels may fall to the other one in another storage type, so
// nearest and bicubic sampling are given points away from the edges.
static LayerCase sampling(Shape image, Shape grid, const char* params) {
    return LayerCase({image, grid}, params).range(1, -0.8f, 0.8f).terms(64);
}

static const std::vector<LayerCase> kCases = {
    sampling(Shape(8, 12, 3), Shape(2, 5, 7), "0=1 1=1 2=0"),
    sampling(Shape(8, 12, 3), Shape(2, 5, 7), "0=1 1=2 2=1"),
    sampling(Shape(8, 12, 16), Shape(7, 5, 2), "0=1 1=3 2=0 3=1"),
    sampling(Shape(8, 12, 3), Shape(2, 5, 7), "0=3 1=1 2=1"),
    sampling(Shape(8, 12, 4), Shape(7, 5, 2), "0=3 1=3 2=0 3=1"),
    sampling(Shape(3, 2, 4), Shape(2, 9, 7), "0=3 1=3 2=1"),
    sampling(Shape(8, 12, 5), Shape(2, 9, 7), "0=2 1=1 2=1 4=1"),
    sampling(Shape(8, 12, 5), Shape(2, 9, 7), "0=1 1=3 2=0 4=1").range(1, -6, 6),
    sampling(Shape(8, 12, 5), Shape(19, 21, 2), "0=1 1=3 2=1 3=1 4=1").range(1, -6, 6),
    sampling(Shape(1, 12, 5), Shape(2, 9, 7), "0=1 1=3 2=1 4=1").range(1, -3, 3),
    sampling(Shape(5, 6, 7, 3), Shape(3, 2, 4, 5), "0=1 1=1 2=0"),
    sampling(Shape(5, 6, 7, 8), Shape(2, 4, 5, 3), "0=1 1=2 2=1 3=1"),
    sampling(Shape(5, 6, 7, 8), Shape(2, 4, 5, 3), "0=1 1=3 2=1 3=1"),
};
QUOLL_LAYER_CASES(GridSample, kCases)

TEST(GridSample, by_hand) {
    const Mat x = mat_of(Shape(2, 1, 1), {10, 20});
    const auto grid = [](const std::vector<float>& xs) {
        std::vector<float> values(2 * xs.size(), 0.f);
        for (size_t i = 0; i < xs.size(); i++) values[2 * i] = xs[i];
        return mat_of(Shape(2, (int)xs.size(), 1), values);
    };
    // Edges of the image are at -1 and 1, the centres of its two pixels at -1/2 and 1/2.
    expect_values("GridSample", "0=1 1=1 2=0", {}, {x, grid({-0.5f, 0, 0.25f, 1, 3})},
                  mat_of(Shape(5, 1, 1), {10, 15, 17.5f, 10, 0}));
    expect_values("GridSample", "0=1 1=2 2=0", {}, {x, grid({-1, 1, 3})},
                  mat_of(Shape(3, 1, 1), {10, 20, 20}));
    expect_values("GridSample", "0=2 1=2 2=1", {}, {x, grid({-1, -0.2f, 0.2f, 7})},
                  mat_of(Shape(4, 1, 1), {10, 10, 20, 20}));
    // Centres at -1 and 1; 2 is mirrored at 1 to 0, half way between them.
    expect_values("GridSample", "0=1 1=3 2=1", {}, {x, grid({0, 2, -2})},
                  mat_of(Shape(3, 1, 1), {15, 15, 15}));
    // Cubic weights at one half: -3/32, 19/32, 19/32, -3/32.
    expect_values("GridSample", "0=3 1=2 2=1", {}, {x, grid({0})}, mat_of(Shape(1, 1, 1), {15}));
    expect_values("GridSample", "0=3 1=1 2=1", {}, {x, grid({0})},
                  mat_of(Shape(1, 1, 1), {30 * 19 / 32.f}));
}

// With exact=1 a point is mirrored at both borders until it is inside, and ties go to even pixels.
TEST(GridSample, exact) {
    const Mat x = mat_of(Shape(4, 1, 1), {10, 20, 30, 40});
    // Pixels 6, 7, -5 with centres at -1 and 1: mirrored at 3 and 0.
    const Mat far = mat_of(Shape(2, 3, 1), {3, 0, 11 / 3.f, 0, -13 / 3.f, 0});
    expect_values("GridSample", "0=1 1=3 2=1 4=1", {}, {x, far},
                  mat_of(Shape(3, 1, 1), {10, 20, 20}));
    // Pixels 0.5, 1.5, 2.5.
    const Mat ties = mat_of(Shape(2, 3, 1), {-0.5f, 0, 0, 0, 0.5f, 0});
    expect_values("GridSample", "0=2 1=1 2=0 4=1", {}, {x, ties},
                  mat_of(Shape(3, 1, 1), {10, 30, 30}));
}

// Pixels 0 to 3 of an image of two, reflected at 0 and 1: 0, 1, 0, 1. ncnn reads beside the image.
TEST(GridSample, bicubic_reflection_of_tiny_images) {
    const Mat x = mat_of(Shape(2, 1, 1), {10, 20});
    expect_values("GridSample", "0=3 1=3 2=1", {}, {x, mat_of(Shape(2, 2, 1), {2, 0, 4, 0})},
                  mat_of(Shape(2, 1, 1), {15, 15}));
    expect_values("GridSample", "0=3 1=3 2=1", {}, {x, mat_of(Shape(2, 1, 1), {3.5f, 0})},
                  mat_of(Shape(1, 1, 1), {10 * 54 / 64.f + 20 * 10 / 64.f}));
}

// Pixels 10 and -6 of five, which mirrored at 0 and 4 are 2; without corners 12 and -8, 2 again.
TEST(GridSample, reflects_as_often_as_needed) {
    const Mat x = mat_of(Shape(5, 1, 1), {10, 20, 40, 80, 160});
    for (const char* params :
         {"0=1 1=3", "0=2 1=3", "0=3 1=3", "0=1 1=3 2=1", "0=2 1=3 2=1", "0=3 1=3 2=1"})
        expect_values("GridSample", params, {}, {x, mat_of(Shape(2, 2, 1), {4, 0, -4, 0})},
                      mat_of(Shape(2, 1, 1), {40, 40}));
}

// Coordinates beyond 2^24 are whole: such a point is the pixel it lies on. Here 50331656, which
// mirrored at 0 and 3 is 2.
TEST(GridSample, bicubic_reflection_of_far_points) {
    const Mat x = mat_of(Shape(4, 1, 1), {10, 20, 40, 80});
    expect_values("GridSample", "0=3 1=3 2=1 4=1", {}, {x, mat_of(Shape(2, 1, 1), {33554436, 0})},
                  mat_of(Shape(1, 1, 1), {40}));
}

TEST(GridSample, survives_points_that_are_no_numbers) {
    for (const char* params :
         {"0=1", "0=2", "0=3", "0=2 1=2", "0=2 1=3", "0=3 1=3 2=1", "0=1 1=3 4=1", "0=2 4=1"}) {
        const LayerPtr layer = make_layer("GridSample", params, {}, 2);
        ASSERT_NE(nullptr, layer);
        const Mat grid = mat_of(Shape(2, 3, 1), {NAN, 0, INFINITY, -INFINITY, 1e30f, -1e30f});
        EXPECT_EQ(1u, run_layer(*layer, {mat_of(Shape(2, 1, 1), {1, 2}), grid}).size());
    }
    // What ncnn, PyTorch and ONNX Runtime give: NaN is the first pixel, where it is clamped.
    const Mat beyond = mat_of(Shape(2, 3, 1), {NAN, 0, INFINITY, 0, -INFINITY, 0});
    for (const char* params : {"0=1 1=2", "0=2 1=2", "0=2 1=2 2=1", "0=2 1=2 4=1"})
        expect_values("GridSample", params, {}, {mat_of(Shape(2, 1, 1), {1, 2}), beyond},
                      mat_of(Shape(3, 1, 1), {1, 2, 1}));
    // ONNX Runtime takes NaN for -1, whose pixels are one outside and the first.
    for (const char* params : {"0=1", "0=1 4=1"})
        expect_values("GridSample", params, {},
                      {mat_of(Shape(2, 1, 1), {1, 2}), mat_of(Shape(2, 1, 1), {NAN, 0})},
                      mat_of(Shape(1, 1, 1), {0.5f}));
    // Infinity reflected is NaN.
    for (const char* params :
         {"0=1 1=3", "0=2 1=3", "0=1 1=3 4=1", "0=2 1=3 4=1", "0=2 1=3 2=1 4=1"})
        expect_values("GridSample", params, {}, {mat_of(Shape(2, 1, 1), {1, 2}), beyond},
                      mat_of(Shape(3, 1, 1), {1, 1, 1}));
}

TEST(GridSample, refuses_grids_that_do_not_fit) {
    const LayerPtr layer = make_layer("GridSample", "0=1", {}, 2);
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(4, 4, 1), Mat(3, 4, 4)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(4, 4, 1), Mat(2, 4)}).empty());
    const LayerPtr cubic = make_layer("GridSample", "0=3", {}, 2);
    ASSERT_NE(nullptr, cubic);
    EXPECT_TRUE(run_layer(*cubic, {Mat(4, 4, 4, 1), Mat(3, 4, 4, 4)}).empty());
}

}  // namespace quoll
