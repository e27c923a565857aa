#include "layer_test.h"

namespace quoll {

static const DType s32 = DType::s32;

static const std::vector<LayerCase> kConstantOfShape = {
    LayerCase({Shape(3, s32)}, "1=0.5").range(1, 5),
    LayerCase({Shape(1, s32)}, "0=3 2=-7").range(1, 9),
    LayerCase({Shape(4, s32)}, "0=6 2=1").range(1, 4),
};
QUOLL_LAYER_CASES(ConstantOfShape, kConstantOfShape)

static const std::vector<LayerCase> kRange = {
    LayerCase({Shape(1, s32), Shape(1, s32), Shape(1, s32)}, "")
        .range(0, -9, -9)
        .range(1, 5, 9)
        .range(2, 1, 3),
    LayerCase({Shape(1), Shape(1), Shape(1)}, "").range(0, 2, 3).range(1, -3, -2).range(2, -1, -1),
};
QUOLL_LAYER_CASES(Range, kRange)

static const std::vector<LayerCase> kEyeLike = {
    LayerCase({Shape(5, 4)}, ""),
    LayerCase({Shape(5, 8, s32)}, "0=2 1=0"),
    LayerCase({Shape(2, 3)}, "0=-1 1=3"),
};
QUOLL_LAYER_CASES(EyeLike, kEyeLike)

static const std::vector<LayerCase> kOneHot = {
    LayerCase({Shape(7, s32), Shape(2)}, "1=5").range(0, -6, 6),
    LayerCase({Shape(3, 4, s32), Shape(2, DType::s8)}, "0=0 1=3").range(0, -3, 2),
    LayerCase({Shape(3, 4, 2, s32), Shape(2), Shape(1, s32)}, "0=1").range(0, 0, 4).range(2, 4, 5),
    LayerCase({Shape(1, s32), Shape(2)}, "1=5 2=1").range(0, -6, 6),
};
QUOLL_LAYER_CASES(OneHot, kOneHot)

static const std::vector<LayerCase> kRandomFill = {
    LayerCase({Shape(7)}, ""),
    LayerCase({Shape(5, 3, s32)}, "1=-2 2=3 3=-5"),
    LayerCase({Shape(3, 5, 4)}, "0=1 1=0.5 2=2 3=9"),
    LayerCase({Shape(3, 2, 3, 5)}, "0=1"),
};
QUOLL_LAYER_CASES(RandomFill, kRandomFill)

TEST(ConstantOfShape, by_hand) {
    expect_values("ConstantOfShape", "0=3 2=4", {}, {mat_of(Shape(2, s32), {1, 3})},
                  mat_of(Shape(3, 1, s32), {4, 4, 4}));
}

TEST(Range, by_hand) {
    const auto one = [](float v) { return mat_of(Shape(1), {v}); };
    expect_values("Range", "", {}, {one(1), one(2), one(0.4f)}, mat_of(Shape(3), {1, 1.4f, 1.8f}));
    EXPECT_TRUE(run_layer(*make_layer("Range", "", {}, 3), {one(1), one(2), one(0)}).empty());
    // Ints that a float does not hold.
    const auto whole = [](int v) {
        Mat m(Shape(1, s32));
        m.fill(v);
        return m;
    };
    const std::vector<Mat> made =
        run_layer(*make_layer("Range", "", {}, 3), {whole(16777217), whole(16777223), whole(3)});
    ASSERT_EQ(1u, made.size());
    ASSERT_EQ(2, made[0].w);
    EXPECT_EQ(16777217, ((const int*)made[0].data)[0]);
    EXPECT_EQ(16777220, ((const int*)made[0].data)[1]);
}

TEST(EyeLike, by_hand) {
    expect_values("EyeLike", "0=1", {}, {Mat(Shape(3, 2))},
                  mat_of(Shape(3, 2), {0, 1, 0, 0, 0, 1}));
}

TEST(OneHot, by_hand) {
    const Mat index = mat_of(Shape(3, s32), {0, -1, 3}), pair = mat_of(Shape(2), {0, 5});
    expect_values("OneHot", "1=3", {}, {index, pair},
                  mat_of(Shape(3, 3), {5, 0, 0, 0, 0, 5, 0, 0, 0}));
    expect_values("OneHot", "0=0 1=3", {}, {index, pair},
                  mat_of(Shape(3, 3), {5, 0, 0, 0, 0, 0, 0, 5, 0}));
}

// The values are those of a program in another language.
TEST(RandomFill, values) {
    expect_values("RandomFill", "1=-1 2=2 3=7", {}, {Mat(Shape(4, s32))},
                  mat_of(Shape(4), {1.1645245f, 0.9491130f, 0.6481230f, 0.8127044f}));
    expect_values("RandomFill", "0=1 1=1 2=2 3=-3", {}, {Mat(Shape(3))},
                  mat_of(Shape(3), {-1.2444609f, -0.6993723f, -0.2037617f}));
}

TEST(RandomFill, moments) {
    const std::vector<Mat> made =
        run_layer(*make_layer("RandomFill", "0=1 1=3 2=2", {}, 1), {Mat(Shape(100, 200, 5))});
    ASSERT_EQ(made.size(), 1u);
    double sum = 0, square = 0, fourth = 0;
    for (int q = 0; q < 5; q++) {
        for (int i = 0; i < 20000; i++) {
            const double x = (made[0].channel(q).row<float>(0)[i] - 3) / 2;
            sum += x, square += x * x, fourth += x * x * x * x;
        }
    }
    // Within five standard errors: 1, sqrt(2) and sqrt(96) over sqrt(100000).
    EXPECT_NEAR(sum / 1e5, 0, 0.016);
    EXPECT_NEAR(square / 1e5, 1, 0.023);
    EXPECT_NEAR(fourth / 1e5, 3, 0.155);
}

}  // namespace quoll
