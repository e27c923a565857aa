#include "layer_test.h"

namespace quoll {

static const DType u8 = DType::u8, s8 = DType::s8;

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(5, 4, u8), Shape(3, 5, s8)}, "-23304=1,9 -23305=3,1,2,3").range(0, 120),
    LayerCase({Shape(5, 4, s8), Shape(3, 5, s8)}, "0=1 1=1 -23304=4,1,2,3,4").range(-120, 120),
    LayerCase({Shape(5, s8), Shape(3, 5, u8)}, "").range(0, 120),
    LayerCase({Shape(5, 4, s8), Shape(5, u8)}, "").range(0, 120),
    LayerCase({Shape(5, s8), Shape(5, u8)}, "").range(0, 120),
    LayerCase(
        {Shape(5, 4, 2, 3, u8), Shape(6, 5, 2, s8), Shape(1, 4, 2, 3, u8), Shape(6, 1, 2, s8)},
        "2=1 3=1")
        .range(0, 120),
    LayerCase({Shape(5, 4, u8), Shape(6, 5, 3, s8), Shape(4, u8), Shape(6, s8)}, "2=1 3=1")
        .range(0, 120),
    LayerCase({Shape(70, 33, u8), Shape(67, 70, u8)}, "-23304=1,7 -23305=1,131").range(0, 255),
    LayerCase({Shape(64, 17, u8), Shape(48, 64, s8)}, "-23304=1,7 -23305=1,-3").range(0, 120),
    LayerCase({Shape(12, 9, 2, 3, s8), Shape(33, 12, 2, 3, u8)}, "-23305=1,99").range(0, 120),
    LayerCase({Shape(40, 2, 3, u8)}, "-23304=1,7 -23305=1,99 1=1 6=35 7=1400")
        .range(0, 255)
        .int8_weights()
        .weights("weight_data", -127, 127),
    LayerCase({Shape(40, 3, u8), Shape(1, u8), Shape(1, u8)}, "2=1 3=1 6=35 7=1400")
        .range(0, 255)
        .int8_weights()
        .weights("weight_data", -127, 127),
    LayerCase({Shape(40, 3, 2)}, "-23305=1,9 6=35 7=1400 8=1 9=1")
        .int8_weights()
        .weights("weight_data", -127, 127)
        .weights("weight_scales", 0.01f, 0.02f)
        .terms(2)
        .term_magnitude(100),
    // s8 results.
    LayerCase({Shape(64, 17, s8), Shape(53, 64, s8)}, "-23304=1,7 -23305=1,-3 10=1e-3 11=5")
        .range(-128, 127),
    LayerCase({Shape(67, 29, 3, s8), Shape(96, 67, 3, s8)}, "-23304=1,-128 10=5e-4 11=-128")
        .range(-128, 127),
    LayerCase({Shape(12, 9, 2, 3, s8), Shape(33, 12, 2, 1, s8)}, "-23305=1,99 10=2e-3")
        .range(-128, 127),
    LayerCase({Shape(5, s8), Shape(5, s8)}, "10=0.01").range(-128, 127),
};
QUOLL_LAYER_CASES(MatMulInteger, kCases)

TEST(MatMulInteger, by_hand) {
    // ONNX's own example: zero points 12 and 0.
    const Mat a = mat_of(Shape(3, 4, u8), {11, 7, 3, 10, 6, 2, 9, 5, 1, 8, 4, 0});
    const Mat b = mat_of(Shape(2, 3, u8), {1, 4, 2, 5, 3, 6});
    expect_values("MatMulInteger", "-23304=1,12 -23305=1,0", {}, {a, b},
                  mat_of(Shape(2, 4, DType::s32), {-38, -83, -44, -98, -50, -113, -56, -128}));
    // A zero point per row, and one per column.
    expect_values("MatMulInteger", "-23304=2,1,2 -23305=2,3,4", {},
                  {mat_of(Shape(1, 2, u8), {3, 3}), mat_of(Shape(2, 1, s8), {5, -6})},
                  mat_of(Shape(2, 2, DType::s32), {4, -20, 2, -10}));
}

// Extreme bytes and zero points, long sums: exact.
TEST(MatMulInteger, is_exact) {
    for (int k : {1, 3, 4, 5, 128, 1031}) {
        for (int n : {1, 16, 31, 65}) {
            std::vector<float> a(3 * k), b(k * n);
            std::vector<int> want(3 * n);
            std::vector<int> za = {0, 255, 77}, zb(n);
            std::string zeros = " -23305=" + std::to_string(n);
            for (size_t i = 0; i < a.size(); i++) a[i] = i % 3 == 0 ? 255.f : (float)(i * 37 % 256);
            for (size_t i = 0; i < b.size(); i++) b[i] = i % 5 == 0 ? 0.f : (float)(i * 53 % 256);
            for (int j = 0; j < n; j++) {
                zb[j] = j % 3 == 0 ? 255 : j * 29 % 256;
                zeros += "," + std::to_string(zb[j]);
            }
            for (int m = 0; m < 3; m++) {
                for (int j = 0; j < n; j++) {
                    double sum = 0;
                    for (int i = 0; i < k; i++)
                        sum += (a[m * k + i] - za[m]) * (b[i * n + j] - zb[j]);
                    want[m * n + j] = (int)sum;
                }
            }
            const LayerPtr layer =
                make_layer("MatMulInteger", "-23304=3,0,255,77" + zeros, {}, 2, 1, false);
            const std::vector<Mat> got =
                run_layer(*layer, {mat_of(Shape(k, 3, u8), a), mat_of(Shape(n, k, u8), b)});
            ASSERT_EQ(1u, got.size());
            for (int i = 0; i < 3 * n; i++)
                ASSERT_EQ(want[i], ((const int*)got[0].data)[i]) << k << " " << n << " " << i;
        }
    }
}

TEST(MatMulInteger, ranged_by_hand) {
    // The range of x is -1 to 4: scale 5 / 255, zero point 51. 2 is 153, so that what is multiplied
    // is 204, -51 and 102 by -1, -200 and 55 (bytes 199, 0 and 255, zero point 200).
    const Mat w = mat_of(Shape(3, DType::s8), {(float)(199 - 256), 0, (float)(255 - 256)});
    const float scale = 5.f / 255.f;
    const float sum = 204 * -1.f + -51 * -200.f + 102 * 55.f;
    expect_values("MatMulInteger", "1=1 -23305=1,200 6=1 7=3 8=1 9=1",
                  {w, mat_of(Shape(1), {0.5f}), mat_of(Shape(1), {3})},
                  {mat_of(Shape(3, 1), {4, -1, 2})},
                  mat_of(Shape(1, 1), {sum * (0.5f * scale) + 3}));
}

TEST(MatMulInteger, refuses_what_does_not_fit) {
    const LayerPtr layer = make_layer("MatMulInteger", "-23304=2,1,2", {}, 2);
    ASSERT_NE(nullptr, layer);
    const Mat row = mat_of(Shape(2, 1, s8), {1, 2}), two = mat_of(Shape(2, 2, s8), {1, 2, 3, 4});
    EXPECT_TRUE(run_layer(*layer, {row, two}).empty());
    EXPECT_TRUE(run_layer(*layer, {two, row}).empty());
    EXPECT_TRUE(run_layer(*layer, {two, Mat(2, 2)}).empty());
    EXPECT_EQ(1u, run_layer(*layer, {two, two}).size());
}

}  // namespace quoll
