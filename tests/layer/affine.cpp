#include <stdio.h>
#include <string.h>

#include <random>

#include "layer/quantize/affine.h"
#include "layer_test.h"

namespace quoll {

static const Shape kBytes(9, 7, 16, DType::s8);

static const std::vector<LayerCase> kQuantizeCases = {
    LayerCase({Shape(9)}, "0=0.01 1=3"),
    LayerCase({Shape(9, 8)}, "0=0.004 1=-128"),
    LayerCase({Shape(5, 4, 12)}, "0=0.02 1=127"),
    LayerCase({Shape(5, 4, 3, 16)}, ""),
};
QUOLL_LAYER_CASES(AffineQuantize, kQuantizeCases)

static const std::vector<LayerCase> kDequantizeCases = {
    LayerCase({Shape(9, DType::s8)}, "0=0.01 1=3").range(-128, 127),
    LayerCase({Shape(9, 8, DType::s8)}, "0=0.004 1=-128").range(-128, 127),
    LayerCase({Shape(5, 4, 12, DType::s8)}, "0=0.02 1=127").range(-128, 127),
    LayerCase({Shape(5, 4, 3, 16, DType::s8)}, "").range(-128, 127),
};
QUOLL_LAYER_CASES(AffineDequantize, kDequantizeCases)

static const std::vector<LayerCase> kBinaryCases = {
    LayerCase({kBytes, kBytes}, "1=0.03 2=-7 3=0.05 4=9 5=0.06 6=-128 9=1").range(-128, 127),
    LayerCase({kBytes, kBytes}, "0=1 1=0.03 2=-7 3=0.05 4=9 5=0.2 6=3").range(-128, 127),
    LayerCase({kBytes, kBytes}, "1=0.03 3=0.05 5=0.06 9=3 -23310=2,0,2").range(-128, 127),
    LayerCase({kBytes, kBytes}, "1=0.03 3=0.05 5=0.06 9=4").range(-128, 127),
    LayerCase({kBytes}, "1=0.03 2=5 5=0.02 6=-4").range(-128, 127),
    LayerCase({kBytes, Shape(1, 1, 16, DType::s8)}, "0=1 1=0.03 2=-7 3=0.05 4=9 5=0.2 6=3")
        .range(-128, 127),
    LayerCase({Shape(1, 1, 16, DType::s8), kBytes}, "1=0.03 2=-7 3=0.05 4=9 5=0.06 6=3 9=1")
        .range(-128, 127),
    LayerCase({Shape(9, 7, 3, 5, DType::s8), Shape(1, 1, 1, 5, DType::s8)}, "0=1 1=0.03 3=0.05")
        .range(-128, 127),
    LayerCase({Shape(70, 40, 8, DType::s8), Shape(1, 1, 8, DType::s8)}, "1=0.03 4=3 5=0.07")
        .range(-128, 127),
    LayerCase({Shape(9, 16, DType::s8), Shape(1, 16, DType::s8)}, "1=0.03 4=3 5=0.07")
        .range(-128, 127),
    LayerCase({Shape(13, DType::s8), Shape(13, DType::s8)}, "1=0.5 3=0.25").range(-128, 127),
};
QUOLL_LAYER_CASES(AffineBinary, kBinaryCases)

// -23300=256,..: some function of all values.
static std::string table_param() {
    std::string text = "-23300=256";
    for (int i = 0; i < 256; i++) text += "," + std::to_string((i * 91 + 13) % 256 - 128);
    return text;
}

static const std::vector<LayerCase> kTableCases = {
    LayerCase({Shape(9, DType::s8)}, table_param()).range(-128, 127),
    LayerCase({Shape(100, 8, DType::s8)}, table_param()).range(-128, 127),
    LayerCase({kBytes}, table_param()).range(-128, 127),
    LayerCase({Shape(5, 4, 3, 16, DType::s8)}, table_param()).range(-128, 127),
    LayerCase({Shape(5, 4, 12, DType::s8)}, "").range(-128, 127),
};
QUOLL_LAYER_CASES(AffineTable, kTableCases)

TEST(AffineTable, by_hand) {
    expect_values("AffineTable", table_param(), {},
                  {mat_of(Shape(3, DType::s8), {-128, -127, 127})},
                  mat_of(Shape(3, DType::s8), {-115, -24, 50}));
}

TEST(AffineTable, refuses_what_is_no_table) {
    EXPECT_EQ(nullptr, make_layer("AffineTable", "-23300=2,1,2"));
    std::string beyond = table_param();
    beyond.replace(beyond.rfind(','), std::string::npos, ",128");
    EXPECT_EQ(nullptr, make_layer("AffineTable", beyond));
}

TEST(AffineQuantize, by_hand) {
    // Half to even; 0 becomes the zero point; limits are those of int8.
    const Mat x = mat_of(Shape(4, 2), {0, 0.25f, 0.75f, -0.25f, -0.75f, 1.3f, 100, -100});
    expect_values("AffineQuantize", "0=0.5 1=10", {}, {x},
                  mat_of(Shape(4, 2, DType::s8), {10, 10, 12, 10, 8, 13, 127, -128}));
}

TEST(AffineDequantize, by_hand) {
    expect_values("AffineDequantize", "0=0.5 1=-128", {},
                  {mat_of(Shape(3, DType::s8), {-128, 0, 127})}, mat_of(Shape(3), {0, 64, 127.5f}));
}

// Sums of all values with steps and zero points of all kinds, as the reference rounds them.
TEST(AffineBinary, sums_of_all_values) {
    const Shape shape(AffineTable::kValues, AffineTable::kValues, DType::s8);
    Mat a(shape, 1, nullptr), b(shape, 1, nullptr);
    for (int i = 0; i < shape.w * shape.h; i++) {
        ((signed char*)a.data)[i] = (signed char)(i % shape.w - 128);
        ((signed char*)b.data)[i] = (signed char)(i / shape.w - 128);
    }
    std::mt19937 random(7);
    std::uniform_real_distribution<float> step(.01f, .1f);
    std::uniform_int_distribution<int> zero(-128, 127);
    for (int i = 0; i < 60; i++) {
        const float top = i % 4 == 0 ? .004f : i % 4 == 1 ? .25f : step(random);
        char params[200];
        snprintf(params, sizeof(params), "1=%.9e 2=%d 3=%.9e 4=%d 5=%.9e 6=%d 9=%d", step(random),
                 zero(random), step(random), zero(random), top, zero(random), i % 3 == 0);
        const LayerPtr want = make_layer("AffineBinary", params, {}, 2, 1, true);
        const LayerPtr got = make_layer("AffineBinary", params, {}, 2, 1, false);
        const std::vector<Mat> wanted = run_layer(*want, {a, b}), given = run_layer(*got, {a, b});
        ASSERT_EQ(1u, wanted.size());
        ASSERT_EQ(1u, given.size());
        ASSERT_EQ(0, memcmp(wanted[0].data, given[0].data, shape.w * shape.h)) << params;
    }
}

TEST(AffineBinary, by_hand) {
    const Mat a = mat_of(Shape(3, DType::s8), {-128, 0, 20});
    const Mat b = mat_of(Shape(3, DType::s8), {3, -128, 127});
    // 0.5 (a + 128) + 0.25 (b - 3), in steps of 1 from -100.
    expect_values("AffineBinary", "1=0.5 2=-128 3=0.25 4=3 5=1 6=-100", {}, {a, b},
                  mat_of(Shape(3, DType::s8), {-100, -69, 5}));
    // At least 0 before it is rounded: 0.5 a.
    expect_values("AffineBinary", "1=0.5 5=1 6=-100 9=1", {}, {a},
                  mat_of(Shape(3, DType::s8), {-100, -100, -90}));
}

TEST(AffineQuantize, refuses_what_does_not_fit) {
    EXPECT_EQ(nullptr, make_layer("AffineQuantize", "0=0"));
    EXPECT_EQ(nullptr, make_layer("AffineQuantize", "1=128"));
    const LayerPtr layer = make_layer("AffineQuantize", "");
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(Shape(4, 2, DType::s8))}).empty());
    const LayerPtr binary = make_layer("AffineBinary", "");
    ASSERT_NE(nullptr, binary);
    EXPECT_TRUE(run_layer(*binary, {Mat(4, 2)}).empty());
}

}  // namespace quoll
