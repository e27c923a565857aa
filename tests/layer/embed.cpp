#include "layer_test.h"

namespace quoll {

static LayerCase words(int count, int size, int table, const std::string& more) {
    return LayerCase({Shape(count, DType::s32)},
                     "0=" + std::to_string(size) + " 1=" + std::to_string(table) +
                         " 3=" + std::to_string(size * table) + " " + more)
        .range(-2, (float)table + 2);
}

static const std::vector<LayerCase> kCases = {
    words(1, 1, 1, ""),
    words(7, 33, 12, "2=1"),
    words(16, 8, 100, ""),
    words(5, 12, 9, "2=1 18=1").int8_weights().weights("weight_data_int8_scale", 10, 20),
};
QUOLL_LAYER_CASES(Embed, kCases)

TEST(Embed, by_hand) {
    const Mat table = mat_of(Shape(6), {1, 2, 3, 4, 5, 6}), bias = mat_of(Shape(2), {10, 20});
    const Mat words = mat_of(Shape(4, DType::s32), {2, 0, -7, 99});
    const Mat want = mat_of(Shape(2, 4), {15, 26, 11, 22, 11, 22, 15, 26});
    expect_values("Embed", "0=2 1=3 2=1 3=6", {table, bias}, {words}, want);
    // Ints in a Mat that is tagged f32, of one row.
    expect_values("Embed", "0=2 1=3 2=1 3=6", {table, bias}, {Mat(4, 1, words.data)}, want);
}

TEST(Embed, refuses_what_does_not_fit) {
    EXPECT_EQ(nullptr, make_layer("Embed", "0=2 1=3 3=5", {Mat(5)}));
    const LayerPtr layer = make_layer("Embed", "0=2 1=3 3=6", {Mat(6)});
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(Shape(2, 2, DType::s32))}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(Shape(4, DType::s8))}).empty());
}

}  // namespace quoll
