#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(128)}, "0=10 2=2 3=7 4=1 6=1 7=1").terms(20),
    LayerCase({Shape(128)}, "0=16 1=1").terms(32),
    LayerCase({Shape(128)}, "0=17 1=2 2=5 4=2 5=0 7=2 8=0").terms(34 * 34).error_growth(4),
    LayerCase({Shape(100)}, "0=30 1=0 2=7 4=1 6=0 8=0").terms(60),
    LayerCase({Shape(60, 1)}, "0=21 1=1 2=3 3=12 4=2").terms(42),
};
QUOLL_LAYER_CASES(Spectrogram, kCases)

TEST(Spectrogram, by_hand) {
    const Mat x = mat_of(Shape(4), {1, 2, 3, 4});
    // X = 10, -2 + 2i, -2, -2 - 2i.
    expect_values("Spectrogram", "0=4 5=0", {}, {x}, mat_of(Shape(2, 1, 3), {10, 0, -2, 2, -2, 0}));
    expect_values("Spectrogram", "0=4 1=2 5=0 8=0", {}, {x}, mat_of(Shape(1, 4), {100, 8, 4, 8}));
    expect_values("Spectrogram", "0=4 1=1 5=0 7=1", {}, {x},
                  mat_of(Shape(1, 3), {5, 1.41421356f, 1}));
    // Hann of 4: 0, 1/2, 1, 1/2. Frames 3 2 1 2 and 1 2 3 2, mirrored at both ends.
    expect_values("Spectrogram", "0=4 1=1 2=2 4=1 8=1", {}, {mat_of(Shape(3), {1, 2, 3})},
                  mat_of(Shape(2, 3), {3, 5, 1, 3, 1, 1}));
}

TEST(Spectrogram, refuses_too_short_signals_and_windows) {
    EXPECT_EQ(nullptr, make_layer("Spectrogram", "0=8 3=9"));
    EXPECT_EQ(nullptr, make_layer("Spectrogram", "0=3"));  // a step of 3 / 4 = 0
    const LayerPtr layer = make_layer("Spectrogram", "0=8 5=0");
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(7)}).empty());
    const LayerPtr centred = make_layer("Spectrogram", "0=8");
    ASSERT_NE(nullptr, centred);
    EXPECT_TRUE(run_layer(*centred, {Mat(4)}).empty());
}

}  // namespace quoll
