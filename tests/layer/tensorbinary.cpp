#include "layer_test.h"

namespace quoll {

static std::vector<LayerCase> binary() {
    std::vector<LayerCase> all;
    for (int op = 0; op <= 21; op++) {
        const std::string params = "0=" + std::to_string(op);
        const bool logical = op >= 14 && op <= 16, bits = op >= 17;
        for (DType t : {DType::f32, DType::s32, DType::s8, DType::u8}) {
            if ((logical && t != DType::u8) || (bits && t == DType::f32)) continue;
            for (Shape b : {Shape(5, 4, 3), Shape(5), Shape(1, 4, 1), Shape(5, 4, 3, 2)}) {
                b.dtype = t;
                LayerCase c({Shape(5, 4, 3, t), b}, params);
                all.push_back(t == DType::f32 ? c.range(0.5f, 2.f) : c.range(0, logical ? 1 : 9));
            }
        }
    }
    return all;
}
static const std::vector<LayerCase> kBinary = binary();
QUOLL_LAYER_CASES(TensorBinary, kBinary)

static const std::vector<LayerCase> kWhere = {
    LayerCase({Shape(9, DType::u8), Shape(9), Shape(9)}, "").range(0, 0, 1),
    LayerCase({Shape(3, 4, DType::u8), Shape(3, 4, 8), Shape(1)}, "").range(0, 0, 1),
    LayerCase({Shape(1, 4, 8, DType::u8), Shape(3, DType::s8), Shape(3, 1, 1, DType::s8)}, "")
        .range(0, 0, 1),
};
QUOLL_LAYER_CASES(Where, kWhere)

static void expect_ints(int op, std::vector<float> a, std::vector<float> b,
                        std::vector<float> want) {
    const Shape shape((int)a.size(), DType::s32);
    expect_values("TensorBinary", "0=" + std::to_string(op), {},
                  {mat_of(shape, a), mat_of(shape, b)}, mat_of(shape, want));
}

TEST(TensorBinary, integers_by_hand) {
    expect_ints(0, {2147483520.f, 1}, {1024, 2}, {-2147482752.f, 3});  // 2^31 + 896 wraps
    expect_ints(2, {65536, -3}, {65536, 5}, {0, -15});
    expect_ints(3, {7, -7, 7, -7, 5}, {2, 2, -2, -2, 0}, {3, -3, -3, 3, 0});
    expect_ints(4, {7, -7, 7, -7, 5}, {3, 3, -3, -3, 0}, {1, 2, -2, -1, 0});
    expect_ints(5, {7, -7, 7, -7, 5}, {3, 3, -3, -3, 0}, {1, -1, 1, -1, 0});
    expect_ints(6, {2, -3, 2, 1}, {10, 3, -1, -5}, {1024, -27, 0, 1});
    expect_ints(7, {2, -3}, {1, 3}, {2, 3});
    expect_ints(8, {2, -3}, {1, 3}, {1, -3});
    expect_ints(17, {12, -1}, {10, 7}, {8, 7});
    expect_ints(18, {12, 1}, {10, 6}, {14, 7});
    expect_ints(19, {12, -1}, {10, 0}, {6, -1});
    expect_ints(20, {3, 1}, {4, 32}, {48, 0});
    expect_ints(21, {48, 5}, {4, 40}, {3, 0});
}

TEST(TensorBinary, broadcasts_as_numpy) {
    const Mat row = mat_of(Shape(3), {1, 2, 3}), column = mat_of(Shape(1, 2), {10, 20});
    expect_values("TensorBinary", "", {}, {row, column},
                  mat_of(Shape(3, 2), {11, 12, 13, 21, 22, 23}));
}

TEST(TensorBinary, comparisons_by_hand) {
    const Mat a = mat_of(Shape(3), {1, 2, 3}), b = mat_of(Shape(3), {2, 2, 2});
    const int want[5] = {2, 1, 4, 3, 6};  // bit i: element i holds
    for (int op = 9; op <= 13; op++) {
        const LayerPtr layer = make_layer("TensorBinary", "0=" + std::to_string(op), {}, 2);
        const std::vector<Mat> got = run_layer(*layer, {a, b});
        ASSERT_EQ(1u, got.size());
        ASSERT_EQ(DType::u8, got[0].dtype);
        for (int i = 0; i < 3; i++)
            EXPECT_EQ(want[op - 9] >> i & 1, ((const unsigned char*)got[0].data)[i]) << op;
    }
}

TEST(Where, by_hand) {
    Mat c(Shape(3, DType::u8));
    for (int i = 0; i < 3; i++) ((unsigned char*)c.data)[i] = i != 1;
    expect_values("Where", "", {}, {c, mat_of(Shape(3), {1, 2, 3}), mat_of(Shape(1, 2), {-1, -2})},
                  mat_of(Shape(3, 2), {1, -1, 3, 1, -2, 3}));
}

}  // namespace quoll
