#include "layer_test.h"

namespace quoll {

// Few values may have a small deviation, by which rounding errors are divided.
static LayerCase norm(Shape in, const std::string& params) {
    const double size = in.w * in.h * in.d;
    return LayerCase({in}, params).terms(size);
}

static const std::vector<LayerCase> kCases = {
    norm(Shape(6, 4, 2), "0=2 1=0.01"),
    norm(Shape(6, 4, 8), "0=0 1=0.01 2=0"),
    norm(Shape(5, 7, 16), "0=16 1=0.001"),
    norm(Shape(5, 7, 13), "2=0"),
    norm(Shape(5, 4, 3, 12), "0=12 1=0.0001"),
    norm(Shape(19), "2=0"),
    norm(Shape(9, 8), "2=0"),
    norm(Shape(19), "0=19"),
    norm(Shape(9, 8), "0=3"),
};
QUOLL_LAYER_CASES(InstanceNorm, kCases)

TEST(InstanceNorm, one_value_a_channel) {
    // Its own mean, however much is divided by the deviation.
    expect_values("InstanceNorm", "0=3 1=1e-6",
                  {mat_of(Shape(3), {1, 2, 3}), mat_of(Shape(3), {4, 0, -6})},
                  {mat_of(Shape(1, 1, 3), {12345.678f, 0.1f, -9876.543f})},
                  mat_of(Shape(1, 1, 3), {4, 0, -6}));
}

TEST(InstanceNorm, by_hand) {
    // Means 2 and 6, variances 1 and 4, eps 3 and 0.
    const Mat x = mat_of(Shape(2, 1, 2), {1, 3, 4, 8});
    expect_values("InstanceNorm", "1=3.0 2=0", {}, {x},
                  mat_of(Shape(2, 1, 2), {-0.5f, 0.5f, -0.7559289f, 0.7559289f}));
    expect_values("InstanceNorm", "0=2 1=0.0",
                  {mat_of(Shape(2), {1, 10}), mat_of(Shape(2), {0, 5})}, {x},
                  mat_of(Shape(2, 1, 2), {-1, 1, -5, 15}));
    // One channel, as in ncnn.
    expect_values("InstanceNorm", "0=2 1=0.0",
                  {mat_of(Shape(2), {2, 10}), mat_of(Shape(2), {1, 5})}, {mat_of(Shape(2), {1, 3})},
                  mat_of(Shape(2), {-1, 3}));
}

TEST(InstanceNorm, refuses_other_channel_counts) {
    const LayerPtr layer = make_layer("InstanceNorm", "0=2", {Mat(2), Mat(2)});
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(4, 4, 3)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(4, 4, 1)}).empty());
}

}  // namespace quoll
