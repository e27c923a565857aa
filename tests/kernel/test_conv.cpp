// ConvPlan and gemm_matrix on every ISA against sums in double.
#include <gtest/gtest.h>
#include <math.h>

#include <random>
#include <vector>

#include "guarded.h"
#include "layer/cpu/conv/conv_algorithm.h"
#include "layer/cpu/conv/whole_blocks.h"
#include "layer/cpu/gemm/conv_plan.h"

using namespace quoll;

namespace {

std::mt19937 g_rng(11);
float uniform() { return std::uniform_real_distribution<float>(-1, 1)(g_rng); }
template <class C>
void fill(C& values) {
    for (float& v : values) v = uniform();
}
// Half floats are rounded with each step of a sum that grows as the root of the steps: in the root
// mean square an error of 0.14 terms * 2^-11, of which this is six.
double sum_tolerance(const KernelSet& kernels, size_t terms) {
    if (kernels.gemm->halves == 1) return 0x1p-11 * (double)(terms + 4);
    return 0x1p-23 * (double)(terms + 2) * sqrt((double)terms);
}

// The kernels of every level, and those of half floats where the machine has them.
std::vector<const KernelSet*> all_sets() {
    std::vector<const KernelSet*> sets;
    for (Isa isa : available_isas()) sets.push_back(&kernel_set(isa));
    if (host_kernel_set().half) sets.push_back(host_kernel_set().half);
    return sets;
}

// ---------------------------------------------------------------- matrices

struct MatrixCase {
    size_t m, n, k;
    bool a_transposed;
    size_t c_pack;  // 0: row-major
};

double activate(double x, const Activation& f) { return quoll::activate((float)x, f); }

void check_matrix(const KernelSet& kernels, const MatrixCase& t, const Activation& f, int threads) {
    const GemmKernels& gemm = *kernels.gemm;
    const bool row_major = t.c_pack == 0;
    const size_t pack = row_major ? t.n : t.c_pack;
    Guarded<float> a(t.m * t.k), weights(t.n * t.k), packed(gemm_packed_size(gemm, t.n, t.k)),
        bias(gemm_bias_size(gemm, t.n));
    fill(a);
    fill(weights);
    for (size_t i = 0; i < bias.size(); i++) bias[i] = i < t.n ? uniform() : 0.f;
    gemm_pack(gemm, weights.data(), t.k, false, t.n, t.k, packed.data());
    const size_t block = t.m * pack + 2;
    const size_t ld = row_major ? t.n + 3 : pack;
    const size_t size = row_major ? (t.m - 1) * ld + t.n : ((t.n - 1) / pack) * block + t.m * pack;
    Guarded<float> c(size);
    for (float& x : c) x = 55.f;
    GemmMatrix g = {};
    g.kernels = &kernels;
    g.a = a.data();
    g.a_row = t.a_transposed ? 1 : t.k;
    g.a_k = t.a_transposed ? t.m : 1;
    g.m = t.m;
    g.n = t.n;
    g.k = t.k;
    g.b = packed.data();
    g.bias = bias.data();
    g.c = c.data();
    g.c_row = ld;
    g.c_pack = pack;
    g.c_block = block;
    g.activation = FusedActivation(kernels, f);
    gemm_matrix(g, threads);
    size_t untouched = size;
    for (size_t i = 0; i < t.m; i++) {
        for (size_t j = 0; j < t.n; j++) {
            double sum = bias[j];
            for (size_t k = 0; k < t.k; k++)
                sum += (double)a[i * g.a_row + k * g.a_k] * weights[j * t.k + k];
            const size_t at = i * ld + j / pack * block + j % pack;
            untouched--;
            ASSERT_NEAR(c[at], activate(sum, f), sum_tolerance(kernels, t.k + 1) * 2)
                << isa_name(kernels.isa) << " m " << i << " of " << t.m << " n " << j << " of "
                << t.n << " k " << t.k << " pack " << t.c_pack;
        }
    }
    size_t kept = 0;
    for (float x : c) kept += x == 55.f;
    ASSERT_EQ(kept, untouched) << "wrote between results";
}

Activation make_activation(int type) {
    Mat params(2);
    params[0] = type == kActivationClip ? -.5f : type == kActivationHardSwish ? 1 / 6.f : .1f;
    params[1] = .5f;
    return Activation(type, params);
}

TEST(GemmMatrix, sizes_and_layouts) {
    for (const KernelSet* set : all_sets()) {
        const KernelSet& kernels = *set;
        const size_t columns = kernels.gemm->lanes * kernels.gemm->vectors;
        for (size_t m : {1, 2, 5, 15, 30})
            for (size_t n : {(size_t)1, (size_t)3, columns - 1, columns, columns + 1, 3 * columns})
                for (size_t k : {1, 7, 40})
                    for (bool transposed : {false, true})
                        check_matrix(kernels, {m, n, k, transposed, 0}, Activation(), 1);
        for (size_t pack : {1, 4, 8, 16, 32})
            for (size_t n = pack; n <= 96; n += pack * (pack == 1 ? 7 : 1))
                check_matrix(kernels, {17, n, 9, false, pack}, make_activation(kActivationReLU), 1);
    }
}

TEST(GemmMatrix, long_sums_activations_threads) {
    for (const KernelSet* set : all_sets()) {
        const KernelSet& kernels = *set;
        for (int type = 0; type <= 6; type++)
            for (size_t pack : {0, 1, 4, 8, 16})
                check_matrix(kernels, {19, 48, 1100, false, pack}, make_activation(type), 1);
        for (int threads : {2, 5})
            for (size_t m : {1, 3, 40, 2000})
                check_matrix(kernels, {m, 100, 30, false, 0}, make_activation(3), threads);
    }
}

// ---------------------------------------------------------------- convolution

struct ConvCase {
    int in_w, in_h, in_c, out_c;
    int kernel_w, kernel_h, stride_w, stride_h, dilation_w, dilation_h;
    int left, right, top, bottom;
};

ConvAxis make_axis(int in, int kernel, int stride, int dilation, int before, int after) {
    const int extent = dilation * (kernel - 1) + 1;
    return {in, (in + before + after - extent) / stride + 1, kernel, stride, dilation, before};
}

struct Packed {
    size_t step;
    Guarded<float> values;
    Packed(int w, int h, int c, int pack)
        : step((size_t)w * h * pack + (pack == 1 ? 3 : 4)),
          values((c / pack - 1) * step + (size_t)w * h * pack) {}
};

double convolve(const ConvCase& t, const ConvShape& s, const float* in, const float* weights,
                int ox, int oy, int oc) {
    double sum = 0;
    for (int c = 0; c < t.in_c; c++)
        for (int ky = 0; ky < t.kernel_h; ky++)
            for (int kx = 0; kx < t.kernel_w; kx++) {
                const int x = ox * t.stride_w - t.left + kx * t.dilation_w;
                const int y = oy * t.stride_h - t.top + ky * t.dilation_h;
                if (x < 0 || x >= t.in_w || y < 0 || y >= t.in_h) continue;
                sum += (double)in[c / s.in_pack * s.in_step + (y * t.in_w + x) * s.in_pack +
                                  c % s.in_pack] *
                       weights[((oc * t.in_c + c) * t.kernel_h + ky) * t.kernel_w + kx];
            }
    return sum;
}

void check_conv(const KernelSet& kernels, const ConvCase& t, int in_pack, int out_pack,
                bool with_residual, int activation, int threads) {
    ConvShape s;
    s.x = make_axis(t.in_w, t.kernel_w, t.stride_w, t.dilation_w, t.left, t.right);
    s.y = make_axis(t.in_h, t.kernel_h, t.stride_h, t.dilation_h, t.top, t.bottom);
    s.in_channels = t.in_c;
    s.out_channels = t.out_c;
    s.in_pack = in_pack;
    s.out_pack = out_pack;
    Packed in(t.in_w, t.in_h, t.in_c, in_pack), out(s.x.out, s.y.out, t.out_c, out_pack),
        residual(s.x.out, s.y.out, t.out_c, out_pack);
    s.in_step = in.step;
    s.out_step = out.step;
    const GemmKernels& gemm = *kernels.gemm;
    const size_t k = (size_t)t.in_c * t.kernel_w * t.kernel_h;
    Guarded<float> weights(t.out_c * k), packed(gemm_packed_size(gemm, t.out_c, k)),
        bias(gemm_bias_size(gemm, t.out_c));
    fill(in.values);
    fill(weights);
    fill(residual.values);
    for (size_t i = 0; i < bias.size(); i++) bias[i] = i < (size_t)t.out_c ? uniform() : 0.f;
    for (float& x : out.values) x = 55.f;
    conv_pack_weights(gemm, weights.data(), s, packed.data());
    const Activation f = make_activation(activation);
    const ConvPlan plan(kernels, s);
    plan.run(in.values.data(), packed.data(), bias.data(), out.values.data(),
             with_residual ? residual.values.data() : nullptr, residual.step,
             FusedActivation(kernels, f), threads);
    size_t results = 0;
    for (int oc = 0; oc < t.out_c; oc++)
        for (int y = 0; y < s.y.out; y++)
            for (int x = 0; x < s.x.out; x++) {
                const size_t at =
                    oc / out_pack * out.step + (y * s.x.out + x) * out_pack + oc % out_pack;
                double sum = bias[oc] + convolve(t, s, in.values.data(), weights.data(), x, y, oc);
                if (with_residual) sum += residual.values[at];
                results++;
                ASSERT_NEAR(out.values[at], activate(sum, f), sum_tolerance(kernels, k + 2) * 2)
                    << isa_name(kernels.isa) << " packs " << in_pack << " " << out_pack << " at "
                    << x << " " << y << " channel " << oc << "; in " << t.in_w << " " << t.in_h
                    << " " << t.in_c << " kernel " << t.kernel_w << " " << t.kernel_h;
            }
    size_t kept = 0;
    for (float x : out.values) kept += x == 55.f;
    ASSERT_EQ(kept, out.values.size() - results) << "wrote between results";
}

const ConvCase kConvCases[] = {
    {1, 1, 16, 16, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0},    // one pixel
    {9, 7, 32, 48, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0},    // pointwise
    {9, 8, 16, 16, 1, 1, 2, 2, 1, 1, 0, 0, 0, 0},    // pointwise, stride 2
    {6, 5, 16, 16, 1, 1, 1, 1, 1, 1, 1, 1, 2, 0},    // pointwise with padding: bias alone outside
    {17, 15, 16, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},  // the common one
    {31, 33, 16, 16, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1},  // stride 2
    {7, 7, 64, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},    // small map, several sections
    {3, 2, 16, 16, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2},    // window larger than the input
    {20, 6, 16, 16, 3, 3, 1, 1, 2, 3, 2, 2, 3, 3},   // dilation
    {12, 9, 16, 16, 5, 1, 1, 1, 1, 1, 2, 2, 0, 0},   // row
    {9, 12, 16, 16, 1, 7, 1, 2, 1, 1, 0, 0, 3, 3},   // column
    {10, 10, 16, 16, 2, 2, 2, 2, 1, 1, 0, 1, 0, 1},  // even window, uneven padding
    {5, 5, 16, 16, 3, 3, 3, 3, 2, 2, 6, 6, 6, 6},    // whole windows in the padding
    {28, 1, 16, 16, 3, 1, 1, 1, 1, 1, 1, 1, 0, 0},   // one row
};

TEST(ConvPlan, shapes_and_packs) {
    for (const KernelSet* set : all_sets()) {
        const KernelSet& kernels = *set;
        for (const ConvCase& t : kConvCases)
            for (int in_pack : {1, 4, 8, 16})
                for (int out_pack : {1, 4, 8, 16}) {
                    check_conv(kernels, t, in_pack, out_pack, false, kActivationNone, 1);
                    if (HasFatalFailure()) return;
                }
    }
}

// Channel counts that no pack divides.
TEST(ConvPlan, planar_channels) {
    for (const KernelSet* set : all_sets()) {
        for (ConvCase t : kConvCases) {
            for (int in_c : {1, 3, 7}) {
                t.in_c = in_c;
                t.out_c = in_c * 5 + 2;
                check_conv(*set, t, 1, 1, false, kActivationReLU, 1);
                if (HasFatalFailure()) return;
            }
        }
    }
}

// Fewer than half a register has lanes.
TEST(ConvPlan, few_outputs) {
    for (const KernelSet* set : all_sets())
        for (ConvCase t : kConvCases)
            for (int out_c = 1; out_c <= 5; out_c++) {
                t.in_c = 32, t.out_c = out_c;
                const bool adds = (out_c + t.in_w) % 2 == 0;
                check_conv(*set, t, set->lanes, 1, adds, (t.in_w + out_c) % 7, 1 + out_c % 3);
                if (out_c == 4) check_conv(*set, t, set->lanes, 4, adds, t.in_w % 7, 1);
                if (HasFatalFailure()) return;
            }
}

TEST(ConvPlan, residuals_activations_threads) {
    const ConvCase t = {11, 9, 16, 24, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1};
    for (const KernelSet* set : all_sets()) {
        const KernelSet& kernels = *set;
        for (int type = 0; type <= 6; type++)
            for (bool residual : {false, true})
                for (int out_pack : {1, 4, 8})
                    check_conv(kernels, t, 16, out_pack, residual, type, 1);
        for (int threads : {2, 3, 7}) check_conv(kernels, t, 16, 8, true, kActivationReLU, threads);
    }
}

// More tiles that are alike than start from a residual together: side by side, and one in each line
// of the output.
TEST(ConvPlan, residuals_of_many_tiles) {
    const ConvCase cases[] = {{33, 13, 16, 48, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0},
                              {6, 70, 16, 48, 3, 3, 1, 1, 1, 1, 0, 0, 0, 0},
                              {7, 40, 16, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1}};
    for (const KernelSet* set : all_sets())
        for (const ConvCase& t : cases)
            for (int out_pack : {1, 4, 8, 16})
                for (int threads : {1, 3})
                    check_conv(*set, t, out_pack == 4 ? 4 : 16, out_pack, true, kActivationReLU,
                               threads);
}

TEST(ConvPlan, random_shapes) {
    const auto pick = [](int low, int high) { return low + (int)(g_rng() % (high - low + 1)); };
    for (int i = 0; i < 150; i++) {
        ConvCase t;
        t.kernel_w = pick(1, 5);
        t.kernel_h = pick(1, 5);
        t.stride_w = pick(1, 3);
        t.stride_h = pick(1, 3);
        t.dilation_w = pick(1, 3);
        t.dilation_h = pick(1, 3);
        t.left = pick(0, 4);
        t.right = pick(0, 4);
        t.top = pick(0, 4);
        t.bottom = pick(0, 4);
        t.in_w = std::max(1, t.dilation_w * (t.kernel_w - 1) + 1 - t.left - t.right) + pick(0, 25);
        t.in_h = std::max(1, t.dilation_h * (t.kernel_h - 1) + 1 - t.top - t.bottom) + pick(0, 12);
        const int in_pack = 1 << pick(0, 4), out_pack = 1 << pick(0, 4);
        t.in_c = in_pack * pick(1, 5);
        t.out_c = out_pack * pick(1, 5);
        for (const KernelSet* set : all_sets()) {
            check_conv(*set, t, in_pack, out_pack, i % 5 == 0, i % 7, 1 + i % 2);
            ASSERT_FALSE(HasFatalFailure()) << "case " << i;
        }
    }
}

// ---------------------------------------------------------------- channels in whole blocks

// Channel c of element i of a blob.
size_t place(const ChannelBlocksOf& blob, int c, size_t i) {
    return c / blob.pack * blob.step + i * blob.pack + c % blob.pack;
}

TEST(WholeBlocks, copies_there_and_back) {
    for (const KernelSet* set : all_sets()) {
        const int lanes = set->lanes;
        for (int pack : {1, 4, 8})
            for (int channels : {pack, lanes, lanes + pack, 3 * lanes - pack, 40 * pack}) {
                if (!kCopiesToWholeBlocks || lanes % pack || channels % pack || set->half) continue;
                for (size_t elements : {1, 7, 33}) {
                    const size_t step = elements * pack + 3;
                    const ChannelBlocksOf blob = {channels, pack, elements, step};
                    const size_t size = (channels / pack - 1) * step + elements * pack;
                    Guarded<float> from(size), back(size);
                    fill(from);
                    for (float& v : back) v = 55.f;
                    const int blocks = (channels + lanes - 1) / lanes;
                    Mat whole((int)elements, 1, blocks, (size_t)4u * lanes, lanes);
                    copy_to_whole_blocks(*set, from.data(), blob, whole, 2);
                    for (int c = 0; c < blocks * lanes; c++)
                        for (size_t i = 0; i < elements; i++)
                            ASSERT_EQ(
                                c < channels ? from[place(blob, c, i)] : 0.f,
                                ((const float*)whole.channel(c / lanes))[i * lanes + c % lanes])
                                << isa_name(set->isa) << " " << pack << " " << channels;
                    copy_from_whole_blocks(*set, whole, back.data(), blob, 2);
                    for (int c = 0; c < channels; c++)
                        for (size_t i = 0; i < elements; i++)
                            ASSERT_EQ(from[place(blob, c, i)], back[place(blob, c, i)])
                                << isa_name(set->isa) << " " << pack << " " << channels;
                }
            }
    }
}

// 242 channels, as in the updates of RAFT.
TEST(WholeBlocks, winograd_takes_channels_that_fill_no_registers) {
    for (Isa isa : available_isas()) {
        const KernelSet& set = kernel_set(isa);
        if (!kCopiesToWholeBlocks || set.lanes < 8) continue;
        ConvShape shape = {};
        shape.x = {20, 20, 3, 1, 1, 1}, shape.y = {16, 16, 3, 1, 1, 1};
        shape.in_channels = 242, shape.out_channels = 96;
        shape.in_pack = 1, shape.out_pack = set.lanes;
        const ConvCandidates all = {true, nullptr, nullptr};
        EXPECT_EQ(ConvAlgorithm::kWinograd, choose_conv_algorithm(set, all, shape, false));
        shape.in_channels = 3;
        EXPECT_EQ(ConvAlgorithm::kDirect, choose_conv_algorithm(set, all, shape, false));
    }
}

}  // namespace
