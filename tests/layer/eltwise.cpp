#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19), Shape(19)}, "0=0"),
    LayerCase({Shape(5, 8), Shape(5, 8)}, "0=1"),
    LayerCase({Shape(7, 5, 16), Shape(7, 5, 16)}, "0=1").terms(2),
    LayerCase({Shape(7, 5, 12), Shape(7, 5, 12), Shape(7, 5, 12)}, "0=2"),
    LayerCase({Shape(7, 5, 8), Shape(7, 5, 8), Shape(7, 5, 8)}, "0=1 -23301=3,0.5,-2,1")
        .terms(3)
        .term_magnitude(2),
    LayerCase({Shape(3, 5, 2, 16), Shape(3, 5, 2, 16), Shape(3, 5, 2, 16), Shape(3, 5, 2, 16)},
              "0=0")
        .terms(4),
    LayerCase({Shape(3, 5, 2, 16), Shape(3, 5, 2, 16)}, "0=0 -23301=2,0.5,-2"),
    LayerCase({Shape(9)}, "0=1 -23301=1,3").term_magnitude(3),
};
QUOLL_LAYER_CASES(Eltwise, kCases)

TEST(Eltwise, by_hand) {
    const Mat a = mat_of(Shape(2), {1, -2}), b = mat_of(Shape(2), {3, 4}),
              c = mat_of(Shape(2), {5, -6});
    expect_values("Eltwise", "", {}, {a, b, c}, mat_of(Shape(2), {15, 48}));
    expect_values("Eltwise", "0=1", {}, {a, b, c}, mat_of(Shape(2), {9, -4}));
    expect_values("Eltwise", "0=1 -23301=3,1,2,-1", {}, {a, b, c}, mat_of(Shape(2), {2, 12}));
    expect_values("Eltwise", "0=2", {}, {a, b, c}, mat_of(Shape(2), {5, 4}));
}

TEST(Eltwise, refuses_what_does_not_fit) {
    const LayerPtr layer = make_layer("Eltwise", "0=1 -23301=2,1,2", {}, 2);
    EXPECT_TRUE(run_layer(*layer, {Mat(3), Mat(4)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(3), Mat(3), Mat(3)}).empty());
}

}  // namespace quoll
