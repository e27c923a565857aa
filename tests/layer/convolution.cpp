#include "conv_case.h"
#include "layer/cpu/common/kernel_set.h"
#include "runtime/cpu_features.h"

namespace quoll {

// The length of a sum: input channels * kernel.
static LayerCase conv(Shape in, int outputs, int kernel, const std::string& more = "",
                      int kernel_h = 0) {
    const int maxk = kernel * (kernel_h ? kernel_h : kernel);
    std::string params = "0=" + std::to_string(outputs) + " 1=" + std::to_string(kernel) +
                         " 6=" + std::to_string(outputs * in.c * maxk);
    if (kernel_h) params += " 11=" + std::to_string(kernel_h);
    return LayerCase({in}, params + " " + more).terms(in.c * maxk);
}

// With another input that is added.
static LayerCase with_add(LayerCase layer, Shape added) {
    layer.inputs.push_back(added);
    layer.params += " 29=1";
    return layer;
}

static const std::vector<LayerCase> kCases = {
    conv(Shape(9, 7, 1), 1, 1, "5=1"),
    conv(Shape(22, 21, 1), 4, 1, "5=1 9=2 -23310=1,0.1"),
    conv(Shape(9, 7, 4), 8, 1),
    conv(Shape(10, 11, 16), 16, 1, "5=1 9=1"),
    conv(Shape(10, 11, 16), 24, 1, "3=2 5=1 9=6 -23310=2,0.2,0.5"),
    conv(Shape(10, 11, 13), 7, 3, "4=1 5=1"),
    conv(Shape(12, 9, 16), 32, 3, "4=1 9=2 -23310=1,0.1"),
    conv(Shape(13, 14, 32), 16, 3, "5=1 4=1 3=2 9=3 -23310=2,-0.3,0.4"),
    conv(Shape(24, 25, 3), 16, 7, "3=2 4=3 5=1 9=4"),
    conv(Shape(15, 12, 8), 12, 5, "2=2 4=4 14=2 15=3 16=1 9=5"),
    conv(Shape(15, 12, 4), 8, 3, "13=3 3=1 4=-233 18=0.7 5=1", 2),
    conv(Shape(15, 12, 5), 16, 4, "3=2 4=-234 5=1"),
    conv(Shape(15, 12, 64), 4, 3, "12=2 4=2 18=-0.5", 2),
    LayerCase({Shape(24)}, "0=5 1=1 5=1 6=120 9=1").terms(24),
    // Taps that read nothing, on one axis and on both, on one side and on both.
    conv(Shape(9, 7, 32), 16, 3, "2=12 4=12 5=1 9=1"),
    conv(Shape(17, 5, 16), 32, 3, "2=3 12=6 4=3 14=6 5=1"),
    conv(Shape(1, 1, 16), 24, 3, "3=2 4=1 5=1"),
    conv(Shape(4, 3, 16), 8, 3, "2=5 4=10 15=0 14=10 16=0 5=1"),
    with_add(conv(Shape(6, 5, 16), 16, 5, "2=4 4=8 5=1 9=4"), Shape(6, 5, 16)),
    conv(Shape(9, 7, 32), 16, 3, "2=12 4=12 5=1 18=0.7"),
    // Few outputs.
    conv(Shape(11, 9, 32), 3, 3, "4=1 5=1 9=4"),
    with_add(conv(Shape(11, 9, 16), 1, 5, "4=2 5=1"), Shape(11, 9, 1)),
    conv(Shape(10, 8, 16), 8, 3, "4=1 5=1 8=1 9=1"),
    conv(Shape(10, 8, 16), 24, 1, "5=1 8=2 9=4"),
    conv(Shape(10, 8, 3), 16, 3, "4=1 3=2 5=1 8=101 18=2").weights("top_blob_int8_scales", 20, 30),
    conv(Shape(10, 8, 8), 4, 3, "4=1 8=1").int8_weights(),
    conv(Shape(10, 8, 8, DType::s8), 8, 2, "4=1 8=102 5=1").range(-127, 127).int8_weights(),
    conv(Shape(10, 8, 32, DType::s8), 16, 3, "4=1 8=1 5=1 18=-3.7").range(-128, 127).int8_weights(),
    conv(Shape(19, 13, 3), 8, 7, "4=3 3=2 8=1 5=1").int8_weights(),
    conv(Shape(10, 9, 4, DType::s8), 12, 3, "3=2 8=1").range(-127, 127).int8_weights(),
    // Few channels and wide kernels: joined rows.
    conv(Shape(39, 9, 1, DType::s8), 12, 5, "4=2 8=1 5=1 18=9").range(-127, 127).int8_weights(),
    conv(Shape(41, 12, 2), 9, 9, "4=11 3=3 8=1 5=1").int8_weights(),
    conv(Shape(23, 9, 3), 20, 7, "8=1").int8_weights(),
    conv(Shape(12, 9, 20), 12, 3, "2=2 4=2 8=1 5=1").int8_weights(),
    conv(Shape(3, 3, 300), 4, 3, "4=1 8=1").int8_weights(),  // sums beyond 2^24
    // By Winograd's algorithm where values have 16 bits: several channel blocks, odd sizes, one
    // output.
    conv(Shape(17, 5, 40), 20, 3, "4=1 5=1 8=101 9=4").weights("top_blob_int8_scales", 20, 30),
    conv(Shape(3, 3, 16, DType::s8), 16, 3, "8=1").range(-128, 127).int8_weights(),
    // Of 4 and of 3 outputs along both axes.
    conv(Shape(7, 14, 24, DType::s8), 16, 3, "4=1 5=1 8=1").range(-128, 127).int8_weights(),
    // Inputs that are not negative, as behind ReLU.
    conv(Shape(9, 7, 40, DType::s8), 44, 1, "5=1 8=1 9=1").range(0, 127).int8_weights(),
    conv(Shape(11, 9, 20), 32, 3, "3=2 4=1 5=1 8=101 9=1")
        .range(0, 1)
        .weights("top_blob_int8_scales", 20, 30),
    conv(Shape(3, 3, 32, DType::s8), 64, 3, "8=1 5=1").range(127, 127).int8_weights(),
    // Leaky ReLU on sums.
    conv(Shape(9, 7, 16), 28, 3, "4=1 5=1 8=101 9=2 -23310=1,0.1")
        .weights("top_blob_int8_scales", 20, 30),
    conv(Shape(10, 6, 8), 20, 1, "5=1 8=1 9=2 -23310=1,-0.1").int8_weights(),
    with_add(conv(Shape(9, 7, 8), 16, 1, "8=1 9=2 -23310=1,0.2"), Shape(9, 7, 16)),
    // More tiles than are multiplied at a time, two panels.
    conv(Shape(30, 10, 16), 60, 3, "4=1 5=1 8=1 9=1").int8_weights(),
    // Zero points; the padding is the input's.
    affine(conv(Shape(10, 8, 16, DType::s8), 24, 3, "4=1 5=1 8=1 26=1 27=-100 9=1")),
    affine(conv(Shape(10, 8, 3, DType::s8), 16, 3, "4=1 3=2 5=1 8=101 26=1 27=7 28=-128 9=1")),
    affine(conv(Shape(11, 8, 32, DType::s8), 12, 1, "8=101 26=1 27=-128 28=127 9=4")),
    affine(conv(Shape(9, 8, 64, DType::s8), 16, 3, "4=-233 3=2 8=101 26=1 27=100 28=-5")),
    int16(conv(Shape(10, 8, 16), 24, 3, "4=1 5=1 8=2 26=3 9=1")),
    int16(conv(Shape(11, 9, 3), 10, 5, "4=2 3=2 8=1 26=3 9=4")),
    int16(conv(Shape(17, 13, 32), 32, 3, "4=1 5=1 8=2 26=3")),
    int16(conv(Shape(20), 12, 1, "5=1 8=2 26=3 9=1")),
    LayerCase({Shape(9, 8, 4), Shape(3, 3, 4, 8), Shape(8)}, "1=3 4=1 5=1 19=1 9=1").terms(36),
    LayerCase({Shape(9, 8, 6), Shape(2, 1, 6, 5)}, "3=2 4=-233 19=1").terms(12),
    // Direct, by Winograd's algorithm, planar, with activations that clamp and that do not.
    with_add(conv(Shape(9, 7, 4), 8, 1), Shape(9, 7, 8)),
    with_add(conv(Shape(10, 11, 16), 32, 1, "5=1 9=1"), Shape(10, 11, 32)),
    with_add(conv(Shape(20, 21, 64), 64, 3, "5=1 4=1 9=1"), Shape(20, 21, 64)).error_growth(20),
    conv(Shape(19, 22, 32), 32, 3, "2=2 4=2 5=1 9=1").error_growth(20),
    with_add(conv(Shape(17, 16, 32), 32, 3, "2=3 12=2 4=3 14=2 5=1 9=1"), Shape(17, 16, 32))
        .error_growth(20),
    with_add(conv(Shape(20, 21, 64), 48, 3, "4=1 9=4"), Shape(20, 21, 48)).error_growth(20),
    with_add(conv(Shape(25, 23, 64), 64, 3, "3=2 4=1 5=1 9=1"), Shape(13, 12, 64)).error_growth(20),
    conv(Shape(27, 18, 64), 80, 3, "3=2 4=0 14=1 15=0 16=1 9=2 -23310=1,0.1").error_growth(20),
    // Channels that are no whole blocks, in copies that are: by Winograd's algorithm (x86).
    conv(Shape(20, 21, 50), 48, 3, "5=1 4=1 9=1").error_growth(20),
    with_add(conv(Shape(20, 21, 68), 50, 3, "4=1 9=1"), Shape(20, 21, 50)).error_growth(20),
    with_add(conv(Shape(18, 17, 48), 52, 3, "4=1 5=1 9=4"), Shape(18, 17, 52)).error_growth(20),
    conv(Shape(19, 22, 57), 56, 3, "2=2 4=2 5=1 9=2 -23310=1,0.1").error_growth(20),
    conv(Shape(25, 23, 72), 88, 3, "3=2 4=1 5=1 9=1").error_growth(20),
    with_add(conv(Shape(11, 12, 13), 7, 3, "3=2 5=1 9=3 -23310=2,-0.3,0.4"), Shape(5, 5, 7)),
    with_add(conv(Shape(9, 9, 640), 24, 1, "5=1 9=6 -23310=2,0.2,0.5"), Shape(9, 9, 24)),
    // Shapes that differ.
    with_add(conv(Shape(9, 7, 16), 16, 3, "4=1 5=1 9=1"), Shape(1, 1, 16)),
    with_add(conv(Shape(9, 7, 16), 16, 3, "4=1 5=1 9=4"), Shape(16)),
    with_add(conv(Shape(9, 7, 4), 6, 3, "4=1 5=1 8=101 9=1").int8_weights(), Shape(9, 7, 6)),
    with_add(conv(Shape(9, 7, 16), 16, 1, "5=1"), Shape(9, 7, 1)),
    with_add(conv(Shape(1, 1, 16), 8, 1, "5=1 9=1"), Shape(9, 7, 8)),
    with_add(conv(Shape(5, 4, 16), 8, 1, "5=1 9=1"), Shape(3, 5, 4, 8)),
    with_add(LayerCase({Shape(24)}, "0=5 1=1 5=1 6=120 9=1").terms(24), Shape(5)),
    with_add(LayerCase({Shape(24)}, "0=16 1=1 6=384").terms(24), Shape(3, 16)),
    // To sums of int8 products, in packs that fill registers and that do not.
    with_add(conv(Shape(10, 8, 16), 32, 1, "5=1 8=1 9=1"), Shape(10, 8, 32)),
    with_add(conv(Shape(10, 8, 16), 24, 3, "4=1 5=1 8=1"), Shape(10, 8, 24)),
    with_add(conv(Shape(11, 9, 5), 7, 3, "4=1 3=2 5=1 8=1 9=4"), Shape(6, 5, 7)),
    with_add(conv(Shape(9, 7, 16), 16, 1, "5=1 8=1 9=1"), Shape(1, 1, 16)),
    with_add(conv(Shape(9, 7, 32), 16, 1, "5=1 8=101 9=1"), Shape(9, 7, 16))
        .weights("top_blob_int8_scales", 20, 30),
    with_add(conv(Shape(7, 7, 8), 12, 3, "4=1 8=101 9=6 -23310=2,0.2,0.5"), Shape(7, 7, 12))
        .weights("top_blob_int8_scales", 20, 30),
    with_add(conv(Shape(9, 7, 8), 8, 1, "8=101"), Shape(9, 7, 1))
        .weights("top_blob_int8_scales", 20, 30),
    with_add(LayerCase({Shape(24)}, "0=16 1=1 6=384 8=1").terms(24), Shape(3, 16)),
    // A blob of two axes is one channel.
    LayerCase({Shape(9, 7)}, "0=8 1=1 6=8 5=1"),
    LayerCase({Shape(9, 7)}, "0=3 1=3 6=27 3=2 4=1").terms(9),
    // A blob of one axis is a row; all taps but one read padding.
    LayerCase({Shape(1)}, "0=3 1=3 6=27 4=1").terms(9),
    // Few outputs of wide windows, which are cut into columns.
    conv(Shape(37, 25, 32), 3, 9, "5=1 9=1"),
    conv(Shape(21, 40, 16), 3, 7, "4=3 5=1 9=2 -23310=1,0.1"),
    conv(Shape(30, 19, 48), 1, 5, "2=2 4=4 13=2 9=4"),
    conv(Shape(18, 33, 16), 2, 8, "15=7 4=0 14=3 16=1 5=1 9=3 -23310=2,-0.3,0.4"),
};
QUOLL_LAYER_CASES(Convolution, kCases)

TEST(Convolution, by_hand) {
    const Mat x = mat_of(Shape(3, 3, 1), {1, 2, 3, 4, 5, 6, 7, 8, 9});
    const Mat diagonal = mat_of(Shape(4), {1, 0, 0, 10});
    expect_values("Convolution", "0=1 1=2 6=4", {diagonal}, {x},
                  mat_of(Shape(2, 2, 1), {51, 62, 84, 95}));
    expect_values("Convolution", "0=1 1=2 6=4 5=1 9=3 -23310=2,60,90",
                  {diagonal, mat_of(Shape(1), {1})}, {x}, mat_of(Shape(2, 2, 1), {60, 63, 85, 90}));
    expect_values("Convolution", "0=1 1=2 2=2 6=4", {diagonal}, {x}, mat_of(Shape(1, 1, 1), {91}));
    // Padding of 100 above and at the right.
    expect_values("Convolution", "0=1 1=2 3=3 6=4 15=1 14=1 16=0 18=100", {diagonal}, {x},
                  mat_of(Shape(1, 1, 1), {120}));
    // SAME pads one column and one row, at the end (upper) or at the beginning (lower).
    expect_values("Convolution", "0=1 1=2 6=4 4=-233", {diagonal}, {x},
                  mat_of(Shape(3, 3, 1), {51, 62, 3, 84, 95, 6, 7, 8, 9}));
    expect_values("Convolution", "0=1 1=2 6=4 4=-234", {diagonal}, {x},
                  mat_of(Shape(3, 3, 1), {10, 20, 30, 40, 51, 62, 70, 84, 95}));
}

TEST(Convolution, channels_and_flat_input_by_hand) {
    const Mat weight = mat_of(Shape(6), {1, 2, 3, 4, 5, 6}), bias = mat_of(Shape(2), {0.5f, -40});
    expect_values("Convolution", "0=2 1=1 5=1 6=6 9=1", {weight, bias},
                  {mat_of(Shape(1, 1, 3), {1, 2, 3})}, mat_of(Shape(1, 1, 2), {14.5f, 0}));
    expect_values("Convolution", "0=2 1=1 5=1 6=6 9=1", {weight, bias},
                  {mat_of(Shape(3), {1, 2, 3})}, mat_of(Shape(2), {14.5f, 0}));
}

TEST(Convolution, inputs_of_fewer_axes_are_padded_along_all) {
    // A column, a row above and below and one at the right have the value 10.
    const Mat ones = mat_of(Shape(6), {1, 1, 1, 1, 1, 1});
    const std::string params = "0=1 1=2 11=3 6=6 4=0 14=1 15=1 16=1 18=10";
    expect_values("Convolution", params, {ones}, {mat_of(Shape(1), {3})},
                  mat_of(Shape(1, 1, 1), {53}));
    expect_values("Convolution", params, {ones}, {mat_of(Shape(2, 1), {3, 4})},
                  mat_of(Shape(2, 1, 1), {47, 54}));
}

TEST(Convolution, sum_by_hand) {
    const std::vector<Mat> weights = {mat_of(Shape(2), {1, 10})};
    const Mat x = mat_of(Shape(2, 1, 2), {1, 2, 3, -4});
    expect_values("Convolution", "0=1 1=1 6=2 9=1 29=1", weights,
                  {x, mat_of(Shape(2, 1, 1), {0.5f, 37})}, mat_of(Shape(2, 1, 1), {31.5f, 0}));
    // One value for all.
    expect_values("Convolution", "0=1 1=1 6=2 9=1 29=1", weights, {x, mat_of(Shape(1), {40})},
                  mat_of(Shape(2, 1, 1), {71, 2}));
    EXPECT_EQ(nullptr, make_layer("Convolution", "0=1 1=1 19=1 29=1", {}));
    EXPECT_EQ(nullptr,
              make_layer("Convolution", "0=1 1=1 6=1 8=1 26=1 29=1", {Mat(1), Mat(1), Mat(1)}));
    EXPECT_EQ(nullptr, make_layer("Convolution", "0=1 1=1 6=1 26=1", {Mat(1)}));
    EXPECT_EQ(nullptr, make_layer("Convolution", "0=1 1=1 6=1 27=3", {Mat(1)}));
    const LayerPtr layer = make_layer("Convolution", "0=1 1=1 6=2 29=1", weights, 2);
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {x}).empty());
    EXPECT_TRUE(run_layer(*layer, {x, mat_of(Shape(3, 1, 1), {1, 2, 3})}).empty());
    EXPECT_TRUE(run_layer(*layer, {x, mat_of(Shape(2, 1, 1, DType::s8), {1, 2})}).empty());
}

