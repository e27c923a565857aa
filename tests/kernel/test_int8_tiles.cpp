// Int8TilePlan and the kernels of int8_units.h against sums of integers, and the int8 layers that
// use them against those that do not: on the machine's units, and on emulated ones where it has
// what else they need.
#include <gtest/gtest.h>
#include <string.h>

#include <algorithm>

#include "emulated/emulation.h"
#include "guarded.h"
#include "layer/cpu/common/kernel_set.h"
#include "layer/cpu/conv/conv_layer.h"
#include "layer/cpu/int8/int8_tiles.h"
#include "layer/cpu/matmul/innerproduct_cpu.h"
#include "layer/nn/matmulinteger.h"
#include "tile_cases.h"

using namespace quoll;

namespace {

// Units for all that is made while one of these lives: the machine's, else emulated ones.
struct Units {
    const Emulation emulation;
    const Int8UnitKernels* const kernels = usable_int8_units();
};
// And none.
struct NoUnits {
#if defined(__aarch64__)
    NoUnits() { set_cpu_mask("-sme"); }
#else
    NoUnits() { set_cpu_mask("avx512vnni"); }
#endif
    ~NoUnits() { use_processor(); }
};

#define QUOLL_NEED_UNITS(units) \
    if (!units.kernels)         \
    GTEST_SKIP() << "no SME, and neither AMX nor AVX-512 VNNI beside the emulation"

int whole() { return pick(0, 2) ? pick(-127, 127) : pick(0, 1) ? 127 : -127; }

struct Quantized {
    Case t;
    bool reduced_in, reduced_out;
    int step_channels, pad;
    int zero = 0;  // zero point of the input
};

// One case: its blobs end at inaccessible pages.
struct Problem {
    Quantized q;
    TileShape shape;
    std::vector<signed char> weights,
        values;  // [out_c][in_c][taps]; the input's values, as rounded
    std::vector<float> scales, bias;
    Guarded<char> in, out;

    static TileShape shape_for(const Quantized& q) {
        TileShape s = shape_of(q.t);
        s.reduced_in = q.reduced_in;
        s.reduced_out = q.reduced_out;
        return s;
    }
    static size_t count(int w, int h, int c, int pack) {
        return (c / pack - 1) * step_of(w, h, pack) + (size_t)w * h * pack;
    }
    explicit Problem(const Quantized& q)
        : q(q),
          shape(shape_for(q)),
          weights((size_t)q.t.out_c * q.t.in_c * q.t.kernel_w * q.t.kernel_h),
          values(count(q.t.in_w, q.t.in_h, q.t.in_c, q.t.in_pack)),
          scales(q.t.out_c),
          bias(q.t.out_c),
          in(values.size() * (q.reduced_in ? 1 : 4)),
          out(count(shape.x.out, shape.y.out, q.t.out_c, q.t.out_pack) * (q.reduced_out ? 1 : 4)) {
        for (signed char& w : weights) w = (signed char)whole();
        for (float& s : scales) s = .0001f * (float)(1 + pick(0, 50));
        for (float& b : bias) b = uniform();
        for (char& c : out) c = 99;
        for (size_t i = 0; i < values.size(); i++) {
            const float x = q.reduced_in ? (float)whole() : 5 * uniform();
            values[i] = q.reduced_in ? (signed char)x : float2int8(x * kScale);
            if (q.reduced_in) in[i] = (char)values[i];
            if (!q.reduced_in) memcpy(&in[4 * i], &x, 4);
        }
    }
    static constexpr float kScale = 29.3f, kTopScale = 40.f;

