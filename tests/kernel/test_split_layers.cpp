// Layers whose products are made of bf16 terms or int8 slices, against their references: on the
// machine's units (AMX, SME), and on emulated ones where it has AVX-512.
#include <gtest/gtest.h>
#include <math.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "emulated/emulation.h"
#include "layer/cpu/common/kernel_set.h"
#include "quoll/datareader.h"
#include "quoll/net.h"
#include "runtime/scalar.h"
#include "split_kernels.h"
#include "tile_cases.h"

using namespace quoll;

namespace {

// The largest difference, in units of the largest value.
double difference(const Mat& a, const Mat& b) {
    double most = 0, largest = 0;
    for (int c = 0; c < a.c; c++)
        for (int i = 0; i < a.w * a.h; i++) {
            most = std::max(most, fabs((double)a.channel(c)[i] - b.channel(c)[i]));
            largest = std::max(largest, fabs((double)b.channel(c)[i]));
        }
    return most / largest;
}

Mat planar(const Mat& m) {
    Mat out;
    convert_packing(m, out, 1);
    return out;
}

// A layer and runs of it, whose answers by the reference are made once: emulated they take longest.
struct LayerRuns {
    const char* type;
    std::vector<std::pair<int, int>> params;
    std::vector<Mat> weights;
    std::vector<std::vector<Mat>> inputs;  // of each run
    std::vector<Mat> want;                 // of each run

    // added: a second input of each run; others: those that all runs have.
    LayerRuns(const char* type, const std::vector<std::pair<int, int>>& params,
              const std::vector<Mat>& weights, const std::vector<Mat>& first,
              const std::vector<Mat>& added, const std::vector<Mat>& others = {})
        : type(type), params(params), weights(weights) {
        const Option opt;
        const LayerPtr reference = make_layer(type, params, weights, true, opt);
        EXPECT_TRUE(reference);
        for (size_t i = 0; reference && i < first.size(); i++) {
            std::vector<Mat> in = {first[i]}, out(1);
            if (i < added.size()) in.push_back(added[i]);
            in.insert(in.end(), others.begin(), others.end());
            EXPECT_EQ(0, reference->forward(in, out, opt));
            inputs.push_back(in);
            want.push_back(out[0]);
        }
    }

