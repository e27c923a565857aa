#include <math.h>

#include "layer_test.h"

namespace quoll {

static LayerCase attention(std::vector<Shape> in, int embed, int heads, int qdim,
                           const std::string& more, int outputs = 1) {
    double terms = 2.0 * embed;
    for (const Shape& shape : in) terms += shape.w;
    // Values are sums of sums: the largest term of the last one is about the root of the first's
    // length.
    return LayerCase(in, "0=" + std::to_string(embed) + " 1=" + std::to_string(heads) +
                             " 2=" + std::to_string(embed * qdim) + " " + more)
        .outputs(outputs)
        .terms(terms)
        .term_magnitude(8);
}

static const std::vector<LayerCase> kCases = {
    attention({Shape(8, 5)}, 8, 2, 8, ""),
    attention({Shape(48, 37)}, 48, 3, 48, ""),
    attention({Shape(12, 5), Shape(9, 7)}, 8, 2, 12, "3=9 4=9"),
    attention({Shape(12, 5), Shape(9, 7), Shape(17, 7)}, 8, 4, 12, "3=9 4=17 6=0.7"),
    attention({Shape(12, 5), Shape(7, 5)}, 12, 3, 12, "3=7 4=7 5=0"),
    attention({Shape(12, 5), Shape(5, 5)}, 12, 3, 12, "5=1"),
    attention({Shape(12, 5), Shape(5, 5, 3)}, 12, 3, 12, "5=1"),
    // Few queries and many keys.
    attention({Shape(12, 1), Shape(9, 90)}, 8, 4, 12, "3=9 4=9"),
    attention({Shape(12, 2), Shape(9, 70)}, 8, 2, 12, "3=9 4=9 6=0.7"),
    attention({Shape(96, 4), Shape(80, 301)}, 96, 6, 96, "3=80 4=80"),
    attention({Shape(48, 7), Shape(36, 1005)}, 160, 5, 48, "3=36 4=36"),
    attention({Shape(12, 5), Shape(9, 12), Shape(9, 12)}, 12, 3, 12, "7=1", 3),
    attention({Shape(12, 1), Shape(41, 1), Shape(40, 12), Shape(40, 12)}, 12, 3, 12, "5=1 7=1", 3),
    attention({Shape(12, 4), Shape(7, 3), Shape(6, 12), Shape(6, 12)}, 12, 2, 12, "3=7 4=7 7=1", 3),
    attention({Shape(12, 5)}, 12, 3, 12, "18=2")
        .int8_weights()
        .weights("out_weight_data_int8_scale", 100, 120),
    attention({Shape(48, 37), Shape(40, 21), Shape(20, 21), Shape(21, 37)}, 32, 4, 48,
              "3=40 4=20 5=1 18=2")
        .int8_weights()
        .weights("out_weight_data_int8_scale", 100, 120),
    attention({Shape(12, 4), Shape(7, 3), Shape(6, 12), Shape(6, 12)}, 12, 2, 12,
              "3=7 4=7 7=1 18=2", 3)
        .int8_weights()
        .weights("out_weight_data_int8_scale", 100, 120),
    attention({Shape(12, 5), Shape(9, 7)}, 8, 2, 12, "3=9 4=9 18=410")
        .weights("q_weight_data_quantize_scales", 20, 30)
        .weights("k_weight_data_quantize_scales", 20, 30)
        .weights("v_weight_data_quantize_scales", 20, 30)
        .weights("out_weight_data_quantize_scales", 20, 30),
};
QUOLL_LAYER_CASES(MultiHeadAttention, kCases)

// Queries and keys as they come, values doubled, outputs plus 1.
static std::vector<Mat> simple_weights() {
    const Mat one = mat_of(Shape(1), {1}), zero = mat_of(Shape(1), {0}),
              two = mat_of(Shape(1), {2});
    return {one, zero, one, zero, two, zero, one, one};
}

TEST(MultiHeadAttention, by_hand) {
    // Queries 1 and 0, keys 0 and log 3: weights (1/4, 3/4) and (1/2, 1/2) of the values 8 and 16.
    expect_values("MultiHeadAttention", "0=1 1=1 2=1", simple_weights(),
                  {mat_of(Shape(1, 2), {1, 0}), mat_of(Shape(1, 2), {0, logf(3)}),
                   mat_of(Shape(1, 2), {4, 8})},
                  mat_of(Shape(1, 2), {15, 13}));
}

TEST(MultiHeadAttention, cache_by_hand) {
    const Mat x = mat_of(Shape(1, 1), {0}), past_k = mat_of(Shape(1, 1), {5}),
              past_v = mat_of(Shape(1, 1), {4});
    for (bool reference : {true, false}) {
        const LayerPtr self =
            make_layer("MultiHeadAttention", "0=1 1=1 2=1 7=1", simple_weights(), 3, 3, reference);
        std::vector<Mat> got = run_layer(*self, {x, past_k, past_v});
        ASSERT_EQ(3u, got.size());
        EXPECT_NEAR(3, got[0][0], 1e-5);  // half of the values 4 and 0, plus 1
        EXPECT_TRUE(nearly_equal(got[1], mat_of(Shape(2, 1), {5, 0}), Tolerance()));
        EXPECT_TRUE(nearly_equal(got[2], mat_of(Shape(2, 1), {4, 0}), Tolerance()));
        got = run_layer(*self, {x, Mat(), Mat()});
        ASSERT_EQ(3u, got.size());
        EXPECT_NEAR(1, got[0][0], 1e-5);
        // Between two blobs, the cache stands for the second.
        got = run_layer(*self, {x, mat_of(Shape(1, 3), {1, 2, 3}), past_k, past_v});
        ASSERT_EQ(3u, got.size());
        EXPECT_NEAR(5, got[0][0], 1e-5);
        EXPECT_EQ(1, got[1].w);
    }
}

TEST(MultiHeadAttention, refuses_what_does_not_fit) {
    EXPECT_EQ(nullptr, make_layer("MultiHeadAttention", "0=3 1=2 2=9"));
    EXPECT_EQ(nullptr, make_layer("MultiHeadAttention", "0=3 1=1 2=10"));
    EXPECT_EQ(nullptr, make_layer("MultiHeadAttention", "0=0 1=0 2=0"));
    const LayerPtr layer = make_layer("MultiHeadAttention", "0=1 1=1 2=1", simple_weights());
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 1)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(1, 2), Mat(1, 2), Mat(1, 3)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(1, 2), Mat(1, 2), Mat(1, 2), Mat(2, 2)}).empty());
}

}  // namespace quoll
