#include "layer_test.h"

namespace quoll {

static LayerCase softmax(Shape in, int axis) {
    const int from = axis < 0 ? axis + in.dims : axis;
    return LayerCase({in}, "0=" + std::to_string(axis) + " 1=1").range(-5, 5).terms(in.size(from));
}

static const std::vector<LayerCase> kCases = {
    softmax(Shape(6000), 0),  // sums in f16 would end at 2048 times the largest term
    softmax(Shape(1), 0),           softmax(Shape(128), 0),         softmax(Shape(124), -1),
    softmax(Shape(25, 7), 0),       softmax(Shape(25, 16), 0),      softmax(Shape(25, 8), 1),
    softmax(Shape(16, 13), -1),     softmax(Shape(5, 7, 24), 0),    softmax(Shape(5, 7, 12), 1),
    softmax(Shape(5, 7, 13), 2),    softmax(Shape(16, 7, 16), -1),  softmax(Shape(16, 7, 16), -2),
    softmax(Shape(5, 4, 3, 16), 0), softmax(Shape(5, 4, 3, 12), 1), softmax(Shape(5, 4, 3, 7), 2),
    softmax(Shape(5, 4, 3, 8), 3),  softmax(Shape(1, 1, 37), 0),    softmax(Shape(1, 1, 64), 0),
    softmax(Shape(1, 1, 1, 12), 0),
};
QUOLL_LAYER_CASES(Softmax, kCases)

TEST(Softmax, by_hand) {
    // ln 1, ln 3 and ln 6 have the shares 0.1, 0.3 and 0.6; a common summand changes nothing.
    const float ln3 = 1.0986123f, ln6 = 1.7917595f;
    expect_values("Softmax", "", {}, {mat_of(Shape(3), {0, ln3, ln6})},
                  mat_of(Shape(3), {0.1f, 0.3f, 0.6f}));
    expect_values("Softmax", "", {}, {mat_of(Shape(2), {1000, 1000})},
                  mat_of(Shape(2), {0.5f, 0.5f}));
    const Mat x = mat_of(Shape(2, 2), {0, ln3, 0, 0});
    expect_values("Softmax", "0=1 1=1", {}, {x}, mat_of(Shape(2, 2), {0.25f, 0.75f, 0.5f, 0.5f}));
    expect_values("Softmax", "0=-2 1=1", {}, {x}, mat_of(Shape(2, 2), {0.5f, 0.75f, 0.5f, 0.25f}));
}

TEST(Softmax, refuses_old_files_and_missing_axes) {
    EXPECT_EQ(nullptr, make_layer("Softmax", "0=1"));
    EXPECT_NE(nullptr, make_layer("Softmax", "0=0"));
    const LayerPtr layer = make_layer("Softmax", "0=2 1=1");
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(3, 4)}).empty());
}

}  // namespace quoll
