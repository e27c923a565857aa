#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(5)}, "0=0"),     LayerCase({Shape(5)}, "0=2"),
    LayerCase({Shape(5)}, "0=-3"),    LayerCase({Shape(7, 12)}, "0=0"),
    LayerCase({Shape(7, 12)}, "0=4"), LayerCase({Shape(7, 12)}, "0=-9"),
    LayerCase({Shape(12, 7)}, "0=5"), LayerCase({Shape(4, 6, DType::s8)}, "0=1").range(-9, 9),
};
QUOLL_LAYER_CASES(Diag, kCases)

TEST(Diag, by_hand) {
    expect_values("Diag", "0=1", {}, {mat_of(Shape(2), {1, 2})},
                  mat_of(Shape(3, 3), {0, 1, 0, 0, 0, 2, 0, 0, 0}));
    const Mat x = mat_of(Shape(3, 2), {1, 2, 3, 4, 5, 6});
    expect_values("Diag", "0=1", {}, {x}, mat_of(Shape(2), {2, 6}));
    expect_values("Diag", "0=-1", {}, {x}, mat_of(Shape(1), {4}));
}

// As in ncnn (and numpy) there is nothing on a diagonal that lies outside of the matrix.
TEST(Diag, has_no_values_outside) {
    for (const char* diagonal : {"0=3", "0=-4", "0=100", "0=-2147483647"}) {
        const LayerPtr layer = make_layer("Diag", diagonal);
        ASSERT_NE(nullptr, layer);
        Mat x(3, 4), y;
        x.fill(1.f);
        EXPECT_EQ(layer->forward(x, y, Option()), 0) << diagonal;
        EXPECT_EQ(y.dims, 1) << diagonal;
        EXPECT_EQ(y.w, 0) << diagonal;
        EXPECT_TRUE(y.empty()) << diagonal;
    }
}

// As numpy.diag of nothing.
TEST(Diag, of_nothing) {
    const LayerPtr layer = make_layer("Diag", "0=2");
    Mat none, y;
    none.dims = 1, none.w = 0, none.elempack = 1, none.elemsize = 4, none.cstep = 0;
    none.h = none.d = none.c = none.n = 1;
    ASSERT_EQ(layer->forward(none, y, Option()), 0);
    ASSERT_EQ(y.logical_shape(), Shape(2, 2));
    for (int i = 0; i < 4; i++) EXPECT_EQ(y[i], 0.f);
}

TEST(Diag, refuses_three_axes) {
    const LayerPtr layer = make_layer("Diag", "0=3");
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(5, 5, 2)}).empty());
}

}  // namespace quoll
