#include "layer_test.h"

namespace quoll {

static std::vector<LayerCase> cases() {
    std::vector<LayerCase> all;
    for (const char* type : {"0=0 ", "0=1 ", "0=1 6=1 "}) {
        const auto add = [&](Shape in, const std::string& params, double terms) {
            all.push_back(LayerCase({in}, type + params).terms(terms));
        };
        for (const char* mode : {"5=0", "5=1", "5=2", "5=3"}) {
            add(Shape(9, 7, 3), std::string("1=2 2=1 ") + mode, 4);
            add(Shape(9, 8, 16), std::string("1=2 2=2 ") + mode, 4);
            add(Shape(10, 9, 17), std::string("1=2 2=2 ") + mode, 4);
            add(Shape(12, 8, 9), std::string("1=4 2=4 11=3 12=3 ") + mode, 12);
            add(Shape(10, 9, 12), std::string("1=3 2=2 3=1 ") + mode, 9);
            add(Shape(13, 12, 8), std::string("1=5 2=3 11=4 12=2 ") + mode, 20);
            add(Shape(11, 12, 7), std::string("1=3 2=4 ") + mode, 9);
            add(Shape(10, 11, 8), std::string("1=1 2=4 11=3 12=3 ") + mode, 9);
        }
        add(Shape(9, 7, 4), "1=3 2=2 3=1 14=0 13=0 15=1", 9);
        add(Shape(9, 7, 24), "4=1", 63);
        add(Shape(9, 7, 13), "4=1", 63);
        add(Shape(9, 7, 16), "7=1 8=4 18=3", 12);
        add(Shape(9, 7, 5), "7=1 8=-233 18=2", 4);
        add(Shape(4, 3, 12), "7=1 8=7", 1);
        add(Shape(9, 7, 16), "7=1 8=1", 63);
        add(Shape(9, 7, 5), "7=1 8=1", 63);
        add(Shape(9, 7), "1=2 2=2", 4);
        for (int channels : {3, 8, 16}) {  // columns
            add(Shape(1, 21, channels), "1=1 11=2 12=2 5=1", 2);
            add(Shape(1, 40, channels), "1=1 11=3 12=1 13=1 3=0", 3);
            add(Shape(1, 19, channels), "1=3 2=2 3=1", 9);
        }
    }
    for (const char* params :
         {"1=3 2=2 3=1", "1=2 2=2 5=1", "1=3 2=1 5=2", "1=3 2=4", "4=1", "7=1 8=4 18=3"})
        for (int channels : {3, 4, 8, 16})
            all.push_back(LayerCase({Shape(9, 7, channels, DType::s8)}, params).range(-128, 127));
    all.push_back(LayerCase({Shape(1, 9, 8, DType::s8)}, "1=1 11=2 12=2 5=1").range(-128, 127));
    return all;
}
static const std::vector<LayerCase> kCases = cases();
QUOLL_LAYER_CASES(Pooling, kCases)

static Mat image() { return mat_of(Shape(3, 3, 1), {1, 2, 3, 4, 5, 6, 7, 8, 9}); }

TEST(Pooling, pad_modes_by_hand) {
    // Full pads a tail on the right and below, valid leaves it out.
    expect_values("Pooling", "0=0 1=2 2=2 5=0", {}, {image()},
                  mat_of(Shape(2, 2, 1), {5, 6, 8, 9}));
    expect_values("Pooling", "0=0 1=2 2=2 5=1", {}, {image()}, mat_of(Shape(1, 1, 1), {5}));
    expect_values("Pooling", "0=0 1=2 2=1 5=2", {}, {image()},
                  mat_of(Shape(3, 3, 1), {5, 6, 6, 8, 9, 9, 8, 9, 9}));
    expect_values("Pooling", "0=0 1=2 2=1 5=3", {}, {image()},
                  mat_of(Shape(3, 3, 1), {1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

// If windows end before the axis does, SAME modes cut pixels off, as in ncnn.
TEST(Pooling, strides_beyond_the_window_by_hand) {
    const Mat row = mat_of(Shape(4, 1, 1), {1, 2, 3, 4});
    const char* const window = "0=0 1=1 2=2 11=2 12=1 5=";
    expect_values("Pooling", std::string(window) + "2", {}, {row}, mat_of(Shape(2, 1, 1), {1, 3}));
    expect_values("Pooling", std::string(window) + "3", {}, {row}, mat_of(Shape(2, 1, 1), {2, 4}));
}

TEST(Pooling, averages_by_hand) {
    // Tails and pads do not count, unless asked for.
    expect_values("Pooling", "0=1 1=2 2=2 5=0", {}, {image()},
                  mat_of(Shape(2, 2, 1), {3, 4.5f, 7.5f, 9}));
    expect_values("Pooling", "0=1 1=2 2=2 5=0 6=1", {}, {image()},
                  mat_of(Shape(2, 2, 1), {3, 2.25f, 3.75f, 2.25f}));
    expect_values("Pooling", "0=1 1=2 2=2 3=1 5=1", {}, {image()},
                  mat_of(Shape(2, 2, 1), {1, 2.5f, 5.5f, 7}));
    expect_values("Pooling", "0=1 1=2 2=2 3=1 5=1 6=1", {}, {image()},
                  mat_of(Shape(2, 2, 1), {0.25f, 1.25f, 2.75f, 7}));
    // The padding of SAME counts.
    expect_values("Pooling", "0=1 1=2 2=2 5=2", {}, {image()},
                  mat_of(Shape(2, 2, 1), {3, 2.25f, 3.75f, 2.25f}));
}

TEST(Pooling, global_and_adaptive_by_hand) {
    expect_values("Pooling", "0=0 4=1", {}, {image()}, mat_of(Shape(1), {9}));
    expect_values("Pooling", "0=1 4=1", {}, {image()}, mat_of(Shape(1), {5}));
    // Rows 0..1 and 1..2, columns alike.
    expect_values("Pooling", "0=1 7=1 8=2", {}, {image()}, mat_of(Shape(2, 2, 1), {3, 4, 6, 7}));
    expect_values("Pooling", "0=0 7=1 8=-233 18=1", {}, {image()},
                  mat_of(Shape(3, 1, 1), {7, 8, 9}));
}

TEST(Pooling, refuses_what_does_not_fit) {
    for (const char* params : {"", "0=2 1=2", "1=2 5=4", "1=2 2=0", "7=1", "7=1 8=-1", "1=2 3=-1"})
        EXPECT_EQ(nullptr, make_layer("Pooling", params)) << params;
    const LayerPtr layer = make_layer("Pooling", "1=5 5=1");
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(4, 6, 1)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(6, 6, 6, 1)}).empty());
}

}  // namespace quoll
