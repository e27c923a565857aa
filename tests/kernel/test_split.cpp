// SplitPlan and the kernels of split_gemm.h against sums in double: on the machine's units (AMX,
// SME), and on emulated ones where it has AVX-512.
#include <gtest/gtest.h>
#include <math.h>
#include <string.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "emulated/emulation.h"
#include "guarded.h"
#include "layer/cpu/gemm/sliced_plan.h"
#include "layer/cpu/gemm/split_plan.h"
#include "layer/cpu/registry/kernel_rows.h"
#include "quoll/datareader.h"
#include "quoll/net.h"
#include "runtime/scalar.h"
#include "tile_cases.h"

using namespace quoll;

namespace {

const KernelSlot kSlots[] = {KernelSlot::split6, KernelSlot::split3, KernelSlot::split1};

// Every table of kernels that this machine runs.
std::vector<const SplitGemmKernels*> all_kernels() {
    const Emulation emulation;
    std::vector<const SplitGemmKernels*> all;
    for (KernelSlot slot : kSlots)
        for_kernel_rows<SplitGemmKernels>(
            slot, host_cpu_features(),
            [&](const KernelRow&, const SplitGemmKernels& kernels) { all.push_back(&kernels); });
    return all;
}

#define QUOLL_NEED_KERNELS() \
    if (all_kernels().empty()) GTEST_SKIP() << "neither AMX, AVX-512 to emulate it, nor SME"

// How far a sum may be off, from `spread`, the root of the sum of the squared products, and the
// magnitude of what is added to them. What is left out of a product is below 2^-23, 3 2^-16 or 2^-7
// of it (split_gemm.h), on the average a third of that or less, of random sign: of a sum, beyond
// 1.75 times that share of the spread once in 10^7. The additions round to 2^-24 of a partial sum,
// which is some 2 spreads; their errors grow with the root of their number: those inside a
// multiplication, of a section, of the sections. Of f32 values nothing is left out, and a sum is
// one chain.
double tolerance(const SplitGemmKernels& kernels, size_t steps, double spread, double more) {
    const int products = kernels.products;
    if (kernels.floats)
        return 0x1p-24 * 5 / sqrt(3.) * sqrt((double)steps * kSplitK + 2) * (3 * spread + more);
    const double left_out = products == 6 ? 0x1p-23 : products == 3 ? 3 * 0x1p-16 : 0x1p-7;
    const double additions =
        17 + std::min<double>(steps, kSplitSection) * products + (double)steps / kSplitSection;
    return 1.75 * left_out * spread + 0x1p-24 * 2 * (1 + sqrt(additions)) * (spread + more);
}

// in, out, residual: bf16 values in place of those of `b` where its shape says so.
void run(const SplitGemmKernels& kernels, const Case& t, Blobs& b, const uint16_t* in = nullptr,
         uint16_t* out = nullptr, const uint16_t* residual = nullptr) {
    ASSERT_TRUE(SplitPlan::is_supported(b.shape));
    Guarded<uint16_t> packed(SplitPlan::packed_size(kernels, b.shape));
    SplitPlan::pack(kernels, b.weights.data(), b.shape, packed.data());
    const SplitPlan plan(kernels, b.shape, t.threads);
    ASSERT_EQ(plan.workspace() % 16, 0u);
    Guarded<float> workspace(plan.workspace());
    for (float& x : workspace) x = NAN;
    plan.run(in ? (const void*)in : b.in.data(), packed.data(), b.bias.data(),
             out ? (void*)out : b.out.data(),
             !t.residual ? nullptr
             : residual  ? (const void*)residual
                         : b.residual.data(),
             (ptrdiff_t)b.out_step,
             FusedActivation(host_kernel_set(), make_activation(t.activation)), workspace.data());
}

std::string text(const SplitGemmKernels& kernels, const Case& t) {
    return std::to_string(kernels.products) + " products; " + text(t);
}

// The largest error relative to its tolerance.
double g_worst[7];

void check(const SplitGemmKernels& kernels, const Case& t) {
    SCOPED_TRACE(text(kernels, t));
    Blobs b(t);
    run(kernels, t, b);
    if (testing::Test::HasFatalFailure()) return;
    const Activation f = make_activation(t.activation);
    const size_t steps = split_steps(t.in_c) * t.kernel_w * t.kernel_h;
    size_t results = 0;
    for (int oc = 0; oc < t.out_c; oc++)
        for (int y = 0; y < b.shape.y.out; y++)
            for (int x = 0; x < b.shape.x.out; x++, results++) {
                const size_t at = b.out_at(t, x, y, oc);
                const Sum sum = convolve(t, b, x, y, oc);
                const double more = b.bias[oc] + (t.residual ? b.residual[at] : 0.);
                const double want = activate((float)(sum.value + more), f);
                // The activations' own errors, and their slopes of at most 1.1.
                const double most =
                    1.1 * tolerance(kernels, steps, sqrt(sum.squares), fabs(b.bias[oc]) + 2) +
                    0x1p-22 * fabs(want);
                const double error = fabs(b.out[at] - want);
                ASSERT_LE(error, most) << "at " << x << " " << y << " channel " << oc << ": "
                                       << b.out[at] << " for " << want;
                g_worst[kernels.products] = std::max(g_worst[kernels.products], error / most);
            }
    size_t kept = 0;
    for (float x : b.out) kept += x == 55.f;
    ASSERT_EQ(kept, b.out.size() - results) << "wrote between results";
}

TEST(SplitPlan, shapes_and_packs) {
    QUOLL_NEED_KERNELS();
    for (const SplitGemmKernels* kernels : all_kernels())
        for (Case t : kCases)
            for (int pack : {1, 4, 8, 16}) {
                t.in_pack = pack;
                t.out_pack = pack == 16 ? 16 : 16 / pack / 2;
                check(*kernels, t);
                if (HasFatalFailure()) return;
                if (t.in_c * t.in_w > 1000) break;
            }
}

// The taps of a kernel row are one step, or a few, where the channels are few.
TEST(SplitPlan, windows) {
    QUOLL_NEED_KERNELS();
    for (const SplitGemmKernels* kernels : all_kernels())
        for (int channels : {1, 2, 3, 4})
            for (int kernel : {2, 7, 8, 9, 21})
                for (int stride : {1, 2, 3}) {
                    if (kernel > 8 && channels != stride) continue;
                    Case t = {
                        pick(21, 45), 11, channels, 32, kernel, 3, stride, 2, 1, 1, 0, 0, 1, 0};
                    t.left = pick(0, kernel + 2), t.right = pick(0, kernel + 2);
                    t.in_pack = 1, t.out_pack = 16;
                    check(*kernels, t);
                    if (HasFatalFailure()) return;
                }
    Case wide = {1300, 5, 3, 16, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1};
    wide.in_pack = 1;
    // Patches, and windows of a step of which padding takes all.
    Case patches = {65, 17, 3, 48, 16, 16, 16, 16, 1, 1, 0, 0, 0, 0};
    Case outside = {6, 5, 3, 32, 24, 3, 1, 1, 1, 1, 20, 21, 1, 1};
    patches.in_pack = outside.in_pack = 1;
    for (const SplitGemmKernels* kernels : all_kernels())
        for (const Case& t : {wide, patches, outside}) check(*kernels, t);
}

// Rows so wide that each row of a window is laid out by itself.
TEST(SplitPlan, far_rows) {
    QUOLL_NEED_KERNELS();
    const Case cases[] = {
        {900, 4, 96, 32, 1, 3, 1, 1, 1, 1, 0, 0, 1, 1},
        {900, 7, 96, 16, 1, 3, 1, 2, 1, 1, 0, 0, 1, 0},
        {703, 8, 80, 24, 3, 3, 2, 1, 1, 3, 1, 2, 2, 3},
        {1200, 9, 40, 40, 2, 2, 1, 3, 2, 5, 0, 1, 0, 4},
    };
    for (const SplitGemmKernels* kernels : all_kernels())
        for (Case t : cases) {
            t.in_pack = t.out_pack = t.in_c % 16 == 0 ? 16 : 8;
            if (t.out_c % t.out_pack != 0) t.out_pack = 8;
            t.threads = 1 + t.in_h % 3;
            t.residual = t.in_h == 8;
            check(*kernels, t);
            if (HasFatalFailure()) return;
        }
}

std::vector<uint16_t> random_bfloats(size_t count) {
    std::vector<uint16_t> values(count);
    for (uint16_t& x : values) x = bfloat_from_float(uniform());
    return values;
}

// Sums of so many channels that they are made in parts have the bits of sums in one, since the
// parts before are what a tile begins with; and those are close to sums in double.
TEST(SplitPlan, deep_sums) {
    QUOLL_NEED_KERNELS();
    const Case cases[] = {
        {9, 7, 440, 48, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2},           // a single-vector panel
        {8, 8, 1184, 72, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},          // a shorter part at the end
        {17, 16, 440, 32, 5, 5, 2, 2, 3, 3, 6, 6, 6, 6},         // planes
        {60, 12, 1200, 40, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},        // several blocks
        {32, 32, 2048, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},        // fcn_resnet50's head
        {32, 32, 2048, 16, 3, 3, 1, 1, 12, 12, 12, 12, 12, 12},  // and deeplabv3_resnet50's
    };
    for (const SplitGemmKernels* kernels : all_kernels())
        for (Case t : cases) {
            if (!kernels->adds_sums) break;
            t.in_pack = t.in_c % 16 == 0 ? 16 : 8, t.out_pack = t.out_c % 16 == 0 ? 16 : 8;
            t.activation = t.in_w % 4;
            t.residual = t.in_w == 8;
            SCOPED_TRACE(text(*kernels, t));
            SplitGemmKernels whole = *kernels;
            whole.adds_sums = false;
            if (t.in_c < 1200) check(*kernels, t);
            Blobs b(t);
            b.shape.reduced_in = b.shape.reduced_out = true;
            const std::vector<uint16_t> in = random_bfloats(b.in.size());
            const std::vector<uint16_t> residual = random_bfloats(b.out.size());
            std::vector<uint16_t> want(b.out.size());
            run(whole, t, b, in.data(), want.data(), residual.data());
            for (int threads : {1, 2, 5, 16}) {
                t.threads = threads;
                ASSERT_NE(SplitPlan(*kernels, b.shape, threads).workspace(),
                          SplitPlan(whole, b.shape, threads).workspace());
                std::vector<uint16_t> got(b.out.size());
                run(*kernels, t, b, in.data(), got.data(), residual.data());
                ASSERT_EQ(got, want) << threads << " threads";
            }
        }
}

// What lies beside a window does not count, not even what is no number.
TEST(SplitPlan, windows_end) {
    QUOLL_NEED_KERNELS();
    for (const SplitGemmKernels* kernels : all_kernels()) {
        Case t = {33, 4, 3, 16, 3, 1, 1, 1, 1, 1, 0, 0, 0, 0};
        t.in_pack = 1;
        Blobs b(t);
        for (int y = 0; y < t.in_h; y++) b.in[y * t.in_w + 20] = NAN;
        run(*kernels, t, b);
        for (int x = 0; x < b.shape.x.out; x++)
            EXPECT_EQ(isnan(b.out[b.out_at(t, x, 2, 5)]), x >= 18 && x <= 20) << x;
    }
}

// Windows whose taps lie mostly in the padding, and outputs that see nothing else.
TEST(SplitPlan, windows_in_the_padding) {
    QUOLL_NEED_KERNELS();
    const Case cases[] = {
        {16, 16, 96, 64, 3, 3, 1, 1, 12, 12, 12, 12, 12, 12},
        {9, 7, 48, 40, 3, 3, 1, 1, 6, 5, 6, 6, 5, 5},
        {11, 5, 32, 16, 5, 3, 1, 1, 4, 4, 8, 8, 4, 4},
        {2, 3, 64, 48, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
        {6, 20, 16, 32, 1, 5, 1, 1, 1, 7, 0, 0, 20, 9},
        {7, 6, 32, 32, 3, 3, 1, 1, 5, 5, 12, 9, 5, 5},
    };
    for (const SplitGemmKernels* kernels : all_kernels())
        for (Case t : cases)
            for (int pack : {1, 8, 16}) {
                t.in_pack = pack, t.out_pack = pack == 1 ? 4 : 8;
                if (t.out_c % 16 == 0 && pack == 16) t.out_pack = 16;
                t.residual = pack == 8, t.threads = pack == 8 ? 3 : 1;
                t.activation = pack == 1 ? 1 : 0;
                check(*kernels, t);
                if (HasFatalFailure()) return;
            }
}

TEST(SplitPlan, residuals_activations_threads) {
    QUOLL_NEED_KERNELS();
    for (const SplitGemmKernels* kernels : all_kernels())
        for (int type = 0; type <= 6; type++)
            for (int out_pack : {1, 4, 16}) {
                Case t = {11, 9, 16, 48, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1};
                t.activation = type;
                t.out_pack = out_pack;
                t.residual = type != 3;
                t.threads = 1 + type % 3;
                check(*kernels, t);
                if (HasFatalFailure()) return;
            }
}

TEST(SplitPlan, random_shapes) {
    QUOLL_NEED_KERNELS();
    const auto all = all_kernels();
    for (int i = 0; i < 300; i++) {
        SCOPED_TRACE("case " + std::to_string(i));
        check(*all[i % all.size()], random_case());
        if (HasFatalFailure()) return;
    }
    for (int products : {6, 3, 1})
        if (g_worst[products] > 0)
            printf("largest error with %d products: %.2f of the tolerance\n", products,
                   g_worst[products]);
}

// Blobs of bf16 values give what floats of the same values give, rounded.
TEST(SplitPlan, bf16_blobs) {
    QUOLL_NEED_KERNELS();
    for (const SplitGemmKernels* kernels : all_kernels())
        for (int i = 0; kernels->products == 1 && i < 100; i++) {
            SCOPED_TRACE("case " + std::to_string(i));
            Case t = random_case();
            if (i % 4 == 0) {  // pixels that vectors read where they lie
                t.kernel_w = t.kernel_h = t.stride_w = t.stride_h = 1;
                t.left = t.right = t.top = t.bottom = 0;
                t.in_pack = 16, t.in_c = 16 * pick(1, 6);
            }
            Blobs b(t);
            Guarded<uint16_t> in(b.in.size()), out(b.out.size()), residual(b.out.size());
            for (size_t j = 0; j < in.size(); j++) {
                in[j] = bfloat_from_float(b.in[j]);
                b.in[j] = float_from_bfloat(in[j]);
            }
            for (size_t j = 0; j < residual.size(); j++) {
                residual[j] = bfloat_from_float(b.residual[j]);
                b.residual[j] = float_from_bfloat(residual[j]);
            }
            run(*kernels, t, b);
            if (HasFatalFailure()) return;
            for (uint16_t& x : out) x = 0x425c;  // 55, as in b.out
            b.shape.reduced_in = b.shape.reduced_out = true;
            run(*kernels, t, b, in.data(), out.data(), residual.data());
            if (HasFatalFailure()) return;
            for (size_t j = 0; j < out.size(); j++)
                ASSERT_EQ(out[j], bfloat_from_float(b.out[j])) << text(*kernels, t) << " at " << j;
            // A net's input is f32 still.
            for (uint16_t& x : out) x = 0x425c;
            b.shape.reduced_in = false;
            run(*kernels, t, b, nullptr, out.data(), residual.data());
            for (size_t j = 0; j < out.size(); j++)
                ASSERT_EQ(out[j], bfloat_from_float(b.out[j])) << text(*kernels, t) << " at " << j;
        }
}

// All items of a batch at once give, bit for bit, what each of them gives alone, which is what the
// tests above compare with sums in double; and nothing is written between items.
TEST(SplitPlan, batches) {
    QUOLL_NEED_KERNELS();
    size_t tried = 0;
    for (const SplitGemmKernels* kernels : all_kernels())
        for (int i = 0; kernels->products == 1 && i < 120; i++) {
            Case t = random_case();
            if (i % 3 == 0) {  // pixels that vectors read where they lie, or tiles across items
                t.kernel_w = t.kernel_h = t.stride_w = t.stride_h = 1;
                t.left = t.right = t.top = t.bottom = 0;
                t.in_w = pick(1, 9), t.in_h = pick(1, 9);
                t.in_pack = 16, t.in_c = 16 * pick(1, 6);
            }
            const size_t items = (size_t)pick(2, 5), gap = (size_t)pick(0, 2) * 8;
            Blobs b(t);
            const size_t in_item = b.in.size() + gap, out_item = b.out.size() + gap;
            Guarded<uint16_t> in(items * in_item - gap), out(items * out_item - gap),
                residual(out.size()), want(b.out.size());
            for (uint16_t& x : in) x = bfloat_from_float(uniform());
            for (uint16_t& x : residual) x = bfloat_from_float(uniform());
            for (uint16_t& x : out) x = 0x425c;  // 55
            b.shape.reduced_in = b.shape.reduced_out = true;
            const TileShape one = b.shape;
            if (!SplitPlan(*kernels, one, t.threads).extends_to_batch()) continue;
            SCOPED_TRACE(std::to_string(items) + " items, " + text(*kernels, t));
            b.shape.items = (int)items;
            b.shape.in_item = (ptrdiff_t)in_item, b.shape.out_item = (ptrdiff_t)out_item;
            run(*kernels, t, b, in.data(), out.data(), residual.data());
            if (HasFatalFailure()) return;
            b.shape = one;
            for (size_t k = 0; k < items; k++) {
                for (uint16_t& x : want) x = 0x425c;
                run(*kernels, t, b, in.data() + k * in_item, want.data(),
                    residual.data() + k * out_item);
                for (size_t j = 0; j < want.size(); j++)
                    ASSERT_EQ(out[k * out_item + j], want[j]) << "item " << k << " at " << j;
                for (size_t j = want.size(); k + 1 < items && j < out_item; j++)
                    ASSERT_EQ(out[k * out_item + j], 0x425c) << "behind item " << k;
            }
            tried++;
        }
    ASSERT_GT(tried, 60u);
}

// A NaN or infinity of one pixel reaches the outputs whose window has it, and no other.
TEST(SplitPlan, nan_stays_in_its_windows) {
    QUOLL_NEED_KERNELS();
    const Case t = {19, 12, 16, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1};
    for (const SplitGemmKernels* kernels : all_kernels())
        for (float bad : {(float)NAN, (float)INFINITY}) {
            Blobs b(t);
            const int bx = 0, by = 5;
            b.in[(by * t.in_w + bx) * 16 + 3] = bad;
            run(*kernels, t, b);
            for (int y = 0; y < t.in_h; y++)
                for (int x = 0; x < t.in_w; x++)
                    for (int c = 0; c < t.out_c; c++)
                        ASSERT_EQ(!std::isfinite(b.out[b.out_at(t, x, y, c)]),
                                  abs(x - bx) <= 1 && abs(y - by) <= 1)
                            << x << " " << y << " " << c;
        }
}

TEST(SplitPlan, results_do_not_depend_on_threads) {
    QUOLL_NEED_KERNELS();
    Case t = {30, 29, 96, 96, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1};
    for (const SplitGemmKernels* kernels : all_kernels()) {
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

// The emulation rounds as the unit does.
TEST(SplitPlan, emulation_is_exact) {
    const Case t = {14, 13, 160, 48, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1};
    std::vector<const SplitGemmKernels*> all = all_kernels();
    all.erase(std::remove_if(all.begin(), all.end(),
                             [](const SplitGemmKernels* k) { return k->vector_macs != 0; }),
              all.end());
    for (size_t i = 1; i < all.size(); i++) {
        if (all[i]->products != all[i - 1]->products) continue;
        Blobs b(t);
        run(*all[i - 1], t, b);
        const std::vector<float> want(b.out.begin(), b.out.end());
        run(*all[i], t, b);
        for (size_t j = 0; j < want.size(); j++) ASSERT_EQ(want[j], b.out[j]) << j;
    }
    if (all.size() <= std::size(kSlots)) GTEST_SKIP() << "no AMX to compare with";
}

TEST(SplitPlan, matrices) {
    QUOLL_NEED_KERNELS();
    for (const SplitGemmKernels* kernels : all_kernels())
        for (size_t m : {1, 5, 16, 33, 70})
            for (size_t n : {1, 16, 17, 32, 75})
                for (size_t k : {1, 31, 32, 75, 1100}) {
                    const size_t a_row = k + 3, c_row = n + 2;
                    Guarded<float> a((m - 1) * a_row + k), w(n * k), bias(SplitPlan::bias_size(n)),
                        c((m - 1) * c_row + n);
                    fill(a), fill(w), fill(bias);
                    const TileShape shape = tile_shape(m, n, k, a_row, c_row);
                    Guarded<uint16_t> packed(SplitPlan::packed_size(*kernels, shape));
                    SplitPlan::pack(*kernels, w.data(), shape, packed.data());
                    const SplitPlan plan(*kernels, shape, 2);
                    Guarded<float> workspace(plan.workspace());
                    plan.run(a.data(), packed.data(), bias.data(), c.data(), nullptr, 0,
                             FusedActivation(), workspace.data());
                    for (size_t i = 0; i < m; i++)
                        for (size_t j = 0; j < n; j++) {
                            double sum = bias[j], squares = 0;
                            for (size_t l = 0; l < k; l++) {
                                const double p = (double)a[i * a_row + l] * w[j * k + l];
                                sum += p;
                                squares += p * p;
                            }
                            ASSERT_NEAR(
                                c[i * c_row + j], sum,
                                tolerance(*kernels, split_steps(k), sqrt(squares), fabs(bias[j])))
                                << kernels->products << " products, m " << i << " of " << m << " n "
                                << j << " of " << n << " k " << k;
                        }
                }
}

// What lies in a row as terms.
float joined(const uint16_t* row, int terms, size_t i) {
    float sum = 0;
    for (int t = 0; t < terms; t++)
        sum += bfloat16_to_float32(row[(i / kSplitK * terms + t) * kSplitK + i % kSplitK]);
    return sum;
}

// The kernels that have SplitSoftmaxKernels.
std::vector<const SplitGemmKernels*> kernels_of_softmax() {
    std::vector<const SplitGemmKernels*> some;
    for (const SplitGemmKernels* k : all_kernels()) {
        if (k->softmax) some.push_back(k);
        if (k->two_products) some.push_back(k->two_products);
    }
    return some;
}

// A mask that hides some values; as bf16 exact.
enum class MaskType { none, f32, bf16 };
class SoftmaxMask {
    MaskType type_;

public:
    std::vector<float> values;
    std::vector<uint16_t> narrow;
    SoftmaxMask(MaskType type, size_t n) : type_(type), values(n), narrow(n) {
        for (size_t i = 0; type != MaskType::none && i < n; i++) {
            values[i] = i % 5 == 3 ? -INFINITY : (float)(i % 7) / 4;
            narrow[i] = float32_to_bfloat16(values[i]);
        }
    }
    const void* data() const {
        if (type_ == MaskType::none) return nullptr;
        return type_ == MaskType::bf16 ? (const void*)narrow.data() : values.data();
    }
    bool is_narrow() const { return type_ == MaskType::bf16; }
};

// The exponentials to what their terms hold, zeros behind them, and their sum.
TEST(SplitSoftmax, exponentials) {
    for (const SplitGemmKernels* kernels : kernels_of_softmax())
        for (size_t n : {1, 15, 16, 17, 31, 32, 33, 64, 100, 1000})
            for (MaskType type : {MaskType::none, MaskType::f32, MaskType::bf16}) {
                const int terms = kernels->terms;
                // Of a value and of the polynomial.
                const double most = terms == 1 ? 0x1p-8 + 0x1p-13 : 0x1p-16;
                Guarded<float> row((n + kSplitK - 1) / kSplitK * kSplitK);
                for (float& x : row) x = NAN;
                std::vector<float> scores(n);
                for (size_t i = 0; i < n; i++)
                    row[i] = scores[i] = 8 * sinf((float)(i * i + n)) - 100;
                const SoftmaxMask mask(type, n);
                const float total =
                    kernels->softmax({row.data(), n, .5f, mask.data(), mask.is_narrow()});
                double top = -INFINITY, sum = 0, got_sum = 0;
                const auto value = [&](size_t i) { return .5 * scores[i] + mask.values[i]; };
                for (size_t i = 0; i < n; i++) top = std::max(top, value(i));
                for (size_t i = 0; i < n; i++) {
                    const double want = exp(value(i) - top);
                    const float got = joined((const uint16_t*)row.data(), terms, i);
                    // The difference from the largest is rounded to f32.
                    ASSERT_NEAR(got, want, (most + 0x1p-17) * want)
                        << terms << " " << n << " " << i;
                    sum += want, got_sum += got;
                }
                for (size_t i = n; i < row.size(); i++)
                    ASSERT_EQ(joined((const uint16_t*)row.data(), terms, i), 0.f) << n << " " << i;
                ASSERT_NEAR(total, sum, most * sum) << terms << " " << n;
                EXPECT_TRUE(terms == 2 || fabs(total - got_sum) <= 1e-6 * sum) << n;
            }
}

TEST(SplitSoftmax, nothing_and_not_finite) {
    for (const SplitGemmKernels* kernels : kernels_of_softmax())
        for (size_t n : {1, 20, 40, 70}) {
            const size_t whole = (n + kSplitK - 1) / kSplitK * kSplitK;
            std::vector<float> row(whole, -INFINITY);
            const uint16_t* const values = (const uint16_t*)row.data();
            EXPECT_EQ(1.f, kernels->softmax({row.data(), n, 1.f, nullptr, false}));
            for (size_t i = 0; i < whole; i++) EXPECT_EQ(0.f, joined(values, kernels->terms, i));
            for (float odd : {NAN, INFINITY}) {
                row.assign(whole, 1.f);
                row[n - 1] = odd;
                EXPECT_TRUE(isnan(kernels->softmax({row.data(), n, 1.f, nullptr, false})));
            }
            row.assign(whole, -INFINITY);
            row[n / 2] = NAN;
            EXPECT_TRUE(isnan(kernels->softmax({row.data(), n, 1.f, nullptr, false})));
        }
}

// Rows of two terms by columns that are exact as bf16.
TEST(SplitSoftmax, two_products) {
    QUOLL_NEED_KERNELS();
    for (const SplitGemmKernels* one : all_kernels()) {
        if (!one->two_products) continue;
        const SplitGemmKernels& kernels = *one->two_products;
        for (size_t m : {8, 33, 64})
            for (size_t n : {1, 17, 32, 75})
                for (size_t k : {1, 32, 75, 1100}) {
                    const size_t a_row = (k + kSplitK - 1) / kSplitK * kSplitK;
                    Guarded<float> a(m * a_row), w(n * k), c(m * n);
                    fill(a), fill(w);
                    for (float& x : w) x = bfloat16_to_float32(float32_to_bfloat16(x));
                    for (size_t i = 0; i < m; i++)
                        kernels.softmax({a.data() + i * a_row, k, 1.f, nullptr, false});
                    const TileShape shape = tile_shape(m, n, k, (ptrdiff_t)a_row, (ptrdiff_t)n);
                    Guarded<uint16_t> packed(SplitPlan::packed_size(kernels, shape));
                    SplitPlan::pack(kernels, w.data(), shape, packed.data());
                    const std::vector<float> bias(SplitPlan::bias_size(n));
                    const SplitPlan plan(kernels, shape, 2);
                    Guarded<float> workspace(plan.workspace());
                    ASSERT_TRUE(plan.run(a.data(), packed.data(), bias.data(), c.data(), nullptr, 0,
                                         FusedActivation(), workspace.data()));
                    for (size_t i = 0; i < m; i++)
                        for (size_t j = 0; j < n; j++) {
                            double sum = 0, squares = 0;
                            for (size_t l = 0; l < k; l++) {
                                const float x =
                                    joined((const uint16_t*)(a.data() + i * a_row), 2, l);
                                const double p = (double)x * w[j * k + l];
                                sum += p, squares += p * p;
                            }
                            ASSERT_NEAR(c[i * n + j], sum,
                                        0x1p-22 * (1 + sqrt((double)k)) * (sqrt(squares) + 1))
                                << m << " " << n << " " << k;
                        }
                }
    }
}

// Rows whose second terms are negative have NaN with an infinite value, others infinity: that the
// first row has the latter must not hide it.
TEST(SplitSoftmax, two_products_of_infinite_values) {
    QUOLL_NEED_KERNELS();
    const size_t m = 8, n = 17, k = 75, a_row = 96;
    for (const SplitGemmKernels* one : all_kernels()) {
        if (!one->two_products) continue;
        const SplitGemmKernels& kernels = *one->two_products;
        std::vector<float> a(m * a_row), c(m * n);
        fill(a);
        for (size_t i = 0; i < m; i++)
            kernels.softmax({a.data() + i * a_row, k, 1.f, nullptr, false});
        const TileShape shape = tile_shape(m, n, k, (ptrdiff_t)a_row, (ptrdiff_t)n);
        std::vector<uint16_t> packed(SplitPlan::packed_size(kernels, shape));
        const std::vector<float> bias(SplitPlan::bias_size(n));
        const SplitPlan plan(kernels, shape, 1);
        Guarded<float> workspace(plan.workspace());
        for (size_t l = 0; l < k; l++) {
            std::vector<float> w(n * k, .5f);
            w[3 * k + l] = l % 2 ? -INFINITY : INFINITY;
            SplitPlan::pack(kernels, w.data(), shape, packed.data());
            EXPECT_FALSE(plan.run(a.data(), packed.data(), bias.data(), c.data(), nullptr, 0,
                                  FusedActivation(), workspace.data()))
                << l;
        }
    }
}

// The kernels that pack a matrix do it as split_pack does.
TEST(SplitPlan, matrices_are_packed) {
    QUOLL_NEED_KERNELS();
    for (const SplitGemmKernels* kernels : all_kernels())
        for (size_t n : {1, 15, 16, 17, 32})
            for (size_t k : {1, 2, 16, 31, 32, 33, 75})
                for (bool row_major : {false, true}) {
                    const size_t k_step = row_major ? n + 3 : 1, n_step = row_major ? 1 : k + 2;
                    Guarded<float> b((k - 1) * k_step + (n - 1) * n_step + 1);
                    fill(b);
                    const size_t steps = split_steps(k);
                    std::vector<float> columns(n * k);
                    for (size_t i = 0; i < n * k; i++)
                        columns[i] = b[i % k * k_step + i / k * n_step];
                    std::vector<int> order(steps * kSplitK, -1);
                    for (size_t i = 0; i < k; i++) order[i] = (int)i;
                    Guarded<uint16_t> want(split_packed_size(kernels->b_terms(), n, steps)),
                        got(want.size());
                    split_pack(*kernels, columns.data(), k, order.data(), n, steps, want.data());
                    kernels->pack({b.data(), k_step, n_step, k, n, got.data()});
                    for (size_t i = 0; i < want.size(); i++)
                        ASSERT_EQ(want[i], got[i])
                            << kernels->products << " products, n " << n << " k " << k
                            << (row_major ? " rows" : " columns") << " at " << i;
                }
}

// Lists against sums in double, with guard pages around what they read and write: every number of
// rows, both widths, one tile of rows last. f32 sums are one chain of fused multiply-adds.
TEST(SplitPlan, lists) {
    for (const SplitGemmKernels* kernels : all_kernels()) {
        if (!kernels->list) continue;
        const size_t word = kernels->word_bytes(), step = kernels->terms * kUnitRowBytes;
        const size_t words = step / word, values = kSplitK / words, size = word / values;
        for (int rows : {1, 3, 7, 8, 13, 16})
            for (size_t width : {16, 32})
                for (size_t last : {1, 2}) {
                    const size_t full = pick(0, 3);
                    const size_t steps = 3, count = 2, a_rows = 2 * rows + 5;
                    Guarded<char> a(steps * words * a_rows * word), b(steps * step * width);
                    for (Guarded<char>* operand : {&a, &b})
                        for (size_t at = 0; at < operand->size(); at += size) {
                            const float x = uniform();
                            const uint16_t narrow = bfloat_from_float(x);
                            memcpy(operand->data() + at,
                                   size == 4 ? (const void*)&x : (const void*)&narrow, size);
                        }
                    const auto value = [&](const char* from) {
                        float x;
                        uint16_t narrow;
                        memcpy(&x, from, sizeof(x));
                        memcpy(&narrow, from, sizeof(narrow));
                        return size == 4 ? x : float_from_bfloat(narrow);
                    };
                    const ptrdiff_t places[] = {0, (ptrdiff_t)((2 * words * a_rows + 1) * word),
                                                (ptrdiff_t)((words * a_rows + 2) * word)};
                    SplitTile list[2] = {};
                    std::vector<std::unique_ptr<Guarded<float>>> sums;
                    for (size_t i = 0; i < count; i++) {
                        const size_t tiles = i + 1 < count ? 2 : last;
                        sums.emplace_back(new Guarded<float>(tiles * rows * width));
                        list[i].a = a.data() + i * word, list[i].a_row = (ptrdiff_t)word;
                        list[i].a_word = (ptrdiff_t)(a_rows * word);
                        list[i].a_tile = (ptrdiff_t)((rows + 1) * word);
                        list[i].tile_rows = rows;
                        list[i].steps = places, list[i].num_steps = steps;
                        list[i].full_steps = full, list[i].last_pairs = kSplitK / 2;
                        list[i].b = b.data();
                        list[i].sums = sums[i]->data();
                    }
                    kernels->list(list, count, last, width);
                    for (size_t i = 0; i < count; i++)
                        for (size_t r = 0; r < sums[i]->size() / width; r++)
                            for (size_t n = 0; n < width; n++) {
                                const size_t row = i + r + (r >= (size_t)rows);
                                double sum = 0, squares = 0;
                                float chain = 0;
                                for (size_t s = 0; s < steps; s++)
                                    for (size_t w = 0; w < words; w++)
                                        for (size_t v = 0; v < values; v++) {
                                            const float x =
                                                value(a.data() + places[s] +
                                                      (w * a_rows + row) * word + v * size);
                                            const float y =
                                                value(b.data() +
                                                      ((s * width + n / 16 * 16) * words + w * 16 +
                                                       n % 16) *
                                                          word +
                                                      v * size);
                                            sum += (double)x * y;
                                            squares += (double)x * y * ((double)x * y);
                                            chain = fmaf(x, y, chain);
                                        }
                                const float got = (*sums[i])[r * width + n];
                                if (kernels->floats)
                                    ASSERT_EQ(got, chain) << rows << " " << width << " " << n;
                                else
                                    ASSERT_NEAR(
                                        got, sum,
                                        0x1p-22 * (1 + sqrt(steps * kSplitK)) * (sqrt(squares) + 1))
                                        << rows << " " << width << " " << n;
                            }
                }
    }
}

// ---------------------------------------------------------------- layers

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
    for (int activation : {0, 1, 5})
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
#ifdef QUOLL_EMULATED_CPU  // each of the three once and not
    const int m = 254, n = 270, k = 262, step = 3;
#else
    const int m = 190, n = 550, k = 410, step = 1;
#endif
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
    for (int trans : {0, 1}) {
        const auto b = [&](int w, int h, int c) {
            if (trans) std::swap(w, h);
            return c ? random_mat(Shape(w, h, c)) : random_mat(Shape(w, h));
        };
        check_layer("MatMul", {{0, trans}}, {},
                    {random_mat(Shape(300, 130, 5)), random_mat(Shape(300, 130, 5)),
                     random_mat(Shape(300, 130))},
                    {b(160, 300, 5), b(160, 300, 0), b(160, 300, 5)});
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
}

TEST(SplitLayers, SDPA) {
    QUOLL_NEED_KERNELS();
    for (int src : {128, 140})
        check_attention("SDPA", {}, {},
                        {random_mat(Shape(192, src, 4)), random_mat(Shape(192, 300, 2)),
                         random_mat(Shape(160, 300, 2))});
}

// ---------------------------------------------------------------- values that are not finite

// NaN and infinities where the reference has them, the rest close to it.
void expect_ieee(const Mat& got_packed, const Mat& want) {
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
                                         : fabsf(g - w) <= 1e-4f * largest;
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
#ifdef QUOLL_EMULATED_CPU
    const std::vector<int> activations = {1};
#else
    const std::vector<int> activations = {0, 1, 4};
#endif
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

// Large and tiny values: what the three terms of a value keep.
TEST(SplitPlan, terms_keep_24_bits) {
    QUOLL_NEED_KERNELS();
    for (const SplitGemmKernels* kernels : all_kernels()) {
        if (kernels->products != 6) continue;
        for (int exponent : {-100, -40, 0, 60, 120}) {
            const size_t m = 64;
            Guarded<float> a(m), one(1), bias(SplitPlan::bias_size(1)), c(m);
            for (float& x : a) x = ldexpf(uniform(), exponent);
            for (float& x : bias) x = 0;
            one[0] = 1;
            const TileShape shape = tile_shape(m, 1, 1, 1, 1);
            Guarded<uint16_t> packed(SplitPlan::packed_size(*kernels, shape));
            SplitPlan::pack(*kernels, one.data(), shape, packed.data());
            const SplitPlan plan(*kernels, shape, 1);
            Guarded<float> workspace(plan.workspace());
            plan.run(a.data(), packed.data(), bias.data(), c.data(), nullptr, 0, FusedActivation(),
                     workspace.data());
            for (size_t i = 0; i < m; i++)
                EXPECT_NEAR(c[i], a[i], fabs(a[i]) * 0x1p-23) << "exponent " << exponent;
        }
    }
}

}  // namespace
