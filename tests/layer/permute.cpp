#include "layer_test.h"

#include <array>

namespace quoll {

static std::vector<LayerCase> cases() {
    std::vector<LayerCase> list = {LayerCase({Shape(16)}, "0=0")};
    for (int i = 0; i < 2; i++) list.push_back(LayerCase({Shape(8, 16)}, "0=" + std::to_string(i)));
    for (int i = 0; i < 6; i++) {
        list.push_back(LayerCase({Shape(5, 3, 8)}, "0=" + std::to_string(i)));
        list.push_back(LayerCase({Shape(8, 16, 12)}, "0=" + std::to_string(i)));
    }
    for (int i = 0; i < 24; i++)
        list.push_back(LayerCase({Shape(3, 4, 2, 8)}, "0=" + std::to_string(i)));
    list.push_back(LayerCase({Shape(5, 3, 8, DType::s8)}, "0=3").range(-127, 127));
    // Axes of one element, innermost in the input or in the output.
    for (const char* order : {"0=2", "0=7", "0=13", "0=23"}) {
        list.push_back(LayerCase({Shape(1, 1, 5, 3)}, order));
        list.push_back(LayerCase({Shape(1, 7, 1, 16)}, order));
        list.push_back(LayerCase({Shape(9, 1, 5, 1)}, order));
    }
    return list;
}
static const std::vector<LayerCase> kCases = cases();
QUOLL_LAYER_CASES(Permute, kCases)

TEST(Permute, by_hand) {
    expect_values("Permute", "0=1", {}, {mat_of(Shape(3, 2), {1, 2, 3, 4, 5, 6})},
                  mat_of(Shape(2, 3), {1, 4, 2, 5, 3, 6}));
    // Channels become columns, columns rows, rows channels: c w h.
    expect_values("Permute", "0=3", {}, {mat_of(Shape(2, 1, 2), {1, 2, 3, 4})},
                  mat_of(Shape(2, 2, 1), {1, 3, 2, 4}));
}

// The shape tells which axis went where: sizes 2, 3, 4, 5 stand for w, h, d, c.
TEST(Permute, orders_of_4_axes) {
    const std::array<int, 4> want[24] = {
        {2, 3, 4, 5}, {3, 2, 4, 5}, {2, 4, 3, 5}, {4, 2, 3, 5}, {3, 4, 2, 5}, {4, 3, 2, 5},
        {2, 3, 5, 4}, {3, 2, 5, 4}, {2, 5, 3, 4}, {5, 2, 3, 4}, {3, 5, 2, 4}, {5, 3, 2, 4},
        {2, 4, 5, 3}, {4, 2, 5, 3}, {2, 5, 4, 3}, {5, 2, 4, 3}, {4, 5, 2, 3}, {5, 4, 2, 3},
        {3, 4, 5, 2}, {4, 3, 5, 2}, {3, 5, 4, 2}, {5, 3, 4, 2}, {4, 5, 3, 2}, {5, 4, 3, 2}};
    for (int i = 0; i < 24; i++) {
        const LayerPtr layer = make_layer("Permute", "0=" + std::to_string(i));
        std::vector<Shape> out;
        ASSERT_EQ(0, layer->infer_shapes({Shape(2, 3, 4, 5)}, out));
        EXPECT_EQ(Shape(want[i][0], want[i][1], want[i][2], want[i][3]), out[0]) << i;
    }
}

TEST(Permute, refuses_orders_that_are_none) {
    EXPECT_EQ(nullptr, make_layer("Permute", "0=24"));
    EXPECT_TRUE(run_layer(*make_layer("Permute", "0=6"), {Mat(2, 3, 4)}).empty());
    EXPECT_TRUE(run_layer(*make_layer("Permute", "0=2"), {Mat(2, 3)}).empty());
}

}  // namespace quoll