    // How far the layer's results differ from the reference's with so many products (0: vectors).
    // answers: gets the results, if it is not null.
    double error(int products, std::vector<float>* answers = nullptr) const;
};

double LayerRuns::error(int products, std::vector<float>* answers) const {
    Option opt;
    opt.num_threads = 1;
    opt.use_bf16_storage = products == 1;
    opt.use_fp32_split = products == 1 ? 0 : products;
    const LayerPtr fast = make_layer(type, params, weights, false, opt);
    EXPECT_TRUE(fast);
    if (testing::Test::HasFailure()) return INFINITY;
    double worst = 0;
    for (size_t i = 0; i < inputs.size(); i++) {
        std::vector<Mat> in = inputs[i], got(1);
        EXPECT_EQ(0, fast->forward(in, got, opt));
        if (testing::Test::HasFailure()) return INFINITY;
        if (got[0].dtype == DType::bf16) cast_bfloat16_to_float32(got[0], got[0]);
        const Mat values = planar(got[0]);
        worst = std::max(worst, difference(values, want[i]));
        for (int c = 0; answers && c < values.c; c++) {
            const float* const channel = values.channel(c);
            answers->insert(answers->end(), channel, channel + (size_t)values.w * values.h);
        }
        if (!fast->support_bf16_storage) continue;
        for (Mat& m : in) cast_float32_to_bfloat16(m, m);
        EXPECT_EQ(0, fast->forward(in, got, opt));
        EXPECT_EQ(got[0].dtype, DType::bf16);
        cast_bfloat16_to_float32(got[0], got[0]);
        worst = std::max(worst, difference(planar(got[0]), want[i]));
    }
    return worst;
}

// Whether this machine's units, or where bf16 alone has kernels its vectors, multiply f32 values,
// which they then do for three products too: sums may be those of vectors bit by bit.
bool has_floats() {
    const SplitGemmKernels* six = host_kernel_set().split6;
    return !six || six->floats;
}

// The errors of six products and of vectors. Where bf16 alone has kernels, six products are the
// vectors' f32 ones. Units of f32 round each sum as vectors do, in another order: their errors are
// alike.
void expect_six_products(const char* type, double six, double none) {
    if (!host_kernel_set().split6)
        EXPECT_EQ(six, none) << type;
    else
        EXPECT_LT(six, has_floats() ? std::max(2e-6, 2 * none) : 2e-6) << type;
}

// On shapes for which the rule that chooses prefers split products. Errors tell which kernels ran:
// those of three products are two orders above f32's, those of one two more.
void check_layer(const char* type, const std::vector<std::pair<int, int>>& params,
                 const std::vector<Mat>& weights, const std::vector<Mat>& inputs,
                 const std::vector<Mat>& added = {}) {
    const Emulation emulation;
    const LayerRuns runs(type, params, weights, inputs, added);
    std::vector<float> of_six, of_none;
    const double six = runs.error(6, &of_six), three = runs.error(3);
    const double one = runs.error(1), none = runs.error(0, &of_none);
    EXPECT_LT(none, 1e-5) << type;
    expect_six_products(type, six, none);
    EXPECT_TRUE(of_six != of_none || has_floats()) << type << ": the same kernels ran";
    // Digits may be preferred to three products where the weights are constant.
    if (has_floats())
        EXPECT_EQ(three, six) << type;
    else
        EXPECT_TRUE(three < 1e-4 && (!weights.empty() || three > 2e-6)) << type << ": " << three;
    EXPECT_TRUE(one > 2e-4 && one < 1e-2) << type << ": " << one;
}

TEST(SplitLayers, Convolution) {
    QUOLL_NEED_KERNELS();
    const int c = 192, n = 208;
    for (int kernel : {1, 3}) {
        const int values = c * n * kernel * kernel, stride = kernel == 1 ? 1 : 2;
        check_layer("Convolution",
                    {{0, n}, {1, kernel}, {3, stride}, {4, kernel / 2}, {5, 1}, {6, values}},
                    {random_mat(Shape(values)), random_mat(Shape(n))},
                    {random_mat(Shape(18, 17, c)), random_mat(Shape(21, 16, c))});
    }
}

// In bf16 all slices are one product, which has the bits of one slice after another.
TEST(SplitLayers, Convolution3D) {
    QUOLL_NEED_KERNELS();
    const Emulation emulation;
    typedef std::vector<std::pair<int, int>> Params;
    const Params cases[] = {
        {{1, 3}, {4, 1}},                                      // windows that share slices
        {{1, 3}, {4, 1}, {3, 2}},                              // at steps of 2
        {{1, 3}, {21, 1}, {4, 1}, {24, 0}},                    // slices where they lie
        {{1, 3}, {21, 1}, {23, 2}, {4, 1}, {24, 0}},           // every other
        {{1, 3}, {21, 1}, {23, 2}, {4, 1}, {24, 1}, {17, 1}},  // and some outside
        {{1, 3}, {21, 2}, {23, 2}, {4, 1}, {24, 0}},           // windows apart
        {{1, 1}, {21, 3}, {4, 0}, {24, 1}},                    // slices as rows
    };
    const int n = 48, c = 32;
    for (Params params : cases)
        for (bool adds : {false, true}) {
            const auto param = [&](int key, int otherwise) {
                for (const auto& p : params)
                    if (p.first == key) return p.second;
                return otherwise;
            };
            const int taps = param(1, 1) * param(1, 1) * param(21, param(1, 1));
            params.insert(params.end(), {{0, n}, {5, 1}, {6, n * c * taps}});
            if (adds) params.push_back({29, 1});
            const std::vector<Mat> weights = {random_mat(Shape(n * c * taps)),
                                              random_mat(Shape(n))};
            Option opt;
            opt.use_bf16_storage = true;
            opt.num_threads = 2;
            Mat in;
            convert_packing(random_mat(Shape(9, 8 * 6, c)).reshape(9, 8, 6, c), in, 16);
            cast_float32_to_bfloat16(in, in);
            std::vector<Mat> bottoms = {in}, tops(1), one_by_one(1);
            if (adds) {  // what has the output's shape
                Params alone(params.begin(), params.end() - 1);
                const LayerPtr other = make_layer("Convolution3D", alone, weights, false, opt);
                ASSERT_TRUE(other);
                ASSERT_EQ(0, other->forward(bottoms, tops, opt));
                bottoms.push_back(tops[0].clone());
                tops.assign(1, Mat());
            }
            const LayerPtr layer = make_layer("Convolution3D", params, weights, false, opt);
            ASSERT_TRUE(layer);
            std::vector<Shape> shapes;
            for (const Mat& m : bottoms) shapes.push_back(m.logical_shape());
            std::shared_ptr<const LayerPlan> plan;
            ASSERT_EQ(0, layer->plan(shapes, opt, &plan));
            ASSERT_TRUE(plan);
            ASSERT_EQ(0, layer->forward(bottoms, one_by_one, opt));
            ASSERT_EQ(0, layer->forward_planned(*plan, bottoms, tops, false, opt));
            std::vector<Mat> wide, want(1);
            for (const Mat& m : bottoms) {
                wide.emplace_back();
                cast_bfloat16_to_float32(planar(m), wide.back());
            }
            const LayerPtr reference = make_layer("Convolution3D", params, weights, true, Option());
            ASSERT_EQ(0, reference->forward(wide, want, Option()));
            ASSERT_EQ(tops[0].dtype, DType::bf16);
            ASSERT_TRUE(tops[0].logical_shape() == one_by_one[0].logical_shape());
            const Mat got = planar(tops[0]), same = planar(one_by_one[0]);
            for (int q = 0; q < n; q++)
                for (int i = 0; i < got.w * got.h * got.d; i++) {
                    const uint16_t bits = ((const uint16_t*)got.channel(q).data)[i];
                    ASSERT_EQ(bits, ((const uint16_t*)same.channel(q).data)[i]) << q << " " << i;
                    ASSERT_NEAR(float_from_bfloat(bits), want[0].channel(q)[i], .3)
                        << q << " " << i;
                }
        }
}

// What is added has the output's size, or does not.
TEST(SplitLayers, Convolution_with_a_sum) {
    QUOLL_NEED_KERNELS();
    const int c = 192, n = 208, values = c * n;
    const std::vector<Mat> in = {random_mat(Shape(18, 17, c)), random_mat(Shape(21, 16, c))};
    const std::vector<int> activations =
        kFewCases ? std::vector<int>{1} : std::vector<int>{0, 1, 5};
    for (int activation : activations)
        check_layer("Convolution", {{0, n}, {1, 1}, {6, values}, {9, activation}, {29, 1}},
                    {random_mat(Shape(values))}, in,
                    {random_mat(Shape(18, 17, n)), random_mat(Shape(n))});
}

// Layers that decided for split weights still take what does not suit them.
TEST(SplitLayers, small_and_flat_inputs_follow) {
    QUOLL_NEED_KERNELS();
    const int c = 192, n = 192;
    check_layer("Convolution", {{0, n}, {1, 1}, {5, 1}, {6, c * n}},
                {random_mat(Shape(c * n)), random_mat(Shape(n))},
                {random_mat(Shape(18, 17, c)), random_mat(Shape(1, 1, c)), random_mat(Shape(c))});
}

TEST(SplitLayers, grouped_Convolution) {
    QUOLL_NEED_KERNELS();
    const int c = 128, n = 128, group = 2, values = c / group * n * 9;
    check_layer("ConvolutionDepthWise",
                {{0, n}, {1, 3}, {3, 2}, {4, 1}, {5, 1}, {6, values}, {7, group}, {9, 1}},
                {random_mat(Shape(values)), random_mat(Shape(n))}, {random_mat(Shape(28, 29, c))});
}

// Defined below.
void expect_ieee(const Mat& got_packed, const Mat& want, float tolerance = 1e-4f);

// In bf16, with and without values that are not finite, which stay where windows have them.
// inputs, outputs: of a group.
void check_groups(int inputs, int outputs, int kernel, int stride, int dilation,
                  const Shape& shape) {
    SCOPED_TRACE(std::to_string(inputs) + " to " + std::to_string(outputs) + " channels, kernel " +
                 std::to_string(kernel) + ", stride " + std::to_string(stride));
    const Emulation emulation;
    const int groups = shape.c / inputs, channels = groups * outputs;
    const int values = channels * inputs * kernel * kernel;
    const std::vector<std::pair<int, int>> params = {
        {0, channels},  {1, kernel}, {3, stride}, {12, dilation}, {4, kernel / 2},
        {14, dilation}, {5, 1},      {7, groups}, {6, values}};
    const std::vector<Mat> weights = {random_mat(Shape(values)), random_mat(Shape(channels))};
    const double one =
        LayerRuns("ConvolutionDepthWise", params, weights, {random_mat(shape)}, {}).error(1);
    EXPECT_TRUE(one < 1e-2 && (one > 2e-4 || !host_kernel_set().split1->taps)) << one;

    Mat in = random_mat(shape);
    in.channel(3).row(2)[4] = INFINITY, in.channel(17).row(shape.h - 1)[0] = NAN;
    in.channel(shape.c - 1).row(0)[shape.w - 1] = -INFINITY;
    Mat stored, wide;
    cast_float32_to_bfloat16(in, stored);
    cast_bfloat16_to_float32(stored, wide);
    Option opt;
    opt.use_bf16_storage = true;
    const LayerPtr reference = make_layer("ConvolutionDepthWise", params, weights, true, Option()),
                   fast = make_layer("ConvolutionDepthWise", params, weights, false, opt);
    ASSERT_TRUE(reference && fast);
    std::vector<Mat> want(1), got(1);
    ASSERT_EQ(0, reference->forward({wide}, want, Option()));
    ASSERT_EQ(0, fast->forward({stored}, got, opt));
    cast_bfloat16_to_float32(got[0], got[0]);
    expect_ieee(got[0], want[0], 1e-2f);
}

TEST(SplitLayers, narrow_groups) {
    QUOLL_NEED_KERNELS();
    for (int kernel : {2, 3, 5})
        for (int stride : {1, 2}) check_groups(16, 16, kernel, stride, 1, Shape(21, 13, 48));
    check_groups(16, 16, 3, 1, 2, Shape(50, 37, 32));
    check_groups(16, 16, 3, 3, 1, Shape(5, 9, 32));
    check_groups(24, 24, 3, 1, 1, Shape(19, 9, 48));
    check_groups(24, 40, 3, 2, 1, Shape(20, 11, 48));
    check_groups(32, 32, 3, 1, 1, Shape(17, 21, 64));
    check_groups(56, 56, 1, 1, 1, Shape(9, 7, 112));
    check_groups(8, 24, 5, 1, 1, Shape(13, 8, 32));
}

TEST(SplitLayers, InnerProduct) {
    QUOLL_NEED_KERNELS();
    const int k = 410, n = 270;
    check_layer("InnerProduct", {{0, n}, {1, 1}, {2, k * n}},
                {random_mat(Shape(k * n)), random_mat(Shape(n))},
                {random_mat(Shape(k, 1)), random_mat(Shape(k, 300)), random_mat(Shape(k, 64))});
}

TEST(SplitLayers, Gemm) {
    QUOLL_NEED_KERNELS();
    const int m = 110, n = 290, k = 410;
    for (int trans : {0, 1}) {
        const Mat a = random_mat(Shape(k, m));
        const Mat b = trans ? random_mat(Shape(k, n)) : random_mat(Shape(n, k));
        check_layer("Gemm", {{3, trans}}, {}, {a}, {b});
        check_layer("Gemm", {{3, trans}, {5, 1}, {6, 1}, {8, n}, {9, k}, {10, 4}},
                    {random_mat(Shape(n * k)), random_mat(Shape(n))},
                    {random_mat(Shape(k)), a, random_mat(Shape(k, 64))});
    }
}

// Digits read rows of A and columns of B that follow each other; others are transposed for them.
TEST(SplitLayers, turned_constants) {
    QUOLL_NEED_KERNELS();
    const Emulation emulation;
    typedef std::vector<std::pair<int, int>> Params;
    // Each of the three once and not, if there are few.
    const int m = kFewCases ? 254 : 190, n = kFewCases ? 270 : 550, k = kFewCases ? 262 : 410;
    const int step = kFewCases ? 3 : 1;
    for (int transposed = 0; transposed < 8; transposed += step) {
        const Params trans = {
            {2, transposed & 1}, {3, transposed / 2 & 1}, {10, -1}, {14, transposed / 4}};
        const auto check = [&](Params params, const Mat& constant, const Mat& input) {
            params.insert(params.end(), trans.begin(), trans.end());
            const LayerRuns runs("Gemm", params, {constant}, {input}, {});
            const double six = runs.error(6), none = runs.error(0);
            EXPECT_LT(six, 2e-6) << transposed;
            EXPECT_TRUE(six != none || has_floats()) << transposed << ": vectors ran";
            EXPECT_EQ(six, runs.error(3)) << transposed << ": no int8 slices ran";
        };
        const Mat a = transposed & 1 ? random_mat(Shape(m, k)) : random_mat(Shape(k, m));
        const Mat b = transposed & 2 ? random_mat(Shape(k, n)) : random_mat(Shape(n, k));
        check({{5, 1}, {6, 1}, {8, n}, {9, k}}, b.reshape(n * k), a);
        check({{4, 1}, {6, 1}, {7, m}, {9, k}}, a.reshape(m * k), b);
    }
}

// Such do not suit int8 slices.
TEST(SplitLayers, weights_far_above_the_others) {
    QUOLL_NEED_KERNELS();
    const Emulation emulation;
    const int k = 410, n = 270;
    Mat weights = random_mat(Shape(k * n));
    const std::vector<Mat> in = {random_mat(Shape(k, 1)), random_mat(Shape(k, 300))};
    const auto error = [&] {
        return LayerRuns("InnerProduct", {{0, n}, {2, k * n}}, {weights}, in, {}).error(6);
    };
    EXPECT_LT(error(), 2e-6);
    weights[1000] = 1e6f;
    EXPECT_LT(error(), 2e-6);
}

// Weights of 8 bits with a scale for 64 of them, unpacked in two groups of columns.
TEST(SplitLayers, Gemm_of_blocks) {
    QUOLL_NEED_KERNELS();
    const int n = 530, k = 400, blocks = (k + 63) / 64;
    Mat weights(n * k, (size_t)1u), scales = random_mat(Shape(n * blocks));
    weights.dtype = DType::s8;
    for (int i = 0; i < n * k; i++) ((signed char*)weights.data)[i] = (signed char)pick(-127, 127);
    for (int i = 0; i < n * blocks; i++) scales[i] = 127 * (1.5f + scales[i]);
    check_layer("Gemm", {{3, 1}, {5, 1}, {6, 1}, {8, n}, {9, k}, {10, -1}, {18, 801}},
                {weights, scales},
                {random_mat(Shape(k)), random_mat(Shape(k, 150)), random_mat(Shape(k, 64))});
}

TEST(SplitLayers, MatMul) {
    QUOLL_NEED_KERNELS();
    const int items = kFewCases ? 2 : 5;
    for (int trans : {0, 1}) {
        const auto b = [&](int w, int h, int c) {
            if (trans) std::swap(w, h);
            return c ? random_mat(Shape(w, h, c)) : random_mat(Shape(w, h));
        };
        check_layer("MatMul", {{0, trans}}, {},
                    {random_mat(Shape(300, 130, items)), random_mat(Shape(300, 130, items)),
                     random_mat(Shape(300, 130))},
                    {b(160, 300, items), b(160, 300, 0), b(160, 300, items)});
    }
}

// A softmax lies between: what its inputs lack in accuracy is not what its sums do.
void check_attention(const char* type, const std::vector<std::pair<int, int>>& params,
                     const std::vector<Mat>& weights, const std::vector<Mat>& inputs) {
    const Emulation emulation;
    const LayerRuns runs(type, params, weights, {inputs[0]}, {},
                         {inputs.begin() + 1, inputs.end()});
    std::vector<float> of_six, of_none;
    const double six = runs.error(6, &of_six), three = runs.error(3);
    const double one = runs.error(1), none = runs.error(0, &of_none);
    EXPECT_LT(none, 1e-5) << type;
    expect_six_products(type, six, none);
    EXPECT_TRUE(of_six != of_none || has_floats()) << type << ": the same kernels ran";
    if (has_floats())
        EXPECT_EQ(three, six) << type;
    else
        EXPECT_TRUE(three > 2 * six && three < 1e-4) << type << ": " << three;
    EXPECT_TRUE(one > 5 * three && one < 2e-2) << type << ": " << one;
}

TEST(SplitLayers, MultiHeadAttention) {
    QUOLL_NEED_KERNELS();
    const int embed = 192, values = embed * embed;
    std::vector<Mat> weights;
    for (int i = 0; i < 4; i++) {
        weights.push_back(random_mat(Shape(values)));
        for (int j = 0; j < values; j++) weights.back()[j] *= .15f;
        weights.push_back(random_mat(Shape(embed)));
    }
    for (int src : {48, 101})
        check_attention("MultiHeadAttention", {{0, embed}, {1, 3}, {2, values}}, weights,
                        {random_mat(Shape(embed, src)), random_mat(Shape(embed, 130)),
                         random_mat(Shape(embed, 130))});
    // Few queries and many keys, whose projections are not computed.
    check_attention("MultiHeadAttention", {{0, embed}, {1, 3}, {2, values}}, weights,
                    {random_mat(Shape(embed, 12)), random_mat(Shape(embed, 700))});
}

TEST(SplitLayers, SDPA) {
    QUOLL_NEED_KERNELS();
    const std::vector<int> lengths = kFewCases ? std::vector<int>{140} : std::vector<int>{128, 140};
    for (int src : lengths)
        check_attention("SDPA", {}, {},
                        {random_mat(Shape(192, src, 4)), random_mat(Shape(192, 300, 2)),
                         random_mat(Shape(160, 300, 2))});
}

// ---------------------------------------------------------------- values that are not finite

// NaN and infinities where the reference has them, the rest close to it.
void expect_ieee(const Mat& got_packed, const Mat& want, float tolerance) {
    const Mat got = planar(got_packed);
    ASSERT_TRUE(got.logical_shape() == want.logical_shape());
    float largest = 0;
    int odd = 0;
    for (int c = 0; c < want.c; c++)
        for (int i = 0; i < want.w * want.h; i++) {
            const float x = want.channel(c)[i];
            if (std::isfinite(x)) largest = std::max(largest, fabsf(x));
            odd += !std::isfinite(x);
        }
    ASSERT_GT(odd, 0);
    ASSERT_LT(odd, want.w * want.h * want.c);
    for (int c = 0; c < want.c; c++)
        for (int i = 0; i < want.w * want.h; i++) {
            const float g = got.channel(c)[i], w = want.channel(c)[i];
            const bool same = isnan(w)   ? isnan(g)
                              : isinf(w) ? g == w
                                         : fabsf(g - w) <= tolerance * largest;
            ASSERT_TRUE(same) << g << " for " << w << " at " << i << " channel " << c;
        }
}

void expect_ieee(const char* type, const std::vector<std::pair<int, int>>& params,
                 const std::vector<Mat>& weights, const std::vector<Mat>& inputs) {
    const Emulation emulation;
    const LayerPtr reference = make_layer(type, params, weights, true, Option());
    ASSERT_TRUE(reference);
    std::vector<Mat> want(1), got(1);
    ASSERT_EQ(0, reference->forward(inputs, want, Option()));
    for (int products : {6, 3}) {
        SCOPED_TRACE(std::string(type) + " by " + std::to_string(products) + " products");
        Option opt;
        opt.num_threads = 2;
        opt.use_fp32_split = products;
        const LayerPtr fast = make_layer(type, params, weights, false, opt);
        ASSERT_TRUE(fast);
        ASSERT_EQ(0, fast->forward(inputs, got, opt));
        expect_ieee(got[0], want[0]);
    }
}

// Where a product of two terms by values meets them it is made again on vectors.
TEST(SplitLayers, bf16_values_that_are_not_finite) {
    QUOLL_NEED_KERNELS();
    const Emulation emulation;
    Mat v = random_mat(Shape(160, 300, 2));
    v.channel(0).row(17)[5] = INFINITY, v.channel(1).row(290)[40] = NAN;
    std::vector<Mat> in = {random_mat(Shape(64, 140, 4)), random_mat(Shape(64, 300, 2)), v};
    for (Mat& m : in) cast_float32_to_bfloat16(m, m);
    std::vector<Mat> wide(3), want(1), got(1);
    for (int i = 0; i < 3; i++) cast_bfloat16_to_float32(in[i], wide[i]);
    Option opt;
    opt.use_bf16_storage = true;
    const LayerPtr reference = make_layer("SDPA", {}, {}, true, Option()),
                   fast = make_layer("SDPA", {}, {}, false, opt);
    ASSERT_TRUE(reference && fast);
    ASSERT_EQ(0, reference->forward(wide, want, Option()));
    ASSERT_EQ(0, fast->forward(in, got, opt));
    cast_bfloat16_to_float32(got[0], got[0]);
    for (int c = 0; c < 4; c++)
        for (int i = 0; i < 140 * 160; i++) {
            const float g = got[0].channel(c)[i], w = want[0].channel(c)[i];
            ASSERT_TRUE(isnan(w)   ? isnan(g)
                        : isinf(w) ? g == w
                                   : fabsf(g - w) <= 1e-2f)
                << g << " for " << w << " at " << i << " head " << c;
        }
}

// Zeros and very small values, whose product with infinity is NaN or not.
Mat weights_with_zeros(int count) {
    Mat m = random_mat(Shape(count));
    for (int i = 0; i < count; i += 7) m[i] = i % 2 ? 0.f : i % 3 ? 1e-15f : -1e-15f;
    return m;
}

Mat with_infinities(const Shape& shape) {
    Mat m = random_mat(shape);
    const int last = shape.dims == 3 ? shape.c - 1 : 0, row = shape.dims == 1 ? 0 : shape.h / 2;
    m.channel(0).row(row)[1] = INFINITY;
    m.channel(last).row(row)[2] = -INFINITY;
    if (shape.dims == 1) return m;
    m.channel(last).row(1)[shape.w - 1] = NAN;
    m.channel(last).row(shape.h - 1)[0] = -INFINITY;
    m.channel(0).row(shape.h - 1)[0] = INFINITY;
    return m;
}

TEST(SplitLayers, values_that_are_not_finite) {
    QUOLL_NEED_KERNELS();
    const int c = 192, n = 208;
    const std::vector<int> activations =
        kFewCases ? std::vector<int>{1} : std::vector<int>{0, 1, 4};
    for (int kernel : {1, 3})
        for (int activation : activations) {
            const int values = c * n * kernel * kernel, stride = kernel == 1 ? 1 : 2;
            expect_ieee("Convolution",
                        {{0, n},
                         {1, kernel},
                         {3, stride},
                         {4, kernel / 2},
                         {5, 1},
                         {6, values},
                         {9, activation}},
                        {weights_with_zeros(values), random_mat(Shape(n))},
                        {with_infinities(Shape(30, 29, c))});
        }
    // Weights too far apart for int8 slices.
    Mat wide = weights_with_zeros(c * n);
    for (int i = 5; i < c * n; i += 1000) wide[i] = 1000.f;
    expect_ieee("Convolution", {{0, n}, {1, 1}, {6, c * n}}, {wide},
                {with_infinities(Shape(30, 29, c))});
    wide[77] = INFINITY;
    expect_ieee("Convolution", {{0, n}, {1, 1}, {6, c * n}}, {wide},
                {random_mat(Shape(30, 29, c))});
    // A first layer, of three planes.
    expect_ieee("Convolution", {{0, 64}, {1, 7}, {3, 2}, {4, 3}, {6, 64 * 3 * 49}},
                {weights_with_zeros(64 * 3 * 49)}, {with_infinities(Shape(96, 90, 3))});
    expect_ieee("InnerProduct", {{0, 300}, {2, 300 * 512}}, {weights_with_zeros(300 * 512)},
                {with_infinities(Shape(512, 64))});
    expect_ieee("MatMul", {}, {},
                {with_infinities(Shape(300, 130, 3)), random_mat(Shape(160, 300, 3))});
    expect_ieee("MatMul", {}, {},
                {random_mat(Shape(300, 130, 3)), with_infinities(Shape(160, 300, 3))});
    expect_ieee("Gemm", {}, {}, {with_infinities(Shape(300, 130)), random_mat(Shape(160, 300))});
}

// A sum in place, which is as it was when the convolution turns out not to take its input.
TEST(SplitLayers, sums_that_are_not_finite) {
    QUOLL_NEED_KERNELS();
    const Emulation emulation;
    const int c = 192, n = 208;
    const char text[] =
        "7767517\n5 5\nInput in 0 1 in\nInput other 0 1 other\n"  // of one blob they would be one
        "Convolution p 1 1 in p 0=208 1=1 6=39936\n"
        "Convolution q 1 1 other q 0=208 1=1 6=39936\nBinaryOp add 2 1 p q out 0=0\n";
    for (float far : {0.f, 1000.f}) {  // by int8 slices, by bf16 terms
        std::vector<float> file;
        for (int i = 0; i < 2; i++) {
            Mat weights = weights_with_zeros(c * n);
            for (int j = 5; far > 0 && j < c * n; j += 1000) weights[j] = far;
            file.push_back(0.f);
            file.insert(file.end(), (float*)weights, (float*)weights + c * n);
        }
        const Mat in = with_infinities(Shape(30, 29, c));
        Mat want, got;
        for (bool reference : {true, false}) {
            Net net;
            net.opt.use_reference_layers = reference;
            net.opt.use_graph_fusion = !reference;
            ASSERT_EQ(0, net.load_param_mem(text));
            const unsigned char* bytes = (const unsigned char*)file.data();
            ASSERT_EQ(0, net.load_model(DataReaderFromMemory(bytes, file.size() * 4)));
            Extractor ex = net.create_extractor();
            ASSERT_EQ(0, ex.input("in", in));
            ASSERT_EQ(0, ex.input("other", in));
            ASSERT_EQ(0, ex.extract("out", reference ? want : got));
        }
        expect_ieee(got, want);
    }
}

TEST(SplitLayers, options_turn_it_off) {
    QUOLL_NEED_KERNELS();
    const Emulation emulation;
    Option opt;
    EXPECT_EQ(6, opt.use_fp32_split);
    // Where bf16 alone has kernels vectors multiply all else.
    const bool has_six = host_kernel_set().split6;
    const auto products = [&] {
        const SplitGemmKernels* kernels = split_kernels_for(opt);
        return kernels ? kernels->products : 0;
    };
    EXPECT_EQ(has_six ? 6 : 0, products());
    opt.use_fp32_split = 3;
    EXPECT_EQ(!has_six ? 0 : has_floats() ? 6 : 3, products());
    opt.use_fp32_split = 1;
    EXPECT_EQ(1, products());
    for (int none : {0, 2, 7, -1}) {
        opt.use_fp32_split = none;
        EXPECT_EQ(nullptr, split_kernels_for(opt));
    }
    opt.use_bf16_storage = true;
    EXPECT_EQ(1, products());
}

}  // namespace
