#include "layer_test.h"

namespace quoll {

// All functions, on values where they are defined.
static std::vector<LayerCase> cases() {
    std::vector<LayerCase> list;
    const Shape shapes[] = {Shape(19), Shape(5, 8), Shape(3, 5, 16), Shape(3, 2, 4, 12)};
    for (int op = 0; op < 19; op++) {
        const bool near_zero = op == 3 || op == 6 || op == 8 || op == 9 || op >= 12;
        const float low = near_zero ? 0.3f : -2.f;
        const std::string text = "0=" + std::to_string(op);
        list.push_back(LayerCase({shapes[op % 4], shapes[op % 4]}, text).range(low, 3));
        list.push_back(LayerCase({shapes[(op + 1) % 4]}, text + " 1=1 2=1.7").range(low, 3));
    }
    const std::vector<std::vector<Shape>> pairs = {
        // One value, a value per row or channel, a row or plane, for all axes.
        {Shape(1), Shape(9)},
        {Shape(6, 16), Shape(1)},
        {Shape(6, 16), Shape(16)},
        {Shape(6), Shape(6, 16)},
        {Shape(7, 5, 16), Shape(16)},
        {Shape(8), Shape(7, 5, 8)},
        {Shape(7, 5, 16), Shape(7)},
        {Shape(7, 5, 16), Shape(5, 16)},
        {Shape(7, 5, 12), Shape(1, 1, 12)},
        {Shape(1, 1, 16), Shape(7, 5, 16)},
        {Shape(7, 5, 16), Shape(7, 5, 1)},
        {Shape(7, 5, 16), Shape(1, 5, 16)},
        {Shape(7, 1, 16), Shape(7, 5, 16)},
        {Shape(7, 5, 16), Shape(1)},
        {Shape(3, 5, 2, 8), Shape(8)},
        {Shape(2, 8), Shape(3, 5, 2, 8)},
        {Shape(2, 1, 1, 9), Shape(2, 7, 7, 1)},
        {Shape(2, 40, 40, 1), Shape(2, 1, 1, 3)},
        {Shape(3, 1, 1, 9), Shape(3, 7, 7, 1)},
        {Shape(3, 5, 2, 8), Shape(5, 2, 8)},
        {Shape(3, 5, 2, 8), Shape(1, 1, 2, 8)},
        {Shape(1, 5, 1, 8), Shape(3, 1, 2, 8)},
        {Shape(3, 5, 1, 1), Shape(1, 1, 2, 16)},
        // Few values that repeat.
        {Shape(2, 7, 5, 6), Shape(2, 1, 1, 6)},
        {Shape(4, 1, 1, 16), Shape(4, 7, 5, 16)},
        {Shape(3, 7, 5, 6), Shape(3, 1, 1, 6)},
        // One short row for all, more than are taken at a time.
        {Shape(20, 250), Shape(20, 1)},
        {Shape(20, 1), Shape(20, 250)},
        {Shape(5, 90, 3), Shape(5, 1, 1)},
        // Outer sums: an operand has one value a short row.
        {Shape(1, 5, 6, 3), Shape(9, 1, 6, 3)},
        {Shape(14, 1, 6, 3), Shape(1, 14, 6, 3)},
        {Shape(1, 33, 40, 2), Shape(31, 1, 40, 2)},
        {Shape(1, 16, 3), Shape(24, 16, 3)},
        {Shape(24, 16, 3), Shape(1, 16, 3)},
        // Short rows without gaps, more values than are taken at a time.
        {Shape(700, 5), Shape(700, 5)},
        // If sizes do not fit the outermost axes, they are aligned with the innermost.
        {Shape(7, 5, 16), Shape(7, 5)},
        {Shape(3, 5, 2, 8), Shape(3, 5, 2)},
        {Shape(1, 5), Shape(7, 5, 16)},
    };
    for (size_t i = 0; i < pairs.size(); i++)
        list.push_back(LayerCase(pairs[i], i % 2 ? "0=1" : "0=2"));
    for (int op : {0, 1, 2, 3, 4, 5, 7, 8, 12, 13, 15, 16})
        list.push_back(
            LayerCase({Shape(5, 3, 8, DType::s32), Shape(8, DType::s32)}, "0=" + std::to_string(op))
                .range(-9, 9));
    return list;
}
static const std::vector<LayerCase> kCases = cases();
QUOLL_LAYER_CASES(BinaryOp, kCases)

static void expect_binary(int op, float a, float b, float want) {
    SCOPED_TRACE(op);
    expect_values("BinaryOp", "0=" + std::to_string(op), {},
                  {mat_of(Shape(1), {a}), mat_of(Shape(1), {b})}, mat_of(Shape(1), {want}));
}

TEST(BinaryOp, functions_by_hand) {
    const float want[19] = {
        -5,           -9, -14, -3.5f,        2,  -7, 49, 9, -2.f / 7, -0.142000f, -1.292496668f,
        2.863292995f, -1, 2,   2.000123402f, -4, -1, 1,  2};
    for (int op = 0; op < 19; op++)
        if (op != 9) expect_binary(op, -7, 2, want[op]);
    expect_binary(9, 3, 2, 8);  // 2 ^ 3
    expect_binary(17, 5, 3, -1);
    expect_values("BinaryOp", "0=7 1=1 2=10", {}, {mat_of(Shape(2), {1, 12})},
                  mat_of(Shape(2), {9, -2}));
}

TEST(BinaryOp, broadcasting_by_hand) {
    const Mat x = mat_of(Shape(2, 2), {1, 2, 3, 4});
    // As many values as rows: one per row; else one per column.
    expect_values("BinaryOp", "", {}, {x, mat_of(Shape(2), {10, 20})},
                  mat_of(Shape(2, 2), {11, 12, 23, 24}));
    expect_values("BinaryOp", "", {},
                  {mat_of(Shape(3), {10, 20, 30}), mat_of(Shape(3, 1), {1, 2, 3})},
                  mat_of(Shape(3, 1), {11, 22, 33}));
    // 2 axes stand on channels and rows of 3.
    expect_values("BinaryOp", "0=2", {}, {mat_of(Shape(2, 2, 2), {1, 2, 3, 4, 5, 6, 7, 8}), x},
                  mat_of(Shape(2, 2, 2), {1, 2, 6, 8, 15, 18, 28, 32}));
    expect_values("BinaryOp", "", {}, {mat_of(Shape(2, 1), {1, 2}), mat_of(Shape(1, 2), {10, 20})},
                  mat_of(Shape(2, 2), {11, 12, 21, 22}));
    const LayerPtr layer = make_layer("BinaryOp", "", {}, 2);
    EXPECT_TRUE(run_layer(*layer, {Mat(3, 2), Mat(4)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(3, 2), Mat(3, 2, 5)}).size() == 1);
    EXPECT_TRUE(run_layer(*layer, {Mat(3), Mat(Shape(3, DType::s32))}).empty());
}

TEST(BinaryOp, ints_by_hand) {
    const Mat a = mat_of(Shape(4, DType::s32), {7, -7, 7, -2147483648.f});
    const Mat b = mat_of(Shape(4, DType::s32), {2, 2, 0, -1});
    expect_values("BinaryOp", "0=3", {}, {a, b},
                  mat_of(Shape(4, DType::s32), {3, -3, 0, -2147483648.f}));
    expect_values("BinaryOp", "0=15", {}, {a, b},
                  mat_of(Shape(4, DType::s32), {3, -4, 0, -2147483648.f}));
    const LayerPtr layer = make_layer("BinaryOp", "0=10", {}, 2);
    EXPECT_TRUE(run_layer(*layer, {a, b}).empty());
}

// An application may pack blobs by anything; an element of 3 or 5 does not repeat in 16 values.
TEST(BinaryOp, one_value_a_channel_of_blobs_packed_by_3_and_5) {
    for (int pack : {3, 5}) {
        const LayerPtr layer = make_layer("BinaryOp", "0=0", {}, 2, 1, false);
        Mat x(7, 2, 2 * pack), y(2 * pack), packed_x, packed_y;
        x.fill(1.f);
        for (int q = 0; q < y.w; q++) y[q] = (float)q;
        convert_packing(x, packed_x, pack), convert_packing(y, packed_y, pack);
        ASSERT_EQ(pack, packed_x.elempack);
        const std::vector<Mat> sums = run_layer(*layer, {packed_x, packed_y});
        ASSERT_EQ(1u, sums.size());
        Mat sum;
        convert_packing(sums[0], sum, 1);
        for (int q = 0; q < sum.c; q++)
            for (int i = 0; i < sum.w * sum.h; i++)
                ASSERT_EQ((float)(q + 1), sum.channel(q)[i]) << q << " " << i << ", " << pack;
    }
}

}  // namespace quoll
