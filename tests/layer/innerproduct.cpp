#include "conv_case.h"

namespace quoll {

static LayerCase product(Shape in, int outputs, int num_input, const std::string& more = "") {
    return LayerCase({in}, "0=" + std::to_string(outputs) +
                               " 2=" + std::to_string(outputs * num_input) + " " + more)
        .terms(num_input);
}

static const std::vector<LayerCase> kCases = {
    product(Shape(1), 1, 1, "1=1"),
    product(Shape(64), 16, 64, "1=1 9=1"),
    product(Shape(67), 13, 67, "1=1 9=4"),
    product(Shape(128), 33, 128, "9=5"),
    product(Shape(12, 9), 8, 12, "1=1 9=2 -23310=1,0.1"),
    product(Shape(16, 16), 24, 16, "1=1 9=6 -23310=2,0.2,0.5"),
    product(Shape(9, 12), 8, 108, "1=1"),
    product(Shape(5, 7, 16), 12, 560, "1=1 9=3 -23310=2,-0.3,0.4"),
    product(Shape(3, 3, 13), 32, 117, "9=1"),
    product(Shape(3, 2, 4, 8), 4, 192, "1=1"),
    product(Shape(1030), 150, 1030, "1=1 9=1"),
    product(Shape(1300, 33), 49, 1300, "1=1 9=5"),
    product(Shape(257, 2), 1, 257, "9=4"),
    product(Shape(48), 16, 48, "1=1 8=1"),
    product(Shape(20, 8), 12, 20, "1=1 8=1 9=1"),
    product(Shape(4, 5, 3), 7, 60, "8=2").int8_weights(),
    product(Shape(24, 4, DType::s8), 8, 24, "1=1 8=1").range(-127, 127).int8_weights(),
    product(Shape(20, 8), 12, 20, "1=1 8=1 26=2 9=1").int8_weights(),
    product(Shape(4, 5, 3), 7, 60, "8=2 26=2").int8_weights().range(0.5f, 3),
    int16(product(Shape(20, 8), 12, 20, "1=1 8=1 26=3 9=1")),
    int16(product(Shape(4, 5, 3), 7, 60, "8=2 26=3 9=4")),
    product(Shape(35, 4, DType::s8), 9, 35, "1=1 8=1 26=1 27=-128 9=1")
        .range(-128, 127)
        .int8_weights(),
    product(Shape(35, 4, DType::s8), 9, 35, "1=1 8=1 26=1 27=-128 9=1 24=0.01 25=-128")
        .range(-128, 127)
        .int8_weights(),
    product(Shape(80, 33, DType::s8), 150, 80, "8=1 26=1 27=5 24=0.01 25=3")
        .range(-128, 127)
        .int8_weights(),
    product(Shape(64, 12, DType::s8), 48, 64, "1=1 8=1 26=1 9=4 24=250 25=-128")
        .range(-128, 127)
        .int8_weights(),
    product(Shape(64, DType::s8), 48, 64, "1=1 8=1 26=1 24=0.02").range(-128, 127).int8_weights(),
};
QUOLL_LAYER_CASES(InnerProduct, kCases)

TEST(InnerProduct, by_hand) {
    const Mat weight = mat_of(Shape(6), {1, 2, 3, 4, 5, 6}), bias = mat_of(Shape(2), {0.5f, -40});
    expect_values("InnerProduct", "0=2 1=1 2=6 9=2 -23310=1,0.5", {weight, bias},
                  {mat_of(Shape(3), {1, 2, 3})}, mat_of(Shape(2), {14.5f, -4}));
    // A row each.
    expect_values("InnerProduct", "0=2 2=6", {weight}, {mat_of(Shape(3, 2), {1, 2, 3, 0, 0, 1})},
                  mat_of(Shape(2, 2), {14, 32, 3, 6}));
    // Otherwise flat, in order c, h, w.
    expect_values("InnerProduct", "0=1 2=8", {mat_of(Shape(8), {1, 2, 3, 4, 5, 6, 7, 8})},
                  {mat_of(Shape(2, 1, 2, 2), {1, 0, 1, 0, 0, 0, 0, 1})}, mat_of(Shape(1), {12}));
}

TEST(InnerProduct, int8_by_hand) {
    // Input 0.26 * 10 -> 3, weights 1.2 * 2 -> 2 and -1.2 * 4 -> -5.
    expect_values("InnerProduct", "0=2 1=1 2=2 8=1",
                  {mat_of(Shape(2), {1.2f, -1.2f}), mat_of(Shape(2), {1, 1}),
                   mat_of(Shape(2), {2, 4}), mat_of(Shape(1), {10})},
                  {mat_of(Shape(1), {0.26f})}, mat_of(Shape(2), {1.3f, 0.625f}));
}

TEST(InnerProduct, refuses_what_does_not_fit) {
    EXPECT_EQ(nullptr, make_layer("InnerProduct", "0=2 2=5", {Mat(5)}));
    EXPECT_EQ(nullptr, make_layer("InnerProduct", "0=0 2=5", {Mat(5)}));
    const LayerPtr layer = make_layer("InnerProduct", "0=2 2=6", {Mat(6)});
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(4)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 2, 1)}).empty());
}

TEST(InnerProduct, int16_by_hand) {
    Mat weight(4, (size_t)1u);
    for (int i = 0; i < 4; i++) ((signed char*)weight.data)[i] = (signed char)(i - 1);
    const std::vector<Mat> weights = {weight, mat_of(Shape(2), {1, 2}), mat_of(Shape(1), {100})};
    // 5 / 1000 is half a step, and goes to the even one; 32639 steps are the most.
    expect_values("InnerProduct", "0=2 2=4 8=1 26=3", weights,
                  {mat_of(Shape(2, 3), {1.234f, 123.45f, 0.005f, 0.015f, -1000, 1000})},
                  mat_of(Shape(2, 3), {-1.23f, 124.065f, 0, 0.02f, 326.39f, 163.195f}));
    EXPECT_EQ(nullptr, make_layer("InnerProduct", "0=2 2=4 8=1 26=3 27=3", weights));
}

TEST(InnerProduct, range_by_hand) {
    Mat weight(4, (size_t)1u);
    for (int i = 0; i < 4; i++) ((signed char*)weight.data)[i] = (signed char)(i - 1);
    const Mat scales = mat_of(Shape(2), {1, 2});
    // -1 to 1.55 in steps of 0.01 from zero point 100 (u8): 0, 150, 200 and 255.
    expect_values("InnerProduct", "0=2 2=4 8=1 26=2", {weight, scales},
                  {mat_of(Shape(2, 2), {-1, 0.5f, 1, 1.55f})},
                  mat_of(Shape(2, 2), {1, 0, -1, 2.05f}));
    expect_values("InnerProduct", "0=2 2=4 8=1 26=2", {weight, scales},
                  {mat_of(Shape(2, 1), {0, 0})}, mat_of(Shape(2, 1), {0, 0}));
    EXPECT_EQ(nullptr, make_layer("InnerProduct", "0=2 2=4 8=1 26=2 27=3", {weight, scales}));
}

}  // namespace quoll
