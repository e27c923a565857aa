// Products of planar blobs, kernel by kernel against sums in double; and ConvPlan, which takes them
// for 1x1 convolutions, against the tiles that others take.
#include <gtest/gtest.h>
#include <math.h>
#include <string.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "guarded.h"
#include "layer/cpu/gemm/conv_plan.h"
#include "layer/cpu/gemm/planar_product.h"
#include "layer/cpu/registry/kernel_rows.h"
#include "quoll/mat.h"

using namespace quoll;

namespace {

std::mt19937 g_rng(17);
float uniform() { return std::uniform_real_distribution<float>(-1, 1)(g_rng); }

// Values of kernels: floats, and half floats. kRounding: the most that rounding moves one by.
float value(float x) { return x; }
float value(uint16_t x) { return float16_to_float32(x); }
void set(float& to, float x) { to = x; }
void set(uint16_t& to, float x) { to = float32_to_float16(x); }
template <class T>
constexpr double kRounding = sizeof(T) == 2 ? 0x1p-11 : 0x1p-24;

template <class Values>
void fill(Values& values) {
    for (auto& v : values) set(v, uniform());
}

// A sum of products that are added one by one, each sum rounded, and how far off it may be.
template <class T>
struct RoundedSum {
    double exact, error = 0;
    explicit RoundedSum(double start) : exact(start) {}
    void add(double product) {
        exact += product;
        error += kRounding<T> * (fabs(exact) + error) + 0x1p-25;
    }
};

struct Case {
    size_t k, used, in_gap, b_gap, out_gap;
    float low, high;
    bool at_end;
};

template <class T>
void check_kernel(GemmPlanarKernel kernel, size_t pixels, size_t columns, const Case& t) {
    const size_t in_step = pixels + t.in_gap, b_step = columns + t.b_gap;
    const size_t out_step = pixels + t.out_gap;
    Guarded<T> in((t.k - 1) * in_step + pixels, t.at_end);
    Guarded<T> b((t.k - 1) * b_step + columns, t.at_end), bias(columns, t.at_end);
    Guarded<T> out((t.used - 1) * out_step + pixels, t.at_end);
    fill(in), fill(b), fill(bias);
    for (T& x : out) set(x, 77.f);
    kernel({in.data(), (ptrdiff_t)in_step, t.k, b.data(), b_step, bias.data(), out.data(),
            (ptrdiff_t)out_step, t.used, t.low, t.high});
    for (size_t i = 0; i < out.size(); i++) {
        const size_t n = i / out_step, m = i % out_step;
        if (m >= pixels) {
            ASSERT_EQ(value(out[i]), 77.f) << "wrote between results";
            continue;
        }
        RoundedSum<T> sum(value(bias[n]));
        for (size_t j = 0; j < t.k; j++)
            sum.add((double)value(in[j * in_step + m]) * value(b[j * b_step + n]));
        const double exact = std::min<double>(t.high, std::max<double>(t.low, sum.exact));
        ASSERT_NEAR(value(out[i]), exact, sum.error)
            << "column " << n << " of " << t.used << " pixel " << m << " k " << t.k;
    }
}

// f(kernel, its pixels, its columns, a value of its type), for those by vectors and by hand.
template <class F>
void for_kernels(F f) {
    for (Isa isa : available_isas()) {
        SCOPED_TRACE(isa_name(isa));
        const GemmKernels& gemm = *kernel_set(isa).gemm;
        for (size_t width = 1; has_planar(gemm) && width <= kPlanarWidths; width++)
            f(gemm.planar[width - 1], planar_pixels(gemm), width * kPlanarColumns, float());
    }
    for (const KernelRow& row : kernel_rows()) {
        const bool wide = row.slot == KernelSlot::sve_f16_gemm_planar;
        const bool half = row.slot == KernelSlot::f16_gemm_planar || wide;
        if ((row.slot != KernelSlot::gemm_planar && !half) ||
            !host_cpu_features().has_all(row.features))
            continue;
        SCOPED_TRACE(row.name);
        const size_t pixels = row.rows;
        ASSERT_EQ(pixels, wide   ? (size_t)kPlanarHalfPixels * sve_lanes() / 4
                          : half ? (size_t)kPlanarHalfPixels
                                 : (size_t)kPlanarVectors * 4);
        if (half)
            f((GemmPlanarKernel)row.part, pixels, (size_t)row.columns, uint16_t());
        else
            f((GemmPlanarKernel)row.part, pixels, (size_t)row.columns, float());
    }
}

TEST(GemmPlanar, kernels) {
    for_kernels([](GemmPlanarKernel kernel, size_t pixels, size_t columns, auto type) {
        using T = decltype(type);
        for (size_t k : {1, 2, 3, 4, 5, 7, 8, 58, 131})
            for (size_t used = 1; used <= columns; used++)
                for (bool at_end : {false, true}) {
                    const size_t gap = k * used % 5;
                    check_kernel<T>(kernel, pixels, columns,
                                    {k, used, gap, 4, 3, -INFINITY, INFINITY, at_end});
                    check_kernel<T>(kernel, pixels, columns,
                                    {k, used, 0, 0, gap, 0.f, INFINITY, at_end});
                    check_kernel<T>(kernel, pixels, columns,
                                    {k, used, 1, 8, 0, -.5f, .75f, at_end});
                    check_kernel<T>(kernel, pixels, columns,
                                    {k, used, 2, 0, 0, -INFINITY, .25f, at_end});
                    if (::testing::Test::HasFatalFailure()) return;
                }
    });
}

TEST(GemmPlanar, nan_and_infinity_reach_the_result) {
    for_kernels([](GemmPlanarKernel kernel, size_t pixels, size_t columns, auto type) {
        using T = decltype(type);
        T one, zero, odd;
        set(one, 1.f), set(zero, 0.f);
        for (float special : {NAN, INFINITY}) {
            std::vector<T> in(2 * pixels, one), b(2 * columns, one), bias(columns, zero);
            std::vector<T> out(columns * pixels);
            set(odd, special);
            in[pixels + 5] = odd;
            kernel({in.data(), (ptrdiff_t)pixels, 2, b.data(), columns, bias.data(), out.data(),
                    (ptrdiff_t)pixels, columns, 0.f, 6.f});
            for (size_t i = 0; i < out.size(); i++) {
                const bool there = i % pixels == 5;
                EXPECT_EQ(isnan(value(out[i])), there && isnan(special));
                if (!isnan(value(out[i]))) {
                    EXPECT_EQ(value(out[i]), there ? 6.f : 2.f);
                }
            }
        }
    });
}

#if defined(__aarch64__)
// What a call must leave as it was (AAPCS64, 6.1): the lower halves of v8 to v15.
TEST(GemmPlanar, kernels_keep_registers) {
    for_kernels([](GemmPlanarKernel kernel, size_t pixels, size_t columns, auto) {
        std::vector<float> in(5 * pixels, 1.f), b(5 * columns, 1.f), bias(columns, 1.f);
        std::vector<float> out(columns * pixels);
        const GemmPlanarTile tile = {
            in.data(),  (ptrdiff_t)pixels, 5,       b.data(), columns, bias.data(),
            out.data(), (ptrdiff_t)pixels, columns, 0.f,      1.f};
        double after[8];
        register const GemmPlanarTile* argument __asm__("x0") = &tile;
        register GemmPlanarKernel called __asm__("x1") = kernel;
        register double* to __asm__("x19") = after;
        __asm__ volatile(
            "fmov d8, #1.0\n fmov d9, #2.0\n fmov d10, #3.0\n fmov d11, #4.0\n"
            "fmov d12, #5.0\n fmov d13, #6.0\n fmov d14, #7.0\n fmov d15, #8.0\n"
            "blr x1\n"
            "stp d8, d9, [x19]\n stp d10, d11, [x19, #16]\n"
            "stp d12, d13, [x19, #32]\n stp d14, d15, [x19, #48]\n"
            : "+r"(argument), "+r"(called), "+r"(to)
            :
            : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
              "x15", "x16", "x17", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8",
              "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20",
              "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc",
              "memory");
        for (int i = 0; i < 8; i++) EXPECT_EQ(after[i], i + 1.) << "d" << 8 + i;
    });
}
#endif

struct Pointwise {
    int pixels, in_c, out_c, in_pack, out_pack;
};

// A 1x1 convolution without a residual, and one with a residual of zeros, which tiles make.
void check_convolution(const KernelSet& set, const Pointwise& t, int type) {
    const GemmKernels& gemm = *set.gemm;
    const int in_c = t.in_c, out_c = t.out_c;
    ConvShape s = {};
    s.x = {t.pixels, t.pixels, 1, 1, 1, 0};
    s.y = s.z = {1, 1, 1, 1, 1, 0};
    s.in_channels = in_c, s.out_channels = out_c;
    s.in_pack = t.in_pack, s.out_pack = t.out_pack;
    s.in_step = t.pixels * t.in_pack + 1, s.out_step = t.pixels * t.out_pack + 2;
    Guarded<float> in((in_c / t.in_pack - 1) * s.in_step + t.pixels * t.in_pack);
    Guarded<float> out((out_c / t.out_pack - 1) * s.out_step + t.pixels * t.out_pack);
    std::vector<float> weights(in_c * out_c), none(out.size(), 0.f);
    Guarded<float> packed(gemm_packed_size(gemm, out_c, in_c));
    Guarded<float> bias(gemm_bias_size(gemm, out_c));
    fill(in), fill(weights), fill(bias);
    gemm_pack(gemm, weights.data(), in_c, false, out_c, in_c, packed.data());
    Mat params(2);
    params[0] = 1 / 6.f, params[1] = .5f;
    const FusedActivation activation(set, Activation(type, params));
    const ConvPlan plan(set, s);
    std::vector<float> expected(out.size(), 55.f);
    plan.run(in.data(), packed.data(), bias.data(), expected.data(), none.data(), s.out_step,
             activation, 1);
    for (int threads : {1, 2, 5}) {
        for (float& x : out) x = 55.f;
        plan.run(in.data(), packed.data(), bias.data(), out.data(), nullptr, 0, activation,
                 threads);
        ASSERT_EQ(memcmp(out.data(), expected.data(), out.size() * 4), 0)
            << t.pixels << " pixels, " << in_c << " to " << out_c << ", elempacks " << t.in_pack
            << " to " << t.out_pack << ", activation " << type << ", threads " << threads;
    }
}

// The same bits as by tiles, for any number of threads; nothing beyond the pixels is read or
// written.
TEST(GemmPlanar, convolutions_are_those_of_tiles) {
    for (Isa isa : available_isas())
        for (int pixels : {95, 96, 97, 107, 196, 255, 300})
            for (int type : {kActivationNone, kActivationReLU, kActivationHardSwish}) {
                SCOPED_TRACE(isa_name(isa));
                for (int in_c : {1, 3, 58, 66})
                    for (int out_c : {1, 3, 5, 18, 23, 58})
                        check_convolution(kernel_set(isa), {pixels, in_c, out_c, 1, 1}, type);
                for (int pack : {4, 8, 16})
                    for (int few : {1, 23, 58})
                        for (int blocks : {1, 3}) {
                            const int many = pack * blocks;
                            check_convolution(kernel_set(isa), {pixels, few, many, 1, pack}, type);
                            check_convolution(kernel_set(isa), {pixels, many, few, pack, 1}, type);
                        }
                if (HasFatalFailure()) return;
            }
}

// Products of planar blobs of any number of pixels, of floats and of half floats, against sums in
// double; the same bits for any number of threads, nothing beyond the pixels read or written.
template <class T>
void check_product(const GemmKernels& gemm, const GemmKernels& panels, size_t pixels, size_t in_c,
                   size_t out_c) {
    const PlanarProduct p = {&gemm, &panels, pixels, in_c, out_c, pixels + 3, pixels + 1};
    std::vector<float> weights(in_c * out_c);
    for (float& w : weights) {
        T rounded;
        set(rounded, uniform());
        w = value(rounded);
    }
    Guarded<float> packed(gemm_packed_size(panels, out_c, in_c));
    gemm_pack(panels, weights.data(), in_c, false, out_c, in_c, packed.data());
    Guarded<T> in((in_c - 1) * p.in_step + pixels), out((out_c - 1) * p.out_step + pixels);
    Guarded<T> bias(gemm_bias_size(panels, out_c));
    fill(in), fill(bias);
    FusedActivation clip;
    clip.low = -1.f, clip.high = 2.f;
    std::vector<T> first;
    for (int threads : {1, 3}) {
        for (T& x : out) set(x, 55.f);
        run_planar(p, in.data(), packed.data(), bias.data(), out.data(), clip, threads);
        if (first.empty()) first.assign(out.begin(), out.end());
        ASSERT_EQ(memcmp(first.data(), out.data(), first.size() * sizeof(T)), 0) << threads;
    }
    for (size_t i = 0; i < out.size(); i++) {
        const size_t n = i / p.out_step, m = i % p.out_step;
        if (m >= pixels) {
            ASSERT_EQ(value(out[i]), 55.f) << "wrote between results";
            continue;
        }
        RoundedSum<T> sum(value(bias[n]));
        for (size_t k = 0; k < in_c; k++)
            sum.add((double)value(in[k * p.in_step + m]) * weights[n * in_c + k]);
        ASSERT_NEAR(value(out[i]), std::min(2., std::max(-1., sum.exact)), sum.error)
            << "channel " << n << " pixel " << m;
    }
}

TEST(GemmPlanar, products) {
    const KernelSet& host = host_kernel_set();
    for (size_t pixels : {1, 11, 12, 23, 24, 25, 47, 48, 49, 100, 196})
        for (size_t in_c : {1, 5, 58})
            for (size_t out_c : {1, 4, 5, 31, 58, 69}) {
                SCOPED_TRACE(std::to_string(pixels) + " pixels, " + std::to_string(in_c) + " to " +
                             std::to_string(out_c));
                for (Isa isa : available_isas()) {
                    const GemmKernels& gemm = *kernel_set(isa).gemm;
                    if (has_planar(gemm)) check_product<float>(gemm, gemm, pixels, in_c, out_c);
                }
                if (host.f16 && has_planar(*host.f16->gemm))
                    check_product<uint16_t>(*host.f16->gemm, *host.f16->half->gemm, pixels, in_c,
                                            out_c);
                if (HasFatalFailure()) return;
            }
}

}  // namespace
