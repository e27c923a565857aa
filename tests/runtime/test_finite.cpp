// Values that f16 cannot hold, and the search for the layer in which infinite values begin.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "plan/finite_check.h"
#include "quoll/log.h"
#include "quoll/net.h"

namespace quoll {

namespace {

Mat row_of(const std::vector<float>& values) {
    Mat m((int)values.size());
    for (size_t i = 0; i < values.size(); i++) m[i] = values[i];
    return m;
}

struct Answer {
    int status;
    std::vector<float> values;
    std::string log;
};

Answer run(const std::string& layers, const std::vector<float>& x, bool fp16, bool check = false,
           bool reference = false) {
    int lines = 1, blobs = 1;
    for (char ch : layers) lines += ch == '\n', blobs += ch == '\n';
    blobs += layers.compare(0, 5, "Split") == 0 || layers.compare(0, 5, "Slice") == 0;
    const std::string text = "7767517\n" + std::to_string(lines) + " " + std::to_string(blobs) +
                             "\nInput x 0 1 x\n" + layers;
    Net net;
    net.opt.use_fp16_storage = fp16;
    net.opt.check_finite = check;
    net.opt.use_reference_layers = reference;
    net.opt.use_graph_fusion = false;
    Answer answer;
    EXPECT_EQ(0, net.load_param_mem(text.c_str())) << text;
    const float none = 0;
    EXPECT_LE(0, net.load_model((const unsigned char*)&none));
    Extractor ex = net.create_extractor();
    ex.input("x", row_of(x));
    Mat out;
    testing::internal::CaptureStderr();
    answer.status = ex.extract("out", out);
    answer.log = testing::internal::GetCapturedStderr();
    for (int i = 0; i < out.w && answer.status == 0; i++) answer.values.push_back(out[i]);
    return answer;
}

}  // namespace

// 1000 values of 200: the sum is beyond f16, what is made of it is not.
TEST(finite, sums_beyond_f16) {
    const std::vector<float> x(1000, 200.f);
    for (bool reference : {false, true}) {
        const Answer sum =
            run("Reduction r 1 1 x r 0=0 1=1\nBinaryOp m 1 1 r out 0=2 1=1 2=0.001\n", x, true,
                false, reference);
        ASSERT_EQ(1u, sum.values.size());
        EXPECT_NEAR(200.f, sum.values[0], 0.2f);
    }
}

// The variance of +-30000 is 9e8; norms compute with it in f32.
TEST(finite, norms_of_large_values) {
    std::vector<float> x;
    for (int i = 0; i < 64; i++) x.push_back(i % 2 ? 30000.f : -30000.f);
    for (const char* norm : {"LayerNorm n 1 1 x out 0=64 2=0\n", "RMSNorm n 1 1 x out 0=64 2=0\n",
                             "Softmax s 1 1 x s 0=0\nBinaryOp m 1 1 s out 0=2 1=1 2=32\n"}) {
        const Answer wide = run(norm, x, false), narrow = run(norm, x, true);
        ASSERT_EQ(64u, narrow.values.size()) << norm;
        for (int i = 0; i < 64; i++) EXPECT_NEAR(wide.values[i], narrow.values[i], 1e-3f) << norm;
    }
}

// A blob that stays f32 beside one of f16: 1000 x * 200 over x.
TEST(finite, large_values_beside_small_ones) {
    const Answer quotient =
        run("Split s 1 2 x a b\nReduction r 1 1 a r 0=0 1=1\nBinaryOp d 2 1 r b out 0=3\n",
            std::vector<float>(1000, 200.f), true);
    ASSERT_EQ(1000u, quotient.values.size());
    for (float v : quotient.values) EXPECT_NEAR(1000.f, v, 1.f);
}

// Squares of 1e-4 and what is added to them are 0 as half floats. What is expected is computed in
// double precision.
TEST(finite, logarithms_of_small_squares) {
    std::vector<float> x;
    for (int i = 0; i < 40; i++) x.push_back(0.5f / (float)(1 << i % 14));
    const std::string square = "Split s 1 2 x a b\nBinaryOp q 2 1 a b q 0=2\n";
    const std::string power = "BinaryOp q 1 1 x q 0=6 1=1 2=2\n";
    const std::string shift = "BinaryOp e 1 1 q e 0=0 1=1 2=1e-10\n";
    for (const std::string& first : {square, power, std::string("UnaryOp q 1 1 x q 0=4\n")})
        for (const char* log : {"UnaryOp l 1 1 e out 0=8\n", "Log l 1 1 e out\n"}) {
            const Answer narrow = run(first + shift + log, x, true);
            ASSERT_EQ(x.size(), narrow.values.size()) << first << log;
            for (size_t i = 0; i < x.size(); i++)
                EXPECT_NEAR(std::log((double)x[i] * x[i] + 1e-10), narrow.values[i], 0.01) << i;
        }
}

// Rows of 0 are divided by the least norm that there is to be.
TEST(finite, quotients_by_small_norms) {
    const std::string norm =
        "Split s 1 2 x a b\nReduction n 1 1 a n 0=8 1=1 4=1\n"
        "Clip c 1 1 n c 0=1e-12 1=3e38\nBinaryOp d 2 1 b c out 0=3\n";
    for (float v : run(norm, std::vector<float>(8, 0.f), true).values) EXPECT_EQ(0.f, v);
    for (float v : run(norm, std::vector<float>(8, 1e-4f), true).values)
        EXPECT_NEAR(std::sqrt(1 / 8.), v, 1e-3);
}

// The difference of two samples that are equal as half floats.
TEST(finite, logarithms_of_differences) {
    const std::vector<float> x = {1.f + 1 / 4096.f, 1.f + 1 / 8192.f};
    const std::string text =
        "Slice s 1 2 x a b -23300=2,1,1 1=0\nBinaryOp d 2 1 a b d 0=1\n"
        "UnaryOp l 1 1 d out 0=8\n";
    const Answer narrow = run(text, x, true);
    ASSERT_EQ(1u, narrow.values.size());
    EXPECT_NEAR(std::log(1 / 8192.), narrow.values[0], 0.01);
}

TEST(finite, names_the_layer) {
    const std::string exp_of = "Exp grow 1 1 x e\nBinaryOp half 1 1 e out 0=2 1=1 2=0.5\n";
    EXPECT_EQ(0, run(exp_of, {1, 1000}, false).status);
    const Answer found = run(exp_of, {1, 1000}, false, true);
    EXPECT_NE(0, found.status);
    EXPECT_NE(std::string::npos, found.log.find("[Exp grow]")) << found.log;
    EXPECT_NE(std::string::npos, found.log.find("1 infinite values and 0 NaN among 2"))
        << found.log;
    EXPECT_EQ(0, run(exp_of, {1, 10}, false, true).status);
}

TEST(finite, counts) {
    Mat m = row_of({1, INFINITY, -INFINITY, NAN, 0});
    EXPECT_EQ(2u, count_not_finite(m).infinite);
    EXPECT_EQ(1u, count_not_finite(m).nans);
    Mat half;
    cast_float32_to_float16(m, half);
    EXPECT_EQ(2u, count_not_finite(half).infinite);
    EXPECT_EQ(1u, count_not_finite(half).nans);
    cast_float32_to_bfloat16(m, half);
    EXPECT_EQ(2u, count_not_finite(half).infinite);
    EXPECT_EQ(1u, count_not_finite(half).nans);
    EXPECT_EQ(0u, count_not_finite(Mat()).infinite);
}

// Values that a layer only passes on are not its fault: a mask of -inf that a model holds.
TEST(finite, a_mask_begins_nothing) {
    Layer* mask = create_layer("Noop");
    Layer* add = create_layer("BinaryOp");
    mask->tops = {0}, add->bottoms = {0, 1}, add->tops = {2};
    FiniteCheck check;
    check.after(*mask, {row_of({-INFINITY})});
    check.after(*add, {row_of({-INFINITY})});
    EXPECT_EQ("", check.finding());
    add->bottoms = {1};
    check.after(*add, {row_of({-INFINITY})});
    EXPECT_NE("", check.finding());
    delete mask;
    delete add;
}

}  // namespace quoll
