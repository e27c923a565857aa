#include <math.h>

#include <algorithm>
#include <cmath>

#include "layer/common/block_quant.h"
#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(9, 7), Shape(5, 9)}, "").terms(10),
    LayerCase({Shape(7, 9), Shape(9, 5), Shape(5, 7)}, "0=0.5 1=2.0 2=1 3=1 14=1").terms(10),
    LayerCase({Shape(9, 7), Shape(5, 9)}, "6=1 7=7 8=5 10=4").terms(10),
    LayerCase({Shape(65, 33)}, "3=1 5=1 6=1 8=50 9=65 10=4").terms(66),
    LayerCase({Shape(130, 1)}, "3=1 5=1 6=1 8=70 9=130 10=-1").terms(131),
    LayerCase({Shape(136, 1)}, "0=0.5 1=2.0 3=1 5=1 6=1 8=70 9=136 10=4").terms(137),
    LayerCase({Shape(1028, 3), Shape(1, 3)}, "3=1 5=1 8=33 9=1028").terms(1029),
    LayerCase({Shape(20, 1, 13)}, "5=1 6=1 7=13 8=48 9=20 10=1 11=1").terms(21),
    LayerCase({Shape(13, 20)}, "0=1.5 2=1 3=1 5=1 6=1 7=13 8=48 9=20 10=3 11=1 14=1").terms(31),
    LayerCase({Shape(20), Shape(17)}, "3=1 5=1 8=17 9=20").terms(21),
    LayerCase({Shape(20, 4), Shape(1, 4)}, "1=-0.5 3=1 5=1 8=33 9=20").terms(21),
    LayerCase({Shape(21, 19)}, "4=1 6=1 7=6 8=21 9=19 10=4").terms(20),
    LayerCase({Shape(19, 1)}, "2=1 3=1 4=1 6=1 7=33 9=19 10=0 14=1").terms(20),
    LayerCase({Shape(19, 21), Shape(1)}, "2=1 3=1 4=1 7=35 9=19").terms(20),
    LayerCase({}, "4=1 5=1 6=1 7=35 8=24 9=24 10=-1 14=1").terms(24),
    LayerCase({Shape(8, 5)}, "4=1 5=1 7=5 8=8 9=12 10=-1").terms(13),
    LayerCase({Shape(9, 7), Shape(5, 9)}, "18=2").terms(10),
    LayerCase({Shape(30, 6), Shape(11)}, "2=0 3=1 5=1 8=11 9=30 18=2")
        .weights("B_data_int8_scale", 100, 127)
        .int8_weights()
        .terms(31),
    LayerCase({Shape(30, 19), Shape(21)}, "0=1.5 1=0.5 5=1 8=21 9=30 11=1 18=2")
        .weights("B_data_int8_scale", 100, 127)
        .int8_weights()
        .terms(31),
    LayerCase({Shape(64)}, "3=1 5=1 6=1 8=33 9=64 10=-1 18=2")
        .weights("B_data_int8_scale", 100, 127)
        .int8_weights()
        .terms(64),
    LayerCase({Shape(6, 30)}, "4=1 2=1 6=1 7=11 9=30 10=-1 18=1").int8_weights().terms(30),
    LayerCase({Shape(45, 6)}, "3=1 5=1 6=1 8=7 9=45 10=4 18=410")
        .weights("B_data_quantize_scales", 5, 10)
        .term_magnitude(30)
        .terms(46),
    LayerCase({Shape(45, 6)}, "3=1 5=1 6=1 8=37 9=45 10=4 18=413 23=1")
        .weights("B_data_quantize_scales", 5, 10)
        .weights("B_data_quantize_zeros", -8, 7)
        .term_magnitude(30)
        .terms(46),
    LayerCase({Shape(96, 1)}, "0=0.5 1=2.0 3=1 5=1 6=1 8=7 9=96 10=4 18=410")
        .weights("B_data_quantize_scales", 5, 10)
        .term_magnitude(30)
        .terms(97),
    LayerCase({Shape(256, 1)}, "3=1 5=1 6=1 8=9 9=256 10=-1 18=402 23=1")
        .weights("B_data_quantize_scales", 5, 10)
        .weights("B_data_quantize_zeros", -8, 7)
        .term_magnitude(30)
        .terms(257),
    LayerCase({Shape(2304, 1)}, "3=1 5=1 6=1 8=21 9=2304 10=-1 18=400 23=1")
        .weights("B_data_quantize_scales", 5, 10)
        .weights("B_data_quantize_zeros", -8, 7)
        .term_magnitude(30)
        .terms(2305),
    LayerCase({Shape(96, 1)}, "0=0.5 1=2.0 3=1 5=1 6=1 8=7 9=96 10=4 18=800")
        .weights("B_data_quantize_scales", 50, 100)
        .term_magnitude(30)
        .terms(97),
    LayerCase({Shape(48, 1)}, "3=1 5=1 6=1 8=19 9=48 10=-1 18=803 23=1")
        .weights("B_data_quantize_scales", 50, 100)
        .weights("B_data_quantize_zeros", -128, 127)
        .term_magnitude(30)
        .terms(49),
    LayerCase({Shape(70, 12)}, "3=1 5=1 6=1 8=19 9=70 10=-1 18=800 23=1")
        .weights("B_data_quantize_scales", 50, 100)
        .weights("B_data_quantize_zeros", -128, 127)
        .term_magnitude(30)
        .terms(71),
    LayerCase({Shape(150, 3), Shape(7, 3)}, "3=1 5=1 8=7 9=150 18=602")
        .weights("B_data_quantize_scales", 5, 10)
        .term_magnitude(30)
        .terms(151),
};
QUOLL_LAYER_CASES(Gemm, kCases)

