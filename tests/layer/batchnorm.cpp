#include "layer_test.h"

namespace quoll {

static LayerCase norm(Shape in, const std::string& more = "") {
    return LayerCase({in}, "0=" + std::to_string(in.size(0)) + " " + more)
        .weights("var_data", 0.2f, 2.f);
}

static const std::vector<LayerCase> kCases = {
    norm(Shape(1)),           norm(Shape(128)),        norm(Shape(127), "1=0.01"),
    norm(Shape(17, 12)),      norm(Shape(15, 24)),     norm(Shape(6, 13), "1=0.001"),
    norm(Shape(7, 9, 12)),    norm(Shape(3, 5, 13)),   norm(Shape(5, 7, 32), "1=0.001"),
    norm(Shape(5, 4, 3, 16)), norm(Shape(3, 5, 2, 7)),
};
QUOLL_LAYER_CASES(BatchNorm, kCases)

TEST(BatchNorm, by_hand) {
    // (x - mean) / sqrt(var + eps) * slope + bias; a deviation of 0 counts as 0.0001.
    const std::vector<Mat> weights = {mat_of(Shape(2), {2, 1}), mat_of(Shape(2), {1, 0}),
                                      mat_of(Shape(2), {3, -1}), mat_of(Shape(2), {10, 0})};
    expect_values("BatchNorm", "0=2 1=1", weights, {mat_of(Shape(2, 1, 2), {1, 5, 1, 2})},
                  mat_of(Shape(2, 1, 2), {10, 14, 10000, 20000}));
    expect_values("BatchNorm", "0=2 1=1", weights, {mat_of(Shape(1, 2), {5, 1})},
                  mat_of(Shape(1, 2), {14, 10000}));
    expect_values("BatchNorm", "0=2 1=1", weights, {mat_of(Shape(2), {3, 1})},
                  mat_of(Shape(2), {12, 10000}));
}

TEST(BatchNorm, refuses_other_channel_counts) {
    const LayerPtr layer = make_layer("BatchNorm", "0=2", {Mat(2), Mat(2), Mat(2), Mat(2)});
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(4, 4, 3)}).empty());
    EXPECT_EQ(nullptr, make_layer("BatchNorm", "", {}));
}

// An application may pack its blobs by any number of channels, all of them, too.
TEST(BatchNorm, any_elempack) {
    for (const int channels : {3, 6, 5000}) {
        const Shape shape(channels == 5000 ? 5 : 700, 3, channels);
        Mat x(shape, 1);
        std::vector<Mat> weights(4);
        for (int i = 0; i < 4; i++) {
            weights[i].create(channels);
            for (int q = 0; q < channels; q++) weights[i][q] = 1.f + (float)((q + i) % 7);
        }
        for (int q = 0; q < channels; q++) x.channel(q).fill((float)(q % 11));
        Mat stored;
        cast_float32_to_bfloat16(x, stored);
        const LayerPtr layer =
            make_layer("BatchNorm", "0=" + std::to_string(channels), weights, 1, 1, false);
        ASSERT_NE(nullptr, layer);
        for (const Mat& in : {x, stored})
            for (const int pack : {3, channels}) {
                if (channels % pack != 0) continue;
                Mat blocks;
                convert_packing(in, blocks, pack);
                const std::vector<Mat> want = run_layer(*layer, {in});
                const std::vector<Mat> got = run_layer(*layer, {blocks});
                ASSERT_EQ(1u, want.size());
                ASSERT_EQ(1u, got.size());
                EXPECT_EQ(pack, got[0].elempack);
                EXPECT_TRUE(nearly_equal(got[0], want[0], Tolerance())) << channels << " " << pack;
            }
    }
}

}  // namespace quoll
