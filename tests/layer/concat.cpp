#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(7), Shape(16), Shape(8)}, ""),
    LayerCase({Shape(9, 8), Shape(9, 16), Shape(9, 3)}, "0=0"),
    LayerCase({Shape(4, 8), Shape(9, 8)}, "0=1"),
    LayerCase({Shape(9, 7, 16), Shape(9, 7, 16)}, "0=0"),
    LayerCase({Shape(9, 7, 16), Shape(9, 7, 8), Shape(9, 7, 24)}, ""),
    LayerCase({Shape(5, 4, 4), Shape(5, 4, 12), Shape(5, 4, 7), Shape(5, 4, 1)}, "0=-3"),
    LayerCase({Shape(5, 4, 12), Shape(5, 4, 4)}, "0=-3"),
    LayerCase({Shape(5, 4, 16), Shape(5, 7, 16)}, "0=1"),
    LayerCase({Shape(5, 4, 16), Shape(3, 4, 16)}, "0=-1"),
    LayerCase({Shape(5, 4, 2, 8), Shape(5, 4, 2, 16)}, "0=0"),
    LayerCase({Shape(5, 4, 2, 8), Shape(5, 4, 3, 8)}, "0=1"),
    LayerCase({Shape(5, 4, 2, 8), Shape(5, 1, 2, 8)}, "0=2"),
    LayerCase({Shape(5, 4, 2, 8), Shape(2, 4, 2, 8)}, "0=-1"),
    LayerCase({Shape(5, 4, 8, DType::s8), Shape(5, 4, 16, DType::s8)}, "0=0").range(-127, 127),
    LayerCase({Shape(5, 8, DType::s32), Shape(2, 8, DType::s32)}, "0=1").range(-99, 99),
    LayerCase({Shape(5, 4)}, "0=1"),
};
QUOLL_LAYER_CASES(Concat, kCases)

TEST(Concat, by_hand) {
    const Mat a = mat_of(Shape(2, 1), {1, 2}), b = mat_of(Shape(2, 2), {3, 4, 5, 6});
    expect_values("Concat", "0=0", {}, {a, b}, mat_of(Shape(2, 3), {1, 2, 3, 4, 5, 6}));
    expect_values("Concat", "0=-1", {}, {b, mat_of(Shape(1, 2), {7, 8})},
                  mat_of(Shape(3, 2), {3, 4, 7, 5, 6, 8}));
    const LayerPtr layer = make_layer("Concat", "0=1", {}, 2);
    EXPECT_TRUE(run_layer(*layer, {a, b}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(3), Mat(3)}).empty());
    EXPECT_TRUE(run_layer(*layer, {b, Mat(Shape(2, 2, DType::s32))}).empty());
}

// In elements as wide as most values come in, where every input has whole ones.
TEST(Concat, inputs_of_several_elempacks) {
    const auto channels = [](int count, int elempack, float first) {
        Mat planar(3, 2, count), m;
        for (int q = 0; q < count; q++)
            for (int i = 0; i < 6; i++) planar.channel(q)[i] = first + 10.f * (float)q + (float)i;
        convert_packing(planar, m, elempack);
        return m;
    };
    struct Case {
        int count, elempack, expected;
    };
    for (const Case& c :
         {Case{16, 1, 16}, {8, 1, 8}, {8, 8, 8}, {3, 1, 1}, {64, 4, 4}, {80, 1, 1}}) {
        const LayerPtr layer(create_layer("Concat"));
        ASSERT_EQ(0, layer->load_param(ParamDict()));
        std::vector<Mat> tops;
        const std::vector<Mat> in = {channels(c.count, c.elempack, 0), channels(32, 16, 5000)};
        ASSERT_EQ(0, layer->forward(in, tops, Option()));
        EXPECT_EQ(c.expected, tops[0].elempack) << c.count;
        Mat out;
        convert_packing(tops[0], out, 1);
        for (int q = 0; q < c.count + 32; q++)
            for (int i = 0; i < 6; i++) {
                const float expected =
                    q < c.count ? 10.f * (float)q : 5000 + 10.f * (float)(q - c.count);
                ASSERT_EQ(expected + (float)i, out.channel(q)[i]) << q;
            }
    }
}

// An input that lies where the output will have it stays there; any other is copied.
TEST(Concat, inputs_at_their_place) {
    const LayerPtr layer(create_layer("Concat"));
    ASSERT_NE(nullptr, layer);
    ASSERT_EQ(0, layer->load_param(ParamDict()));
    for (const bool at_place : {true, false}) {
        Mat a(3, 5, 4), top(3, 5, 10);
        a.fill(1.f);
        const float* const data = top;
        Mat b = top.channel_range(at_place ? 4 : 0, 6);
        b.fill(2.f);
        if (!at_place) b = b.clone();
        std::vector<Mat> tops(1);
        tops[0] = std::move(top);
        ASSERT_EQ(0, layer->forward(std::vector<Mat>{a, b}, tops, Option()));
        EXPECT_EQ(data, (const float*)tops[0]);
        for (int q = 0; q < 10; q++)
            for (int i = 0; i < 15; i++) ASSERT_EQ(q < 4 ? 1.f : 2.f, tops[0].channel(q)[i]);
    }
}

static Mat no_rows(int w) {
    Mat m;
    m.dims = 2, m.w = w, m.h = 0, m.d = m.c = 1;
    m.elemsize = 4, m.elempack = 1;
    return m;
}

TEST(Concat, inputs_without_values) {
    const LayerPtr layer = make_layer("Concat", "0=0", {}, 3);
    ASSERT_NE(nullptr, layer);
    const Mat x = mat_of(Shape(2, 1), {1, 2}), y = mat_of(Shape(2, 2), {3, 4, 5, 6});
    const std::vector<Mat> out = run_layer(*layer, {x, no_rows(2), y});
    ASSERT_EQ(1u, out.size());
    ASSERT_EQ(Shape(2, 3), out[0].logical_shape());
    EXPECT_EQ(6.f, out[0].row(2)[1]);
    // Its other axes have to fit nevertheless.
    EXPECT_TRUE(run_layer(*layer, {x, no_rows(3), y}).empty());
}

}  // namespace quoll
