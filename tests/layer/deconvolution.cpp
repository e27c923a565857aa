#include "layer_test.h"

namespace quoll {

static LayerCase deconv(Shape in, int outputs, int kernel, const std::string& more = "") {
    const int terms = in.c * kernel * kernel;
    return LayerCase({in}, "0=" + std::to_string(outputs) + " 1=" + std::to_string(kernel) +
                               " 6=" + std::to_string(outputs * terms) + " " + more)
        .terms(terms);
}

static const std::vector<LayerCase> kCases = {
    deconv(Shape(9, 7, 1), 1, 1, "5=1"),
    deconv(Shape(5, 6, 16), 8, 2, "3=2 5=1 9=1"),
    deconv(Shape(5, 6, 8), 16, 4, "3=2 4=1 5=1 9=2 -23310=1,0.1"),
    deconv(Shape(5, 6, 13), 7, 3, "4=1 9=3 -23310=2,-0.3,0.4"),
    deconv(Shape(5, 6, 4), 12, 3, "2=2 3=3 4=2 14=1 15=0 16=3 5=1 9=4"),
    deconv(Shape(5, 6, 4), 4, 3, "3=2 13=1 4=1 18=1 19=0 5=1 9=5"),
    deconv(Shape(5, 6, 32), 4, 4, "3=2 4=-233 20=10 21=12 5=1 9=6 -23310=2,0.2,0.5"),
    deconv(Shape(5, 6, 3), 16, 3, "3=2 4=-234 20=10 21=12 18=1"),
    deconv(Shape(5, 6, 3), 5, 3, "3=2 4=-234 18=2"),
    // Phases that no tap meets, tiles of every number of rows, panels of every width.
    deconv(Shape(4, 3, 4), 8, 1, "3=3 18=2 5=1 9=1"),
    deconv(Shape(2, 3, 8), 3, 2, "3=5 13=1 2=3 5=1"),
    deconv(Shape(35, 3, 8), 16, 2, "3=2 5=1"),
    deconv(Shape(17, 2, 12), 36, 3, "3=2 4=1 5=1 9=2 -23310=1,0.1"),
    deconv(Shape(3, 3, 40), 50, 4, "3=2 4=1 18=1 5=1 9=5"),
    deconv(Shape(9), 4, 3, "3=2 5=1"),
    deconv(Shape(9, 4), 16, 3, "4=1 3=2"),
    // Few output channels, in more than one band of rows.
    deconv(Shape(33, 70, 24), 3, 5, "3=2 4=2 18=1 5=1 9=2 -23310=1,0.1"),
    deconv(Shape(50, 60, 16), 8, 4, "3=2 4=1 5=1 9=1"),
    deconv(Shape(7, 5, 5), 2, 3, "3=1 13=3 2=2 4=2 9=4"),
    // The pads leave a small part of what a wide kernel reaches.
    deconv(Shape(3, 3, 4), 4, 9, "2=40 4=150"),
    deconv(Shape(3, 3, 4), 4, 2, "2=5000 4=2500"),
    // Windows side by side, in blocks of all sizes.
    deconv(Shape(5, 4, 16), 24, 2, "3=2 5=1 9=1"),
    deconv(Shape(5, 4, 48), 16, 2, "3=2 5=1 9=2 -23310=1,0.1"),
    deconv(Shape(3, 4, 8), 6, 3, "3=3 5=1"),
    LayerCase({Shape(5, 6, 4), Shape(3, 2, 8, 4), Shape(8)}, "3=2 4=1 5=1 28=1").terms(24),
    LayerCase({Shape(5, 6, 6), Shape(2, 2, 3, 6)}, "4=-233 20=4 21=5 28=1 9=1").terms(24),
    // A blob of two axes is one channel.
    LayerCase({Shape(9, 7)}, "0=8 1=1 6=8 5=1"),
    LayerCase({Shape(9, 7)}, "0=3 1=3 6=27 3=2 4=1").terms(9),
};
QUOLL_LAYER_CASES(Deconvolution, kCases)

TEST(Deconvolution, by_hand) {
    const Mat x = mat_of(Shape(2, 1, 1), {1, 2}), kernel = mat_of(Shape(3), {1, 10, 100});
    const std::string row = "0=1 1=3 11=1 6=3 ";
    expect_values("Deconvolution", row, {kernel}, {x}, mat_of(Shape(4, 1, 1), {1, 12, 120, 200}));
    expect_values("Deconvolution", row + "3=2", {kernel}, {x},
                  mat_of(Shape(5, 1, 1), {1, 10, 102, 20, 200}));
    expect_values("Deconvolution", row + "2=2", {kernel}, {x},
                  mat_of(Shape(6, 1, 1), {1, 2, 10, 20, 100, 200}));
    expect_values("Deconvolution", row + "4=1 14=0 15=2", {kernel}, {x},
                  mat_of(Shape(1, 1, 1), {12}));
    expect_values(
        "Deconvolution", row + "5=1 18=1 19=1 9=3 -23310=2,0,50",
        {kernel, mat_of(Shape(1), {0.5f})}, {x},
        mat_of(Shape(5, 2, 1), {1.5f, 12.5f, 50, 50, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f}));
    // Cut from 4 to 3: the odd column goes at the end (upper) or at the beginning (lower).
    expect_values("Deconvolution", row + "4=-233 20=3 21=1", {kernel}, {x},
                  mat_of(Shape(3, 1, 1), {1, 12, 120}));
    expect_values("Deconvolution", row + "4=-234 20=3 21=1", {kernel}, {x},
                  mat_of(Shape(3, 1, 1), {12, 120, 200}));
}

TEST(Deconvolution, channels_by_hand) {
    const Mat x = mat_of(Shape(1, 1, 2), {1, 2});
    // weight_data is [num_output][num_input], a dynamic weight [num_input][num_output].
    expect_values("Deconvolution", "0=2 1=1 6=4", {mat_of(Shape(4), {1, 10, 100, 1000})}, {x},
                  mat_of(Shape(1, 1, 2), {21, 2100}));
    expect_values("Deconvolution", "28=1", {}, {x, mat_of(Shape(1, 1, 2, 2), {1, 10, 100, 1000})},
                  mat_of(Shape(1, 1, 2), {201, 2010}));
}

TEST(Deconvolution, refuses_what_does_not_fit) {
    EXPECT_EQ(nullptr, make_layer("Deconvolution", "0=1 1=2 6=5", {Mat(5)}));
    EXPECT_EQ(nullptr, make_layer("Deconvolution", "0=1 1=1 6=1", {Mat(Shape(1, DType::s8))}));
    const LayerPtr cut = make_layer("Deconvolution", "0=1 1=1 6=1 4=2", {Mat(1)});
    ASSERT_NE(nullptr, cut);
    EXPECT_TRUE(run_layer(*cut, {Mat(4, 5, 1)}).empty());
    const LayerPtr larger = make_layer("Deconvolution", "0=1 1=1 6=1 4=-233 20=9", {Mat(1)});
    ASSERT_NE(nullptr, larger);
    EXPECT_TRUE(run_layer(*larger, {Mat(4, 5, 1)}).empty());
}

}  // namespace quoll
