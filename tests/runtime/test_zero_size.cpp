// Blobs of which an axis has size 0, through layers that know nothing of them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "quoll/net.h"

namespace quoll {

namespace {

// The sizes of `out` for an x without values; dims 0 if the net refuses it.
Shape sizes_for(const char* text, const Shape& x) {
    Net net;
    EXPECT_EQ(0, net.load_param_mem(text));
    const float weights[16] = {0};
    EXPECT_LE(0, net.load_model((const unsigned char*)weights));
    Mat empty, out;
    empty.dims = x.dims, empty.w = x.w, empty.h = x.h, empty.d = x.d, empty.c = x.c;
    empty.elempack = 1, empty.elemsize = 4;
    Extractor ex = net.create_extractor();
    // Input layers ask for values, so that the blob is given behind one that knows empty ones.
    if (ex.input("x", empty) != 0) return Shape();
    return ex.extract("out", out) == 0 ? out.logical_shape() : Shape();
}

}  // namespace

TEST(zero_size, moves_with_the_layers) {
    EXPECT_EQ(Shape(5, 0, 3), sizes_for("7767517\n3 3\nInput x 0 1 x\nReLU r 1 1 x r\n"
                                        "Permute p 1 1 r out 0=2\n",
                                        Shape(5, 3, 0)));
    EXPECT_EQ(Shape(2, 0),
              sizes_for("7767517\n4 4\nInput x 0 1 x\nInnerProduct f 1 1 x f 0=2 1=0 2=8\n"
                        "BinaryOp a 1 1 f a 0=0 1=1 2=1.0\nSoftmax s 1 1 a out 0=1 1=1\n",
                        Shape(4, 0)));
}

TEST(zero_size, a_batch_of_none) {
    const char* const text =
        "7767517\n4 4\nInput x 0 1 x\nBatchAxis b 1 1 x b\n"
        "Convolution c 1 1 b c 0=2 1=1 6=6\nBatchAxis i 1 1 c out 0=1\n";
    EXPECT_EQ(Shape(4, 5, 2, 0), sizes_for(text, Shape(4, 5, 3, 0)));
}

TEST(zero_size, in_each_item_of_a_batch) {
    Net net;
    ASSERT_EQ(0, net.load_param_mem("7767517\n2 2\nInput x 0 1 x\n"
                                    "StridedSlice s 1 1 x out -23300=1,0 -23301=1,0 -23302=1,1\n"));
    const float none = 0;
    ASSERT_LE(0, net.load_model((const unsigned char*)&none));
    Mat x, out;
    Shape shape(4, 3);
    shape.n = 2;
    x.create(shape, 1, nullptr);
    x.fill(1.f);
    Extractor ex = net.create_extractor();
    ASSERT_EQ(0, ex.input("x", x));
    ASSERT_EQ(0, ex.extract("out", out));
    EXPECT_EQ(2, out.n);
    EXPECT_EQ(0, out.w);
    EXPECT_EQ(3, out.h);
}

TEST(zero_size, is_refused_where_a_result_would_have_values) {
    EXPECT_EQ(Shape(), sizes_for("7767517\n2 2\nInput x 0 1 x\nInterp r 1 1 x out 0=1 3=4 4=4\n",
                                 Shape(0, 2, 3)));
    EXPECT_EQ(Shape(),
              sizes_for("7767517\n2 2\nInput x 0 1 x\nPadding r 1 1 x out 0=1 4=1\n", Shape(2, 0)));
}

namespace {

// What the net gives for an x without values, in a storage type.
std::vector<float> values_for(const char* text, const Shape& x, DType storage) {
    Net net;
    net.opt.use_fp16_storage = storage == DType::f16;
    net.opt.use_bf16_storage = storage == DType::bf16;
    EXPECT_EQ(0, net.load_param_mem(text));
    const float none = 0;
    EXPECT_LE(0, net.load_model((const unsigned char*)&none));
    Mat empty, out;
    empty.dims = x.dims, empty.w = x.w, empty.h = x.h, empty.d = x.d, empty.c = x.c;
    empty.elempack = 1, empty.dtype = storage, empty.elemsize = dtype_size(storage);
    Extractor ex = net.create_extractor();
    if (ex.input("x", empty) != 0 || ex.extract("out", out) != 0) return {};
    if (out.dtype == DType::f16) {
        Mat wide;
        cast_float16_to_float32(out, wide);
        out = wide;
    } else if (out.dtype == DType::bf16) {
        Mat wide;
        cast_bfloat16_to_float32(out, wide);
        out = wide;
    }
    const Mat flat = out.reshape(out.w * out.h * out.d * out.c);
    return std::vector<float>((const float*)flat, (const float*)flat + flat.w);
}

}  // namespace

TEST(zero_size, sums_of_nothing) {
    const float inf = std::numeric_limits<float>::infinity();
    for (DType storage : {DType::f32, DType::f16, DType::bf16}) {
        const auto reduced = [&](int operation) {
            const std::string text = "7767517\n2 2\nInput x 0 1 x\nReduction r 1 1 x out 0=" +
                                     std::to_string(operation) + " 1=0 -23303=1,1 5=1\n";
            return values_for(text.c_str(), Shape(0, 2), storage);
        };
        EXPECT_EQ(std::vector<float>(2, 0.f), reduced(0));
        EXPECT_EQ(std::vector<float>(2, -inf), reduced(4));
        EXPECT_EQ(std::vector<float>(2, inf), reduced(5));
        EXPECT_EQ(std::vector<float>(2, 1.f), reduced(6));
        EXPECT_TRUE(std::isnan(reduced(3).at(0)));
        // A product of [2][0] and [0][2]; a border of 1 around [2][0].
        EXPECT_EQ(std::vector<float>(4, 0.f),
                  values_for("7767517\n4 5\nInput x 0 1 x\nSplit s 1 2 x a b\n"
                             "Permute p 1 1 b t 0=1\nMatMul m 2 1 a t out\n",
                             Shape(0, 2), storage));
        EXPECT_EQ(std::vector<float>(8, 3.f),
                  values_for("7767517\n2 2\nInput x 0 1 x\n"
                             "Padding p 1 1 x out 0=1 1=1 2=1 3=1 5=3\n",
                             Shape(0, 2), storage));
    }
}

}  // namespace quoll