static Mat halves_of(const Shape& shape, unsigned seed) {
    Mat wide(shape), narrow;
    float* const values = wide;
    for (size_t i = 0; i < wide.total(); i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(int)(seed >> 8) / 0x1p23f - 1.f;
    }
    cast_float32_to_float16(wide, narrow);
    return narrow;
}

static Mat as_floats(const Mat& m) {
    Mat wide = m, planar;
    if (m.dtype == DType::f16) cast_float16_to_float32(m, wide);
    convert_packing(wide, planar, 1);
    return planar;
}

static void expect_same_floats(const Mat& got, const Mat& want) {
    ASSERT_EQ(got.logical_shape(), want.logical_shape());
    for (int q = 0; q < want.c; q++)
        for (int i = 0; i < want.w * want.h; i++)
            ASSERT_EQ(((const float*)got.channel(q))[i], ((const float*)want.channel(q))[i])
                << "channel " << q << " at " << i;
}

// 1x1 convolutions whose weights are half floats may multiply inputs of such as they are: results
// are the bits of the same values as floats. outputs: of how many channels.
static void check_halves(const Shape& in, int outputs, const std::string& more, bool adds) {
    SCOPED_TRACE(std::to_string(outputs) + " outputs " + more);
    const Mat weights = as_floats(halves_of(Shape(in.c * outputs), 5));
    const std::string params = "0=" + std::to_string(outputs) +
                               " 1=1 5=1 6=" + std::to_string(in.c * outputs) + " " + more +
                               (adds ? " 29=1" : "");
    Option opt;
    opt.use_fp16_storage = true;
    std::vector<LayerPtr> layers;
    for (const char* mask : {"-asimdfhm", (const char*)nullptr}) {
        set_cpu_mask(mask);
        layers.push_back(make_layer("Convolution", params,
                                    {weights.clone(), as_floats(halves_of(Shape(outputs), 7))},
                                    adds ? 2 : 1, 1, false, opt));
        ASSERT_NE(nullptr, layers.back());
    }
    ASSERT_FALSE(layers[0]->support_fp16_storage);
    ASSERT_EQ(layers[1]->support_fp16_storage,
              host_kernel_set().f16f32 && outputs % 16 == 0 && more != "3=2");
    if (!layers[1]->support_fp16_storage) return;
    std::vector<Mat> halves = {halves_of(in, 3)}, floats;
    floats.push_back(as_floats(halves[0]));
    if (adds) {
        halves.push_back(halves_of(Shape(in.w, in.h, outputs), 9));
        floats.push_back(as_floats(halves[1]));
    }
    const Mat want = as_floats(run_layer(*layers[0], floats, opt)[0]);
    // What half floats cannot hold arrives as floats.
    expect_same_floats(as_floats(run_layer(*layers[1], floats, opt)[0]), want);
    for (int pack : {1, 4}) {
        std::vector<Mat> inputs = halves;
        for (size_t i = 0; i < halves.size(); i++) convert_packing(halves[i], inputs[i], pack);
        const Mat got = run_layer(*layers[1], inputs, opt)[0];
        EXPECT_EQ(got.dtype, DType::f32);
        expect_same_floats(as_floats(got), want);
    }
}

