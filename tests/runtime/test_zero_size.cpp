// Blobs of which an axis has size 0, through layers that know nothing of them.
#include <gtest/gtest.h>

#include "net.h"
#include "zero_size.h"

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
    EXPECT_EQ(Shape(), sizes_for("7767517\n2 2\nInput x 0 1 x\nReduction r 1 1 x out 0=0 1=1\n",
                                 Shape(5, 0)));
}

}  // namespace quoll
