#include <math.h>

#include "layer_test.h"

namespace quoll {

static LayerCase norm(Shape in, int size, const std::string& more) {
    return LayerCase({in}, "0=" + std::to_string(size) + " " + more).terms(size);
}

static const std::vector<LayerCase> kCases = {
    norm(Shape(8), 8, "1=0.002"),           norm(Shape(67), 67, "2=0"),
    norm(Shape(24, 8), 24, "1=0.001"),      norm(Shape(13, 7), 13, "1=0.001 2=0"),
    norm(Shape(5, 6, 12), 5, "1=0.02 2=0"), norm(Shape(16, 6, 8), 16, "1=0.001"),
    norm(Shape(5, 6, 16), 30, "1=0.001"),   norm(Shape(5, 6, 7), 30, "2=0"),
    norm(Shape(5, 4, 3, 8), 5, "1=0.01"),   norm(Shape(5, 4, 3, 8), 20, "1=0.01"),
    norm(Shape(5, 4, 3, 16), 60, ""),       norm(Shape(24, 90, 2), 24, "1=0.001"),
    norm(Shape(6, 5), 30, ""),            norm(Shape(6, 5, 3), 90, ""),
    norm(Shape(5, 4, 8), 160, "1=0.001"), norm(Shape(3, 4, 2, 5), 120, ""),
};
QUOLL_LAYER_CASES(LayerNorm, kCases)

TEST(LayerNorm, by_hand) {
    const Mat gamma = mat_of(Shape(2), {1, 10}), beta = mat_of(Shape(2), {0, 5});
    // Rows (1, 3) and (4, 8): means 2 and 6, deviations 1 and 2.
    const std::vector<float> rows = {1, 3, 4, 8}, normal = {-1, 15, -1, 15};
    expect_values("LayerNorm", "0=2 1=0.0", {gamma, beta}, {mat_of(Shape(2, 2), rows)},
                  mat_of(Shape(2, 2), normal));
    expect_values("LayerNorm", "0=2 1=0.0", {gamma, beta}, {mat_of(Shape(2, 1, 2), rows)},
                  mat_of(Shape(2, 1, 2), normal));
    expect_values("LayerNorm", "0=2 1=0.0", {gamma, beta}, {mat_of(Shape(1, 2, 2), rows)},
                  mat_of(Shape(1, 2, 2), normal));
    expect_values("LayerNorm", "0=2 1=0.0 2=0", {}, {mat_of(Shape(2), {4, 8})},
                  mat_of(Shape(2), {-1, 1}));
    // All values: mean 4, deviation sqrt(6.5).
    const Mat factors = mat_of(Shape(4), {1, 2, 3, 4}), terms = mat_of(Shape(4), {0, 1, 0, 1});
    const float a = 1 / sqrtf(6.5f);
    expect_values("LayerNorm", "0=4 1=0.0", {factors, terms}, {mat_of(Shape(1, 2, 2), rows)},
                  mat_of(Shape(1, 2, 2), {-3 * a, 1 - 2 * a, 0, 1 + 16 * a}));
}

TEST(LayerNorm, refuses_an_affine_size_that_does_not_fit) {
    const LayerPtr layer = make_layer("LayerNorm", "0=2", {Mat(2), Mat(2)});
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(3, 4)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(3, 4, 5)}).empty());
}

}  // namespace quoll