TEST(Convolution, half_floats_have_the_bits_of_floats) {
    check_halves(Shape(14, 14, 96), 32, "9=2 -23310=1,0.1", false);
    check_halves(Shape(7, 5, 20), 16, "9=1", false);
    check_halves(Shape(7, 7, 320), 48, "9=3 -23310=2,-0.5,0.5", false);
    check_halves(Shape(15, 9, 32), 64, "3=2", false);
    check_halves(Shape(7, 7, 96), 32, "9=1", true);
    check_halves(Shape(1, 1, 8), 16, "", false);
    check_halves(Shape(7, 7, 32), 24, "", false);
}

TEST(Convolution, flat_half_floats_and_sums_of_one_value) {
    Option opt;
    opt.use_fp16_storage = true;
    const Mat weights = as_floats(halves_of(Shape(8 * 16), 5)), x = halves_of(Shape(1, 1, 8), 3);
    const Mat row = halves_of(Shape(8), 3), one = halves_of(Shape(1), 4);
    const LayerPtr alone = make_layer("Convolution", "0=16 1=1 6=128", {weights}, 1, 1, false, opt);
    const LayerPtr sum =
        make_layer("Convolution", "0=16 1=1 6=128 29=1", {weights}, 2, 1, false, opt);
    ASSERT_TRUE(alone && sum);
    if (!alone->support_fp16_storage || !sum->support_fp16_storage)
        GTEST_SKIP() << "no products of half floats with sums of floats";
    const Mat flat = run_layer(*alone, {row}, opt)[0];
    const Mat flat_want = run_layer(*alone, {as_floats(row)}, opt)[0];
    const Mat added = as_floats(run_layer(*sum, {x, one}, opt)[0]);
    const Mat added_want = as_floats(run_layer(*sum, {as_floats(x), as_floats(one)}, opt)[0]);
    for (int i = 0; i < 16; i++) {
        EXPECT_EQ(flat[i], flat_want[i]);
        EXPECT_EQ(*(const float*)added.channel(i), *(const float*)added_want.channel(i));
    }
}

