#include "layer_test.h"

namespace quoll {

static LayerCase norm(Shape in, int group, const std::string& more) {
    const double size = (double)in.total() / group;
    return LayerCase({in},
                     "0=" + std::to_string(group) + " 1=" + std::to_string(in.size(0)) + " " + more)
        .terms(size);
}

static const std::vector<LayerCase> kCases = {
    norm(Shape(3, 4, 5, 6), 3, "2=0.01 3=0"), norm(Shape(23, 8), 2, "2=0.002 3=0"),
    norm(Shape(23, 12), 3, "2=0.002"),        norm(Shape(212), 4, "2=0.02"),
    norm(Shape(64), 2, "2=0.02 3=0"),         norm(Shape(5, 7, 16), 4, ""),
    norm(Shape(5, 7, 32), 1, "2=0.001"),      norm(Shape(5, 7, 12), 12, "2=0.01"),
    norm(Shape(5, 7, 32), 2, "2=0.001"),      norm(Shape(4, 3, 2, 24), 3, ""),
};
QUOLL_LAYER_CASES(GroupNorm, kCases)

TEST(GroupNorm, by_hand) {
    // Two groups of two channels of one value: means 2 and 6, variances 1 and 4.
    const Mat gamma = mat_of(Shape(4), {1, 2, 3, 4}), beta = mat_of(Shape(4), {0, 0, 0, 10});
    expect_values("GroupNorm", "0=2 1=4 2=0.0", {gamma, beta},
                  {mat_of(Shape(1, 1, 4), {1, 3, 4, 8})}, mat_of(Shape(1, 1, 4), {-1, 2, -3, 14}));
    expect_values("GroupNorm", "0=2 1=4 2=0.0", {gamma, beta}, {mat_of(Shape(4), {1, 3, 4, 8})},
                  mat_of(Shape(4), {-1, 2, -3, 14}));
    expect_values("GroupNorm", "0=1 1=2 2=0.0 3=0", {}, {mat_of(Shape(2, 2), {1, 1, 3, 3})},
                  mat_of(Shape(2, 2), {-1, -1, 1, 1}));
}

TEST(GroupNorm, one_value_a_group) {
    // Its own mean, however much is divided by the deviation.
    expect_values("GroupNorm", "0=3 1=3 2=1e-6",
                  {mat_of(Shape(3), {1, 2, 3}), mat_of(Shape(3), {4, 0, -6})},
                  {mat_of(Shape(1, 1, 3), {12345.678f, 0.1f, -9876.543f})},
                  mat_of(Shape(1, 1, 3), {4, 0, -6}));
}

// All channels in an element, however many they are.
TEST(GroupNorm, channels_last) {
    const int channels = 5000;
    Mat x(Shape(3, 2, channels), 1), blocks;
    for (int q = 0; q < channels; q++) x.channel(q).fill((float)(q % 11));
    const LayerPtr layer = make_layer("GroupNorm", "0=2 1=5000 3=0", {}, 1, 1, false);
    ASSERT_NE(nullptr, layer);
    for (int stored = 0; stored < 2; stored++) {
        if (stored) cast_float32_to_bfloat16(Mat(x), x);
        convert_packing(x, blocks, channels);
        const std::vector<Mat> want = run_layer(*layer, {x}), got = run_layer(*layer, {blocks});
        ASSERT_EQ(1u, want.size());
        ASSERT_EQ(1u, got.size());
        EXPECT_TRUE(nearly_equal(got[0], want[0], Tolerance()));
    }
}

TEST(GroupNorm, refuses_groups_that_do_not_fit) {
    EXPECT_EQ(nullptr, make_layer("GroupNorm", "0=2 1=5 3=0", {}));
    const LayerPtr layer = make_layer("GroupNorm", "0=2 1=4 3=0", {});
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(4, 4, 3)}).empty());
}

}  // namespace quoll
