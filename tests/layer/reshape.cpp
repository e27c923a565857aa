#include <string.h>

#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(24)}, "0=6 1=-1"),
    LayerCase({Shape(96)}, "0=2 1=3 2=16"),
    LayerCase({Shape(6, 16)}, "0=-1"),
    LayerCase({Shape(6, 16)}, "0=3 1=2 2=-1"),
    LayerCase({Shape(6, 16)}, "0=0 1=-1 2=8"),
    LayerCase({Shape(6, 4, 16)}, "0=-1 1=8"),
    LayerCase({Shape(6, 4, 16)}, "0=3 1=8 2=0"),
    LayerCase({Shape(5, 3, 16)}, "0=-1 1=16"),
    LayerCase({Shape(5, 3, 16)}, "0=15 1=-1"),
    LayerCase({Shape(5, 3, 16)}, "0=4 1=-1 11=5 2=4"),
    LayerCase({Shape(5, 3, 2, 16)}, "0=0 1=-1 2=16"),
    LayerCase({Shape(5, 3, 2, 16)}, "0=0 1=0 11=0 2=0"),
    LayerCase({Shape(5, 3, 2, 16)}, "0=-1"),
    LayerCase({Shape(6, 4, 16)}, "6=\"*(0w,2),/(0h,2),-1\""),
    LayerCase({Shape(6, 4, 16), Shape(3, 5)}, "6=\"1w,-1,0c\""),
    LayerCase({Shape(6, 4, 16)}, "6=\"0h,0w,2,/(0c,2)\""),
    LayerCase({Shape(6, 4, 16)}, "0=8 1=-1 2=4 3=1"),
    LayerCase({Shape(6, 4, 5)}, "0=-1 3=1"),
    LayerCase({Shape(6, 8)}, "0=4 1=3 2=-1 3=1"),
    LayerCase({Shape(5, 3, 16, DType::s8)}, "0=30 1=-1").range(-127, 127),
    LayerCase({Shape(12, DType::s32)}, "0=3 1=-1").range(-99, 99),
};
QUOLL_LAYER_CASES(Reshape, kCases)

TEST(Reshape, by_hand) {
    const Mat x = mat_of(Shape(3, 1, 2), {1, 2, 3, 4, 5, 6});
    expect_values("Reshape", "0=2 1=-1", {}, {x}, mat_of(Shape(2, 3), {1, 2, 3, 4, 5, 6}));
    // Order h w c of the input: 1 4, 2 5, 3 6; laid out as 2 rows of 3 in the order w h.
    expect_values("Reshape", "0=3 1=2 3=1", {}, {x}, mat_of(Shape(3, 2), {1, 2, 3, 4, 5, 6}));
    expect_values("Reshape", "0=6 3=1", {}, {x}, mat_of(Shape(6), {1, 4, 2, 5, 3, 6}));
}

// A batch of n items of `item`, the values one item after another.
static Mat batch_of(const Shape& item, int n, const std::vector<float>& values) {
    Shape shape = item;
    shape.n = n;
    Mat m(shape);
    const size_t count = item.total();
    for (int b = 0; b < n; b++) {
        const Mat from =
            mat_of(item, {values.begin() + b * count, values.begin() + (b + 1) * count});
        for (int q = 0; q < m.c; q++)
            memcpy(m.batch(b).channel(q).data, from.channel(q).data, count / m.c * sizeof(float));
    }
    return m;
}