    int64_t sum(int ox, int oy, int oc) const {
        const Case& t = q.t;
        int64_t total = 0;
        for (int c = 0; c < t.in_c; c++)
            for (int ky = 0; ky < t.kernel_h; ky++)
                for (int kx = 0; kx < t.kernel_w; kx++) {
                    const int x = ox * t.stride_w - t.left + kx * t.dilation_w;
                    const int y = oy * t.stride_h - t.top + ky * t.dilation_h;
                    const bool inside = x >= 0 && x < t.in_w && y >= 0 && y < t.in_h;
                    const int value = inside ? values[c / t.in_pack * shape.in_block +
                                                      (y * t.in_w + x) * t.in_pack + c % t.in_pack]
                                             : q.pad;
                    total += (value - q.zero) *
                             weights[((oc * t.in_c + c) * t.kernel_h + ky) * t.kernel_w + kx];
                }
        return total;
    }
};

// The order of the weights for blocks of so many channels, whole steps of kernel rows; of lists
// with whole pairs of k-groups.
std::vector<int> order_of(const Quantized& q) {
    const int taps = q.t.kernel_w * q.t.kernel_h;
    const int together = Int8TilePlan::window_rows(Problem::shape_for(q), q.step_channels);
    const int rows = std::max(1, together);
    const int width = kInt8Lists && together ? (q.t.kernel_w + 1) / 2 * 2 : q.t.kernel_w;
    const int run = Int8TilePlan::run_values(Problem::shape_for(q), q.step_channels);
    std::vector<int> order;
    for (int c0 = 0; c0 < q.t.in_c; c0 += q.step_channels)
        for (int y = 0; y < (q.t.kernel_h + rows - 1) / rows * rows; y++) {
            for (int x = 0; x < width; x++)
                for (int c = c0; c < c0 + q.step_channels; c++) {
                    const bool exists = c < q.t.in_c && x < q.t.kernel_w && y < q.t.kernel_h;
                    order.push_back(exists ? c * taps + y * q.t.kernel_w + x : -1);
                }
            if (run) order.insert(order.end(), run - width * q.step_channels, -1);
        }
    return order;
}

void run(const Int8UnitKernels& kernels, Problem& p) {
    const Case& t = p.q.t;
    Int8Weights weights;
    const KernelSet& set = host_kernel_set();
    ASSERT_EQ(0, weights.create(kInt8Lists ? *set.int8_pairs : *set.int8, p.weights.data(),
                                (size_t)t.in_c * t.kernel_w * t.kernel_h, order_of(p.q), t.out_c,
                                p.scales.data(), p.bias.data(), p.q.zero));
    const Int8TilePlan plan(kernels, p.shape, p.q.step_channels, t.threads);
    ASSERT_EQ(plan.workspace() % 16, 0u);
    Guarded<float> workspace(plan.workspace());
    memset(workspace.data(), 0x5a, plan.workspace() * sizeof(float));
    const FusedActivation activation(host_kernel_set(), make_activation(t.activation));
    Int8Result result = {};
    result.weights = &weights;
    result.c = p.out.data();
    result.c_pack = t.out_pack;
    result.c_block = p.shape.out_block;
    result.to_s8 = p.q.reduced_out;
    result.top_scale = Problem::kTopScale;
    result.activation = &activation;
    plan.run(result, p.in.data(), Problem::kScale, p.q.pad, workspace.data());
}

std::string text(const Quantized& q) {
    return text(q.t) + " steps of " + std::to_string(q.step_channels) +
           (q.reduced_in ? " from s8" : " from f32") + (q.reduced_out ? " to s8" : " to f32");
}

void check(const Int8UnitKernels& kernels, const Quantized& q) {
    SCOPED_TRACE(text(q));
    ASSERT_TRUE(Int8TilePlan::is_supported(Problem::shape_for(q)));
    Problem p(q);
    run(kernels, p);
    if (testing::Test::HasFatalFailure()) return;
    const Activation f = make_activation(q.t.activation);
    const size_t size = q.reduced_out ? 1 : 4;
    std::vector<bool> written(p.out.size(), false);
    for (int oc = 0; oc < q.t.out_c; oc++)
        for (int y = 0; y < p.shape.y.out; y++)
            for (int x = 0; x < p.shape.x.out; x++) {
                const size_t at =
                    size * (oc / q.t.out_pack * p.shape.out_block +
                            ((size_t)y * p.shape.x.out + x) * q.t.out_pack + oc % q.t.out_pack);
                for (size_t i = 0; i < size; i++) written[at + i] = true;
                volatile float product = (float)p.sum(x, y, oc) * p.scales[oc];
                const float want = activate(product + p.bias[oc], f);
                if (q.reduced_out) {
                    ASSERT_EQ(float2int8(want * Problem::kTopScale), (signed char)p.out[at])
                        << x << " " << y << " channel " << oc;
                } else {
                    float got;
                    memcpy(&got, &p.out[at], 4);
                    ASSERT_EQ(want, got) << x << " " << y << " channel " << oc;
                }
            }
    for (size_t i = 0; i < p.out.size(); i++)
        ASSERT_TRUE(written[i] || p.out[i] == 99) << "wrote between results";
}

Quantized random_quantized() {
    Quantized q;
    q.t = random_case();
    q.t.activation = pick(0, 3);  // those that are exact: none, ReLU, leaky, Clip
    if (kInt8Lists) q.t.in_pack = pick(0, 1) ? 1 : 4;
    q.t.in_c = q.t.in_pack * pick(1, 160 / q.t.in_pack);
    q.reduced_in = pick(0, 1), q.reduced_out = pick(0, 1);
    const int unit = std::max(4, q.t.in_pack);
    q.step_channels = kInt8Lists ? 8 * pick(1, 24) : unit * pick(1, 64 / unit);
    const Case& t = q.t;
    const bool runs = !kInt8Lists && t.kernel_w > 1 && t.stride_w == 1 && t.dilation_w == 1;
    if (runs && pick(0, 1)) q.step_channels = unit * pick(1, 192 / unit);
    q.zero = pick(0, 2) ? 0 : pick(-128, 127);
    q.pad = pick(0, 1) ? pick(-127, 127) : 0;
    return q;
}

TEST(Int8TilePlan, random_shapes) {
    const Units units;
    QUOLL_NEED_UNITS(units);
    for (int i = 0; i < 300; i++) {
        SCOPED_TRACE("case " + std::to_string(i));
        check(*units.kernels, random_quantized());
        if (HasFatalFailure()) return;
    }
}

// Those whose steps are rows of the kernel.
TEST(Int8TilePlan, few_channels) {
    const Units units;
    QUOLL_NEED_UNITS(units);
    for (int i = 0; i < 150; i++) {
        SCOPED_TRACE("case " + std::to_string(i));
        Quantized q = random_quantized();
        q.t.in_pack = pick(0, 1) ? 1 : 4;
        q.t.in_c = q.t.in_pack * pick(1, 16 / q.t.in_pack);
        q.t.kernel_w = pick(2, 7), q.t.kernel_h = pick(1, 7);
        q.t.dilation_h = pick(0, 4) ? 1 : 2;
        q.t.in_h += q.t.kernel_h * 2;
        q.t.dilation_w = pick(0, 4) ? 1 : 2;
        q.t.in_w += q.t.kernel_w * 2;
        q.t.stride_w = pick(0, 9) ? pick(1, 3) : 2000;
        q.step_channels = (q.t.in_c + 3) / 4 * 4;
        if (kInt8Lists && (q.t.in_c > 4 || q.t.dilation_w > 1))
            q.step_channels = (q.t.in_c + 7) / 8 * 8;
        check(*units.kernels, q);
        if (HasFatalFailure()) return;
    }
}

TEST(Int8TilePlan, maps_of_networks) {
    const Units units;
    QUOLL_NEED_UNITS(units);
    const Case cases[] = {
        {1, 1, 64, 32, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0},     // one pixel
        {14, 14, 64, 64, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0},   // pointwise
        {14, 14, 64, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},   // tiles of one row each
        {7, 7, 128, 48, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},    // a small map, a single-vector panel
        {28, 28, 64, 64, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1},   // stride 2
        {56, 40, 128, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},  // several blocks
        {33, 20, 3, 16, 7, 7, 2, 2, 1, 1, 3, 3, 3, 3},    // an image
    };
    for (Case t : cases)
        for (bool to_s8 : {false, true}) {
            if (kInt8Lists) t.in_pack = 4;
            if (t.in_c == 3) t.in_pack = 1;
            check(*units.kernels, {t, to_s8, to_s8, t.in_c == 3 ? 4 : 64, 0});
            if (HasFatalFailure()) return;
        }
}

// ---------------------------------------------------------------- layers

// A whole matrix as a Mat, in s8 with the first `count` values.
Mat whole_mat(int count) {
    Mat m(count, (size_t)1u);
    m.dtype = DType::s8;
    for (int i = 0; i < count; i++) ((signed char*)m.data)[i] = (signed char)whole();
    return m;
}

Mat filled(int count, float low, float high) {
    Mat m(count);
    for (int i = 0; i < count; i++) m[i] = low + (high - low) * (uniform() * .5f + .5f);
    return m;
}

typedef std::vector<std::pair<int, int>> Params;

Mat forward(Layer& layer, const Mat& in, const Option& opt) {
    Mat top, planar;
    EXPECT_EQ(0, layer.forward(in, top, opt));
    convert_packing(top, planar, 1);
    return planar;
}

void expect_same(const Mat& a, const Mat& b) {
    ASSERT_EQ(a.dtype, b.dtype);
    ASSERT_EQ(a.w * a.h * a.c, b.w * b.h * b.c);
    for (int q = 0; q < a.c; q++)
        ASSERT_EQ(0, memcmp(a.channel(q), b.channel(q), (size_t)a.w * a.h * dtype_size(a.dtype)))
            << "channel " << q;
}

// What multiplies such an input.
std::string kernels_for(const Layer& layer, const Mat& in, const Option& opt) {
    std::shared_ptr<const LayerPlan> plan;
    EXPECT_EQ(0, layer.plan({in.logical_shape()}, opt, &plan));
    return plan ? plan->algorithm() : "";
}

// Layers with and without units give the same, and as the reference does where its activation is
// exact. The last input is large enough for units.
void check_layer(const char* type, const Params& params, const std::vector<Mat>& weights,
                 const std::vector<Mat>& inputs, bool exact) {
    for (int threads : {1, 2}) {
        Option opt;
        opt.num_threads = threads;
        const LayerPtr reference = make_layer(type, params, weights, true, opt);
        LayerPtr vectors;
        {
            const NoUnits none;
            vectors = make_layer(type, params, weights, false, opt);
        }
        const Units units;
        const LayerPtr tiles = make_layer(type, params, weights, false, opt);
        ASSERT_TRUE(reference && vectors && tiles);
        for (const Mat& in : inputs) {
            const Mat want = forward(*vectors, in, opt), got = forward(*tiles, in, opt);
            expect_same(want, got);
            if (exact && !testing::Test::HasFailure())
                expect_same(forward(*reference, in, opt), got);
            if (testing::Test::HasFailure()) return;
        }
        // Which of both a layer takes also follows from how fast the machine's units are just now.
        const std::string kernels = kernels_for(*tiles, inputs.back(), opt);
        if (kernels != units.kernels->name)
            GTEST_SKIP() << "vectors (" << kernels << ") are faster at present";
    }
}

// weight, bias, scales of weights, of the input and, for terms above 100, of the output.
std::vector<Mat> int8_weights(int count, int outputs, int scales, bool to_s8) {
    std::vector<Mat> all = {whole_mat(count), random_mat(Shape(outputs)), filled(scales, 80, 120),
                            filled(1, 25, 30)};
    if (to_s8) all.push_back(filled(1, 10, 30));
    return all;
}

TEST(Int8TileLayers, Convolution) {
    if (const Units units; !units.kernels) GTEST_SKIP();
    const int c = 256, n = 96;
    for (int kernel : {1, 3})
        for (int term : {1, 101})
            for (int activation : {0, 1, 4, 5}) {
                const int count = c * n * kernel * kernel;
                check_layer("Convolution",
                            {{0, n},
                             {1, kernel},
                             {3, kernel / 2 + 1},
                             {4, kernel / 2},
                             {5, 1},
                             {6, count},
                             {8, term},
                             {9, activation}},
                            int8_weights(count, n, n, term > 100),
                            {random_mat(Shape(1, 1, c)), random_mat(Shape(14, 14, c)),
                             random_mat(Shape(22, 21, c))},
                            activation < 4);
                if (HasFailure()) return;
            }
}

// Channels whose taps share steps, and inputs too small for units.
TEST(Int8TileLayers, Convolution_across_taps) {
    if (const Units units; !units.kernels) GTEST_SKIP();
    for (int c : {10, 16, 24, 26, 32, 80, 104}) {
        const int n = 40, count = c * n * 15;
        check_layer("Convolution",
                    {{0, n},
                     {1, 5},
                     {11, 3},
                     {4, 2},
                     {14, 1},
                     {5, 1},
                     {6, count},
                     {8, c % 3 ? 101 : 1},
                     {9, 1}},
                    int8_weights(count, n, n, c % 3),
                    {random_mat(Shape(3, 2, c)), random_mat(Shape(57, 41, c))}, true);
        if (HasFailure()) return;
    }
}

TEST(Int8TileLayers, Convolution_of_images) {
    if (const Units units; !units.kernels) GTEST_SKIP();
    const int n = 64, c = 3, kernel = 7, count = c * n * kernel * kernel;
    for (int term : {1, 101}) {
        check_layer("Convolution",
                    {{0, n}, {1, kernel}, {3, 2}, {4, 3}, {5, 1}, {6, count}, {8, term}, {9, 1}},
                    int8_weights(count, n, n, term > 100),
                    {random_mat(Shape(9, 8, c)), random_mat(Shape(112, 90, c))}, true);
        if (HasFailure()) return;
    }
}

TEST(Int8TileLayers, grouped_Convolution) {
    if (const Units units; !units.kernels) GTEST_SKIP();
    const int c = 128, n = 128, group = 2, count = c / group * n * 9;
    check_layer("ConvolutionDepthWise",
                {{0, n}, {1, 3}, {4, 1}, {5, 1}, {6, count}, {7, group}, {8, 1}, {9, 1}},
                int8_weights(count, n, group, false), {random_mat(Shape(28, 29, c))}, true);
}

TEST(Int8TileLayers, InnerProduct) {
    if (const Units units; !units.kernels) GTEST_SKIP();
    for (int k : {136, 416, 1000}) {
        const int n = 270, count = k * n;
        check_layer("InnerProduct", {{0, n}, {1, 1}, {2, count}, {8, 1}, {9, 1}},
                    int8_weights(count, n, n, false),
                    {random_mat(Shape(k)), random_mat(Shape(k, 1)), random_mat(Shape(k, 64)),
                     random_mat(Shape(k, 300))},
                    true);
        if (HasFailure()) return;
    }
}

// A product of two s8 blobs, by layers that have no weights.
Mat product(bool reference, const std::vector<Mat>& in, int zero, float factor, const Option& opt) {
    const LayerPtr layer = make_layer("MatMulInteger", {}, {}, reference, opt);
    MatMulInteger& m = static_cast<MatMulInteger&>(*layer);
    for (Mat* zeros : {&m.a_zero_points, &m.b_zero_points}) {
        if (zero == 0) continue;
        zeros->create(1);
        *(int*)zeros->data = zero;
        zeros->dtype = DType::s32;
        zero = -zero;
    }
    m.top_factor = factor, m.top_zero_point = 9;
    std::vector<Mat> out(1);
    EXPECT_EQ(0, layer->forward(in, out, opt));
    return out[0];
}

// Rows and k that fill tiles and steps or do not, several matrices.
TEST(Int8TileLayers, MatMulInteger) {
    if (const Units units; !units.kernels) GTEST_SKIP();
    const struct {
        int rows, k, columns, a_items, b_items;
    } shapes[] = {{197, 64, 197, 3, 3}, {197, 197, 64, 3, 3}, {33, 20, 40, 2, 1},
                  {15, 300, 17, 1, 1},  {49, 32, 49, 4, 4},   {16, 65, 96, 1, 2}};
    for (const auto& t : shapes) {
        std::vector<Mat> in = {Mat(Shape(t.k, t.rows, t.a_items, DType::s8)),
                               Mat(Shape(t.columns, t.k, t.b_items, DType::s8))};
        for (Mat& m : in)
            for (size_t i = 0; i < m.total(); i++) ((signed char*)m.data)[i] = (signed char)whole();
        for (int zero : {0, 7})
            for (float factor : {0.f, 2e-4f})
                for (int threads : {1, 2}) {
                    Option opt;
                    opt.num_threads = threads;
                    const Mat want = product(true, in, zero, factor, opt);
                    const Units units;
                    expect_same(want, product(false, in, zero, factor, opt));
                    if (HasFailure()) return;
                }
    }
}

}  // namespace
