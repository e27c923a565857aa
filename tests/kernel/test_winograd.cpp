// Winograd's convolution on every ISA against sums in double.
#include <gtest/gtest.h>
#include <math.h>

#include <limits>
#include <random>
#include <vector>

#include "guarded.h"
#include "layer/cpu/winograd/winograd_plan.h"

using namespace quoll;

namespace {

std::mt19937 g_rng(13);
template <class C>
void fill(C& values) {
    for (float& v : values) v = std::uniform_real_distribution<float>(-1, 1)(g_rng);
}

const double kA = sqrt(.5), kB = sqrt(2.);
const double kBT[6][6] = {{1, 0, -2.5, 0, 1, 0},        {0, -2 * kA, -2, kA, 1, 0},
                          {0, 2 * kA, -2, -kA, 1, 0},   {0, -.5 * kB, -.5, kB, 1, 0},
                          {0, .5 * kB, -.5, -kB, 1, 0}, {0, 1, 0, -2.5, 0, 1}};
const double kAT[4][6] = {{1, 1, 1, 1, 1, 0},
                          {0, kA, -kA, kB, -kB, 0},
                          {0, .5, .5, 2, 2, 0},
                          {0, .5 * kA, -.5 * kA, 2 * kB, -2 * kB, 1}};

void check_input(WinogradInput kernel, size_t lanes, Isa isa) {
    const ptrdiff_t row = 6 * lanes + 3;
    const size_t step = lanes + 5;
    Guarded<float> in(5 * row + 6 * lanes), out(35 * step + lanes);
    fill(in);
    kernel(in.data(), row, out.data(), step);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            for (size_t lane = 0; lane < lanes; lane++) {
                double exact = 0;
                for (int y = 0; y < 6; y++)
                    for (int x = 0; x < 6; x++)
                        exact += kBT[i][y] * kBT[j][x] * in[y * row + x * lanes + lane];
                ASSERT_NEAR(out[(i * 6 + j) * step + lane], exact, 5e-6) << isa_name(isa);
            }
}

// Of WinogradOutput.
double activate_exactly(double x, float slope) {
    return slope != 1.f ? std::max(x, slope * x) : std::min(8., std::max(-9., x));
}

void check_output(WinogradOutput kernel, size_t lanes, Isa isa, float slope) {
    const size_t step = lanes + 5;
    Guarded<float> in(35 * step + lanes), bias(lanes);
    fill(in);
    fill(bias);
    for (int h = 1; h <= 4; h++)
        for (int w = 1; w <= 4; w++) {
            const bool adds = (w + h) % 2;
            const ptrdiff_t row = w * lanes + 2;
            Guarded<float> out((h - 1) * row + w * lanes), added(out.size());
            fill(added);
            for (float& x : out) x = 55.f;
            kernel(in.data(), step, bias.data(), adds ? added.data() : nullptr, out.data(), row, w,
                   h, -9.f, 8.f, slope);
            for (int i = 0; i < h; i++) {
                for (int j = 0; j < w; j++)
                    for (size_t lane = 0; lane < lanes; lane++) {
                        double exact = bias[lane];
                        if (adds) exact += added[i * row + j * lanes + lane];
                        for (int y = 0; y < 6; y++)
                            for (int x = 0; x < 6; x++)
                                exact += kAT[i][y] * kAT[j][x] * in[(y * 6 + x) * step + lane];
                        exact = activate_exactly(exact, slope);
                        ASSERT_NEAR(out[i * row + j * lanes + lane], exact, 1e-5) << isa_name(isa);
                    }
                ASSERT_TRUE(i + 1 == h || out[i * row + w * lanes] == 55.f) << isa_name(isa);
            }
        }
}

void check_weights(WinogradWeights kernel, Isa isa) {
    const double points[] = {0, kA, -kA, kB, -kB}, scales[] = {1, -1.5, -1.5, 6, 6};
    double g[6][3] = {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 1}};
    for (int i = 0; i < 5; i++)
        for (int x = 0; x < 3; x++) g[i][x] = pow(points[i], x) / scales[i];
    for (size_t count : {1, 7, 8, 19}) {
        const size_t step = count + 3;
        Guarded<float> windows(9 * count), out(35 * step + count);
        fill(windows);
        for (float& x : out) x = 55.f;
        kernel(windows.data(), count, out.data(), step);
        for (size_t p = 0; p < count; p++)
            for (int i = 0; i < 6; i++)
                for (int j = 0; j < 6; j++) {
                    double exact = 0;
                    for (int y = 0; y < 3; y++)
                        for (int x = 0; x < 3; x++)
                            exact += g[i][y] * g[j][x] * windows[p * 9 + y * 3 + x];
                    ASSERT_NEAR(out[(i * 6 + j) * step + p], exact, 2e-7) << isa_name(isa);
                }
        for (size_t i = 0; i < 35 * step + count; i++)
            ASSERT_EQ(out[i] == 55.f, i % step >= count) << isa_name(isa);
    }
}

