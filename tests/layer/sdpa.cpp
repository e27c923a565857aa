#include <math.h>

#include "layer_test.h"

namespace quoll {

// Inputs in order; out_size 0: as size.
static LayerCase attention(int heads, int groups, int src, int cur, int past, int size,
                           int out_size, const std::string& params, bool mask = false) {
    std::vector<Shape> in = {Shape(size, src, heads), Shape(size, cur, groups),
                             Shape(out_size, cur, groups)};
    if (mask) in.push_back(Shape(cur + past, src));
    if (past) {
        in.push_back(Shape(size, past, groups));
        in.push_back(Shape(out_size, past, groups));
    }
    // The softmax's argument is a sum of `size` products, its error multiplies what exp gives.
    return LayerCase(in, params).outputs(past ? 3 : 1).terms(size + cur + past);
}

static const std::vector<LayerCase> kCases = {
    attention(1, 1, 1, 1, 0, 4, 4, ""),
    attention(2, 2, 5, 7, 0, 8, 8, ""),
    attention(6, 2, 5, 7, 0, 9, 13, "5=1 6=0.3", true),
    attention(3, 3, 40, 70, 0, 33, 20, "5=1 6=-0.4", true),
    attention(4, 2, 1, 1, 37, 16, 16, "7=1"),
    attention(4, 1, 1, 1, 70, 33, 35, "5=1 7=1", true),
    attention(4, 2, 9, 9, 5, 12, 20, "5=1 7=1", true),
    attention(2, 1, 70, 70, 30, 16, 16, "7=1"),
    attention(2, 2, 20, 80, 0, 32, 48, "5=1", true),
    // Of channels: rows of pixels.
    attention(2, 2, 12, 12, 0, 700, 700, "6=1"),
    attention(3, 3, 30, 26, 0, 40, 600, ""),
    attention(2, 2, 9, 11, 0, 520, 24, "5=1", true),
    attention(2, 1, 5, 7, 0, 8, 6, "18=1"),
    attention(4, 2, 3, 3, 8, 8, 6, "5=1 7=1 18=2", true),
    LayerCase({Shape(8, 5, 4), Shape(8, 7, 2), Shape(8, 7, 2), Shape(7, 5, 4)}, "5=1").terms(15),
    LayerCase({Shape(8, 37, 4), Shape(8, 75, 2), Shape(8, 75, 2), Shape(75, 37, 4)}, "5=1")
        .terms(83),
    // Keys on grids: a mask's parts for rows and columns.
    LayerCase({Shape(8, 3, 2), Shape(8, 12, 2), Shape(8, 12, 2), Shape(3, 3), Shape(4, 3)}, "5=2")
        .terms(20),
    LayerCase(
        {Shape(16, 40, 4), Shape(16, 70, 2), Shape(16, 70, 2), Shape(5, 40, 4), Shape(14, 40, 4)},
        "5=2")
        .terms(86),
    LayerCase(
        {Shape(32, 33, 6), Shape(32, 96, 6), Shape(48, 96, 6), Shape(3, 33, 2), Shape(32, 33, 2)},
        "5=2 6=0.3")
        .terms(128),
    LayerCase({Shape(8, 5, 2), Shape(8, 2, 1), Shape(6, 2, 1), Shape(2, 5), Shape(3, 5),
               Shape(8, 4, 1), Shape(6, 4, 1)},
              "5=2 7=1")
        .outputs(3)
        .terms(14),
    LayerCase({Shape(8, 5, 2), Shape(8, 6, 2), Shape(8, 6, 2), Shape(2, 5), Shape(3, 5)},
              "5=2 18=1")
        .terms(14),
    // Masks that several heads have.
    LayerCase({Shape(8, 37, 6), Shape(8, 75, 3), Shape(8, 75, 3), Shape(75, 37, 2)}, "5=1")
        .terms(83),
};
QUOLL_LAYER_CASES(SDPA, kCases)

TEST(SDPA, by_hand) {
    // Products 0 and log 3: weights 1/4 and 3/4.
    const Mat q = mat_of(Shape(1, 1, 1), {1}), k = mat_of(Shape(1, 2, 1), {0, logf(3)}),
              v = mat_of(Shape(2, 2, 1), {4, 0, 8, 1});
    expect_values("SDPA", "", {}, {q, k, v}, mat_of(Shape(2, 1, 1), {7, 0.75f}));
    // The mask turns it round: log 3 and 0 after scaling by 0, nearly; two heads share the group.
    const Mat two = mat_of(Shape(1, 1, 2), {1, 0}),
              mask = mat_of(Shape(2, 1, 2), {logf(9), 0, -INFINITY, 0});
    expect_values("SDPA", "5=1", {}, {two, k, v, mask}, mat_of(Shape(2, 1, 2), {5, 0.25f, 8, 1}));
}

TEST(SDPA, keys_on_a_grid) {
    // Keys 0 to 3 at (0, 0), (0, 1), (1, 0), (1, 1); all products are 0. Weights of the first query
    // 1, 2, 3, 6 of 12; the second one sees the last row only.
    const Mat q = mat_of(Shape(1, 2, 1), {0, 0}), k = mat_of(Shape(1, 4, 1), {1, 2, 3, 4}),
              v = mat_of(Shape(1, 4, 1), {12, 24, 36, 48}),
              rows = mat_of(Shape(2, 2), {0, logf(3), -INFINITY, 1}),
              columns = mat_of(Shape(2, 2), {0, logf(2), 0, 0});
    expect_values("SDPA", "5=2", {}, {q, k, v, rows, columns}, mat_of(Shape(1, 2, 1), {38, 42}));
}

TEST(SDPA, refuses_parts_of_masks_that_do_not_fit) {
    const LayerPtr layer = make_layer("SDPA", "5=2", {}, 5, 1);
    const std::vector<Mat> good = {Mat(4, 2, 4), Mat(4, 6, 2), Mat(5, 6, 2), Mat(2, 2, 2),
                                   Mat(3, 2, 2)};
    for (Mat m : good) m.fill(0.f);
    EXPECT_EQ(1u, run_layer(*layer, good).size());
    for (const Mat& wrong : {Mat(2, 2, 2), Mat(3, 1, 2), Mat(3, 2, 4), Mat(3, 2), Mat(3, 2, 3)}) {
        std::vector<Mat> bad = good;
        bad[4] = wrong;
        EXPECT_TRUE(run_layer(*layer, bad).empty()) << wrong.w << " " << wrong.h << " " << wrong.c;
    }
}

TEST(SDPA, a_query_that_sees_nothing) {
    // One query at a time, blocks of them, int8.
    for (int src : {2, 60}) {
        Mat q(Shape(1, src, 1)), mask(Shape(2, src));
        q.fill(1.f), mask.fill(0.f);
        mask.row(1)[0] = mask.row(1)[1] = -INFINITY;
        const Mat k = mat_of(Shape(1, 2, 1), {2, 2}), v = mat_of(Shape(1, 2, 1), {3, 5});
        Mat want(Shape(1, src, 1));
        want.fill(4.f);
        want.row(1)[0] = 0;
        expect_values("SDPA", "5=1", {}, {q, k, v, mask}, want);
    }
}

TEST(SDPA, scores_of_minus_infinity) {
    // Without a mask it is the same: nothing is seen. One that is not a number is.
    for (int src : {2, 60}) {
        Mat q(Shape(1, src, 1));
        q.fill(1.f), q[1] = -INFINITY;
        const Mat v = mat_of(Shape(1, 2, 1), {3, 5});
        Mat want(Shape(1, src, 1));
        want.fill(4.f);
        want.row(1)[0] = 0;
        expect_values("SDPA", "", {}, {q, mat_of(Shape(1, 2, 1), {2, 2}), v}, want);
        Mat mask(Shape(2, src));
        mask.fill(-INFINITY);
        want.fill(NAN);
        expect_values("SDPA", "5=1", {}, {q, mat_of(Shape(1, 2, 1), {2, NAN}), v, mask}, want);
    }
}

TEST(SDPA, cache_by_hand) {
    const Mat q = mat_of(Shape(1, 1, 1), {1}), k = mat_of(Shape(1, 1, 1), {logf(3)}),
              v = mat_of(Shape(1, 1, 1), {8}), past_k = mat_of(Shape(1, 1, 1), {0}),
              past_v = mat_of(Shape(1, 1, 1), {4});
    for (bool reference : {true, false}) {
        const LayerPtr layer = make_layer("SDPA", "7=1", {}, 5, 3, reference);
        std::vector<Mat> got = run_layer(*layer, {q, k, v, past_k, past_v});
        ASSERT_EQ(3u, got.size());
        EXPECT_NEAR(7, got[0][0], 1e-5);
        EXPECT_TRUE(nearly_equal(got[1], mat_of(Shape(1, 2, 1), {0, logf(3)}), Tolerance()));
        EXPECT_TRUE(nearly_equal(got[2], mat_of(Shape(1, 2, 1), {4, 8}), Tolerance()));
        // The first step has no cache.
        got = run_layer(*layer, {q, k, v, Mat(), Mat()});
        ASSERT_EQ(3u, got.size());
        EXPECT_NEAR(8, got[0][0], 1e-5);
        EXPECT_EQ(1, got[1].h);
    }
}

TEST(SDPA, refuses_what_does_not_fit) {
    const LayerPtr layer = make_layer("SDPA", "5=1 7=1", {}, 6, 3);
    const std::vector<Mat> good = {Mat(4, 2, 4), Mat(4, 3, 2), Mat(5, 3, 2),
                                   Mat(5, 2),    Mat(4, 2, 2), Mat(5, 2, 2)};
    for (Mat m : good) m.fill(0.f);
    EXPECT_EQ(3u, run_layer(*layer, good).size());
    const Mat wrong[6] = {Mat(4, 2, 3), Mat(4, 4, 2), Mat(5, 3, 1),
                          Mat(3, 2),    Mat(4, 1, 2), Mat(4, 2, 2)};
    for (int i = 0; i < 6; i++) {
        std::vector<Mat> bad = good;
        bad[i] = wrong[i];
        EXPECT_TRUE(run_layer(*layer, bad).empty()) << i;
    }
}

TEST(SDPA, no_heads) {
    const LayerPtr layer = make_layer("SDPA", "", {}, 3, 1);
    const Shape none(4, 3, 0);
    std::vector<Shape> out;
    EXPECT_EQ(0, layer->infer_empty_shapes({Shape(4, 2, 0), none, none}, out));
    EXPECT_NE(0, layer->infer_empty_shapes({Shape(4, 2, 4), none, none}, out));
}

}  // namespace quoll
