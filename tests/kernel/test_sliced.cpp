// SlicedPlan and the kernels of sliced_gemm.h against sums in double: on the machine's units, and
// on emulated ones where it has AVX-512.
#include <gtest/gtest.h>
#include <math.h>

#include <functional>
#include <string>
#include <vector>

#include "emulated/emulation.h"
#include "layer/cpu/gemm/sliced_plan.h"
#include "layer/cpu/registry/kernel_rows.h"
#include "runtime/scalar.h"
#include "tile_cases.h"

using namespace quoll;

namespace {

std::vector<const SlicedGemmKernels*> all_kernels() {
    const Emulation emulation;
    std::vector<const SlicedGemmKernels*> all;
    for_kernel_rows<SlicedGemmKernels>(
        KernelSlot::sliced, host_cpu_features(),
        [&](const KernelRow&, const SlicedGemmKernels& kernels) { all.push_back(&kernels); });
    return all;
}

#define QUOLL_NEED_KERNELS() \
    if (all_kernels().empty()) GTEST_SKIP() << "neither AMX nor AVX-512, to emulate it"

// *taken: what the run says; null: it must take the blobs. in_place: the residual is the output.
void run(const SlicedGemmKernels& kernels, const Case& t, Blobs& b, bool* taken = nullptr,
         bool in_place = false) {
    ASSERT_TRUE(SlicedPlan::is_supported(b.shape));
    Guarded<float> packed(SlicedPlan::packed_size(b.shape));
    for (float& x : packed) x = NAN;
    SlicedPlan::pack(kernels, b.weights.data(), b.shape, packed.data());
    const SlicedPlan plan(kernels, b.shape, t.threads);
    ASSERT_EQ(plan.workspace() % 16, 0u);
    Guarded<float> workspace(plan.workspace());
    for (float& x : workspace) x = NAN;
    const float* residual = in_place ? b.out.data() : t.residual ? b.residual.data() : nullptr;
    const bool status = plan.run(
        b.in.data(), packed.data(), b.bias.data(), b.out.data(), residual, (ptrdiff_t)b.out_step,
        FusedActivation(host_kernel_set(), make_activation(t.activation)), workspace.data());
    if (taken)
        *taken = status;
    else
        ASSERT_TRUE(status);
}

// Planar inputs are taken where rows of the kernel fit into a step.
Case with_packs(Case t) {
    if (t.in_pack == 1 && !SlicedPlan::is_supported(shape_of(t))) {
        t.in_pack = 4;
        t.in_c = (t.in_c + 3) / 4 * 4;
    }
    return t;
}

// Of the products of values up to 1 in magnitude, k of them: the root mean square of those left out
// is 2^-25 of 1 (sliced_gemm.h), that of the rounding of both factors less; six times that root for
// the worst of some million results.
double tolerance(size_t k, double magnitude) {
    return 6 * sqrt((double)k) * 0x1p-24 + 0x1p-22 * magnitude;
}

double g_worst;

void check(const SlicedGemmKernels& kernels, const Case& t) {
    SCOPED_TRACE(text(t));
    Blobs b(t);
    run(kernels, t, b);
    if (testing::Test::HasFatalFailure()) return;
    const Activation f = make_activation(t.activation);
    const size_t k = (size_t)t.in_c * t.kernel_w * t.kernel_h;
    size_t results = 0;
    for (int oc = 0; oc < t.out_c; oc++)
        for (int y = 0; y < b.shape.y.out; y++)
            for (int x = 0; x < b.shape.x.out; x++, results++) {
                const size_t at = b.out_at(t, x, y, oc);
                const Sum sum = convolve(t, b, x, y, oc);
                const double all = sum.value + b.bias[oc] + (t.residual ? b.residual[at] : 0.);
                const double want = activate((float)all, f);
                const double most = 1.1 * tolerance(k, fabs(all) + fabs(sum.value));
                const double error = fabs(b.out[at] - want);
                ASSERT_LE(error, most) << "at " << x << " " << y << " channel " << oc << ": "
                                       << b.out[at] << " for " << want;
                g_worst = std::max(g_worst, error / most);
            }
    size_t kept = 0;
    for (float x : b.out) kept += x == 55.f;
    ASSERT_EQ(kept, b.out.size() - results) << "wrote between results";
}

TEST(SlicedPlan, shapes_and_packs) {
    QUOLL_NEED_KERNELS();
    for (const SlicedGemmKernels* kernels : all_kernels())
        for (Case t : kCases)
            for (int pack : {4, 8, 16}) {
                t.in_pack = pack;
                t.out_pack = pack == 16 ? 16 : 16 / pack / 2;
                check(*kernels, t);
                if (HasFatalFailure()) return;
                if (t.in_c * t.in_w > 1000) break;
            }
}

// The rows of a kernel that fit into a step are one where the channels are few.
TEST(SlicedPlan, windows) {
    QUOLL_NEED_KERNELS();
    for (const SlicedGemmKernels* kernels : all_kernels())
        for (int channels : {1, 3, 4})
            for (int kernel : {2, 3, 5, 7, 8, 16})
                for (int stride : {1, 2, 3}) {
                    Case t = {pick(kernel, 40), 11, channels, 32, kernel, pick(1, 7), stride,
                              pick(1, 3),       1,  1,        0,  0,      3,          pick(0, 3)};
                    t.left = pick(0, kernel + 2), t.right = pick(0, kernel + 2);
                    t.in_pack = 1, t.out_pack = 16;
                    check(*kernels, t);
                    if (HasFatalFailure()) return;
                }
    Case wide = {1300, 5, 3, 16, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1};
    wide.in_pack = 1;
    for (const SlicedGemmKernels* kernels : all_kernels()) check(*kernels, wide);
}

// What lies beside a window does not count, not even what is large.
TEST(SlicedPlan, windows_end) {
    QUOLL_NEED_KERNELS();
    for (const SlicedGemmKernels* kernels : all_kernels()) {
        Case t = {33, 4, 3, 16, 3, 3, 1, 1, 1, 1, 0, 0, 1, 1};
        t.in_pack = 1;
        Blobs b(t);
        for (float& x : b.weights) x = 1.f;
        for (int y = 0; y < t.in_h; y++) b.in[y * t.in_w + 20] = 1000.f;
        run(*kernels, t, b);
        for (int x = 0; x < b.shape.x.out; x++)
            EXPECT_EQ(b.out[b.out_at(t, x, 2, 5)] > 500.f, x >= 18 && x <= 20) << x;
    }
}

TEST(SlicedPlan, residuals_activations_threads) {
    QUOLL_NEED_KERNELS();
    for (const SlicedGemmKernels* kernels : all_kernels())
        for (int kernel : {1, 3})
            for (int type = 0; type <= 6; type++)
                for (int out_pack : {1, 4, 16}) {
                    Case t = {11, 9, 16, 48, kernel, kernel, 1, 1, 1, 1, 1, 1, 1, 1};
                    t.activation = type;
                    t.out_pack = out_pack;
                    t.residual = type != 3;
                    t.threads = 1 + type % 3;
                    check(*kernels, t);
                    if (HasFatalFailure()) return;
                }
}

TEST(SlicedPlan, single_pixels) {
    QUOLL_NEED_KERNELS();
    for (const SlicedGemmKernels* kernels : all_kernels())
        for (int type = 0; type <= 6; type++)
            for (int out_c : {16, 48, 64, 80, 320}) {
                Case t = {1, 1, 4 * pick(1, 90), out_c, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0};
                t.in_pack = 4, t.out_pack = type % 2 ? 4 : 16;
                t.activation = type;
                t.residual = out_c == 80;
                t.threads = 1 + type % 3;
                // The output may be one of a larger input.
                if (type == 6) t.in_w = 3, t.in_h = 2, t.stride_w = 3, t.stride_h = 2;
                check(*kernels, t);
                if (HasFatalFailure()) return;
            }
}

TEST(SlicedPlan, random_shapes) {
    QUOLL_NEED_KERNELS();
    const auto all = all_kernels();
    for (int i = 0; i < 300; i++) {
        SCOPED_TRACE("case " + std::to_string(i));
        check(*all[i % all.size()], with_packs(random_case()));
        if (HasFatalFailure()) return;
    }
    printf("largest error: %.2f of the tolerance\n", g_worst);
}

// Error of all outputs, in the root mean square, as a share of theirs.
double relative_error(const SlicedGemmKernels& kernels, const Case& t,
                      const std::function<float(int pixel, int channel)>& value) {
    Blobs b(t);
    for (int c = 0; c < t.in_c; c++)
        for (int p = 0; p < t.in_w * t.in_h; p++)
            b.in[c / t.in_pack * b.shape.in_block + p * t.in_pack + c % t.in_pack] = value(p, c);
    for (float& x : b.bias) x = 0.f;
    run(kernels, t, b);
    double errors = 0, squares = 0;
    for (int oc = 0; oc < t.out_c; oc++)
        for (int y = 0; y < b.shape.y.out; y++)
            for (int x = 0; x < b.shape.x.out; x++) {
                const double want = convolve(t, b, x, y, oc).value;
                const double error = b.out[b.out_at(t, x, y, oc)] - want;
                errors += error * error;
                squares += want * want;
            }
    return sqrt(errors / squares);
}

// Inputs whose largest value is far above the rest, and pixels of different magnitude.
TEST(SlicedPlan, spread_values_keep_their_accuracy) {
    QUOLL_NEED_KERNELS();
    for (const SlicedGemmKernels* kernels : all_kernels())
        for (int kernel : {1, 3}) {
            const Case t = {12, 11, 64, 32, kernel, kernel, 1, 1, 1, 1, 1, 1, 1, 1};
            const auto plain = [](int, int) { return uniform(); };
            EXPECT_LT(relative_error(*kernels, t, plain), 5e-7) << kernel;
            // With normally distributed logarithms.
            const auto spread = [](int, int) {
                return expf(3 * (uniform() + uniform() + uniform()));
            };
            EXPECT_LT(relative_error(*kernels, t, spread), 3e-6) << kernel;
            const auto by_pixel = [](int pixel, int) { return ldexpf(uniform(), -pixel % 40); };
            if (kernel == 1) {
                EXPECT_LT(relative_error(*kernels, t, by_pixel), 5e-7);
            }
        }
}

// One value of a million times the others' size: what it does not touch is as exact as without it,
// and its own products are within the bounds of sliced_gemm.h.
TEST(SlicedPlan, an_outlier_does_not_spoil_others) {
    QUOLL_NEED_KERNELS();
    Case t = {19, 12, 64, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1};
    for (const SlicedGemmKernels* kernels : all_kernels())
        for (int activation : {0, 1, 5})
            for (bool residual : {false, true}) {
                t.activation = activation, t.residual = residual;
                Blobs b(t);
                b.in[(5 * t.in_w + 3) * 16 + 3] = 1e6f;
                run(*kernels, t, b);
                const Activation f = make_activation(activation);
                for (int oc = 0; oc < t.out_c; oc++)
                    for (int y = 0; y < t.in_h; y++)
                        for (int x = 0; x < t.in_w; x++) {
                            const size_t at = b.out_at(t, x, y, oc);
                            const bool touched = abs(x - 3) <= 1 && abs(y - 5) <= 1;
                            const double all = convolve(t, b, x, y, oc).value + b.bias[oc] +
                                               (residual ? b.residual[at] : 0.);
                            ASSERT_NEAR(b.out[at], activate((float)all, f),
                                        tolerance(64 * 9, 20) + (touched ? 1e6 * 0x1p-21 : 0));
                        }
            }
}

// Values whose squares are beyond floats.
TEST(SlicedPlan, an_enormous_outlier_does_not_spoil_others) {
    QUOLL_NEED_KERNELS();
    const Case t = {19, 12, 64, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1};
    for (const SlicedGemmKernels* kernels : all_kernels())
        for (float large : {1e18f, 1e20f, 1e30f}) {
            Blobs b(t);
            b.in[(5 * t.in_w + 3) * 16 + 3] = large;
            run(*kernels, t, b);
            for (int oc = 0; oc < t.out_c; oc++)
                for (int y = 0; y < t.in_h; y++)
                    for (int x = 6; x < t.in_w; x++)
                        ASSERT_NEAR(b.out[b.out_at(t, x, y, oc)],
                                    convolve(t, b, x, y, oc).value + b.bias[oc],
                                    tolerance(64 * 9, 20))
                            << large;
            b.weights[700] = large;
            EXPECT_FALSE(SlicedPlan::supports_weights(*kernels, b.weights.data(), b.shape))
                << large;
        }
}

TEST(SlicedPlan, zeros_and_tiny_values) {
    QUOLL_NEED_KERNELS();
    for (const SlicedGemmKernels* kernels : all_kernels())
        for (int kernel : {1, 3})
            for (float size : {0.f, 1e-44f, 1e-38f, 1e30f, 3e38f}) {
                const Case t = {9, 8, 32, 16, kernel, kernel, 1, 1, 1, 1, 0, 0, 0, 0};
                Blobs b(t);
                for (float& x : b.in) x = size;
                for (float& x : b.weights) x = 0x1p-12f;
                for (float& x : b.bias) x = .25f;
                run(*kernels, t, b);
                const double sum = .25 + 32. * kernel * kernel * 0x1p-12 * size;
                EXPECT_NEAR(b.out[b.out_at(t, 2, 3, 5)] / sum, 1, 1e-6) << size;
            }
}

// NaN and infinity are for others to multiply: what the output held before is still there where it
// is added.
TEST(SlicedPlan, what_is_not_finite_is_not_taken) {
    QUOLL_NEED_KERNELS();
    for (const SlicedGemmKernels* kernels : all_kernels())
        for (int kernel : {1, 3})
            for (int size : {1, 12})
                for (float bad : {(float)NAN, (float)INFINITY, -(float)INFINITY})
                    for (bool in_place : {false, true}) {
                        const int pad = kernel / 2;
                        const Case t = {size, size, 16, 32,  kernel, kernel, 1,
                                        1,    1,    1,  pad, pad,    pad,    pad};
                        Blobs b(t);
                        b.in[(size / 2 * size + size / 3) * 16 + 3] = bad;
                        bool taken = true;
                        run(*kernels, t, b, &taken, in_place);
                        EXPECT_FALSE(taken) << kernel << " " << bad;
                        for (float x : b.out) ASSERT_TRUE(x == 55.f || !in_place);
                    }
}

// To half a unit of the 24 bits of a column's largest; zeros and signs stay.
TEST(SlicedPlan, weights_unpacked) {
    QUOLL_NEED_KERNELS();
    for (const SlicedGemmKernels* kernels : all_kernels())
        for (int n = 0; n < 20; n++) {
            const Case t = with_packs(random_case());
            SCOPED_TRACE(text(t));
            Blobs b(t);
            b.weights[0] = 1.f, b.weights[b.weights.size() / 2] = 0.f;
            if (b.weights.size() > 3) b.weights[1] = -1e-20f, b.weights[2] = 1e-12f;
            if (!SlicedPlan::is_supported(b.shape)) continue;
            Guarded<float> packed(SlicedPlan::packed_size(b.shape)), plain(b.weights.size());
            SlicedPlan::pack(*kernels, b.weights.data(), b.shape, packed.data());
            SlicedPlan::unpack(packed.data(), b.shape, plain.data());
            for (size_t i = 0; i < plain.size(); i++) {
                ASSERT_NEAR(plain[i], b.weights[i], 1.01 / 0x7f7f00) << i;
                ASSERT_EQ(plain[i] > 0, b.weights[i] > 0) << i << " " << b.weights[i];
                ASSERT_EQ(plain[i] < 0, b.weights[i] < 0) << i;
            }
        }
}

TEST(SlicedPlan, weights_that_do_not_suit) {
    QUOLL_NEED_KERNELS();
    const Case t = {9, 8, 64, 16, 3, 3, 1, 1, 1, 1, 0, 0, 0, 0};
    for (const SlicedGemmKernels* kernels : all_kernels()) {
        Blobs b(t);
        EXPECT_TRUE(SlicedPlan::supports_weights(*kernels, b.weights.data(), b.shape));
        b.weights[700] = 30.f;
        EXPECT_FALSE(SlicedPlan::supports_weights(*kernels, b.weights.data(), b.shape));
        b.weights[700] = NAN;
        EXPECT_FALSE(SlicedPlan::supports_weights(*kernels, b.weights.data(), b.shape));
    }
}

TEST(SlicedPlan, results_do_not_depend_on_threads) {
    QUOLL_NEED_KERNELS();
    for (int kernel : {1, 3}) {
        Case t = {40, 39, 128, 48, kernel, kernel, 1, 1, 1, 1, 1, 1, 1, 1};
        for (const SlicedGemmKernels* kernels : all_kernels()) {
            t.threads = 1;
            Blobs b(t);
            run(*kernels, t, b);
            const std::vector<float> once(b.out.begin(), b.out.end());
            for (int threads : {2, 3, 8}) {
                t.threads = threads;
                run(*kernels, t, b);
                for (size_t i = 0; i < once.size(); i++) ASSERT_EQ(once[i], b.out[i]) << threads;
            }
        }
    }
}

TEST(SlicedPlan, emulation_is_exact) {
    const auto all = all_kernels();
    if (all.size() < 2) GTEST_SKIP() << "no AMX to compare with";
    const Case t = {14, 13, 160, 48, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1};
    Blobs b(t);
    run(*all[1], t, b);
    const std::vector<float> want(b.out.begin(), b.out.end());
    run(*all[0], t, b);
    for (size_t i = 0; i < want.size(); i++) ASSERT_EQ(want[i], b.out[i]) << i;
}

}  // namespace