TEST(Winograd, transforms) {
    for (Isa isa : available_isas()) {
        const KernelSet& kernels = kernel_set(isa);
#define QUOLL_WINOGRAD_WEIGHTS(name) check_weights(kernels.winograd->name, isa);
#define QUOLL_WINOGRAD_INPUT(name) check_input(kernels.winograd->name, kernels.lanes, isa);
#define QUOLL_WINOGRAD_OUTPUT(name) \
    for (float slope : {1.f, .25f}) check_output(kernels.winograd->name, kernels.lanes, isa, slope);
#include "layer/cpu/winograd/kernels.inc"
    }
}

// A few, in the corners of tiles and inside.
void add_odd_values(Guarded<float>* in) {
    const float infinity = std::numeric_limits<float>::infinity();
    const float odd[] = {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()};
    for (size_t i = 0, k = 0; i < in->size(); i += 1 + in->size() / 7, k++) (*in)[i] = odd[k % 3];
}

enum { kNone = -1, kAllNan = -2 };

// infinite: a place of the input that is, or one of these.
void check_plan(const KernelSet& kernels, int w, int h, int in_blocks, int out_blocks, int pad,
                int activation, int threads, bool adds = false, int most = 4, int dilation_x = 1,
                int dilation_y = 1, const ConvAxis& z = {1, 1, 1, 1, 1, 0}, bool odd = false,
                int infinite = kNone, int stride = 1) {
    const int lanes = kernels.lanes;
    ConvShape s;
    s.z = z;
    s.x = {w, (w + 2 * pad - 2 * dilation_x - 1) / stride + 1, 3, stride, dilation_x, pad};
    s.y = {h, (h + 2 * pad - 2 * dilation_y - 1) / stride + 1, 3, stride, dilation_y, pad};
    s.in_channels = in_blocks * lanes;
    s.out_channels = out_blocks * lanes;
    s.in_pack = s.out_pack = lanes;
    s.in_step = (size_t)w * h * z.in * lanes + 4;
    s.out_step = (size_t)s.x.out * s.y.out * z.out * lanes + 4;
    ASSERT_TRUE(WinogradPlan::is_supported(kernels, s));
    const GemmKernels& gemm = *kernels.gemm;
    const int points = WinogradPlan::axis_points(kernels, s, most);
    Guarded<float> in(s.in_step * in_blocks - 4), out(s.out_step * out_blocks - 4),
        weights(9 * s.in_channels * z.kernel * s.out_channels),
        packed(WinogradPlan::packed_size(gemm, s.in_channels, z.kernel, s.out_channels, points)),
        bias(s.out_channels), zeros(gemm_bias_size(gemm, s.out_channels)),
        added((s.out_step + 8) * out_blocks - 12);
    std::vector<float> scratch(WinogradPlan::pack_scratch(gemm, s.in_channels, z.kernel));
    fill(in);
    if (odd) add_odd_values(&in);
    if (infinite == kAllNan) std::fill(in.begin(), in.end(), NAN);
    if (infinite >= 0) in[(size_t)infinite * lanes + infinite % lanes] = INFINITY;
    fill(weights);
    if (odd)  // zeros, whose product with an infinity is NaN, and else signs that rounding keeps
        for (size_t i = 0; i < weights.size(); i++)
            weights[i] = i % 4 == 0 ? 0.f : weights[i] + copysignf(.01f, weights[i]);
    // At steps of 2 none is too small for its sign to reach the product with an infinity.
    for (size_t i = 1; odd && stride == 2 && i < weights.size(); i += 5) weights[i] *= 1e-30f;
    fill(bias);
    fill(added);
    for (float& x : out) x = 55.f;
    for (float& x : zeros) x = 0.f;
    WinogradPlan::pack(kernels, weights.data(), s.in_channels, z.kernel, s.out_channels, points,
                       stride, packed.data(), scratch.data());
    Mat params(2);
    params[0] = .2f, params[1] = -.1f;  // limits in the wrong order
    const Activation f(activation, params);
    const WinogradPlan plan(kernels, s, points, threads);
    Guarded<float> workspace(plan.workspace());
    plan.run(in.data(), packed.data(), bias.data(), zeros.data(), out.data(),
             adds ? added.data() : nullptr, s.out_step + 8, FusedActivation(kernels, f),
             workspace.data());
    size_t kept = 0;
    for (float x : out) kept += x == 55.f;
    ASSERT_EQ(kept, (size_t)(out_blocks - 1) * 4) << "wrote between results";
    // Intermediate values are some ten times the inputs; of tiles of 6 outputs, whose transform has
    // rows with 2.8 times the sum of magnitudes (12.5 and 4.5), up to 8 times as much, half of that
    // in the mean. Each addition rounds the sum so far, which grows with the root of its length: of
    // long sums that is what counts.
    const double step = kernels.gemm->halves == 1 ? 0x1p-11 : 0x1p-23,
                 inputs = s.in_channels * z.kernel;
    const double tolerance =
        step * (points == 8 ? 80 : 20) * sqrt(9. * inputs + 1) * sqrt(std::max(1., inputs / 64.));
    for (int oc = 0; oc < s.out_channels; oc += 3)
        for (int oz = 0; oz < z.out; oz++)
            for (int y = 0; y < s.y.out; y++)
                for (int x = 0; x < s.x.out; x++) {
                    const size_t pixel = (size_t)(oz * s.y.out + y) * s.x.out + x;
                    const size_t at = pixel * lanes + oc % lanes;
                    double sum = bias[oc];
                    if (adds) sum += added[oc / lanes * (s.out_step + 8) + at];
                    for (int c = 0; c < s.in_channels; c++)
                        for (int t = 0; t < 9 * z.kernel; t++) {
                            const int ix = x * stride + t % 3 * dilation_x - pad;
                            const int iy = y * stride + t / 3 % 3 * dilation_y - pad;
                            const int iz = oz * z.stride + t / 9 * z.dilation - z.before;
                            if (ix < 0 || ix >= w || iy < 0 || iy >= h || iz < 0 || iz >= z.in)
                                continue;
                            sum += (double)weights[(oc * s.in_channels + c) * 9 * z.kernel + t] *
                                   in[c / lanes * s.in_step + ((iz * h + iy) * w + ix) * lanes +
                                      c % lanes];
                        }
                    const float got = out[oc / lanes * s.out_step + at];
                    const float want = activate((float)sum, f);
                    ASSERT_TRUE(isnan(want) ? isnan(got)
                                            : got == want || fabs(got - want) <= tolerance)
                        << got << ", expected " << want << ", " << isa_name(kernels.isa) << " at "
                        << x << " " << y << " " << oz << " channel " << oc << " of " << w << " x "
                        << h;
                }
}

