#include <math.h>

#include "layer_test.h"

namespace quoll {

static LayerCase norm(Shape in, int size, const std::string& more) {
    return LayerCase({in}, "0=" + std::to_string(size) + " " + more).terms(size);
}

static const std::vector<LayerCase> kCases = {
    norm(Shape(8), 8, "1=0.002"),         norm(Shape(67), 67, "2=0"),
    norm(Shape(24, 8), 24, "1=0.001"),    norm(Shape(13, 7), 13, "1=0.001 2=0"),
    norm(Shape(5, 6, 12), 5, "2=0"),      norm(Shape(16, 6, 8), 16, "1=0.001"),
    norm(Shape(5, 6, 16), 30, "1=0.001"), norm(Shape(5, 6, 7), 30, "2=0"),
    norm(Shape(5, 4, 3, 8), 20, ""),      norm(Shape(1030, 16), 1030, "1=0.000001"),
    norm(Shape(6, 5), 30, ""),            norm(Shape(6, 5, 3), 90, ""),
    norm(Shape(5, 4, 8), 160, "1=0.001"), norm(Shape(3, 4, 2, 5), 120, ""),
};
QUOLL_LAYER_CASES(RMSNorm, kCases)

TEST(RMSNorm, by_hand) {
    // Means of the squares: 25 / 2 + 12 = 24.5 and 2 + 12 = 14.
    const float a = 1 / sqrtf(24.5f), b = 1 / sqrtf(14.f);
    expect_values("RMSNorm", "0=2 1=12.0", {mat_of(Shape(2), {1, 10})},
                  {mat_of(Shape(2, 2), {3, 4, 0, 2})},
                  mat_of(Shape(2, 2), {3 * a, 40 * a, 0, 20 * b}));
}

TEST(RMSNorm, refuses_an_affine_size_that_does_not_fit) {
    const LayerPtr layer = make_layer("RMSNorm", "0=2", {Mat(2)});
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(3, 4)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(3, 4, 5)}).empty());
}

}  // namespace quoll
