#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(5, 6, 3)}, "0=0 1=1 2=0.01 3=1 4=1").terms(3),
    LayerCase({Shape(5, 6, 16)}, "0=0 1=0 2=0.001 3=16 4=1 9=1").terms(16),
    LayerCase({Shape(5, 6, 16)}, "0=1 1=0 2=0.002 3=16 4=0 9=2").terms(30),
    LayerCase({Shape(5, 6, 13)}, "0=1 1=1 2=0.002 3=1 4=0").terms(30),
    LayerCase({Shape(5, 7, 8)}, "0=1 1=0 3=8 4=1 9=1").terms(280),
    LayerCase({Shape(5, 4, 3, 12)}, "0=1 1=1 3=1 4=1").terms(720),
    LayerCase({Shape(5, 4, 3, 8)}, "0=0 1=1 3=1 4=1 9=2").terms(8),
    LayerCase({Shape(5, 6, 4)}, "0=0 1=1 3=1 4=0"),
    LayerCase({Shape(9, 8)}, "0=1 1=1 3=1 4=0").terms(72),
    LayerCase({Shape(24)}, "0=1 1=1 3=1 4=1").terms(24),
};
QUOLL_LAYER_CASES(Normalize, kCases)

TEST(Normalize, by_hand) {
    const Mat x = mat_of(Shape(2, 1, 2), {3, 4, 4, 12}), two = mat_of(Shape(1), {2});
    const Mat each = mat_of(Shape(2), {1, 10});
    // Channels of a pixel: |(3, 4)| = 5, |(4, 12)| = sqrt(160).
    expect_values("Normalize", "0=0 1=1 2=0 3=1 4=1", {two}, {x},
                  mat_of(Shape(2, 1, 2), {1.2f, 0.6324555f, 1.6f, 1.8973666f}));
    // Pixels of a channel: 5 and sqrt(160), with a scale each.
    expect_values("Normalize", "0=1 1=0 2=0 3=2 4=0", {each}, {x},
                  mat_of(Shape(2, 1, 2), {0.6f, 0.8f, 3.1622777f, 9.4868330f}));
    // All: sqrt(185).
    expect_values("Normalize", "0=1 1=1 2=0 3=1 4=1", {two}, {x},
                  mat_of(Shape(2, 1, 2), {0.4411287f, 0.5881716f, 0.5881716f, 1.7645148f}));
    expect_values("Normalize", "0=0 1=1 2=0 3=1 4=0", {two}, {x}, x);
}

TEST(Normalize, eps_modes_by_hand) {
    const Mat x = mat_of(Shape(2), {0.3f, 0.4f}), one = mat_of(Shape(1), {1});
    const std::string all = "0=1 1=1 3=1 4=1 ";
    // sum of squares 0.25: sqrt(0.25 + 0.75), max(0.5, 2), sqrt(max(0.25, 4)).
    expect_values("Normalize", all + "2=0.75 9=0", {one}, {x}, x);
    expect_values("Normalize", all + "2=2.0 9=1", {one}, {x}, mat_of(Shape(2), {0.15f, 0.2f}));
    expect_values("Normalize", all + "2=4.0 9=2", {one}, {x}, mat_of(Shape(2), {0.15f, 0.2f}));
}

TEST(Normalize, refuses_what_does_not_fit) {
    EXPECT_EQ(nullptr, make_layer("Normalize", "0=1 1=1 4=1", {}));
    const LayerPtr layer = make_layer("Normalize", "0=1 1=0 3=2", {Mat(2)});
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(4, 4, 3)}).empty());
}

}  // namespace quoll