// Rounded to half floats, other weights would be other numbers.
TEST(Convolution, weights_that_are_no_half_floats_are_not_rounded) {
    Option opt;
    opt.use_fp16_storage = true;
    Mat weights = as_floats(halves_of(Shape(8 * 16), 5));
    weights[77] = 0.1f;
    const LayerPtr layer = make_layer("Convolution", "0=16 1=1 6=128", {weights}, 1, 1, false, opt);
    ASSERT_NE(nullptr, layer);
    EXPECT_FALSE(layer->support_fp16_storage);
    const Mat x = as_floats(halves_of(Shape(1, 1, 8), 3));
    double want = 0;
    for (int i = 0; i < 8; i++) want += *(const float*)x.channel(i) * weights[72 + i];
    const Mat y = as_floats(run_layer(*layer, {x}, opt)[0]);
    EXPECT_NEAR(*(const float*)y.channel(9), want, 1e-6);
}

TEST(Convolution, int8_by_hand) {
    // Input * 10 and weight * 2 in whole numbers: 0.26 -> 3, 1.2 -> 2; 6 / 20.
    const std::vector<Mat> weights = {mat_of(Shape(1), {1.2f}), mat_of(Shape(1), {2}),
                                      mat_of(Shape(1), {10})};
    expect_values("Convolution", "0=1 1=1 6=1 8=1", weights, {mat_of(Shape(1, 1, 1), {0.26f})},
                  mat_of(Shape(1, 1, 1), {0.3f}));
    // Beyond +-127 it saturates: 127 * 2 / 20.
    expect_values("Convolution", "0=1 1=1 6=1 8=1", weights, {mat_of(Shape(1, 1, 1), {1000})},
                  mat_of(Shape(1, 1, 1), {12.7f}));
    // The padding is 1.9 cut off: 1 * 2 / 20.
    expect_values("Convolution", "0=1 1=1 6=1 8=1 4=1 14=0 18=1.9", weights,
                  {mat_of(Shape(1, 1, 1), {0.26f})}, mat_of(Shape(3, 1, 1), {0.1f, 0.3f, 0.1f}));
    std::vector<Mat> with_top = weights;
    with_top.push_back(mat_of(Shape(1), {100}));
    expect_values("Convolution", "0=1 1=1 6=1 8=101", with_top, {mat_of(Shape(1, 1, 1), {0.26f})},
                  mat_of(Shape(1, 1, 1, DType::s8), {30}));
    // 0.3 and what is added, before the activation and before the output is rounded.
    const Mat x = mat_of(Shape(1, 1, 1), {0.26f}), more = mat_of(Shape(1, 1, 1), {0.206f});
    expect_values("Convolution", "0=1 1=1 6=1 8=1 29=1", weights, {x, more},
                  mat_of(Shape(1, 1, 1), {0.506f}));
    expect_values("Convolution", "0=1 1=1 6=1 8=101 29=1", with_top, {x, more},
                  mat_of(Shape(1, 1, 1, DType::s8), {51}));
    expect_values("Convolution", "0=1 1=1 6=1 8=101 29=1 9=1", with_top,
                  {x, mat_of(Shape(1, 1, 1), {-0.4f})}, mat_of(Shape(1, 1, 1, DType::s8), {0}));
}

