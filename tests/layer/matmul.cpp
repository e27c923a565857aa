#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(9), Shape(9)}, "").terms(9),
    LayerCase({Shape(9, 7), Shape(5, 9)}, "").terms(9),
    LayerCase({Shape(70, 37), Shape(70, 50)}, "0=1").terms(70),
    LayerCase({Shape(70), Shape(50, 70)}, "").terms(70),
    LayerCase({Shape(70), Shape(70, 50)}, "0=1").terms(70),
    LayerCase({Shape(70, 50), Shape(70)}, "0=1").terms(70),
    LayerCase({Shape(9), Shape(7, 9, 5)}, "").terms(9),
    LayerCase({Shape(9), Shape(9, 7, 2, 3)}, "0=1").terms(9),
    LayerCase({Shape(9, 5, 3), Shape(9)}, "").terms(9),
    LayerCase({Shape(9, 5, 2, 3), Shape(9)}, "").terms(9),
    LayerCase({Shape(9, 5, 16), Shape(7, 9, 16)}, "").terms(9),
    LayerCase({Shape(9, 1, 16), Shape(9, 7, 16)}, "0=1").terms(9),
    LayerCase({Shape(9, 1, 16), Shape(7, 9, 16)}, "").terms(9),
    LayerCase({Shape(9, 5, 3), Shape(7, 9)}, "").terms(9),
    LayerCase({Shape(9, 5), Shape(9, 7, 3)}, "0=1").terms(9),
    LayerCase({Shape(9, 5, 2, 8), Shape(7, 9, 2, 8)}, "").terms(9),
    LayerCase({Shape(9, 5, 1, 3), Shape(7, 9, 2, 1)}, "").terms(9),
    LayerCase({Shape(9, 5), Shape(7, 9, 2, 3)}, "").terms(9),
};
QUOLL_LAYER_CASES(MatMul, kCases)

TEST(MatMul, by_hand) {
    const Mat a = mat_of(Shape(2, 2), {1, 2, 3, 4}), b = mat_of(Shape(2, 2), {5, 6, 7, 8});
    expect_values("MatMul", "", {}, {a, b}, mat_of(Shape(2, 2), {19, 22, 43, 50}));
    expect_values("MatMul", "0=1", {}, {a, b}, mat_of(Shape(2, 2), {17, 23, 39, 53}));
    expect_values("MatMul", "", {}, {mat_of(Shape(2), {1, 2}), b}, mat_of(Shape(2), {19, 22}));
    expect_values("MatMul", "", {}, {a, mat_of(Shape(2), {1, 2})}, mat_of(Shape(2), {5, 11}));
    expect_values("MatMul", "", {}, {mat_of(Shape(2), {1, 2}), mat_of(Shape(2), {3, 4})},
                  mat_of(Shape(1), {11}));
    // One matrix for the two of the other.
    expect_values("MatMul", "", {}, {mat_of(Shape(2, 1, 2), {1, 2, 3, 4}), b},
                  mat_of(Shape(2, 1, 2), {19, 22, 43, 50}));
}

TEST(MatMul, refuses_what_does_not_fit) {
    const LayerPtr layer = make_layer("MatMul", "", {}, 2);
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 3), Mat(2, 3)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 2, 2), Mat(2, 2, 3)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(2), Mat(3)}).empty());
}

}  // namespace quoll