// A tile's outputs from its inputs: transforms of one window and one channel per lane, whose
// products are made here in double, against the sum over the window.
void check_tile(const WinogradKernels& kernels, size_t lanes, int w, int h, int points,
                float slope) {
    const size_t step = lanes + 3, count = (size_t)points * points;
    const ptrdiff_t row = (w + 2) * lanes + 1;
    Guarded<float> in((h + 1) * row + (w + 2) * lanes), windows(9 * lanes), bias(lanes);
    Guarded<float> data((count - 1) * step + lanes), u((count - 1) * step + lanes);
    fill(in), fill(windows), fill(bias);
    for (float& x : data) x = 55.f;
    kernels.tile_input(in.data(), row, w, h, data.data(), step, points);
    kernels.tile_weights(windows.data(), lanes, points, u.data(), step);
    int made = 0;
    for (size_t i = 0; i < count; i++) made += data[i * step] != 55.f;
    ASSERT_EQ(made, (w + 2) * (h + 2));
    for (size_t i = 0; i < data.size(); i++)
        if (data[i] != 55.f) data[i] *= u[i];
    for (int there_h = 1; there_h <= h; there_h++)
        for (int there_w = 1; there_w <= w; there_w++)
            for (bool adds : {false, true}) {
                const ptrdiff_t out_row = there_w * lanes + 2;
                Guarded<float> out((there_h - 1) * out_row + there_w * lanes), added(out.size());
                fill(added);
                for (float& x : out) x = 55.f;
                kernels.tile_output({data.data(), step, points, w, h, bias.data(),
                                     adds ? added.data() : nullptr, out.data(), out_row, there_w,
                                     there_h, -9.f, 8.f, slope});
                for (int y = 0; y < there_h; y++) {
                    for (int x = 0; x < there_w; x++)
                        for (size_t lane = 0; lane < lanes; lane++) {
                            const size_t at = y * out_row + x * lanes + lane;
                            double exact = bias[lane] + (adds ? added[at] : 0.);
                            for (int t = 0; t < 9; t++)
                                exact += (double)windows[lane * 9 + t] *
                                         in[(y + t / 3) * row + (x + t % 3) * lanes + lane];
                            ASSERT_NEAR(out[at], activate_exactly(exact, slope), 3e-5)
                                << w << " x " << h << " outputs, " << points << " points";
                        }
                    ASSERT_TRUE(y + 1 == there_h || out[y * out_row + there_w * lanes] == 55.f);
                }
            }
}

