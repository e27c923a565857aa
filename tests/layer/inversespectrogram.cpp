#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(2, 25, 9)}, "0=17 1=1 2=5 4=2").terms(64),
    LayerCase({Shape(2, 25, 17)}, "0=17 2=5 4=2 5=0 7=2").terms(64).term_magnitude(8),
    LayerCase({Shape(2, 12, 16)}, "0=16 1=2 2=4 7=1").terms(64).term_magnitude(4),
};
QUOLL_LAYER_CASES(InverseSpectrogram, kCases)

TEST(InverseSpectrogram, by_hand) {
    const Mat spectrum = mat_of(Shape(2, 1, 3), {10, 0, -2, 2, -2, 0});
    expect_values("InverseSpectrogram", "0=4 1=1 5=0", {}, {spectrum},
                  mat_of(Shape(4), {1, 2, 3, 4}));
    expect_values("InverseSpectrogram", "0=4 1=0 5=0", {}, {spectrum},
                  mat_of(Shape(2, 4), {1, 0, 2, 0, 3, 0, 4, 0}));
    // A Hann window is 0 at the first value: nothing is known of it.
    expect_values("InverseSpectrogram", "0=4 1=1 4=1 5=0", {},
                  {mat_of(Shape(2, 1, 3), {6, 0, -2, 1, -4, 0})},
                  mat_of(Shape(4), {0, 4, 1.5f, 6}));
}

TEST(InverseSpectrogram, inverts_Spectrogram) {
    std::vector<float> signal(64);
    for (int i = 0; i < 64; i++) signal[i] = (float)(i * i % 17) - 8;
    for (const char* params : {"0=16 4=1", "0=15 2=3 4=2 7=1", "0=16 2=5 3=14 4=2 7=2 8=0"}) {
        SCOPED_TRACE(params);
        const LayerPtr there = make_layer("Spectrogram", params);
        const std::string back_params =
            std::string(params).substr(0, std::string(params).find(" 8=")) + " 1=1";
        const LayerPtr back = make_layer("InverseSpectrogram", back_params);
        ASSERT_TRUE(there && back);
        const std::vector<Mat> spectrum = run_layer(*there, {mat_of(Shape(64), signal)});
        ASSERT_EQ(1u, spectrum.size());
        const std::vector<Mat> got = run_layer(*back, spectrum);
        ASSERT_EQ(1u, got.size());
        ASSERT_GE(got[0].w, 56);
        for (int i = 0; i < got[0].w; i++) EXPECT_NEAR(signal[i], got[0][i], 1e-4f) << i;
    }
}

TEST(InverseSpectrogram, refuses_other_sizes) {
    const LayerPtr layer = make_layer("InverseSpectrogram", "0=8");
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 5, 6)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(3, 5, 5)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 1, 5)}).empty());
}

}  // namespace quoll