TEST(Reshape, batch_axes) {
    const Mat x = mat_of(Shape(3, 2), {1, 2, 3, 4, 5, 6});
    const auto reshaped = [](const char* params, const std::vector<Mat>& inputs, const Mat& want) {
        for (bool reference : {true, false}) {
            const LayerPtr layer =
                make_layer("Reshape", params, {}, (int)inputs.size(), 1, reference);
            ASSERT_TRUE(layer && layer->support_batch) << params;
            const std::vector<Mat> got = run_layer(*layer, inputs);
            ASSERT_TRUE(nearly_equal(got[0], want, Tolerance())) << params;
            std::vector<Shape> shapes;
            for (const Mat& m : inputs) shapes.push_back(m.logical_shape());
            std::vector<Shape> inferred;
            ASSERT_EQ(0, layer->infer_shapes(shapes, inferred));
            ASSERT_TRUE(inferred[0] == want.logical_shape());
        }
    };
    // Rows become items, columns do, items become the columns of rows.
    reshaped("0=3 1=2 13=0", {x}, batch_of(Shape(3), 2, {1, 2, 3, 4, 5, 6}));
    reshaped("0=0 1=0 13=-1", {x}, batch_of(Shape(2), 3, {1, 4, 2, 5, 3, 6}));
    const Mat items = batch_of(Shape(3), 2, {1, 2, 3, 4, 5, 6});
    reshaped("0=-1 12=0", {items}, mat_of(Shape(6), {1, 2, 3, 4, 5, 6}));
    reshaped("0=0 1=0 12=1", {items}, mat_of(Shape(2, 3), {1, 4, 2, 5, 3, 6}));
    reshaped("0=0 1=0 12=1 13=1", {items}, batch_of(Shape(3), 2, {1, 2, 3, 4, 5, 6}));
    reshaped("0=2 1=3 12=0 13=0", {items}, batch_of(Shape(2), 3, {1, 2, 3, 4, 5, 6}));
    // Five sizes, of which one is the batch; sizes that name the batch.
    reshaped("6=\"1,1,3,1,2\" 13=0", {x}, batch_of(Shape(1, 1, 3, 1), 2, {1, 2, 3, 4, 5, 6}));
    reshaped("6=\"*(0n,0w)\" 12=0", {items}, mat_of(Shape(6), {1, 2, 3, 4, 5, 6}));
    reshaped("6=\"1,1w\"", {items, items}, batch_of(Shape(1, 3), 2, {1, 2, 3, 4, 5, 6}));
    const Mat planes = batch_of(Shape(1, 2, 5), 2, {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  //
                                                    10, 11, 12, 13, 14, 15, 16, 17, 18, 19});
    reshaped("0=5 1=-1 12=0 13=0", {planes},
             batch_of(Shape(5), 4, {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  //
                                    10, 11, 12, 13, 14, 15, 16, 17, 18, 19}));
}

TEST(Reshape, refuses_batch_axes_that_do_not_fit) {
    for (const char* params :
         {"0=3 1=2 13=2", "0=3 1=2 13=-3", "0=6 13=0", "0=3 1=2 12=3", "0=3 1=2 12=-4", "0=3 12=0",
          "0=3 1=2 13=-6", "0=0 1=0 2=0 11=0 12=233 13=0", "6=\"1,1,1,1,3,2\" 13=0",
          "6=\"1,1,3,1,2\" 12=0", "0=6 3=1 12=0"}) {
        const LayerPtr layer = make_layer("Reshape", params);
        EXPECT_TRUE(!layer || run_layer(*layer, {Mat(3, 2)}).empty()) << params;
    }
    // Items without a place.
    const LayerPtr layer = make_layer("Reshape", "0=3 1=2 13=0");
    EXPECT_TRUE(run_layer(*layer, {batch_of(Shape(3), 2, {1, 2, 3, 4, 5, 6})}).empty());
}

TEST(Reshape, shares_memory_without_gaps) {
    const LayerPtr layer = make_layer("Reshape", "0=2 1=-1");
    const Mat x(4, 3, 2);
    EXPECT_EQ(x.data, run_layer(*layer, {x})[0].data);
}

TEST(Reshape, refuses_what_does_not_fit) {
    for (const char* params :
         {"0=5 1=-1", "0=-1 1=-1", "0=12", "0=6 1=5", "0=24 1=2", "0=-2 1=1", "1=24", "",
          "6=\"0w,0h,2,2,1\"", "6=\"1w\"", "0=65536 1=65536 2=65536 11=65536",
          "0=2147483647 1=2147483647 2=-1", "6=\"-3,-1\""}) {
        const LayerPtr layer = make_layer("Reshape", params);
        EXPECT_TRUE(!layer || run_layer(*layer, {Mat(6, 4)}).empty()) << params;
    }
}

}  // namespace quoll