TEST(Winograd, tiles_of_all_sizes) {
    for (Isa isa : available_isas()) {
        const KernelSet& kernels = kernel_set(isa);
        if (!kernels.winograd->tile_input) continue;
        for (int points : {6, 8})
            for (int w : {2, 3, 4, 6})
                for (int h : {2, 3, 4, 6})
                    for (float slope : {1.f, .25f})
                        if (std::max(w, h) + 2 <= points)
                            check_tile(*kernels.winograd, kernels.lanes, w, h, points, slope);
    }
}

TEST(Winograd, axes) {
    for (int most : {4, 6})
        for (int out = 1; out < 130; out++) {
            const WinogradAxis axis(out, most, true), plain(out, most, false);
            EXPECT_LE(axis.big, most);
            EXPECT_GE(axis.bigs * axis.big + axis.smalls * axis.small, out);
            EXPECT_LE(axis.points(), plain.points());
            for (int id = 0; id < 8; id++)
                EXPECT_TRUE(WinogradAxis::has(axis.big, id) || !WinogradAxis::has(axis.small, id));
        }
    EXPECT_EQ(WinogradAxis(14, 6, true).points(), 20);  // 6 + 4 + 4 outputs
    EXPECT_EQ(WinogradAxis(7, 6, true).points(), 11);   // 4 + 3
}

TEST(Winograd, shapes) {
    std::vector<const KernelSet*> sets;
    for (Isa isa : available_isas()) sets.push_back(&kernel_set(isa));
    if (host_kernel_set().half) sets.push_back(host_kernel_set().half);
    for (const KernelSet* set : sets) {
        const KernelSet& kernels = *set;
        if (kernels.lanes == 1) continue;  // is_supported() refuses it: there are no channel blocks
        for (int w : {3, 4, 6, 7, 17})
            for (int h : {1, 2, 5, 14})
                for (int pad : {1, 2}) check_plan(kernels, w, h, 2, 3, pad, 1, 1);
        check_plan(kernels, 12, 13, 5, 1, 0, 0, 1);
        for (int activation = 0; activation <= 2; activation++)
            for (bool adds : {false, true}) check_plan(kernels, 9, 9, 1, 2, 1, activation, 1, adds);
        for (int threads : {2, 3, 8}) check_plan(kernels, 30, 30, 2, 2, 1, 2, threads);
        check_plan(kernels, 70, 70, 1, 1, 1, 0, 1);
        for (int most : {4, 6}) {
            if (most == 6 && kernels.gemm->halves == 1) continue;
            for (int w : {7, 13, 14, 26})
                for (int h : {3, 10}) check_plan(kernels, w, h, 3, 2, 1, 1, 1, false, most);
            for (int threads : {2, 3}) check_plan(kernels, 30, 34, 2, 2, 1, 2, threads, true, most);
        }
        // Several sections of channels.
        check_plan(kernels, 7, 14, 560 / kernels.lanes, 1, 1, 0, 1);
    }
}

// As many convolutions as there are rows and columns between the taps; some with an output less.
TEST(Winograd, dilations) {
    for (Isa isa : available_isas()) {
        const KernelSet& kernels = kernel_set(isa);
        if (kernels.lanes == 1) continue;
        for (int dilation : {2, 3, 4})
            for (int w : {9, 14, 17})
                for (int threads : {1, 3})
                    check_plan(kernels, w, 11, 2, 3, dilation, 2, threads, w == 14, 4, dilation,
                               dilation);
        for (int most : {4, 6}) check_plan(kernels, 25, 15, 2, 2, 1, 1, 2, true, most, 2, 1);
        check_plan(kernels, 12, 20, 1, 2, 5, 0, 1, false, 4, 1, 7);
        check_plan(kernels, 5, 6, 1, 1, 12, 0, 1, false, 4, 12, 12);  // one tap inside
        check_plan(kernels, 3, 3, 2, 1, 40, 0, 2, true, 4, 40, 39);   // more grids than outputs
    }
}

