// The harness itself: what its comparison lets through, and what it does not.
#include <float.h>
#include <math.h>

#include "layer_test.h"

namespace quoll {

static Tolerance tolerance(double terms, double magnitude) {
    Tolerance t;
    t.terms = terms, t.magnitude = magnitude;
    return t;
}

TEST(LayerTest, one_wrong_value_is_seen) {
    const Mat want = mat_of(Shape(3, 2, 5), std::vector<float>(30, 1.f));
    for (int q = 0; q < want.c; q++) {
        for (int i = 0; i < 6; i++) {
            Mat got = want.clone();
            EXPECT_TRUE(nearly_equal(got, want, tolerance(1, 1)));
            got.channel(q)[i] += 1e-5f;
            EXPECT_FALSE(nearly_equal(got, want, tolerance(1, 1)));
        }
    }
}

TEST(LayerTest, one_wrong_value_of_any_batch_item_is_seen) {
    Shape shape(3, 2, 5);
    shape.n = 3;
    Mat want(shape);
    want.fill(1.f);
    for (int i = 0; i < want.n; i++) {
        Mat got = want.clone();
        EXPECT_TRUE(nearly_equal(got, want, tolerance(1, 1)));
        got.batch(i).channel(4)[5] = 2.f;
        EXPECT_FALSE(nearly_equal(got, want, tolerance(1, 1)));
    }
}

TEST(LayerTest, tolerance_grows_with_length_and_magnitude_only_as_far_as_rounding_does) {
    EXPECT_LT(tolerance(1, 1).of(1), 8 * FLT_EPSILON);
    EXPECT_LT(tolerance(4608, 1).of(10), 2e-3);
    EXPECT_NEAR(tolerance(64, 2).of(0), 2 * tolerance(64, 1).of(0), 1e-12);
    EXPECT_LT(tolerance(1, 1).of(1000), 1e-2);
}

TEST(LayerTest, shape_type_nan_and_infinity_have_to_agree) {
    const Mat one = mat_of(Shape(1), {1}), nan = mat_of(Shape(1), {NAN});
    const Mat inf = mat_of(Shape(1), {INFINITY}), minus_inf = mat_of(Shape(1), {-INFINITY});
    const Tolerance t = tolerance(1, 1);
    EXPECT_TRUE(nearly_equal(nan, nan, t));
    EXPECT_TRUE(nearly_equal(inf, inf, t));
    EXPECT_FALSE(nearly_equal(nan, one, t));
    EXPECT_FALSE(nearly_equal(one, nan, t));
    EXPECT_FALSE(nearly_equal(inf, one, t));
    EXPECT_FALSE(nearly_equal(one, inf, t));
    EXPECT_FALSE(nearly_equal(inf, minus_inf, t));
    EXPECT_FALSE(nearly_equal(mat_of(Shape(1, 1), {1}), one, t));
    EXPECT_FALSE(nearly_equal(mat_of(Shape(1, DType::s32), {1}), one, t));
}

TEST(LayerTest, integers_are_exact_but_for_ties_of_int8) {
    Tolerance t = tolerance(1e6, 1);
    const Shape s32(1, DType::s32), s8(1, DType::s8);
    EXPECT_FALSE(nearly_equal(mat_of(s8, {3}), mat_of(s8, {4}), t));
    t.ties = 1;
    EXPECT_FALSE(nearly_equal(mat_of(s32, {3}), mat_of(s32, {4}), t));
    EXPECT_TRUE(nearly_equal(mat_of(s8, {3}), mat_of(s8, {4}), t));
    EXPECT_FALSE(nearly_equal(mat_of(s8, {3}), mat_of(s8, {5}), t));
}

TEST(LayerTest, refused_params_give_no_layer) {
    EXPECT_EQ(nullptr, make_layer("NoSuchLayer", ""));
    EXPECT_EQ(nullptr, make_layer("ReLU", "0=oops"));
    EXPECT_EQ(nullptr, make_layer("ReLU", "", {Mat(3)}));
}

}  // namespace quoll
