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

#include "guarded.h"
#include "layer/cpu/gemm/split_plan.h"
#include "runtime/scalar.h"
#include "split_kernels.h"
#include "tile_cases.h"

using namespace quoll;

namespace {

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

// bf16 values are packed as the floats that they stand for are.
TEST(SplitPack, bf16_values) {
    QUOLL_NEED_KERNELS();
    for (const SplitGemmKernels* kernels : all_kernels()) {
        if (!kernels->bf16_packing()) continue;
        for (size_t k : {1, 2, 15, 31, 32, 33, 64, 70})
            for (size_t columns : {1, 7, 15, 16, 17, 31, 32})
                for (bool k_first : {false, true}) {
                    const size_t step = (k_first ? k : columns) + 3;
                    const size_t k_step = k_first ? 1 : step, n_step = k_first ? step : 1;
                    const size_t count = (k - 1) * k_step + (columns - 1) * n_step + 1;
                    const size_t room = split_packed_size(1, columns, split_steps(k));
                    Guarded<uint16_t> values(count);
                    Guarded<float> floats(count);
                    for (size_t i = 0; i < count; i++) {
                        values[i] = (uint16_t)(0x3c00 + (i * 37 + i / 11) % 0x300 + i % 2 * 0x8000);
                        floats[i] = bfloat16_to_float32(values[i]);
                    }
                    Guarded<uint16_t> want(room), got(room);
                    kernels->pack({floats.data(), k_step, n_step, k, columns, want.data()});
                    kernels->bf16_packing()(
                        {(const float*)values.data(), k_step, n_step, k, columns, got.data()});
                    ASSERT_TRUE(std::equal(want.begin(), want.end(), got.begin()))
                        << k << " x " << columns << ", k first: " << k_first;
                }
    }
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
        for (int i = 0; kernels->products == 1 && i < (kFewCases ? 30 : 120); i++) {
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
    ASSERT_GT(tried, kFewCases ? 15u : 60u);
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
    if (kFewCases) t.in_w = 17, t.in_h = 15;
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