// Windows of one slice and of several, which reach over the first and the last.
TEST(Winograd, slices) {
    for (Isa isa : available_isas()) {
        const KernelSet& kernels = kernel_set(isa);
        if (kernels.lanes == 1) continue;
        for (int threads : {1, 3}) {
            check_plan(kernels, 9, 7, 2, 3, 1, 2, threads, true, 4, 1, 1, {4, 4, 1, 1, 1, 0});
            check_plan(kernels, 9, 7, 2, 3, 1, 2, threads, false, 4, 1, 1, {4, 4, 3, 1, 1, 1});
        }
        check_plan(kernels, 6, 8, 1, 2, 0, 0, 1, false, 6, 1, 1, {5, 2, 3, 2, 1, 0});
        check_plan(kernels, 6, 9, 5, 1, 2, 1, 1, true, 4, 2, 2, {5, 5, 3, 1, 2, 2});
        check_plan(kernels, 8, 8, 80 / kernels.lanes, 1, 1, 0, 2, false, 4, 1, 1,
                   {1, 1, 3, 1, 1, 1});
    }
}

void check_strided(const KernelSet& kernels, int w, int h, int in_blocks, int out_blocks, int pad,
                   int activation, int threads, bool adds, const ConvAxis& z = {1, 1, 1, 1, 1, 0},
                   bool odd = false, int infinite = kNone) {
    check_plan(kernels, w, h, in_blocks, out_blocks, pad, activation, threads, adds, 4, 1, 1, z,
               odd, infinite, 2);
}

// Inputs of even and of odd length, tiles that are cut and tiles of both sizes.
TEST(Winograd, steps_of_2) {
    std::vector<const KernelSet*> sets;
    for (Isa isa : available_isas()) sets.push_back(&kernel_set(isa));
    if (host_kernel_set().half) sets.push_back(host_kernel_set().half);
    for (const KernelSet* set : sets) {
        const KernelSet& kernels = *set;
        if (kernels.lanes == 1 || !kernels.winograd->strided_input) continue;
        for (int w = 3; w <= 20; w++)
            for (int h : {4, 7, 14})
                for (int pad : {0, 1, 2}) check_strided(kernels, w, h, 2, 3, pad, w % 3, 1, h == 7);
        for (int threads : {2, 3, 8}) {
            check_strided(kernels, 55, 34, 2, 3, 1, 2, threads, true);
            check_strided(kernels, 15, 15, 12, 4, 1, 3, threads, false);
        }
        check_strided(kernels, 9, 8, 2, 3, 1, 2, 2, true, {4, 4, 3, 1, 1, 1});
        check_strided(kernels, 14, 7, 1, 2, 1, 0, 3, false, {5, 2, 3, 2, 1, 0});
        check_strided(kernels, 7, 14, 560 / kernels.lanes, 1, 1, 0, 1, false);
    }
}

TEST(Winograd, infinities_at_steps_of_2) {
    const ConvAxis one = {1, 1, 1, 1, 1, 0};
    for (Isa isa : available_isas()) {
        const KernelSet& kernels = kernel_set(isa);
        if (kernels.lanes == 1 || !kernels.winograd->strided_input) continue;
        for (int activation : {0, 1, 3, 4})
            for (int w : {6, 7, 18, 27})
                check_strided(kernels, w, 11, 2, 3, 1, activation, 1 + w % 2, w == 7, one, true);
        for (int place = 0; place < 19 * 11; place++)
            check_strided(kernels, 19, 11, 1, 1, 1, 0, 1, false, one, false, place);
        check_strided(kernels, 19, 11, 2, 3, 1, 1, 1, true, one, false, kAllNan);
    }
}

TEST(Winograd, infinities_reach_the_outputs_whose_windows_have_them) {
    for (Isa isa : available_isas()) {
        const KernelSet& kernels = kernel_set(isa);
        if (kernels.lanes == 1) continue;
        const ConvAxis one = {1, 1, 1, 1, 1, 0};
        for (int most : {4, 6})
            for (int threads : {1, 3})
                for (int activation : {0, 1, 3, 4})
                    for (int w : {4, 5, 9, 14})
                        check_plan(kernels, w, 11, 2, 3, 1, activation, threads, w == 9, most, 1, 1,
                                   one, true);
        check_plan(kernels, 12, 20, 1, 2, 5, 0, 1, true, 4, 1, 3, one, true);
        check_plan(kernels, 9, 7, 2, 3, 1, 2, 2, false, 4, 1, 1, {4, 4, 3, 1, 1, 1}, true);
    }
}