TEST(Gemm, by_hand) {
    const Mat a = mat_of(Shape(2, 2), {1, 2, 3, 4}), b = mat_of(Shape(3, 2), {1, 0, 2, 0, 1, 3});
    const Mat product = mat_of(Shape(3, 2), {1, 2, 8, 3, 4, 18});
    expect_values("Gemm", "", {}, {a, b}, product);
    // alpha (A B + beta C): C is a column, a row, one value.
    expect_values("Gemm", "0=2.0 1=-1.0", {}, {a, b, mat_of(Shape(2), {1, 10})},
                  mat_of(Shape(3, 2), {0, 2, 14, -14, -12, 16}));
    expect_values("Gemm", "", {}, {a, b, mat_of(Shape(3), {1, 2, 3})},
                  mat_of(Shape(3, 2), {2, 4, 11, 4, 6, 21}));
    expect_values("Gemm", "", {}, {a, b, mat_of(Shape(1), {1})},
                  mat_of(Shape(3, 2), {2, 3, 9, 4, 5, 19}));
    // The weight as [N][K], the output as [N][1][M].
    expect_values("Gemm", "3=1 5=1 6=1 8=3 9=2 10=-1 11=1 14=1",
                  {mat_of(Shape(6), {1, 0, 0, 1, 2, 3})}, {a},
                  mat_of(Shape(2, 1, 3), {1, 3, 2, 4, 8, 18}));
    expect_values("Gemm", "2=1 4=1 6=1 7=2 8=3 9=2 10=4",
                  {mat_of(Shape(4), {1, 3, 2, 4}), mat_of(Shape(3), {1, 2, 3})}, {b},
                  mat_of(Shape(3, 2), {2, 4, 11, 4, 6, 21}));
}

