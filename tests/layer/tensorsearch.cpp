#include <math.h>

#include "layer_test.h"

namespace quoll {

static const DType s32 = DType::s32;

static const std::vector<LayerCase> kNonZero = {
    LayerCase({Shape(19, s32)}, ""),
    LayerCase({Shape(5, 4, DType::u8)}, "").range(0, 1),
    LayerCase({Shape(5, 3, 4, s32)}, ""),
    LayerCase({Shape(3, 3, 2, 4, DType::s8)}, ""),
};
QUOLL_LAYER_CASES(NonZero, kNonZero)

static const std::vector<LayerCase> kArgReduce = {
    // Values that repeat, in rows and columns longer than what is searched side by side.
    LayerCase({Shape(70, 5, s32)}, "1=-1").range(-9, 9),
    LayerCase({Shape(70, 5, s32)}, "0=1 1=-1 3=1").range(-9, 9),
    LayerCase({Shape(70, 5, s32)}, "1=0 3=1").range(-2, 2),
    LayerCase({Shape(9, 11, 21)}, "1=0"),
    LayerCase({Shape(19, s32)}, "2=0").range(0, 5),
    LayerCase({Shape(5, 4)}, "0=1 1=1"),
    LayerCase({Shape(5, 3, 4, s32)}, "1=0 3=1").range(0, 2),
    LayerCase({Shape(3, 3, 2, 4, DType::s8)}, "0=1 1=-2 2=0 3=1").range(0, 2),
};
QUOLL_LAYER_CASES(ArgReduce, kArgReduce)

static const std::vector<LayerCase> kTopK = {
    LayerCase({Shape(19)}, "0=5").outputs(2),
    LayerCase({Shape(5, 4, s32)}, "0=3 1=0 2=0").range(0, 3).outputs(2),
    LayerCase({Shape(5, 3, 4, DType::s8)}, "0=2 1=1 3=0").range(0, 3).outputs(2),
    LayerCase({Shape(5, 3, 4), Shape(1, s32)}, "1=-1").range(1, 2, 4).outputs(2),
};
QUOLL_LAYER_CASES(TopK, kTopK)

static const std::vector<LayerCase> kUnique = {
    LayerCase({Shape(19, s32)}, "").range(0, 5).outputs(4),
    LayerCase({Shape(2, 9, s32)}, "0=0 1=0").range(0, 1).outputs(4),
    LayerCase({Shape(9, 2, 3, DType::s8)}, "0=-1").range(0, 1).outputs(3),
    LayerCase({Shape(3, 3, 3, s32)}, "1=0").range(0, 9).outputs(1),
};
QUOLL_LAYER_CASES(Unique, kUnique)

TEST(NonZero, by_hand) {
    expect_values("NonZero", "", {}, {mat_of(Shape(3, 2), {0, 1, 0, 2, 0, 3})},
                  mat_of(Shape(3, 2, s32), {0, 1, 1, 1, 0, 2}));
    // None: two rows of nothing.
    std::vector<Mat> got(1);
    const LayerPtr layer = make_layer("NonZero", "");
    ASSERT_EQ(0, layer->forward({mat_of(Shape(3, 2), {0, 0, 0, 0, 0, 0})}, got, Option()));
    EXPECT_EQ(Shape(0, 2, s32), got[0].logical_shape());
    EXPECT_TRUE(got[0].empty());
}

// The first or last of equal values, wherever they lie in a row.
TEST(ArgReduce, ties) {
    for (int size : {1, 15, 16, 17, 40, 100}) {
        for (int a = 0; a < size; a += 3) {
            for (int b = a; b < size; b += 7) {
                std::vector<float> row(size, -1);
                row[a] = row[b] = 5;
                const Mat x = mat_of(Shape(size, 1), row);
                expect_values("ArgReduce", "1=1 2=0", {}, {x}, mat_of(Shape(1, s32), {(float)a}));
                expect_values("ArgReduce", "1=1 2=0 3=1", {}, {x},
                              mat_of(Shape(1, s32), {(float)b}));
            }
        }
    }
}

TEST(ArgReduce, by_hand) {
    const Mat x = mat_of(Shape(3, 2), {1, 3, 3, 0, -1, -1});
    expect_values("ArgReduce", "1=1", {}, {x}, mat_of(Shape(1, 2, s32), {1, 0}));
    expect_values("ArgReduce", "1=1 2=0 3=1", {}, {x}, mat_of(Shape(2, s32), {2, 0}));
    expect_values("ArgReduce", "0=1 1=1 2=0", {}, {x}, mat_of(Shape(2, s32), {0, 1}));
    expect_values("ArgReduce", "1=0 2=0", {}, {x}, mat_of(Shape(3, s32), {0, 0, 0}));
}

TEST(TopK, by_hand) {
    const std::vector<Mat> got =
        run_layer(*make_layer("TopK", "0=3", {}, 1, 2), {mat_of(Shape(5), {1, 7, NAN, 7, 2})});
    ASSERT_EQ(2u, got.size());
    EXPECT_TRUE(isnan(got[0][0]));
    EXPECT_EQ(7.f, got[0][2]);
    const int* index = (const int*)got[1].data;
    EXPECT_TRUE(index[0] == 2 && index[1] == 1 && index[2] == 3);
}

TEST(Unique, by_hand) {
    const std::vector<Mat> got =
        run_layer(*make_layer("Unique", "1=0", {}, 1, 4), {mat_of(Shape(6), {2, 1, 1, 3, 4, 3})});
    ASSERT_EQ(4u, got.size());
    const std::vector<std::vector<float>> want = {
        {2, 1, 3, 4}, {0, 1, 3, 4}, {0, 1, 1, 2, 3, 2}, {1, 2, 2, 1}};
    for (size_t i = 0; i < 4; i++)
        EXPECT_TRUE(nearly_equal(got[i],
                                 mat_of(Shape((int)want[i].size(), i ? s32 : DType::f32), want[i]),
                                 Tolerance()));
}

}  // namespace quoll