// Each place of an image by itself: whatever its place within tiles of any sizes, it is noticed.
TEST(Winograd, an_infinity_anywhere_is_noticed) {
    for (Isa isa : available_isas()) {
        const KernelSet& kernels = kernel_set(isa);
        if (kernels.lanes == 1) continue;
        const ConvAxis one = {1, 1, 1, 1, 1, 0};
        for (int most : {4, 6})
            for (int place = 0; place < 13 * 9; place++)
                check_plan(kernels, 13, 9, 1, 1, 1, 0, 1, false, most, 1, 1, one, false, place);
        for (int most : {4, 6})
            for (bool adds : {false, true})
                check_plan(kernels, 13, 9, 2, 3, 1, 1, 1, adds, most, 1, 1, one, false, kAllNan);
    }
}

void check_threads(const KernelSet& kernels, int stride) {
    const int lanes = kernels.lanes;
    for (int w : {4, 8, 20, 28, 52, 54}) {
        // Tiles of several sizes, where there are such, among them of 6 outputs.
        const bool six = kernels.winograd->tile_input && kernels.gemm->blocks && w % 6 == 0;
        const int most = six && stride == 1 ? 6 : 4;
        const int h = w > 20 ? 4 : 12, c = 3 * lanes;
        const int out_w = (w - 1) / stride + 1, out_h = (h - 1) / stride + 1;
        const size_t out_step = (size_t)out_w * out_h * lanes;
        const ConvShape s = {{w, out_w, 3, stride, 1, 1},
                             {h, out_h, 3, stride, 1, 1},
                             c,
                             c,
                             lanes,
                             lanes,
                             (size_t)w * h * lanes,
                             out_step};
        ASSERT_TRUE(WinogradPlan::is_supported(kernels, s));
        Guarded<float> in((size_t)w * h * c),
            packed(WinogradPlan::packed_size(*kernels.gemm, c, 1, c, most + 2)), bias(c),
            zeros(gemm_bias_size(*kernels.gemm, c));
        fill(in);
        fill(packed);
        fill(bias);
        for (float& x : zeros) x = 0.f;
        std::vector<float> once;
        for (int threads : {1, 2, 3, 4, 5, 7, 16}) {
            const WinogradPlan plan(kernels, s, most + 2, threads);
            Guarded<float> workspace(plan.workspace()), out(3 * out_step);
            plan.run(in.data(), packed.data(), bias.data(), zeros.data(), out.data(), nullptr, 0,
                     FusedActivation(), workspace.data());
            if (once.empty()) once.assign(out.begin(), out.end());
            for (size_t i = 0; i < out.size(); i++)
                ASSERT_EQ(out[i], once[i]) << threads << " threads, " << w << " x " << h;
        }
    }
}

// Whatever the number of tiles a thread gets.
TEST(Winograd, results_do_not_depend_on_threads) {
    const KernelSet& kernels = host_kernel_set();
    if (kernels.lanes == 1) GTEST_SKIP() << "no channel blocks";
    check_threads(kernels, 1);
    if (kernels.winograd->strided_input) check_threads(kernels, 2);
}

TEST(Winograd, refuses_other_shapes) {
    const KernelSet& kernels = host_kernel_set();
    const int lanes = std::max(4, kernels.lanes);
    const ConvShape good = {{9, 9, 3, 1, 1, 1}, {9, 9, 3, 1, 1, 1}, 64, 64, lanes, lanes, 0, 0};
    EXPECT_EQ(WinogradPlan::is_supported(kernels, good), kernels.lanes > 1);
    ConvShape s = good;
    s.x.stride = 2;
    EXPECT_FALSE(WinogradPlan::is_supported(kernels, s));
    s = good;
    s.y.kernel = 5;
    EXPECT_FALSE(WinogradPlan::is_supported(kernels, s));
    s = good;
    s.in_pack = 1;
    EXPECT_FALSE(WinogradPlan::is_supported(kernels, s));
    EXPECT_FALSE(WinogradPlan::is_supported(kernel_set(Isa::scalar), good));
}

}  // namespace
