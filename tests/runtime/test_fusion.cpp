// The graph passes: a fused net gives the answers of the same net run layer by layer.
#include <gtest/gtest.h>
#include <math.h>
#include <string.h>

#include <random>
#include <string>
#include <vector>

#include "fused_nets.h"
#include "layer/common/conv_window.h"
#include "layer/elementwise/binaryop.h"
#include "layer/norm/batchnorm.h"
#include "quoll/datareader.h"
#include "quoll/log.h"
#include "quoll/net.h"

namespace quoll {
namespace {

// `text` behind "Input in" becomes `layers` layers (Input included) and gives the same answers.
void expect_fused(const std::string& text, Weights weights, const Shape& shape, size_t layers) {
    const std::string all = "Input in 0 1 in\n" + text;
    Net plain, fused;
    Weights again = weights;
    ASSERT_EQ(load(&plain, all, &weights, false), kOk);
    ASSERT_EQ(load(&fused, all, &again, true), kOk);
    size_t left = 0;
    for (const Layer* layer : fused.layers()) left += !layer->tops.empty();
    EXPECT_EQ(left, layers) << text;
    const Mat in = image(shape);
    expect_near(run(fused, in), run(plain, in));
}

const char kConv[] = "Convolution conv 1 1 in a 0=8 1=3 4=1 5=1 6=216\n";
Weights conv_weights() { return Weights().tagged(216).raw(8); }

// int8 convolutions whose input scale is `scale`.
Weights& int8_weights(Weights& w, int count, int channels, int scales, float scale) {
    return w.tagged(count).raw(channels).raw(scales, 80, 120).raw(1, scale, scale);
}

// The type that a blob has while the net makes "out".
DType type_of(const Net& net, const Mat& in, const char* blob) {
    struct TypeOfBlob : LayerObserver {
        int blob = -1;
        DType type = DType::s32;  // that no layer here makes
        void before(const Layer&) override {}
        void after(const Layer& layer, const std::vector<Mat>& outputs) override {
            for (size_t i = 0; i < outputs.size(); i++)
                if (layer.tops[i] == blob) type = outputs[i].dtype;
        }
    } observer;
    for (size_t i = 0; i < net.blobs().size(); i++)
        if (net.blobs()[i].name == blob) observer.blob = (int)i;
    Extractor ex = net.create_extractor();
    ex.set_layer_observer(&observer);
    Mat m;
    EXPECT_EQ(ex.input("in", in), kOk);
    EXPECT_EQ(ex.extract("out", m), kOk);
    return observer.type;
}

void expect_equal(const Mat& want, const Mat& got) {
    ASSERT_EQ(want.dtype, got.dtype);
    ASSERT_EQ(want.w * want.h * want.c, got.w * got.h * got.c);
    for (int q = 0; q < want.c; q++)
        for (int i = 0; i < want.w * want.h; i++)
            ASSERT_EQ(want.channel(q)[i], got.channel(q)[i]) << q << " " << i;
}

// Steps between int8 values become a table each, tables of tables one, and so does the product of
// a blob and its table: Swish; Gelu by Erf.
TEST(Fusion, functions_of_int8_values_become_tables) {
    const std::string begin = "AffineQuantize q 1 1 in a 0=0.02 1=3\nSplit sp 1 2 a a1 a2\n";
    const std::string end = "AffineDequantize o 1 1 f out 0=0.015 1=-100\n";
    const std::string swish =
        "AffineDequantize d 1 1 a1 b 0=0.02 1=3\nSigmoid s 1 1 b c\n"
        "AffineQuantize q2 1 1 c e 0=0.004 1=-128\n"
        "AffineBinary m 2 1 a2 e f 0=1 1=0.02 2=3 3=0.004 4=-128 5=0.015 6=-100\n";
    expect_fused(begin + swish + end, Weights(), Shape(7, 5, 8), 4);
    const std::string gelu =
        "AffineDequantize d 1 1 a1 b 0=0.02 1=3\nBinaryOp v 1 1 b b1 0=3 1=1 2=1.4142135\n"
        "AffineQuantize q2 1 1 b1 b2 0=0.015 1=3\nAffineDequantize d2 1 1 b2 b3 0=0.015 1=3\n"
        "Erf f 1 1 b3 b4\nAffineQuantize q3 1 1 b4 b5 0=0.0078 1=0\n"
        "AffineDequantize d3 1 1 b5 b6 0=0.0078 1=0\nBinaryOp p 1 1 b6 b7 0=0 1=1 2=1\n"
        "AffineQuantize q4 1 1 b7 e 0=0.0078 1=-128\n"
        "AffineBinary m 2 1 e a2 f 0=1 1=0.0078 2=-128 3=0.02 4=3 5=0.03 6=-100\n";
    expect_fused(begin + gelu + end, Weights(), Shape(7, 5, 8), 4);
}

// Products of two int8 values become such of integers, also where the values are moved first.
TEST(Fusion, products_of_int8_values) {
    const std::string begin =
        "AffineQuantize q 1 1 in a 0=0.02 1=3\nSplit sp 1 2 a a1 a2\n"
        "AffineDequantize d1 1 1 a1 b 0=0.02 1=3\n";
    const std::string end =
        "AffineQuantize q2 1 1 e f 0=0.03 1=-5\nAffineDequantize o 1 1 f out 0=0.03 1=-5\n";
    const std::string turned = "Permute t 1 1 a2 a3 0=1\nAffineDequantize d2 1 1 a3 c 0=0.02 1=3\n";
    expect_fused(begin + turned + "MatMul m 2 1 b c e\n" + end, Weights(), Shape(17, 5, 8), 5);
    const std::string moved = "AffineDequantize d2 1 1 a2 a3 0=0.02 1=3\nPermute t 1 1 a3 c 0=1\n";
    expect_fused(begin + moved + "MatMul m 2 1 b c e\n" + end, Weights(), Shape(17, 5, 8), 5);
    // A border of 0 is not one of zero points.
    expect_fused(begin + moved + "Padding p 1 1 c d 2=1 3=1\nPadding p2 1 1 b b2 0=1 1=1\n" +
                     "MatMul m 2 1 b2 d e\n" + end,
                 Weights(), Shape(17, 5, 8), 10);
    // What else reads f32 leaves all as it is.
    const std::string read =
        "Split s2 1 2 e e1 e2\nAffineQuantize q2 1 1 e1 f 0=0.03\n"
        "AffineDequantize o 1 1 f g 0=0.03\nBinaryOp s 2 1 e2 g out 0=0\n";
    expect_fused(begin + turned + "MatMul m 2 1 b c e\n" + read, Weights(), Shape(17, 5, 8), 9);
}

TEST(Fusion, inner_products_give_int8) {
    const auto text = [](const char* between) {
        return std::string(
                   "AffineQuantize q 1 1 in a 0=0.02 1=3\n"
                   "InnerProduct p 1 1 a b 0=24 1=1 2=408 8=1 26=1 27=3\n") +
               between +
               "AffineQuantize q2 1 1 c f 0=0.05 1=-7\nAffineDequantize o 1 1 f out 0=0.05 1=-7\n";
    };
    const auto weights = [] {
        return Weights().tagged(408).raw(24).raw(24, 80, 120).raw(1, 50, 50);
    };
    expect_fused(text("Noop n 1 1 b c\n"), weights(), Shape(17, 5), 4);
    expect_fused(text("LayerNorm n 1 1 b c 0=24 1=1e-5 2=0\n"), weights(), Shape(17, 5), 6);
}

// With the scale of the convolution's results ReLU changes nothing else.
TEST(Fusion, relu_of_int8_goes_into_the_convolution) {
    const auto text = [](const char* relu) {
        return std::string(
                   "AffineQuantize q 1 1 in a 0=0.02 1=3\n"
                   "Convolution c 1 1 a b 0=8 1=3 4=1 6=576 8=101 26=1 27=3 28=0\n") +
               relu + "AffineDequantize o 1 1 f out 0=0.01\n";
    };
    const auto weights = [] {
        Weights w;
        return w.tagged(576).raw(8, 80, 120).raw(1, 50, 50).raw(1, 20, 20);
    };
    expect_fused(text("AffineBinary r 1 1 b f 1=0.05 5=0.05 9=1\n"), weights(), Shape(7, 5, 8), 4);
    expect_fused(text("AffineBinary r 1 1 b f 1=0.05 5=0.04 9=1\n"), weights(), Shape(7, 5, 8), 5);
    expect_fused(text("AffineBinary r 1 1 b f 1=0.05 2=3 5=0.05 6=3 9=1\n"), weights(),
                 Shape(7, 5, 8), 5);
}

// What others read stays, and so does what looks at more than one value.
TEST(Fusion, tables_leave_other_layers) {
    const std::string text =
        "AffineQuantize q 1 1 in a 0=0.02 1=3\nAffineDequantize d 1 1 a b 0=0.02 1=3\n"
        "Split sp 1 2 b b1 b2\nTanH t 1 1 b1 c\nAffineQuantize q2 1 1 c e 0=0.008\n"
        "AffineDequantize d2 1 1 e f 0=0.008\nSoftmax m 1 1 b2 g\n"
        "BinaryOp s 2 1 f g out 0=0\n";
    expect_fused(text, Weights(), Shape(7, 5, 8), 7);
    expect_fused(
        "AffineQuantize q 1 1 in a 0=0.02\nAffineDequantize d 1 1 a b 0=0.02\n"
        "Softmax m 1 1 b c\nAffineQuantize q2 1 1 c e 0=0.008\n"
        "AffineDequantize d2 1 1 e out 0=0.008\n",
        Weights(), Shape(7, 5, 8), 6);
}

// a goes into one that reads it alone, b into two of one scale, d and e into one another's sum.
TEST(Fusion, int8_stays_between_convolutions) {
    const std::string text =
        "Input in 0 1 in\n"
        "Convolution c1 1 1 in a 0=8 1=3 4=1 5=1 6=216 8=1 9=1\n"
        "ConvolutionDepthWise c2 1 1 a b 0=8 1=3 4=1 5=1 6=72 7=8 8=1\nReLU r 1 1 b c\n"
        "Split s 1 2 c c1 c2\n"
        "Convolution c3 1 1 c1 d 0=8 1=1 5=1 6=64 8=2\n"
        "Convolution c4 1 1 c2 e 0=8 1=1 5=1 6=64 8=2\n"
        "BinaryOp sum 2 1 d e out 0=0\n";
    const Mat in = image(Shape(9, 7, 3));
    for (float second : {30.f, 31.f}) {
        Weights weights;
        int8_weights(weights, 216, 8, 8, 60);
        int8_weights(weights, 72, 8, 8, 20);
        int8_weights(weights, 64, 8, 8, 30);
        int8_weights(weights, 64, 8, 8, second);
        Weights again = weights, kept = weights;
        Net plain, fused, keeping;
        ASSERT_EQ(load(&plain, text, &weights, false), kOk);
        ASSERT_EQ(load(&fused, text, &again, true), kOk);
        expect_equal(run(plain, in), run(fused, in));
        EXPECT_EQ(type_of(fused, in, "a"), DType::s8);
        EXPECT_EQ(type_of(fused, in, "c"), second == 30.f ? DType::s8 : DType::f32);
        EXPECT_EQ(type_of(fused, in, "d"), DType::f32);
        EXPECT_EQ(type_of(plain, in, "a"), DType::f32);
        for (const char* blob : {"a", "c", "d"})
            expect_equal(run(plain, in, blob), run(fused, in, blob));
    }
}

// Layers that only move values see s8 where all who round them round alike, maxima where no window
// is empty.
TEST(Fusion, int8_stays_across_layers_that_move_values) {
    const Mat in = image(Shape(19, 17, 3));
    for (float second : {30.f, 31.f}) {
        for (const char* pool : {"1=3 2=2 3=0", "1=3 2=1 3=1", "1=2 2=2 3=1", "1=3 2=2 3=2"}) {
            const std::string text =
                "Input in 0 1 in\n"
                "Convolution c1 1 1 in a 0=8 1=3 4=1 5=1 6=216 8=1 9=1\n"
                "Pooling p 1 1 a b 0=0 " +
                std::string(pool) +
                "\nSplit s 1 2 b b1 b2\n"
                "Convolution c2 1 1 b1 c 0=8 1=1 5=1 6=64 8=1\n"
                "Convolution c3 1 1 b2 d 0=8 1=3 4=1 5=1 6=576 8=1 9=1\n"
                "Concat cat 2 1 c d e 0=0\nReLU r 1 1 e f\nShuffleChannel sh 1 1 f g 0=2\n"
                "Slice sl 1 2 g h i -23300=2,6,10 1=0\n"
                "Padding pad 1 1 i j 0=1 1=1 2=1 3=1 4=1\n"
                "Convolution c4 1 1 h k 0=4 1=1 5=1 6=24 8=1\n"
                "Pooling q 1 1 j m 0=0 4=1\nInnerProduct fc 1 1 m n 0=4 1=1 2=40 8=1\n"
                "BinaryOp sum 2 1 k n out 0=0\n";
            Weights weights;
            int8_weights(weights, 216, 8, 8, 60);
            int8_weights(weights, 64, 8, 8, 20);
            int8_weights(weights, 576, 8, 8, 20);
            int8_weights(weights, 24, 4, 4, 30);
            int8_weights(weights, 40, 4, 4, second);
            Weights again = weights;
            Net plain, fused;
            ASSERT_EQ(load(&plain, text, &weights, false), kOk);
            ASSERT_EQ(load(&fused, text, &again, true), kOk);
            expect_equal(run(plain, in), run(fused, in));
            const bool whole = pool[2] == '3' && pool[10] != '2';
            EXPECT_EQ(type_of(fused, in, "b"), whole ? DType::s8 : DType::f32) << pool;
            for (const char* blob : {"c", "f", "g", "i", "m"})
                EXPECT_EQ(type_of(fused, in, blob), second == 30.f ? DType::s8 : DType::f32);
            for (const char* blob : {"b", "c", "f", "h", "i", "m"})
                expect_equal(run(plain, in, blob), run(fused, in, blob));
        }
    }
}

// c2 adds what c1 made, which it reads too, and rounds the sum for c3.
TEST(Fusion, int8_convolutions_add) {
    const std::string text =
        "Input in 0 1 in\n"
        "Convolution c1 1 1 in a 0=8 1=3 4=1 5=1 6=216 8=1 9=1\nSplit s 1 2 a a1 a2\n"
        "Convolution c2 1 1 a1 b 0=8 1=3 4=1 5=1 6=576 8=1\nBinaryOp sum 2 1 b a2 c 0=0\n"
        "ReLU r 1 1 c d\nConvolution c3 1 1 d out 0=8 1=1 5=1 6=64 8=1\n";
    const Mat in = image(Shape(19, 17, 3));
    Weights weights;
    int8_weights(weights, 216, 8, 8, 60);
    int8_weights(weights, 576, 8, 8, 20);
    int8_weights(weights, 64, 8, 8, 30);
    Weights again = weights;
    Net plain, fused;
    ASSERT_EQ(load(&plain, text, &weights, false), kOk);
    ASSERT_EQ(load(&fused, text, &again, true), kOk);
    expect_equal(run(plain, in), run(fused, in));
    EXPECT_EQ(type_of(fused, in, "a"), DType::f32);
    EXPECT_EQ(type_of(fused, in, "d"), DType::s8);
    EXPECT_EQ(type_of(plain, in, "d"), DType::f32);
    for (const char* blob : {"a", "d"}) expect_equal(run(plain, in, blob), run(fused, in, blob));
}

TEST(Fusion, batchnorm_scale_relu_into_convolution) {
    expect_fused(std::string(kConv) +
                     "BatchNorm bn 1 1 a b 0=8 1=0.001\nScale scale 1 1 b c 0=8 1=1\nReLU relu 1 1 "
                     "c out\n",
                 conv_weights().batchnorm(8).raw(8).raw(8), Shape(9, 7, 3), 2);
}

TEST(Fusion, without_bias_and_with_leaky_relu) {
    expect_fused(
        "ConvolutionDepthWise conv 1 1 in a 0=8 1=3 4=1 5=0 6=72 7=8\nBatchNorm bn 1 1 a b 0=8\n"
        "ReLU relu 1 1 b out 0=0.1\n",
        Weights().tagged(72).batchnorm(8), Shape(9, 7, 8), 2);
}

// Whether the passes of small gain run.
constexpr bool kChains = BinaryOp::kLongestChain > 1;

TEST(Fusion, each_activation) {
    for (const char* activation : {"ReLU", "ReLU 0=0.2", "Clip 0=-0.5 1=0.7", "Sigmoid", "Mish",
                                   "HardSwish 0=0.2 1=0.4", "Swish", "GELU 0=0", "GELU 0=1"}) {
        std::string type = activation, params;
        const size_t blank = type.find(' ');
        if (blank != std::string::npos) params = type.substr(blank), type.resize(blank);
        expect_fused(kConv + type + " act 1 1 a out" + params + "\n", conv_weights(),
                     Shape(9, 7, 3), 2);
        expect_fused("Deconvolution de 1 1 in a 0=6 1=2 3=2 5=1 6=72\n" + type + " act 1 1 a out" +
                         params + "\n",
                     Weights().tagged(72).raw(6), Shape(5, 4, 3), 2);
        if (type == "ReLU" && params.empty() && BatchNorm::kTakesRelu)
            for (const Shape& shape : {Shape(9, 7, 16), Shape(9, 7, 6), Shape(30)})
                expect_fused("BatchNorm n 1 1 in a 0=" +
                                 std::to_string(shape.dims == 1 ? shape.w : shape.c) +
                                 "\nReLU act 1 1 a out\n",
                             Weights().batchnorm(shape.dims == 1 ? shape.w : shape.c), shape, 2);
        expect_fused(
            "InnerProduct fc 1 1 in a 0=6 1=1 2=36\n" + type + " act 1 1 a out" + params + "\n",
            Weights().tagged(36).raw(6), Shape(6, 5), 2);
        for (const Shape& shape : {Shape(9, 7, 16), Shape(9, 7, 6), Shape(30)})
            expect_fused("InstanceNorm n 1 1 in a 0=" + std::to_string(shape.c) + "\n" + type +
                             " act 1 1 a out" + params + "\n",
                         Weights().raw(2 * shape.c), shape, kChains ? 2 : 3);
    }
}

TEST(Fusion, operations_with_scalars) {
    // Rows that fill whole chunks, and short ones.
    for (const Shape& shape : {Shape(90, 70, 3), Shape(7, 7, 20), Shape(33)}) {
        expect_fused(
            "BinaryOp m 1 1 in a 0=2 1=1 2=2\nBinaryOp d 1 1 a b 0=3 1=1 2=19\n"
            "BinaryOp s 1 1 b c 0=1 1=1 2=1.5\nBinaryOp r 1 1 c e 0=7 1=1 2=3\n"
            "BinaryOp e 1 1 e out 0=3 1=1 2=-4\n",
            Weights(), shape, kChains ? 2 : 6);
        // A power ends a chain.
        expect_fused(
            "BinaryOp m 1 1 in a 0=2 1=1 2=2\nBinaryOp p 1 1 a b 0=6 1=1 2=2\n"
            "BinaryOp s 1 1 b c 0=0 1=1 2=1.5\nBinaryOp x 1 1 c out 0=4 1=1 2=3\n",
            Weights(), shape, kChains ? 4 : 5);
    }
}

// In all forms of a sum, and in bf16.
TEST(Fusion, relu_of_sums) {
    const std::string norm = "Split s 1 2 in a b\nInstanceNorm n 1 1 a c 0=16 1=0.01\n";
    for (const Shape& shape : {Shape(9, 7, 16), Shape(60, 50, 16), Shape(1, 1, 16)}) {
        const std::string sum = norm + "BinaryOp p 2 1 b c d 0=0\nReLU r 1 1 d out\n";
        expect_fused(sum, Weights().raw(32), shape, kChains ? 3 : 4);
        // Leaky ones stay, and what others read.
        expect_fused(norm + "BinaryOp p 2 1 b c d 0=0\nReLU r 1 1 d out 0=0.1\n", Weights().raw(32),
                     shape, 4);
        expect_fused(norm +
                         "BinaryOp p 2 1 b c d 0=0\nSplit t 1 2 d e f\nReLU r 1 1 e g\n"
                         "BinaryOp m 2 1 f g out 0=2\n",
                     Weights().raw(32), shape, 5);
        Net plain, fused;
        Weights weights = Weights().raw(32), again = weights;
        fused.opt.use_bf16_storage = true;
        ASSERT_EQ(load(&plain, "Input in 0 1 in\n" + sum, &weights, false), kOk);
        ASSERT_EQ(load(&fused, "Input in 0 1 in\n" + sum, &again, true), kOk);
        const Mat want = run(plain, image(shape)), got = run(fused, image(shape));
        for (int q = 0; q < want.c; q++)
            for (int i = 0; i < want.w * want.h; i++)
                ASSERT_NEAR(got.channel(q)[i], want.channel(q)[i], .04) << q << ", " << i;
    }
    // Rows that one operand repeats, and single values.
    for (const char* other : {"0=5", "0=1 1=1 2=6", "0=5 1=7 2=6"}) {
        const int values = strlen(other) == 3 ? 5 : other[2] == '1' ? 6 : 5 * 7 * 6;
        expect_fused(std::string("MemoryData m 0 1 y ") + other +
                         "\nInstanceNorm n 1 1 in a 0=6\n"
                         "BinaryOp p 2 1 a y b 0=0\nReLU r 1 1 b out\n",
                     Weights().raw(values).raw(12), Shape(5, 7, 6), kChains ? 4 : 5);
    }
}

// Blobs of bf16, which have kernels of their own: as without fusion in f32, but for rounding.
TEST(Fusion, normalised_bf16_and_operations_with_scalars) {
    const std::string norm = "Input in 0 1 in\nInstanceNorm n 1 1 in a 0=16 1=0.01\n";
    const std::string end = "BinaryOp m 1 1 b c 0=2 1=1 2=3\nBinaryOp d 1 1 c out 0=3 1=1 2=7\n";
    for (const char* activation : {"ReLU r 1 1 a b\n", "Clip r 1 1 a b 0=-0.5 1=0.7\n",
                                   "ReLU r 1 1 a b 0=0.2\n", "Swish r 1 1 a b\n"}) {
        for (const Shape& shape : {Shape(9, 7, 16), Shape(60, 50, 16), Shape(1, 1, 16)}) {
            Net plain, fused;
            Weights weights = Weights().raw(32), again = weights;
            fused.opt.use_bf16_storage = true;
            ASSERT_EQ(load(&plain, norm + activation + end, &weights, false), kOk);
            ASSERT_EQ(load(&fused, norm + activation + end, &again, true), kOk);
            EXPECT_EQ(layers_that_run(fused), kChains ? 2 : 4);
            const Mat want = run(plain, image(shape)), got = run(fused, image(shape));
            for (int q = 0; q < want.c; q++)
                for (int i = 0; i < want.w * want.h; i++)
                    ASSERT_NEAR(got.channel(q)[i], want.channel(q)[i], .04) << activation << q;
        }
    }
}

// Int8 values around a norm: as without fusion, but for a step where a result is close to the
// middle of two.
TEST(Fusion, rounding_of_norms) {
    const std::string text =
        "Input in 0 1 in\nAffineQuantize q 1 1 in a 0=0.011 1=-7\n"
        "AffineDequantize d 1 1 a b 0=0.011 1=-7\nInstanceNorm n 1 1 b c 0=16 1=0.01\n"
        "ReLU r 1 1 c e 0=0.2\nAffineQuantize t 1 1 e f 0=0.02 1=5\n"
        "AffineDequantize o 1 1 f out 0=0.02 1=5\n";
    for (const Shape& shape :
         {Shape(9, 7, 16), Shape(61, 53, 16), Shape(1, 1, 16), Shape(40, 30, 2, 16), Shape(33)}) {
        Net plain, fused;
        Weights weights = Weights().raw(32), again = weights;
        ASSERT_EQ(load(&plain, text, &weights, false), kOk);
        ASSERT_EQ(load(&fused, text, &again, true), kOk);
        EXPECT_EQ(layers_that_run(fused), kHasInt8 && kChains ? 3 : 6);
        const Mat want = run(plain, image(shape)), got = run(fused, image(shape));
        int others = 0, all = 0;
        for (int q = 0; q < want.c; q++)
            for (int i = 0; i < want.w * want.h * want.d; i++, all++) {
                others += got.channel(q)[i] != want.channel(q)[i];
                ASSERT_NEAR(got.channel(q)[i], want.channel(q)[i], .0201) << q << ", " << i;
            }
        EXPECT_LE(others, 1 + all / 100);
    }
}

// Points whose coordinates are scaled apart, items along an axis, as optical flow samples. Each of
// its layers by itself stays where it is another's, too.
TEST(Fusion, what_is_around_samples_of_a_grid) {
    const std::string cut =
        "MemoryData m 0 1 img 0=5 1=4 2=3\nSlice s 1 2 in x y -23300=2,1,1 1=3\n";
    const std::string scale =
        "BinaryOp a 1 1 x x1 0=2 1=1 2=2\nBinaryOp b 1 1 x1 x2 0=3 1=1 2=0.9\n"
        "BinaryOp c 1 1 x2 x3 0=1 1=1 2=1\nBinaryOp d 1 1 y y1 0=7 1=1 2=0.3\n"
        "BinaryOp e 1 1 y1 y2 0=0 1=1 2=-0.2\n";
    const std::string items = "BatchAxis i 1 1 g gi\nGridSample p 2 1 img gi o ";
    const std::string joins = "\nBatchAxis j 1 1 o out 0=1\n";
    for (const char* mode : {"", "0=2", "0=3 1=2", "1=3 2=1"})
        for (const Shape& shape : {Shape(2, 7, 5, 6), Shape(2, 40, 9, 1), Shape(2, 1, 1, 5)}) {
            expect_fused(cut + scale + "Concat t 2 1 x3 y2 g 0=3\n" + items + mode + joins,
                         Weights().raw(60), shape, kChains ? 3 : 12);
            // The other way round, and along another axis.
            expect_fused(cut + scale + "Concat t 2 1 y2 x3 g 0=3\n" + items + mode + joins,
                         Weights().raw(60), shape, kChains ? 7 : 12);
        }
    // Without items; a power is left alone.
    for (const Shape& shape : {Shape(2, 7, 5), Shape(2, 300, 2)}) {
        const std::string apart =
            "MemoryData m 0 1 img 0=5 1=4 2=3\nSlice s 1 2 in x y -23300=2,-233,-233 1=2\n";
        expect_fused(apart + scale + "Concat t 2 1 x3 y2 g 0=2\nGridSample p 2 1 img g out\n",
                     Weights().raw(60), shape, kChains ? 3 : 10);
        expect_fused(apart + "BinaryOp a 1 1 x x1 0=6 1=1 2=2\n" +
                         "Concat t 2 1 x1 y g 0=2\nGridSample p 2 1 img g out\n",
                     Weights().raw(60), shape, 6);
    }
}

// The blobs that are left out, too, are what they were.
TEST(Fusion, coordinates_that_were_scaled_for_samples) {
    const std::string text =
        "Input in 0 1 in\nMemoryData m 0 1 img 0=5 1=4 2=3\nSlice s 1 2 in x y -23300=2,1,1 1=3\n"
        "BinaryOp a 1 1 x x1 0=2 1=1 2=2\nConcat t 2 1 x1 y g 0=3\nBatchAxis i 1 1 g gi\n"
        "GridSample p 2 1 img gi o\nBatchAxis j 1 1 o out 0=1\n";
    Net plain, fused;
    Weights weights = Weights().raw(60), again = weights;
    ASSERT_EQ(load(&plain, text, &weights, false), kOk);
    ASSERT_EQ(load(&fused, text, &again, true), kOk);
    for (const char* blob : {"g", "x1", "o", "out"}) {
        Mat got, want;
        Extractor a = fused.create_extractor(), b = plain.create_extractor();
        ASSERT_EQ(a.input("in", image(Shape(2, 7, 5, 6))), kOk);
        ASSERT_EQ(b.input("in", image(Shape(2, 7, 5, 6))), kOk);
        ASSERT_EQ(a.extract(blob, got), kOk) << blob;
        ASSERT_EQ(b.extract(blob, want), kOk) << blob;
        EXPECT_EQ(got.logical_shape(), want.logical_shape()) << blob;
        if (want.n == 1) expect_near(got, want);
    }
}

TEST(Fusion, operations_with_scalars_on_integers) {
    const std::string text =
        "Input in 0 1 in\nBinaryOp m 1 1 in a 0=2 1=1 2=3\n"
        "BinaryOp d 1 1 a b 0=3 1=1 2=2\nBinaryOp r 1 1 b out 0=7 1=1 2=5\n";
    Mat in;
    Shape shape(7, 3, 2);
    shape.dtype = DType::s32;
    in.create(shape);
    for (int q = 0; q < 2; q++)
        for (int i = 0; i < 21; i++) ((int32_t*)in.channel(q))[i] = q * 21 + i - 20;
    Mat out[2];
    for (int fuse : {0, 1}) {
        Net net;
        Weights none;
        ASSERT_EQ(load(&net, text, &none, fuse), kOk);
        EXPECT_EQ(layers_that_run(net), fuse && kChains ? 1 : 3);
        out[fuse] = run(net, in);
        ASSERT_EQ(out[fuse].dtype, DType::s32);
    }
    for (int q = 0; q < 2; q++)
        for (int i = 0; i < 21; i++)
            ASSERT_EQ(((int32_t*)out[0].channel(q))[i], ((int32_t*)out[1].channel(q))[i]) << i;
}

TEST(Fusion, slope_of_prelu) {
    expect_fused(std::string(kConv) + "PReLU act 1 1 a out 0=1\n", conv_weights().raw(1),
                 Shape(9, 7, 3), 2);
    // A slope per channel stays.
    expect_fused(std::string(kConv) + "PReLU act 1 1 a out 0=8\n", conv_weights().raw(8),
                 Shape(9, 7, 3), 3);
}

TEST(Fusion, arithmetic_with_constants) {
    const std::string constant = "MemoryData k 0 1 k 0=1 1=1 2=8\n";
    for (int op : {0, 1, 2, 3, 7}) {
        const std::string o = "0=" + std::to_string(op);
        expect_fused(constant + kConv + "BinaryOp op 2 1 a k out " + o + "\n",
                     Weights().raw(8, 0.5f, 2.f).tagged(216).raw(8), Shape(9, 7, 3), 2);
        expect_fused(std::string(kConv) + "BinaryOp op 1 1 a out " + o + " 1=1 2=1.5\n",
                     conv_weights(), Shape(9, 7, 3), 2);
        // k / a is no affine function of a.
        expect_fused(constant + kConv + "BinaryOp op 2 1 k a out " + o + "\n",
                     Weights().raw(8, 0.5f, 2.f).tagged(216).raw(8), Shape(9, 7, 3),
                     op == 3 ? 4 : 2);
    }
    expect_fused("MemoryData k 0 1 k 0=1\nBinaryOp op 2 1 in k out 0=2\n", Weights().raw(1),
                 Shape(9, 7, 3), 2);
}

TEST(Fusion, rows_of_a_matrix_keep_their_constants_apart) {
    // 6 rows of 6 values: BatchNorm goes by row, the inner product's weights by column.
    expect_fused("InnerProduct fc 1 1 in a 0=6 1=1 2=36\nBatchNorm bn 1 1 a out 0=6\n",
                 Weights().tagged(36).raw(6).batchnorm(6), Shape(6, 6), 3);
    expect_fused(
        "Flatten flat 1 1 in f\nInnerProduct fc 1 1 f a 0=6 1=1 2=1296\nBatchNorm bn 1 1 a out "
        "0=6\n",
        Weights().tagged(1296).raw(6).batchnorm(6), Shape(6, 6, 6), 3);
}

// Linear and BatchNorm1d of PyTorch on the rows of a matrix.
const char kRowNorm[] =
    "InnerProduct fc 1 1 in a 0=6 1=1 2=30\nReshape flat 1 1 a b 0=6 1=4\n"
    "BatchAxis there 1 1 b c\nBatchNorm bn 1 1 c d 0=6\nBatchAxis back 1 1 d e 0=1\n"
    "ReLU relu 1 1 e out\n";

TEST(Fusion, batchnorm_of_rows) {
    const auto weights = [] { return Weights().tagged(30).raw(6).batchnorm(6); };
    const std::string text = kRowNorm;
    expect_fused(text, weights(), Shape(5, 4), 3);
    expect_fused("InnerProduct fc 1 1 in b 0=6 1=1 2=30\n" + text.substr(text.find("BatchAxis")),
                 weights(), Shape(5, 4), 2);
    // Of a batch, whose items become an axis before.
    std::string batch = text;
    batch.insert(batch.find("Reshape"), "BatchAxis join 1 1 a i 0=1\n");
    batch.replace(batch.find("a b"), 3, "i b");
    expect_fused(batch, weights(), Shape(5, 4), 4);
    // What is still apart is of rows.
    batch.erase(batch.find("Reshape"), batch.find("BatchAxis there") - batch.find("Reshape"));
    batch.replace(batch.find("b c"), 3, "i c").replace(batch.find("d 0=6"), 5, "d 0=4");
    expect_fused(batch, Weights().tagged(30).raw(6).batchnorm(4), Shape(5, 4), 5);
    // Rows of another length, and a second reader of what is between.
    std::string other = text;
    other.replace(other.find("0=6 1=4"), 7, "0=8 1=3").replace(other.find("d 0=6"), 5, "d 0=8");
    expect_fused(other, Weights().tagged(30).raw(6).batchnorm(8), Shape(5, 4), 7);
    other = text;
    other.replace(other.find("e out"), 5, "e f") += "BinaryOp sum 2 1 f b out 0=0\n";
    expect_fused(other, weights(), Shape(5, 4), 8);
}

// The activation goes across what makes an axis of the items and items of the axis.
TEST(Fusion, batch_axes_before_activation) {
    const std::string rows = "InnerProduct fc 1 1 in a 0=6 1=1 2=30\nBatchAxis join 1 1 a b 0=1\n";
    const auto weights = [] { return Weights().tagged(30).raw(6); };
    expect_fused(rows + "ReLU relu 1 1 b out\n", weights(), Shape(5, 4), 3);
    expect_fused(rows + "BatchAxis part 1 1 b c\nSoftmax s 1 1 c out 0=1 1=1\n", weights(),
                 Shape(5, 4), 3);
}

// As transformers have them whose feed-forward parts see neighbours (SegFormer, PVT).
const char kNeighbours[] =
    "Input in 0 1 in 0=4 1=30\n"
    "InnerProduct fc1 1 1 in a 0=16 1=1 2=64\n"
    "Permute p1 1 1 a b 0=1\n"
    "Reshape r1 1 1 b c 0=6 1=5 2=16\n"
    "ConvolutionDepthWise dw 1 1 c d 0=16 1=3 4=1 5=1 6=144 7=16\n"
    "Reshape r2 1 1 d e 0=30 1=16\n"
    "Permute p2 1 1 e f 0=1\n"
    "GELU act 1 1 f g\n"
    "InnerProduct fc2 1 1 g h 0=4 1=1 2=64\n"
    "Softmax s 1 1 h out 0=1 1=1\n";
Weights neighbour_weights() {
    return Weights().tagged(64).raw(16).tagged(144).raw(16).tagged(64).raw(4);
}

TEST(Fusion, columns_instead_of_rows) {
    Net plain, fused;
    Weights weights = neighbour_weights(), again = weights;
    ASSERT_EQ(load(&plain, kNeighbours, &weights, false), kOk);
    ASSERT_EQ(load(&fused, kNeighbours, &again, true), kOk);
    std::string order;
    for (const Layer* layer : fused.layers())
        if (!layer->tops.empty()) order += layer->type + " ";
    EXPECT_EQ(order,
              "Input Permute Convolution1D Reshape ConvolutionDepthWise Reshape Convolution1D "
              "Permute Softmax ");
    const Mat in = image(Shape(4, 30));
    expect_near(run(fused, in), run(plain, in));
    for (const char* blob : {"a", "d", "f", "g", "h"}) {
        SCOPED_TRACE(blob);
        expect_near(run(fused, in, blob), run(plain, in, blob));
    }
    // An input of unknown size may be taken flat.
    std::string text = kNeighbours;
    text.replace(text.find(" 0=4 1=30"), 9, "");
    Net unknown;
    Weights more = neighbour_weights();
    ASSERT_EQ(load(&unknown, text, &more, true), kOk);
    for (const Layer* layer : unknown.layers()) EXPECT_NE(layer->type, "Convolution1D");
    expect_near(run(unknown, in), run(plain, in));
}

TEST(Fusion, activations_across_shapes) {
    const std::string conv = "Convolution conv 1 1 in a 0=8 1=3 4=1 5=1 6=216\n";
    const std::string moved = "Reshape r 1 1 a b 0=63 1=8\nPermute p 1 1 b c 0=1\n";
    expect_fused(conv + moved + "ReLU relu 1 1 c out\n", conv_weights(), Shape(9, 7, 3), 4);
    // What is between has another reader.
    expect_fused(conv + moved + "ReLU relu 1 1 c d\nPermute q 1 1 b e 0=1\n" +
                     "BinaryOp sum 2 1 d e out 0=0\n",
                 conv_weights(), Shape(9, 7, 3), 7);
    // A border of zeros is not what the activation makes of them.
    expect_fused(conv + "Padding pad 1 1 a b 0=1 1=1 2=1 3=1\nSigmoid s 1 1 b out\n",
                 conv_weights(), Shape(9, 7, 3), 4);
}

// As MixNet has them: each kernel takes its part of the channels.
TEST(Fusion, batchnorm_and_activation_of_joined_convolutions) {
    const std::string convs =
        "Slice part 1 2 in a b -23300=2,2,1\nConvolution one 1 1 a c 0=4 1=3 4=1 6=72\n"
        "ConvolutionDepthWise two 1 1 b d 0=3 1=5 4=2 5=1 6=75 7=1\n";
    const std::string join = "Concat join 2 1 c d e\n";
    const std::string behind = "BatchNorm bn 1 1 e f 0=7\nSwish s 1 1 f out\n";
    const Weights weights = Weights().tagged(72).tagged(75).raw(3).batchnorm(7);
    expect_fused(convs + join + behind, weights, Shape(8, 7, 3), 5);
    expect_fused(convs + "Concat join 2 1 c d e 0=-3\n" + behind, weights, Shape(8, 7, 3), 5);
    // Another reader, and what a Concat joins besides.
    expect_fused(convs + join + behind.substr(0, behind.find("Swish")) +
                     "Swish s 1 1 f g\nConcat all 2 1 g d out\n",
                 weights, Shape(8, 7, 3), 8);
    expect_fused(convs + "Concat join 3 1 c d in e\nBatchNorm bn 1 1 e f 0=10\nSwish s 1 1 f out\n",
                 Weights().tagged(72).tagged(75).raw(3).batchnorm(10), Shape(8, 7, 3), 7);
}

// As DenseNet has them: each Concat joins what the one before did, and one blob more.
TEST(Fusion, concats_of_what_others_joined) {
    const std::string text =
        "Split s 1 4 in x0 x1 x2 x3\nConvolution a 1 1 x0 a 0=16 1=3 4=1 5=1 6=432\n"
        "Split t 1 3 a a0 a1 a2\nConcat two 2 1 x1 a0 b\nReLU r 1 1 b c\n"
        "Convolution d 1 1 c d 0=16 1=1 5=1 6=304\nSplit u 1 2 d d0 d1\n"
        "Concat three 3 1 x2 a1 d0 e\nBatchNorm bn 1 1 e f 0=35\n"
        "Convolution g 1 1 f g 0=16 1=1 5=1 6=560\n"
        "Concat other 3 1 a2 d1 g h\nConcat four 2 1 x3 h out\n";
    const Weights weights =
        Weights().tagged(432).raw(16).tagged(304).raw(16).batchnorm(35).tagged(560).raw(16);
    expect_fused(text, weights, Shape(9, 7, 3), 10);
    Net net;
    Weights own = weights;
    ASSERT_EQ(load(&net, "Input in 0 1 in\n" + text, &own, true), kOk);
    std::vector<size_t> joined;
    for (const Layer* layer : net.layers())
        if (layer->type == "Concat") joined.push_back(layer->bottoms.size());
    EXPECT_EQ(joined, (std::vector<size_t>{2, 2, 3, 2}));
}

// What is given as a Concat's output is none of the inputs of another Concat.
TEST(Fusion, joined_blobs_that_are_given) {
    const std::string text =
        "Input in 0 1 in\nReLU a 1 1 in a\nTanH b 1 1 in b\nConcat two 2 1 in a c\n"
        "ReLU d 1 1 c d\nConcat three 3 1 in a b out\n";
    Net plain, fused;
    Weights none;
    ASSERT_EQ(load(&plain, text, &none, false), kOk);
    ASSERT_EQ(load(&fused, text, &none, true), kOk);
    const Mat in = image(Shape(4, 3, 2));
    for (const Net* net : {&plain, &fused}) {
        Extractor ex = net->create_extractor();
        Mat given(4, 3, 4), out;
        given.fill(9.f);
        ASSERT_EQ(ex.input("in", in), kOk);
        ASSERT_EQ(ex.input("c", given), kOk);
        ASSERT_EQ(ex.extract("out", out), kOk);
        expect_near(out, run(plain, in));
    }
}

TEST(Fusion, channels_in_blocks) {
    // Rows of channels become channels of planes: 2-D by itself, 3-D; a second reader wants rows.
    const std::string conv = "Convolution conv 1 1 b out 0=8 1=3 4=1 5=1 6=1152\n";
    expect_fused("Permute p 1 1 in b 0=4\n" + conv, Weights().tagged(1152).raw(8), Shape(16, 9, 7),
                 3);
    expect_fused("Permute p 1 1 in a 0=1\nReshape r 1 1 a b 0=9 1=7 2=16\n" + conv,
                 Weights().tagged(1152).raw(8), Shape(16, 63), 4);
    expect_fused(
        "Permute p 1 1 in a 0=1\nReshape r 1 1 a b 0=9 1=7 2=16\nReshape q 1 1 a c 0=63 1=-1\n"
        "Convolution conv 1 1 b d 0=8 1=3 4=1 5=1 6=1152\nReshape t 1 1 d e 0=63 1=8\n"
        "Concat cat 2 1 c e out\n",
        Weights().tagged(1152).raw(8), Shape(16, 63), 7);
}

TEST(Fusion, blobs_of_other_values_are_not_given) {
    const std::string text = std::string("Input in 0 1 in\n") + kRowNorm;
    for (const char* blob : {"a", "b", "c"}) {
        SCOPED_TRACE(blob);
        Net plain, fused, kept;
        Weights weights = Weights().tagged(30).raw(6).batchnorm(6), again = weights, more = weights;
        ASSERT_EQ(load(&plain, text, &weights, false), kOk);
        ASSERT_EQ(load(&fused, text, &again, true), kOk);
        const Mat in = image(Shape(5, 4)), expected = run(plain, in, blob);
        expect_near(run(fused, in, blob), expected);
        Extractor ex = fused.create_extractor();
        Mat m;
        EXPECT_EQ(ex.input(blob, expected), kOk);
        EXPECT_EQ(ex.extract("out", m), kOk);
        expect_near(m, run(plain, in));
        ASSERT_EQ(kept.load_param_mem(("7767517\n7 99\n" + text).c_str()), kOk);
        ASSERT_EQ(kept.keep_blob(blob), kOk);
        const unsigned char* bytes = more.data();
        ASSERT_EQ(kept.load_model(DataReaderFromMemory(bytes, more.size())), kOk);
        expect_near(run(kept, in, blob), expected);
        expect_near(run(kept, in), run(plain, in));
    }
}

// As RepVGG and MobileOne have them.
TEST(Fusion, parallel_convolutions) {
    const std::string sum = "BinaryOp sum 2 1 a b out\n";
    for (const char* type : {"Convolution", "ConvolutionDepthWise"}) {
        const int inputs = type[11] ? 1 : 8, count = 8 * inputs;
        const auto conv = [&](const char* name, const char* top, int taps, const char* more) {
            return std::string(type) + " " + name + " 1 1 in " + top + " 0=8 " + more +
                   " 6=" + std::to_string(count * taps) + (inputs == 1 ? " 7=8\n" : "\n");
        };
        const auto weights = [&](int taps, int more) {
            return Weights().tagged(count * taps).raw(8).tagged(count * more);
        };
        const Shape shape(9, 7, 8);
        const std::string wide = conv("w", "a", 9, "1=3 4=1 5=1");
        expect_fused(wide + conv("v", "b", 9, "1=3 4=1") + sum, weights(9, 9), shape, 2);
        expect_fused(wide + conv("v", "b", 1, "1=1") + sum, weights(9, 1), shape, 2);
        expect_fused(conv("w", "b", 9, "1=3 4=1 5=1 3=2") + conv("v", "a", 1, "1=1 3=2") + sum,
                     weights(9, 1), shape, 2);
        expect_fused(conv("w", "b", 25, "1=5 4=4 2=2 5=1") + conv("v", "a", 1, "1=1") + sum,
                     weights(25, 1), shape, 2);
        expect_fused(wide + conv("v", "b", 25, "1=5 4=2") + sum, weights(9, 25), shape, 2);
        expect_fused(wide + conv("v", "b", 3, "1=3 11=1 4=1 14=0") + sum, weights(9, 3), shape, 2);
        const std::string norm = "BatchNorm bn 1 1 in b 0=8\n";
        expect_fused(wide + norm + sum, Weights().tagged(count * 9).raw(8).batchnorm(8), shape, 2);
        // Windows that differ, strides that differ, an activation, a second reader.
        const bool residual = inputs > 1;  // the sum may go into one of them all the same
        const size_t left = residual ? 3 : 4;
        expect_fused(conv("w", "a", 25, "1=5 4=2 5=1") + conv("v", "b", 9, "1=3 4=2 2=2") + sum,
                     weights(25, 9), shape, left);
        expect_fused(wide + conv("v", "b", 9, "1=3 4=2 2=2") + sum, weights(9, 9), shape, left);
        expect_fused(wide + conv("v", "b", 1, "1=1 9=1") + sum, weights(9, 1), shape, 4);
        expect_fused(wide + conv("v", "b", 9, "1=3 4=1") +
                         "BinaryOp sum 2 1 a b c\nBinaryOp more 2 1 c b out 0=2\n",
                     weights(9, 9), shape, 5);
    }
    // Of another blob.
    expect_fused(
        "ReLU r 1 1 in x\nConvolution w 1 1 in a 0=8 1=3 4=1 6=576\n"
        "Convolution v 1 1 x b 0=8 1=3 4=1 6=576\n" +
            sum,
        Weights().tagged(576).tagged(576), Shape(9, 7, 8), 4);
}

TEST(Fusion, batchnorms_meet) {
    expect_fused(
        "BatchNorm bn 1 1 in a 0=8 1=0.01\nScale scale 1 1 a b 0=8 1=1\nBinaryOp op 1 1 b out 0=2 "
        "1=1 2=0.5\n",
        Weights().batchnorm(8).raw(8).raw(8), Shape(9, 7, 8), 2);
}

TEST(Fusion, padding) {
    const std::string conv = "Convolution conv 1 1 a out 0=8 1=3 4=0 5=1 6=216\n";
    expect_fused("Padding pad 1 1 in a 0=1 1=2 2=1 3=0 5=0.5\n" + conv, conv_weights(),
                 Shape(9, 7, 3), 2);
    // Reflected borders are not the convolution's.
    expect_fused("Padding pad 1 1 in a 0=1 1=2 2=1 3=0 4=2\n" + conv, conv_weights(),
                 Shape(9, 7, 3), 3);
    // Borders of another value around borders of the convolution's.
    expect_fused(
        "Padding pad 1 1 in a 0=1 1=2 2=1 3=0 5=0.5\nConvolution conv 1 1 a out 0=8 1=3 "
        "4=1 5=1 6=216\n",
        conv_weights(), Shape(9, 7, 3), 3);
}

TEST(Fusion, gates) {
    expect_fused("Split split 1 2 in x y\nSigmoid s 1 1 y z\nBinaryOp mul 2 1 x z out 0=2\n",
                 Weights(), Shape(9, 7, 3), 2);
    expect_fused("HardSigmoid s 1 1 in z 0=0.2 1=0.5\nBinaryOp mul 2 1 z in out 0=2\n", Weights(),
                 Shape(9, 7, 3), 2);
    // And on into the convolution.
    expect_fused(std::string(kConv) + "Split split 1 2 a x y\nSigmoid s 1 1 y z\n" +
                     "BinaryOp mul 2 1 x z out 0=2\n",
                 conv_weights(), Shape(9, 7, 3), 2);
    // The gate of another blob stays.
    expect_fused("Sigmoid s 1 1 in z\nSwish t 1 1 in u\nBinaryOp mul 2 1 u z out 0=2\n", Weights(),
                 Shape(9, 7, 3), 4);
}

TEST(Fusion, layers_that_change_nothing) {
    expect_fused("Dropout d 1 1 in a\nNoop n 1 1 a b\nReLU r 1 1 b out\n", Weights(),
                 Shape(9, 7, 3), 2);
    // Of what is an image whatever the sizes; a matrix becomes one.
    expect_fused(std::string(kConv) + "Pooling p 1 1 a b 1=1\nSigmoid s 1 1 b out\n",
                 conv_weights(), Shape(9, 7, 3), 2);
    expect_fused("Pooling p 1 1 in a 1=1\nSigmoid s 1 1 a out\n", Weights(), Shape(9, 7), 3);
    expect_fused("Dropout d 1 1 in out 0=0.5\n", Weights(), Shape(9, 7, 3), 2);
    // The input cannot take over the output's name.
    expect_fused("Noop n 1 1 in out\n", Weights(), Shape(9, 7, 3), 2);
    expect_fused("ReLU r 1 1 in a\nNoop n 1 1 a out\n", Weights(), Shape(9, 7, 3), 2);
    expect_fused("Pooling p 1 1 in a 0=1 4=1\nFlatten f 1 1 a b\nReLU r 1 1 b out\n", Weights(),
                 Shape(9, 7, 3), 3);
}

TEST(Fusion, neutral_layers) {
    expect_fused(
        "BinaryOp a 1 1 in a 0=0 1=1 2=0\nBinaryOp b 1 1 a b 0=2 1=1 2=1\nConcat c 1 1 b c\n"
        "Permute p 1 1 c d 0=0\nPadding q 1 1 d e\nReLU r 1 1 e out\n",
        Weights(), Shape(9, 7, 3), 2);
    // Neither sums nor factors that do something go.
    expect_fused(
        "BinaryOp a 1 1 in a 0=0 1=1 2=1\nReLU r 1 1 a b\nBinaryOp b 1 1 b out 0=2 1=1 2=2\n",
        Weights(), Shape(9, 7, 3), 4);
    expect_fused("Permute p 1 1 in out 0=1\n", Weights(), Shape(9, 7, 3), 2);
}

// What cannot run without fusion cannot with it.
TEST(Fusion, refused_graphs_stay_refused) {
    for (const char* text :
         {"Concat c 1 1 in a 0=3\nReLU r 1 1 a out\n", "Concat c 1 1 in a 0=-4\nReLU r 1 1 a out\n",
          "MemoryData m 1 1 in c 0=1\nBinaryOp b 2 1 in c out 0=2\n",
          "Convolution v 1 1 in a 0=8 1=3 6=216\nMemoryData m 1 1 in c 0=8\n"
          "BinaryOp b 2 1 a c out 0=2\n"}) {
        for (bool fuse : {false, true}) {
            Net net;
            Weights weights = Weights();
            if (std::string(text).find("Convolution") == 0) weights.tagged(216);
            weights.raw(8);
            Mat out;
            if (load(&net, std::string("Input in 0 1 in\n") + text, &weights, fuse) != kOk)
                continue;
            Extractor ex = net.create_extractor();
            ASSERT_EQ(ex.input("in", image(Shape(9, 7, 3))), kOk);
            EXPECT_NE(ex.extract("out", out), kOk)
                << text << (fuse ? "with" : "without") << " fusion";
        }
    }
}

// Eltwise adds blobs of one size; BinaryOp others, too.
TEST(Fusion, sums_of_unlike_sizes) {
    for (const char* sum : {"Eltwise s 2 1 a r out 0=1\n", "BinaryOp s 2 1 a r out 0=0\n"}) {
        for (bool fuse : {false, true}) {
            SCOPED_TRACE(std::string(sum) + (fuse ? "with fusion" : "without"));
            Net net;
            Weights weights = conv_weights();
            ASSERT_EQ(load(&net, std::string("Input in 0 1 in\nInput r 0 1 r\n") + kConv + sum,
                           &weights, fuse),
                      kOk);
            for (const Shape& added : {Shape(9, 7, 8), Shape(1, 1, 8), Shape(8)}) {
                Extractor ex = net.create_extractor();
                Mat out;
                ASSERT_EQ(ex.input("in", image(Shape(9, 7, 3))), kOk);
                ASSERT_EQ(ex.input("r", image(added)), kOk);
                EXPECT_EQ(ex.extract("out", out) == kOk, sum[0] == 'B' || added.w == 9);
            }
        }
    }
}

// One item of a convolution serves all items of what is added, and the other way round.
TEST(Fusion, sums_of_batches_and_single_items) {
    for (const char* sum : {"Eltwise s 2 1 a r out 0=1\n", "BinaryOp s 2 1 a r out 0=0\n"}) {
        SCOPED_TRACE(sum);
        Net net;
        Weights weights = conv_weights();
        ASSERT_EQ(load(&net, std::string("Input in 0 1 in\nInput r 0 1 r\n") + kConv + sum,
                       &weights, true),
                  kOk);
        const auto sum_of = [&](const Mat& in, const Mat& added) {
            Extractor ex = net.create_extractor();
            Mat out;
            EXPECT_EQ(ex.input("in", in), kOk);
            EXPECT_EQ(ex.input("r", added), kOk);
            EXPECT_EQ(ex.extract("out", out), kOk);
            return out;
        };
        const Mat x = image(Shape(9, 7, 3)), r = image(Shape(9, 7, 8));
        Shape xs_shape = x.logical_shape(), rs_shape = r.logical_shape();
        xs_shape.n = rs_shape.n = 3;
        Mat xs(xs_shape), rs(rs_shape);
        for (int b = 0; b < 3; b++) xs.batch(b).fill((float)b), rs.batch(b).fill((float)b);
        const Mat by_added = sum_of(x, rs), by_input = sum_of(xs, r);
        ASSERT_EQ(by_added.n, 3);
        ASSERT_EQ(by_input.n, 3);
        for (int b = 0; b < 3; b++) {
            expect_near(by_added.batch(b), sum_of(x, rs.batch(b)));
            expect_near(by_input.batch(b), sum_of(xs.batch(b), r));
        }
    }
}

// The result of a net for a blob: its status, shape and type.
std::string made(const std::string& layer, const Mat& in, bool fuse) {
    Net net;
    Weights none;
    Mat out;
    if (load(&net, "Input in 0 1 in\n" + layer + "Padding p 1 1 a out 2=1 3=2\n", &none, fuse) !=
        kOk)
        return "not loaded";
    Extractor ex = net.create_extractor();
    if (ex.input("in", in) != kOk || ex.extract("out", out) != kOk) return "refused";
    std::string text = dtype_name(out.dtype);
    for (int size : {out.dims, out.w, out.h, out.d, out.c}) text += " " + std::to_string(size);
    return text;
}

TEST(Fusion, what_is_left_out_takes_the_same_blobs) {
    for (const char* layer :
         {"Dropout l 1 1 in a\n", "Pooling l 1 1 in a 1=1\n", "Pooling l 1 1 in a 0=1 1=1\n",
          "BinaryOp l 1 1 in a 0=2 1=1 2=1\n", "BinaryOp l 1 1 in a 0=0 1=1 2=0\n",
          "Concat l 1 1 in a\n", "Permute l 1 1 in a\n", "Padding l 1 1 in a\n",
          "Noop l 1 1 in a\n", "Split l 1 1 in a\n"})
        for (DType type : {DType::f32, DType::s32, DType::s8, DType::u8})
            for (Shape shape : {Shape(5), Shape(5, 4), Shape(5, 4, 3), Shape(5, 4, 3, 2)}) {
                shape.dtype = type;
                Mat in(shape);
                memset(in.data, 1, in.total() * in.elemsize);
                EXPECT_EQ(made(layer, in, true), made(layer, in, false))
                    << layer << dtype_name(type) << ", " << shape.dims << " axes";
            }
}

TEST(Fusion, dropout_and_power_into_convolution) {
    expect_fused(std::string(kConv) + "Dropout d 1 1 a b 0=0.5\nPower p 1 1 b out 1=3 2=-1\n",
                 conv_weights(), Shape(9, 7, 3), 2);
    expect_fused(std::string(kConv) + "Power p 1 1 a out 0=2 1=3 2=-1\n", conv_weights(),
                 Shape(9, 7, 3), 3);
}

// Blobs of 1 and 2 axes have one channel for Bias.
TEST(Fusion, bias_of_rows_stays) {
    const std::string bias = "Bias s 1 1 b out 0=8\n";
    expect_fused("Flatten f 1 1 in a\nInnerProduct fc 1 1 a b 0=8 1=0 2=72\n" + bias,
                 Weights().tagged(72).raw(8), Shape(3, 3), 4);
    expect_fused("Convolution1D c 1 1 in b 0=8 1=3 6=48\n" + bias, Weights().tagged(48).raw(8),
                 Shape(9, 2), 3);
    expect_fused("Convolution c 1 1 in b 0=8 1=1 6=72\n" + bias, Weights().tagged(72).raw(8),
                 Shape(9), 3);
    expect_fused("BatchNorm n 1 1 in b 0=8\n" + bias, Weights().batchnorm(8).raw(8), Shape(8), 3);
    expect_fused(std::string(kConv) + "Bias s 1 1 a out 0=8\n", conv_weights().raw(8),
                 Shape(9, 7, 3), 2);
}

TEST(Fusion, flatten_of_what_is_flat) {
    for (const char* flatten : {"Flatten f 1 1 a b\n", "Reshape f 1 1 a b 0=-1\n"}) {
        expect_fused(std::string("Pooling p 1 1 in a 0=1 4=1\n") + flatten + "ReLU r 1 1 b out\n",
                     Weights(), Shape(9, 7, 3), 3);
        expect_fused(std::string(kConv) + flatten +
                         "InnerProduct fc 1 1 b c 0=4 1=1 2=2016\nFlatten g 1 1 c d\n"
                         "Softmax s 1 1 d out\n",
                     conv_weights().tagged(2016).raw(4), Shape(9, 7, 3), 4);
        // The rows of a matrix do not become one by themselves.
        expect_fused(
            std::string("ReLU r 1 1 in a\n") + flatten + "InnerProduct fc 1 1 b out 0=4 1=1 2=24\n",
            Weights().tagged(24).raw(4), Shape(6, 1), 4);
    }
    // A reshape that gives more axes stays.
    expect_fused("Pooling p 1 1 in a 0=1 4=1\nReshape f 1 1 a b 0=1 1=1 2=-1\nReLU r 1 1 b out\n",
                 Weights(), Shape(9, 7, 3), 4);
}

TEST(Fusion, reduction_of_channels_is_pooling) {
    for (const char* axes : {"-23303=2,1,2", "-23303=2,-1,-2", "-23303=2,2,-2"}) {
        for (const char* operation : {"0=3", "0=4"}) {
            for (const char* keepdims : {"4=0", "4=1"}) {
                const std::string reduce = std::string("Reduction r 1 1 b c ") + operation +
                                           " 1=0 " + axes + " 5=1 " + keepdims + "\n";
                const std::string net = std::string(kConv) + "ReLU relu 1 1 a b\n" + reduce +
                                        "InnerProduct fc 1 1 c out 0=4 1=0 2=32\n";
                expect_fused(net, conv_weights().tagged(32), Shape(9, 7, 3), 4);
                Net fused;
                Weights weights = conv_weights().tagged(32);
                ASSERT_EQ(load(&fused, "Input in 0 1 in\n" + net, &weights, true), kOk);
                EXPECT_EQ(fused.layers()[3]->type, "Pooling") << net;
            }
        }
    }
    Net joined;
    Weights weights = conv_weights();
    ASSERT_EQ(load(&joined,
                   std::string("Input in 0 1 in\n") + kConv + "Concat join 2 1 a a b\n" +
                       "Reduction r 1 1 b out 0=3 1=0 -23303=2,1,2 5=1 4=1\n",
                   &weights, true),
              kOk);
    EXPECT_EQ(joined.layers().back()->type, "Pooling");
    // Sums, other axes, and blobs whose axes are not known stay.
    for (const char* reduce :
         {"0=0 1=0 -23303=2,1,2 5=1", "0=3 1=0 -23303=2,0,2 5=1", "0=3 1=0 -23303=1,2 5=1",
          "0=3 1=1", "0=3 1=0 2=2 -23303=2,1,2 5=1"}) {
        Net net;
        Weights weights = conv_weights();
        ASSERT_EQ(load(&net,
                       std::string("Input in 0 1 in\n") + kConv + "Reduction r 1 1 a out " +
                           reduce + "\n",
                       &weights, true),
                  kOk);
        EXPECT_EQ(net.layers()[2]->type, "Reduction") << reduce;
    }
    Net net;
    Weights none;
    ASSERT_EQ(load(&net, "Input in 0 1 in\nReduction r 1 1 in out 0=3 1=0 -23303=2,1,2 5=1\n",
                   &none, true),
              kOk);
    EXPECT_EQ(net.layers()[1]->type, "Reduction");
}

TEST(Fusion, convolutions_of_one_pixel_are_inner_products) {
    const std::string text =
        "Pooling p 1 1 in a 0=1 4=1\nConvolution c 1 1 a b 0=4 1=1 5=1 6=12 9=1\n"
        "Convolution d 1 1 b out 0=3 1=1 5=0 6=12\n";
    Weights weights = Weights().tagged(12).raw(4).tagged(12);
    expect_fused(text, weights, Shape(9, 7, 3), 4);
    Net net;
    ASSERT_EQ(load(&net, "Input in 0 1 in\n" + text, &weights, true), kOk);
    EXPECT_EQ(net.layers()[2]->type, "InnerProduct");
    EXPECT_EQ(net.layers()[3]->type, "InnerProduct");
    // Padding makes more than one pixel of it.
    expect_fused("Pooling p 1 1 in a 0=1 1=7 11=9\nConvolution c 1 1 a out 0=4 1=1 5=1 6=12 4=1\n",
                 Weights().tagged(12).raw(4), Shape(7, 9, 3), 3);
}

TEST(Fusion, sums_into_convolutions) {
    const std::string conv = "Convolution c 1 1 in a 0=16 1=3 4=1 5=1 6=2304\n";
    const Weights weights = Weights().tagged(2304).raw(16);
    const Shape in(9, 7, 16);
    for (const char* sum : {"BinaryOp s 2 1 a in b\n", "BinaryOp s 2 1 in a b\n",
                            "Eltwise s 2 1 a in b 0=1\n", "Eltwise s 2 1 in a b 0=1\n"})
        for (const char* act : {"ReLU r 1 1 b out\n", "Sigmoid r 1 1 b out\n"})
            expect_fused(conv + sum + act, weights, in, 2);
    // Of two convolutions the later one; what is added may have an activation and other readers.
    expect_fused(conv + "ReLU r 1 1 a b\nConvolution d 1 1 b c 0=16 1=1 5=1 6=256\n" +
                     "BinaryOp s 2 1 c b out\n",
                 Weights(weights).tagged(256).raw(16), in, 3);
    expect_fused(conv + "Sigmoid x 1 1 in x\nConvolution d 1 1 x c 0=16 1=1 5=1 6=256\n" +
                     "BinaryOp s 2 1 c a out\n",
                 Weights(weights).tagged(256).raw(16), in, 4);
    // Batch norm before the sum goes into the weights, behind it it stays.
    expect_fused(conv + "BatchNorm n 1 1 a b 0=16\nBinaryOp s 2 1 b in out\n",
                 Weights(weights).batchnorm(16), in, 2);
    expect_fused(conv + "BinaryOp s 2 1 a in b\nBatchNorm n 1 1 b out 0=16\n",
                 Weights(weights).batchnorm(16), in, 3);
    // Shapes that differ give what BinaryOp gives.
    expect_fused("Pooling p 1 1 in b 0=1 4=1\n" + conv + "BinaryOp s 2 1 b a c\nReLU r 1 1 c out\n",
                 weights, in, 3);
    expect_fused(
        "Reduction r 1 1 in b 0=3 1=0 -23303=1,0 4=1 5=1\n" + conv + "BinaryOp s 2 1 b a out\n",
        weights, in, 3);
    // Padding of what is added is not the convolution's.
    expect_fused(conv + "Padding p 1 1 in b 0=1 1=1 2=2 3=0\n" +
                     "Convolution d 1 1 a c 0=16 1=1 4=2 14=2 5=1 6=256\n" +
                     "Interp i 1 1 b e 0=1 3=11 4=13\n" + "Interp j 1 1 c f 0=1 3=11 4=13\n" +
                     "BinaryOp s 2 1 f e out\n",
                 Weights(weights).tagged(256).raw(16), in, 7);
    expect_fused(conv + "Padding p 1 1 in b 0=1 1=1 2=1 3=1\n" +
                     "Convolution d 1 1 a c 0=16 1=1 4=1 5=1 6=256\n" + "BinaryOp s 2 1 b c out\n",
                 Weights(weights).tagged(256).raw(16), in, 4);
}

TEST(Fusion, sums_that_stay) {
    const std::string conv = "Convolution c 1 1 in a 0=16 1=1 5=1 6=256\n";
    const Weights weights = Weights().tagged(256).raw(16);
    const Shape in(9, 7, 16);
    for (const char* sum : {"BinaryOp s 2 1 a a out\n", "BinaryOp s 2 1 a in out 0=1\n",
                            "Eltwise s 2 1 a in out 0=1 -23301=2,1.0,2.0\n",
                            "Eltwise s 3 1 a in in out 0=1\n", "Eltwise s 2 1 a in out 0=2\n"})
        expect_fused(conv + sum, weights, in, 3);
    // An activation or another reader between.
    expect_fused(conv + "ReLU r 1 1 a b\nBinaryOp s 2 1 b in out\n", weights, in, 3);
    expect_fused(conv + "ReLU r 1 1 a b\nBinaryOp s 2 1 a b out\n", weights, in, 4);
}

TEST(Fusion, a_second_reader_keeps_the_blob) {
    expect_fused(std::string(kConv) + "ReLU relu 1 1 a b\nBinaryOp add 2 1 a b out 0=0\n",
                 conv_weights(), Shape(9, 7, 3), 4);
}

std::vector<std::string>* g_messages;
void keep_message(LogLevel, const char* message, void*) { g_messages->push_back(message); }

TEST(Fusion, blobs_between) {
    const std::string text = std::string("Input in 0 1 in\n") + kConv +
                             "Dropout d 1 1 a b\nReLU relu 1 1 b c\nSoftmax s 1 1 c out\n";
    Weights weights = conv_weights();  // the nets refer to its bytes
    const unsigned char* const first = weights.data();
    Net fused, kept, plain;
    for (Net* net : {&fused, &kept, &plain}) {
        net->opt.use_graph_fusion = net != &plain;
        const std::string param = "7767517\n5 5\n" + text;
        ASSERT_EQ(net->load_param_mem(param.c_str()), kOk);
        if (net == &kept) {
            ASSERT_EQ(net->keep_blob("a"), kOk);
        }
        const unsigned char* bytes = first;
        ASSERT_EQ(net->load_model(DataReaderFromMemory(bytes, weights.size())), kOk);
    }
    const Mat in = image(Shape(9, 7, 3));
    expect_near(run(fused, in, "c"), run(plain, in, "c"));
    expect_near(run(kept, in, "a"), run(plain, in, "a"));
    expect_near(run(kept, in, "b"), run(plain, in, "b"));  // equals a

    // Blobs that were fused away can still be extracted and given: alone, between others, and in a
    // copy.
    const Mat a = run(plain, in, "a");
    expect_near(run(fused, in, "a"), a);
    Extractor ex = fused.create_extractor();
    Mat m, c;
    ASSERT_EQ(ex.input("in", in), kOk);
    ASSERT_EQ(ex.extract("c", c), kOk);
    ASSERT_EQ(ex.extract("a", m), kOk);
    expect_near(m, a);
    Extractor copy = ex;
    ASSERT_EQ(copy.extract("b", m), kOk);
    expect_near(m, a);
    ASSERT_EQ(copy.extract("c", m), kOk);
    expect_near(m, c);
    copy.clear();
    ASSERT_EQ(copy.input("a", a), kOk);
    ASSERT_EQ(copy.extract("c", m), kOk);
    expect_near(m, c);

    std::vector<std::string> messages;
    g_messages = &messages;
    set_log_sink(keep_message, nullptr);
    EXPECT_LT(fused.keep_blob("a"), 0);
    // An Extractor of a net that has gone.
    fused.clear();
    EXPECT_LT(ex.extract("a", m), 0);
    set_log_sink(nullptr, nullptr);
    ASSERT_EQ(messages.size(), 2u);
}

// An output takes the place of the blob that it equals, unless something else is given for it.
TEST(Fusion, given_outputs_that_equal_blobs) {
    Net net;
    Weights none;
    ASSERT_EQ(load(&net, "Input in 0 1 in\nReLU r 1 1 in a\nNoop n 1 1 a out\n", &none, true), kOk);
    Mat in(2), given(2), m;
    in.fill(1.f), given.fill(5.f);
    Extractor ex = net.create_extractor();
    ASSERT_EQ(ex.input("in", in), kOk);
    ASSERT_EQ(ex.input("out", given), kOk);
    ASSERT_EQ(ex.extract("a", m), kOk);
    EXPECT_EQ(m[0], 1.f);
    ASSERT_EQ(ex.extract("out", m), kOk);
    EXPECT_EQ(m[0], 5.f);
}

// What the application does to a constant that it has extracted changes no later run.
TEST(Fusion, constants_beside_blobs_between) {
    const std::string path = testing::TempDir() + "constants_beside_blobs_between.bin";
    const float weights[] = {1.f, 2.f, 3.f, 4.f, 0.f, 2.f};  // 0: the tag
    FILE* const file = fopen(path.c_str(), "wb");
    ASSERT_TRUE(file);
    ASSERT_EQ(fwrite(weights, 4, 6, file), 6u);
    fclose(file);
    Net net;
    ASSERT_EQ(net.load_param_mem("7767517\n5 5\nInput in 0 1 in\nMemoryData m 0 1 k 0=4\n"
                                 "Convolution conv 1 1 in a 0=1 1=1 5=0 6=1\n"
                                 "ReLU relu 1 1 a b\nBinaryOp add 2 1 b k out 0=0\n"),
              kOk);
    ASSERT_EQ(net.load_model(path.c_str()), kOk);
    Mat in(4, 1, 1);
    in.fill(1.f);
    for (int round = 0; round < 2; round++) {
        Extractor ex = net.create_extractor();
        Mat a, constant, out;
        ASSERT_EQ(ex.input("in", in), kOk);
        ASSERT_EQ(ex.extract("a", a), kOk);
        ASSERT_EQ(ex.extract("k", constant), kOk);
        ASSERT_EQ(ex.extract("out", out), kOk);
        EXPECT_EQ(constant[0], 1.f);
        EXPECT_EQ(out[0], 3.f);
        constant.fill(100.f);
    }
    remove(path.c_str());
}

// What the application gives in place of a constant counts for all that read it, and so in place
// of a blob that tables and integer products no longer read.
TEST(Fusion, constants_that_are_given) {
    const std::string begin = "Input in 0 1 in\n", other = "BinaryOp o 2 1 k1 in more 0=2\n";
    const std::string split = "Split s 1 2 k k0 k1\n" + other;
    const std::string one = "MemoryData m 0 1 k 0=1\n" + split;
    const std::string channels = "MemoryData m 0 1 k 0=8\n" + split;
    const std::string quantized =
        "AffineQuantize q 1 1 in a 0=0.02 1=3\n"
        "AffineDequantize d 1 1 a k 0=0.02 1=3\n" +
        split;
    const struct {
        std::string text;
        Weights weights;
        Mat given;
    } cases[] = {
        {begin + one + "BinaryOp p 2 1 in k0 out 0=0\n", Weights().raw(1), image(Shape(1))},
        {begin + channels + kConv + "BinaryOp p 2 1 a k0 out 0=0\n",
         Weights().raw(8).tagged(216).raw(8), image(Shape(8))},
        {begin + quantized +
             "Sigmoid g 1 1 k0 b\nAffineQuantize q2 1 1 b c 0=0.004 1=-128\n"
             "AffineDequantize d2 1 1 c out 0=0.004 1=-128\n",
         Weights(), image(Shape(9, 7, 3))},
    };
    for (const auto& c : cases) {
        SCOPED_TRACE(c.text);
        Net plain, fused, kept;
        Weights weights[3] = {c.weights, c.weights, c.weights};
        ASSERT_EQ(load(&plain, c.text, &weights[0], false), kOk);
        ASSERT_EQ(load(&fused, c.text, &weights[1], true), kOk);
        const int layers = (int)std::count(c.text.begin(), c.text.end(), '\n');
        const std::string param = "7767517\n" + std::to_string(layers) + " 99\n" + c.text;
        ASSERT_EQ(kept.load_param_mem(param.c_str()), kOk);
        ASSERT_EQ(kept.keep_blob("k"), kOk);
        const unsigned char* bytes = weights[2].data();
        ASSERT_EQ(kept.load_model(DataReaderFromMemory(bytes, weights[2].size())), kOk);
        Mat expected;
        for (const Net* net : {&plain, &fused, &kept}) {
            Extractor ex = net->create_extractor();
            Mat out;
            ASSERT_EQ(ex.input("in", image(Shape(9, 7, 3))), kOk);
            ASSERT_EQ(ex.input("k", c.given), kOk);
            ASSERT_EQ(ex.extract("out", out), kOk);
            if (net == &plain)
                expected = out;
            else
                expect_near(out, expected);
        }
    }
}

// Reads once, as a cipher does: the weights would have to be kept twice.
struct OnceReader : DataReader {
    explicit OnceReader(Weights& weights) : from(weights) {}
    size_t read(void* buf, size_t size) const override {
        const size_t count = std::min(size, from.size() - at);
        memcpy(buf, from.data() + at, count);
        at += count;
        return count;
    }
    Weights& from;
    mutable size_t at = 0;
};

TEST(Fusion, is_undone_without_weights) {
    Net net;
    ASSERT_EQ(net.load_param_mem("7767517\n3 3\nInput in 0 1 in\nSigmoid g 1 1 in a\n"
                                 "BinaryOp m 2 1 in a out 0=2\n"),
              kOk);
    Mat in(1), given(1), m;
    in.fill(0.f), given.fill(5.f);
    Extractor ex = net.create_extractor();
    ASSERT_EQ(ex.input("in", in), kOk);
    ASSERT_EQ(ex.extract("out", m), kOk);
    ASSERT_EQ(ex.extract("a", m), kOk);
    EXPECT_EQ(m[0], 0.5f);
    in.fill(2.f);
    ex.clear();
    ASSERT_EQ(ex.input("in", in), kOk);
    ASSERT_EQ(ex.input("a", given), kOk);
    ASSERT_EQ(ex.extract("out", m), kOk);
    EXPECT_EQ(m[0], 10.f);
}

TEST(Fusion, is_undone_whatever_the_weights_come_from) {
    const std::string param = std::string("7767517\n3 3\nInput in 0 1 in\n") +
                              "Convolution conv 1 1 in a 0=8 1=3 5=1 6=216\nReLU r 1 1 a b\n";
    Weights weights = conv_weights();
    const std::string path = testing::TempDir() + "fused_weights.bin";
    const auto write = [&] {
        FILE* fp = fopen(path.c_str(), "wb");
        fwrite(weights.data(), 1, weights.size(), fp);
        fclose(fp);
    };
    const Mat in = image(Shape(9, 7, 3));
    Mat expected, m;
    for (const char* source : {"plain", "path", "FILE", "memory", "reader", "lost"}) {
        SCOPED_TRACE(source);
        const std::string kind = source;
        write();
        Net net;
        net.opt.use_graph_fusion = kind != "plain";
        ASSERT_EQ(net.load_param_mem(param.c_str()), kOk);
        if (kind == "path" || kind == "lost") {
            ASSERT_EQ(net.load_model(path.c_str()), kOk);
        } else if (kind == "FILE") {
            FILE* fp = fopen(path.c_str(), "rb");
            ASSERT_EQ(net.load_model(fp), kOk);
            fclose(fp);
            remove(path.c_str());
        } else if (kind == "reader") {
            ASSERT_EQ(net.load_model(OnceReader(weights)), kOk);
        } else {
            const unsigned char* bytes = weights.data();
            ASSERT_EQ(net.load_model(DataReaderFromMemory(bytes, weights.size())), kOk);
        }
        if (kind == "lost") remove(path.c_str());
        Extractor ex = net.create_extractor();
        ASSERT_EQ(ex.input("in", in), kOk);
        if (kind == "lost" || kind == "reader") {
            set_log_level(kLogOff);
            EXPECT_LT(ex.extract("a", m), 0);
            set_log_level(kLogWarn);
            EXPECT_EQ(ex.extract("b", m), kOk) << "the rest runs";
            continue;
        }
        ASSERT_EQ(ex.extract("a", m), kOk);
        if (kind == "plain") expected = m.clone();
        expect_near(m, expected);
    }
}

}  // namespace
}  // namespace quoll
