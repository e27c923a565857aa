#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(8, 5, 3), Shape(4, 5), Shape(4, 5)}, "").terms(2),
    LayerCase({Shape(8, 5, 3), Shape(8, 5), Shape(8, 5)}, "").terms(2),
    LayerCase({Shape(8, 5, 3), Shape(4, 5), Shape(4, 5)}, "0=1").terms(2),
    LayerCase({Shape(70, 3, 16), Shape(35, 3), Shape(35, 4)}, "0=1").terms(2),
    LayerCase({Shape(128, 7, 8), Shape(64, 7), Shape(64, 7)}, "").terms(2),
    LayerCase({Shape(70, 16), Shape(35, 16), Shape(35, 16)}, "").terms(2),
    LayerCase({Shape(6, 1, 4), Shape(3), Shape(3)}, "").terms(2),
};
QUOLL_LAYER_CASES(RotaryEmbed, kCases)

TEST(RotaryEmbed, by_hand) {
    // Pairs turned by 90 degrees and by nothing.
    const Mat x = mat_of(Shape(4, 1, 1), {1, 2, 3, 4}), c = mat_of(Shape(2, 1), {0, 1}),
              s = mat_of(Shape(2, 1), {1, 0});
    expect_values("RotaryEmbed", "0=1", {}, {x, c, s}, mat_of(Shape(4, 1, 1), {-2, 1, 3, 4}));
    expect_values("RotaryEmbed", "", {}, {x, c, s}, mat_of(Shape(4, 1, 1), {-3, 2, 1, 4}));
    // Angles of their own for the second half.
    expect_values("RotaryEmbed", "", {},
                  {x, mat_of(Shape(4, 1), {0, 1, 1, 2}), mat_of(Shape(4, 1), {1, 0, 0, 0})},
                  mat_of(Shape(4, 1, 1), {-3, 2, 3, 8}));
}

TEST(RotaryEmbed, refuses_what_does_not_fit) {
    const LayerPtr layer = make_layer("RotaryEmbed", "", {}, 3);
    EXPECT_TRUE(run_layer(*layer, {Mat(5, 1, 1), Mat(2, 1), Mat(2, 1)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(4, 2, 1), Mat(2, 1), Mat(2, 1)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(4, 2, 1), Mat(2, 2), Mat(3, 2)}).empty());
}

}  // namespace quoll