TEST(Gemm, int8_by_hand) {
    // A's row has the scale 127 / 2, so 1 becomes round(63.5) = 64; B comes as int8 with scale 10.
    Mat b(Shape(2, DType::s8));
    ((signed char*)b.data)[0] = 20, ((signed char*)b.data)[1] = -30;
    expect_values("Gemm", "3=1 5=1 6=1 8=1 9=2 10=-1 18=1", {b, mat_of(Shape(1), {10})},
                  {mat_of(Shape(2, 1), {1, 2})},
                  mat_of(Shape(1, 1), {(64.f * 20 - 127 * 30) / (63.5f * 10)}));
}

TEST(Gemm, blocks_of_four_bits_by_hand) {
    // 3, -2, -8 as 0x3, 0xE, 0x8; scale 2; factors 1, 2, 3 of the input.
    Mat b(Shape(2, DType::s8));
    ((signed char*)b.data)[0] = (signed char)0xE3, ((signed char*)b.data)[1] = 0x08;
    expect_values("Gemm", "3=1 5=1 6=1 8=1 9=3 10=-1 18=410",
                  {b, mat_of(Shape(1), {2}), mat_of(Shape(3), {1, 2, 3})},
                  {mat_of(Shape(3, 1), {1, 1, 1})}, mat_of(Shape(1, 1), {1.5f - 2 - 12}));
    // Less a zero point of 5.
    expect_values("Gemm", "3=1 5=1 6=1 8=1 9=3 10=-1 18=403 23=1",
                  {b, mat_of(Shape(1), {2}), mat_of(Shape(1), {5})},
                  {mat_of(Shape(3, 1), {1, 1, 1})}, mat_of(Shape(1, 1), {-1 - 3.5f - 6.5f}));
}

TEST(Gemm, blocks_of_three_bits_by_hand) {
    // 3, -2, -4 as 3, 6, 4 of three bits each; scale 2; factors 1, 2, 3 of the input.
    Mat b(Shape(2, DType::s8));
    ((signed char*)b.data)[0] = 0x33, ((signed char*)b.data)[1] = 0x01;
    expect_values("Gemm", "3=1 5=1 6=1 8=1 9=3 10=-1 18=310",
                  {b, mat_of(Shape(1), {2}), mat_of(Shape(3), {1, 2, 3})},
                  {mat_of(Shape(3, 1), {1, 1, 1})}, mat_of(Shape(1, 1), {1.5f - 2 - 6}));
}

namespace {

// A matrix of k x n weights in blocks, and rows that meet it.
struct BlockProduct {
    enum { m = 30, k = 75, n = 37 };
    const BlockQuant quant;
    std::vector<Mat> weights;  // packed, scales, then as the term says zero points and factors
    std::string params;
    Mat a, matrix;  // [n][k]

    // half: what blocks are multiplied by are half floats.
    BlockProduct(int term, bool zeros, bool half) : quant(term), a(k, m), matrix(k, n) {
        const int blocks = (int)quant.blocks(k);
        Mat packed(Shape((int)quant.row_bytes(k) * n, DType::s8)), scales(blocks * n);
        Mat points(blocks * n), factors(k);
        for (int i = 0; i < packed.w; i++)
            ((signed char*)packed.data)[i] = (signed char)uniform(-128, 127);
        for (int i = 0; i < blocks * n; i++)
            scales[i] = half ? 1024.f / (float)uniform(80, 160) : (float)uniform(50, 100) / 8;
        for (int i = 0; i < blocks * n; i++) points[i] = (float)uniform(-4, 4);
        for (int i = 0; i < k; i++) factors[i] = (float)uniform(8, 32) / 16;
        for (int i = 0; i < m * k; i++) a[i] = (float)uniform(-1000, 1000) / 64;
        std::fill_n(a.row(7) + quant.block, std::min<int>(quant.block, k - quant.block), 0.f);
        weights = {packed, scales};
        if (zeros) weights.push_back(points);
        if (quant.input_scales) weights.push_back(factors);
        for (int j = 0; j < n; j++)
            unpack_row(quant, packed, scales, zeros ? points : Mat(),
                       quant.input_scales ? factors : Mat(), j, k, matrix.row(j));
        params = "3=1 5=1 6=1 8=37 9=75 10=-1 18=" + std::to_string(term) + (zeros ? " 23=1" : "");
    }