TEST(Convolution, refuses_what_does_not_fit) {
    EXPECT_EQ(nullptr, make_layer("Convolution", "0=2 1=3 6=17", {Mat(17)}));
    EXPECT_EQ(nullptr, make_layer("Convolution", "0=2 1=1 6=2 9=3", {Mat(2)}));
    EXPECT_EQ(nullptr, make_layer("Convolution", "0=2 1=1 6=2 9=99", {Mat(2)}));
    EXPECT_EQ(nullptr, make_layer("Convolution", "0=2 1=1 6=2", {Mat(Shape(2, DType::s8))}));
    const LayerPtr layer = make_layer("Convolution", "0=2 1=3 6=36", {Mat(36)});
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(5, 5, 3)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 5, 2)}).empty());
    EXPECT_FALSE(run_layer(*layer, {mat_of(Shape(3, 3, 2), std::vector<float>(18))}).empty());
}

TEST(Convolution, zero_points_by_hand) {
    // Steps of 0.5 (x) and 0.25 (w) around the zero point 3, which is what the padding holds.
    Mat weight(2, (size_t)1u);
    ((signed char*)weight.data)[0] = 1, ((signed char*)weight.data)[1] = -2;
    const Mat one = mat_of(Shape(1), {4}), two = mat_of(Shape(1), {2});
    const Mat x = mat_of(Shape(2, 1, 1, DType::s8), {-128, 127});
    // 0.125 (-131 * -2, -131 - 2 * 124, 124)
    expect_values("Convolution", "0=1 1=2 11=1 4=1 14=0 6=2 8=1 26=1 27=3", {weight, one, two}, {x},
                  mat_of(Shape(3, 1, 1), {32.75f, -47.375f, 15.5f}));
    // In halves of that, rounded to even, from -5.
    expect_values("Convolution", "0=1 1=2 11=1 4=1 14=0 6=2 8=101 26=1 27=3 28=-5",
                  {weight, one, two, two}, {x}, mat_of(Shape(3, 1, 1, DType::s8), {61, -100, 26}));
    const LayerPtr layer =
        make_layer("Convolution", "0=1 1=2 11=1 4=1 14=0 6=2 8=1 26=1 27=3", {weight, one, two});
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 1, 1)}).empty());
}

}  // namespace quoll
