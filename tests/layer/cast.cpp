#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, "0=1 1=1"),
    LayerCase({Shape(5, 8)}, "0=1 1=3").range(-130, 130),
    LayerCase({Shape(5, 3, 16)}, "0=0 1=3").range(-130, 130),
    LayerCase({Shape(5, 3, 16, DType::s8)}, "0=3 1=1").range(-127, 127),
    LayerCase({Shape(5, 3, 2, 16)}, ""),
};
QUOLL_LAYER_CASES(Cast, kCases)

// Through `to` and back to f32.
static Mat there_and_back(const Mat& x, const std::string& to, DType dtype) {
    const std::vector<Mat> there = run_layer(*make_layer("Cast", "0=1 1=" + to), {x});
    if (there.size() != 1 || there[0].dtype != dtype) return Mat();
    const std::vector<Mat> back = run_layer(*make_layer("Cast", "0=" + to + " 1=1"), there);
    return back.size() == 1 ? back[0] : Mat();
}

TEST(Cast, by_hand) {
    const Mat x = mat_of(Shape(4), {1.00097656f, -2.6f, 300, 0.5f});
    EXPECT_TRUE(nearly_equal(there_and_back(x, "2", DType::f16),
                             mat_of(Shape(4), {1.00097656f, -2.599609375f, 300, 0.5f}),
                             Tolerance()));
    EXPECT_TRUE(nearly_equal(there_and_back(x, "4", DType::bf16),
                             mat_of(Shape(4), {1, -2.59375f, 300, 0.5f}), Tolerance()));
    EXPECT_TRUE(nearly_equal(there_and_back(x, "3", DType::s8), mat_of(Shape(4), {1, -3, 127, 1}),
                             Tolerance()));
    const Mat half = run_layer(*make_layer("Cast", "1=2"), {x})[0];
    EXPECT_EQ(DType::bf16, run_layer(*make_layer("Cast", "0=2 1=4"), {half})[0].dtype);
    EXPECT_TRUE(run_layer(*make_layer("Cast", "1=1"), {Mat(Shape(3, DType::s32))}).empty());
}

}  // namespace quoll