    Mat run(int rows, int products) const {
        Option opt;
        opt.use_fp32_split = products;
        opt.num_threads = 2;
        const LayerPtr layer = make_layer("Gemm", params, weights, 1, 1, false, opt);
        if (!layer) return Mat();
        const std::vector<Mat> out = run_layer(*layer, {Mat(k, rows, (void*)a.data)}, opt);
        return out.empty() ? Mat() : out[0];
    }

    // error: of each input, as a part of the largest of its block (times the factors).
    void expect(int rows, double error, const Mat& out) const {
        ASSERT_TRUE(out.w == n && out.h == rows);
        const bool scaled = quant.input_scales;
        const auto factor = [&](int x) { return scaled ? (double)weights.back()[x] : 1.; };
        for (int i = 0; i < rows * n; i++) {
            const float *row = a.row(i / n), *column = matrix.row(i % n);
            double want = 0, bound = 1e-4;
            for (int x = 0; x < k; x++) {
                const int first = x / quant.block * quant.block;
                double largest = 0;
                for (int y = first; y < std::min<int>(k, first + quant.block); y++)
                    largest = std::max(largest, fabs(row[y]) * factor(y));
                want += (double)row[x] * column[x];
                bound += largest * (error + 1e-6) * fabs(column[x]) / factor(x);
            }
            ASSERT_NEAR(want, out[i], bound) << params << " of " << rows << " rows, value " << i;
        }
    }

private:
    unsigned state_ = 1;
    int uniform(int low, int high) {
        state_ = state_ * 1664525u + 1013904223u;
        return low + (int)((state_ >> 8) % (unsigned)(high - low + 1));
    }
};

}  // namespace

// With one product for each of fp32 many rows meet weights in blocks as bytes: an input is off by
// half a step at most, of 127 up to the largest of its block; by 2^-8 of itself on bf16 units.
TEST(Gemm, weights_in_blocks) {
    for (int term : {303, 400, 403, 411, 600, 801}) {
        for (int form = 0; form < 4; form++) {
            BlockProduct p(term, form % 2, form / 2);
            for (int rows : {1, 6, 30}) p.expect(rows, 0, p.run(rows, 6));
            p.expect(30, 1. / 253, p.run(30, 1));
            if (HasFatalFailure()) return;
            // What is not finite meets weights as IEEE arithmetic has it.
            p.a.row(3)[5] = INFINITY, p.a.row(20)[1] = NAN;
            const Mat ieee = p.run(30, 1);
            for (int j = 0; j < p.n; j++) {
                EXPECT_FALSE(std::isfinite(ieee.row(3)[j]));
                EXPECT_TRUE(std::isnan(ieee.row(20)[j]));
                EXPECT_TRUE(std::isfinite(ieee.row(4)[j]));
            }
        }
    }
}

TEST(Gemm, refuses_what_does_not_fit) {
    EXPECT_EQ(nullptr, make_layer("Gemm", "5=1 8=3", {Mat(3)}));
    EXPECT_EQ(nullptr, make_layer("Gemm", "18=5", {}));
    EXPECT_EQ(nullptr, make_layer("Gemm", "18=404", {}));
    EXPECT_EQ(nullptr, make_layer("Gemm", "23=1", {}));
    EXPECT_EQ(nullptr, make_layer("Gemm", "5=1 6=1 8=2 9=2 10=-1 18=400", {Mat(1), Mat(2)}));
    const LayerPtr layer = make_layer("Gemm", "", {}, 2);
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 3), Mat(2, 3)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(3, 2), Mat(2, 3), Mat(4)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(3, 2, 2), Mat(2, 3)}).empty());
}

}  // namespace quoll
