#include <math.h>

#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(128, 1)}, "0=16 1=4").terms(32),
    LayerCase({Shape(700, 3)}, "0=512 1=160").terms(64),
    LayerCase({Shape(1300)}, "0=400 1=160").terms(64),
    LayerCase({Shape(300, 2)}, "0=120 1=7 2=0").terms(64),
    LayerCase({Shape(40, 2)}, "0=15 1=5").terms(32),
    LayerCase({Shape(80, 1)}, "0=77 1=1 2=0").terms(160),
    LayerCase({Shape(9, 2)}, "0=1 1=2").terms(2),
    LayerCase({Shape(9, 2)}, "0=2 1=3").terms(4),
    LayerCase({Shape(60, 1)}, "0=22 1=9").terms(64),
};
QUOLL_LAYER_CASES(Stft, kCases)

TEST(Stft, by_hand) {
    const Mat x = mat_of(Shape(5, 1), {1, 2, 3, 4, 5});
    const Mat ones = mat_of(Shape(4), {1, 1, 1, 1});
    // X = 10, -2 + 2i, -2, -2 - 2i; a sample later 14, -2 + 2i, -2, -2 - 2i.
    expect_values("Stft", "0=4", {ones}, {x},
                  mat_of(Shape(2, 3, 2, 1), {10, 0, -2, 2, -2, 0, 14, 0, -2, 2, -2, 0}));
    expect_values("Stft", "0=4 1=2 2=0", {ones}, {x},
                  mat_of(Shape(2, 4, 1, 1), {10, 0, -2, 2, -2, 0, -2, -2}));
    expect_values("Stft", "0=3 1=9", {mat_of(Shape(3), {0, 1, 2})}, {x},
                  mat_of(Shape(2, 2, 1, 1), {8, 0, -4, 3.4641016f}));
}

TEST(Stft, infinities) {
    // As NumPy's fft has them.
    const Mat ones4 = mat_of(Shape(4), {1, 1, 1, 1}), ones5 = mat_of(Shape(5), {1, 1, 1, 1, 1});
    expect_values("Stft", "0=4", {ones4}, {mat_of(Shape(4, 1), {INFINITY, 1, 2, 3})},
                  mat_of(Shape(2, 3, 1, 1), {INFINITY, 0, INFINITY, 2, INFINITY, 0}));
    expect_values(
        "Stft", "0=5", {ones5}, {mat_of(Shape(5, 1), {INFINITY, 1, 2, 3, 4})},
        mat_of(Shape(2, 3, 1, 1), {INFINITY, 0, INFINITY, 3.4409548f, INFINITY, 0.81229924f}));
}

TEST(Stft, refuses_short_signals) {
    const LayerPtr layer = make_layer("Stft", "0=8", {Mat(8)});
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(7, 2)}).empty());
    EXPECT_EQ(nullptr, make_layer("Stft", "0=0"));
}

}  // namespace quoll
