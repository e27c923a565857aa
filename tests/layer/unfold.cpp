#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(9, 8, 3)}, "1=3"),
    LayerCase({Shape(9, 8, 4)}, "1=3 2=2 3=2 4=1"),
    LayerCase({Shape(13, 11, 2)}, "1=4 11=2 2=1 12=2 3=1 13=2 4=2 14=3 15=1 16=0 18=-0.5"),
    LayerCase({Shape(13, 11, 8)}, "1=3 3=2 4=-233"),
    LayerCase({Shape(13, 11, 8)}, "1=4 3=1 4=-234 18=0.5"),
    LayerCase({Shape(6, 5)}, "1=2"),
    LayerCase({Shape(6)}, "1=2 11=1"),
};
QUOLL_LAYER_CASES(Unfold, kCases)

TEST(Unfold, by_hand) {
    expect_values("Unfold", "1=2", {}, {mat_of(Shape(3, 2, 1), {1, 2, 3, 4, 5, 6})},
                  mat_of(Shape(2, 4), {1, 2, 2, 3, 4, 5, 5, 6}));
    expect_values("Unfold", "1=1 3=2 4=1 14=0 18=9.0", {}, {mat_of(Shape(2, 1, 2), {1, 2, 3, 4})},
                  mat_of(Shape(2, 2), {9, 2, 9, 4}));
}

TEST(Unfold, refuses_a_window_that_does_not_fit) {
    const LayerPtr layer = make_layer("Unfold", "1=3");
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 9, 1)}).empty());
}

}  // namespace quoll
