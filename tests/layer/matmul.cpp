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
    LayerCase({Shape(16, 23, 14), Shape(13, 16, 14, 5)}, "").terms(16),
    LayerCase({Shape(16, 23, 14), Shape(16, 1, 14, 5)}, "0=1").terms(16),
    LayerCase({Shape(9, 5, 2, 3), Shape(7, 9, 2)}, "").terms(9),
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

// As numpy: the axes of the matrices are aligned from the last one on.
TEST(MatMul, three_axes_by_four) {
    const Mat a = mat_of(Shape(1, 1, 2), {2, 3});                       // (2, 1, 1)
    const Mat b = mat_of(Shape(1, 1, 2, 3), {1, 10, 100, 1000, 5, 7});  // (3, 2, 1, 1)
    const Mat product = mat_of(Shape(1, 1, 2, 3), {2, 30, 200, 3000, 10, 21});
    expect_values("MatMul", "", {}, {a, b}, product);
    expect_values("MatMul", "", {}, {b, a}, product);
    // (3, 1, 1, 1) by (2, 1, 2): (3, 2, 1, 2)
    expect_values("MatMul", "", {},
                  {mat_of(Shape(1, 1, 1, 3), {1, 10, 100}), mat_of(Shape(2, 1, 2), {1, 2, 3, 4})},
                  mat_of(Shape(2, 1, 2, 3), {1, 2, 3, 4, 10, 20, 30, 40, 100, 200, 300, 400}));
}

TEST(MatMul, refuses_what_does_not_fit) {
    const LayerPtr layer = make_layer("MatMul", "", {}, 2);
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 3), Mat(2, 3)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 2, 2), Mat(2, 2, 3)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(2), Mat(3)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 2, 3), Mat(2, 2, 2, 3)}).empty());
}

}  // namespace quoll
