// Every kernel of the dwconv family on every ISA against the definition in double.
#include <gtest/gtest.h>
#include <math.h>

#include <algorithm>
#include <random>
#include <vector>

#include "guarded.h"
#include "layer/cpu/common/kernel_set.h"
#include "layer/cpu/dwconv/dwconv.h"
#include "quoll/mat.h"
#include "runtime/scalar.h"

using namespace quoll;

namespace {

struct Entry {
    const char* name;
    const DwconvRowKernel (DwconvKernels::*kernels)[kDwconvPacks];
    int kernel_w, stride_w;  // 0: any
};
const Entry kEntries[] = {
#define QUOLL_DWCONV_ROW(name, kernel, stride) {#name, &DwconvKernels::name, kernel, stride},
#include "layer/cpu/dwconv/kernels.inc"
#undef QUOLL_DWCONV_ROW
};

struct Geometry {
    int in_w, kernel_w, dilation_w, stride_w, pad_left, pad_right;
    int kernel_h, ky_first, ky_last;
    float pad_value;
    bool at_end;

    int out_w() const {
        return (in_w + pad_left + pad_right - dilation_w * (kernel_w - 1) - 1) / stride_w + 1;
    }
    bool is_inside(int x, int kx) const {
        const int column = x * stride_w - pad_left + kx * dilation_w;
        return column >= 0 && column < in_w;
    }
    bool is_inner(int x) const { return is_inside(x, 0) && is_inside(x, kernel_w - 1); }
};

std::ostream& operator<<(std::ostream& os, const Geometry& g) {
    return os << "in_w " << g.in_w << " kernel " << g.kernel_w << "x" << g.kernel_h << " dilation "
              << g.dilation_w << " stride " << g.stride_w << " pad " << g.pad_left << ","
              << g.pad_right << " ky " << g.ky_first << ".." << g.ky_last << " pad_value "
              << g.pad_value;
}

class Rng {
public:
    float value() { return std::uniform_real_distribution<float>(-1.f, 1.f)(engine_); }
    int below(int n) { return (int)(engine_() % (unsigned)n); }

private:
    std::mt19937 engine_{11};
};

template <class T>
void fill(T& values, Rng& rng) {
    for (float& v : values) v = rng.value();
}

// Runs one row between guard pages: a read outside the input or a write outside the output faults.
void check_row(DwconvRowKernel kernel, int pack, const Geometry& g, Rng& rng) {
    const int rows = g.ky_last - g.ky_first, out_w = g.out_w(), taps = g.kernel_w * g.kernel_h;
    const size_t shift = g.at_end ? 0 : 4;
    Guarded<float> in((size_t)rows * g.in_w * pack, g.at_end, shift);
    Guarded<float> weight((size_t)taps * pack, g.at_end, shift), bias((size_t)pack, g.at_end);
    const size_t out_step = 1 + (size_t)g.in_w % 3;
    Guarded<float> out(((out_w - 1) * out_step + 1) * pack, g.at_end, shift);
    fill(in, rng), fill(weight, rng), fill(bias, rng);
    DwconvRow row = {};
    row.in = in.data(), row.row_step = (size_t)g.in_w * pack;
    row.weight = weight.data(), row.bias = bias.data(), row.out = out.data();
    row.out_step = out_step;
    row.in_w = g.in_w, row.out_w = out_w;
    row.kernel_w = g.kernel_w, row.kernel_h = g.kernel_h;
    row.dilation_w = g.dilation_w, row.stride_w = g.stride_w, row.pad_left = g.pad_left;
    row.ky_first = g.ky_first, row.ky_last = g.ky_last;
    row.x_first = 0;
    while (row.x_first < out_w && !g.is_inner(row.x_first)) row.x_first++;
    row.x_last = row.x_first;
    while (row.x_last < out_w && g.is_inner(row.x_last)) row.x_last++;
    row.pad_value = g.pad_value, row.low = -0.75f, row.high = 0.9f;
    kernel(row);

    for (int x = 0; x < out_w; x++) {
        for (int lane = 0; lane < pack; lane++) {
            double sum = bias[lane];
            for (int ky = 0; ky < g.kernel_h; ky++) {
                for (int kx = 0; kx < g.kernel_w; kx++) {
                    const bool inside = ky >= g.ky_first && ky < g.ky_last && g.is_inside(x, kx);
                    const int column = x * g.stride_w - g.pad_left + kx * g.dilation_w;
                    const double v = inside
                                         ? in[((ky - g.ky_first) * g.in_w + column) * pack + lane]
                                         : g.pad_value;
                    sum += v * weight[(ky * g.kernel_w + kx) * pack + lane];
                }
            }
            ASSERT_NEAR(out[x * out_step * pack + lane], std::min(0.9, std::max(-0.75, sum)),
                        taps * 2e-7 * std::max(1.f, fabsf(g.pad_value)))
                << g << " x " << x << " lane " << lane;
        }
    }
}

Geometry random_geometry(const Entry& entry, Rng& rng) {
    Geometry g;
    g.kernel_w = entry.kernel_w ? entry.kernel_w : 1 + rng.below(7);
    g.stride_w = entry.stride_w ? entry.stride_w : 1 + rng.below(3);
    g.dilation_w = entry.kernel_w ? 1 : 1 + rng.below(3);
    g.kernel_h = 1 + rng.below(5);
    g.ky_first = rng.below(g.kernel_h + 1);
    g.ky_last = g.ky_first + rng.below(g.kernel_h - g.ky_first + 1);
    g.pad_left = rng.below(7) - 2, g.pad_right = rng.below(4);
    g.pad_value = rng.below(3) ? 0.f : 1.5f;
    if (!entry.kernel_w && rng.below(2)) {  // wide windows, of which edges may cut all but a tap
        g.kernel_w = 2 + rng.below(14), g.stride_w = g.dilation_w = 1;
        g.pad_left = rng.below(g.kernel_w + 2) - 2, g.pad_right = rng.below(g.kernel_w);
    }
    g.at_end = rng.below(2) != 0;
    const int extent = g.dilation_w * (g.kernel_w - 1) + 1;
    g.in_w = std::max(1, extent - g.pad_left - g.pad_right) + rng.below(40);
    return g;
}

TEST(Dwconv, rows) {
    int checked = 0;
    for (Isa isa : available_isas()) {
        const KernelSet& set = kernel_set(isa);
        for (const Entry& entry : kEntries) {
            for (int i = 0; i < kDwconvPacks; i++) {
                const DwconvRowKernel kernel = (set.dwconv->*entry.kernels)[i];
                ASSERT_EQ(kernel != nullptr, kDwconvPack[i] <= set.lanes);
                if (!kernel) continue;
                SCOPED_TRACE(std::string(entry.name) + " " + isa_name(isa) + " pack " +
                             std::to_string(kDwconvPack[i]));
                Rng rng;
                for (int n = 0; n < 300; n++) {
                    check_row(kernel, kDwconvPack[i], random_geometry(entry, rng), rng);
                    if (HasFatalFailure()) return;
                }
                checked++;
            }
        }
    }
    printf("%d row kernels\n", checked);
}

// A row of a block of groups, whose outputs sum over all channels of their group.
void check_group_row(DwconvRowKernel kernel, int lanes, int group, const Geometry& g, Rng& rng) {
    const int rows = g.ky_last - g.ky_first, out_w = g.out_w(), taps = g.kernel_w * g.kernel_h;
    Guarded<float> in((size_t)rows * g.in_w * lanes, g.at_end), bias((size_t)lanes, g.at_end);
    Guarded<float> weight((size_t)taps * group * lanes, g.at_end);
    Guarded<float> out((size_t)out_w * lanes, g.at_end);
    fill(in, rng), fill(weight, rng), fill(bias, rng);
    DwconvRow row = {};
    row.in = in.data(), row.row_step = (size_t)g.in_w * lanes;
    row.weight = weight.data(), row.bias = bias.data(), row.out = out.data(), row.out_step = 1;
    row.in_w = g.in_w, row.out_w = out_w;
    row.kernel_w = g.kernel_w, row.kernel_h = g.kernel_h;
    row.dilation_w = 1, row.stride_w = g.stride_w, row.pad_left = g.pad_left;
    row.ky_first = g.ky_first, row.ky_last = g.ky_last;
    while (row.x_first < out_w && !g.is_inner(row.x_first)) row.x_first++;
    row.x_last = row.x_first;
    while (row.x_last < out_w && g.is_inner(row.x_last)) row.x_last++;
    row.low = -0.75f, row.high = 0.9f;
    row.group = group;
    kernel(row);

    for (int x = 0; x < out_w; x++)
        for (int lane = 0; lane < lanes; lane++) {
            double sum = bias[lane];
            for (int ky = g.ky_first; ky < g.ky_last; ky++)
                for (int kx = 0; kx < g.kernel_w; kx++)
                    for (int j = 0; j < group && g.is_inside(x, kx); j++) {
                        const int column = x * g.stride_w - g.pad_left + kx;
                        const int from = lane / group * group + j;
                        sum += (double)in[((ky - g.ky_first) * g.in_w + column) * lanes + from] *
                               weight[((ky * g.kernel_w + kx) * group + j) * lanes + lane];
                    }
            ASSERT_NEAR(out[x * lanes + lane], std::min(0.9, std::max(-0.75, sum)),
                        taps * group * 2e-7)
                << g << " x " << x << " lane " << lane << " groups of " << group;
        }
}

TEST(Dwconv, narrow_groups) {
    for (Isa isa : available_isas()) {
        const KernelSet& set = kernel_set(isa);
        ASSERT_EQ(set.dwconv->groups != nullptr, set.lanes >= 8);
        if (!set.dwconv->groups) continue;
        SCOPED_TRACE(isa_name(isa));
        Rng rng;
        for (int n = 0; n < 600; n++) {
            const Entry strided = {"", nullptr, 1 + rng.below(6), 1 + rng.below(3)};
            Geometry g = random_geometry(strided, rng);
            g.pad_value = 0.f;
            for (int group = 4; group < set.lanes; group *= 2) {
                check_group_row(set.dwconv->groups, set.lanes, group, g, rng);
                if (HasFatalFailure()) return;
            }
        }
    }
}

// Two rows at a time have the bits of row after row.
TEST(Dwconv, pairs) {
    std::vector<const KernelSet*> sets = {&host_kernel_set()};  // with kernels of SVE
    for (Isa isa : available_isas()) sets.push_back(&kernel_set(isa));
    for (const KernelSet* set : sets)
        for (int stride : {1, 2}) {
            const DwconvKernels& kernels = *set->dwconv;
            const int lanes = set->lanes, rows = 3 + stride;
            const DwconvPairKernel kernel = kernels.pair[0][stride - 1];
            ASSERT_EQ(kernel != nullptr, kernels.pair[1][stride - 1] != nullptr);
            if (!kernel) continue;
            const DwconvRowKernel row_kernel = select_dwconv_row(kernels, lanes, 3, stride, 1);
            Rng rng;
            for (int n = 0; n < 400; n++) {
                DwconvPair pair = {};
                pair.out_w = kDwconvPairOutputs + rng.below(25);
                pair.before = rng.below(2), pair.after = rng.below(2);
                const int in_w = (pair.out_w - 1) * stride + 3 - pair.before - pair.after;
                pair.first = rng.below(rows + 1);
                pair.last = pair.first + rng.below(rows + 1 - pair.first);
                const size_t in_row = (size_t)in_w * lanes, out_row = (size_t)pair.out_w * lanes;
                Guarded<float> in((pair.last - pair.first) * in_row), weight(9 * lanes),
                    bias(lanes), out(2 * out_row);
                Guarded<uint16_t> narrow(in.size());
                fill(weight, rng), fill(bias, rng);
                for (size_t i = 0; i < in.size(); i++) {
                    narrow[i] = bfloat_from_float(rng.value());
                    in[i] = float_from_bfloat(narrow[i]);
                }
                pair.row_step = in_row;
                pair.weight = weight.data(), pair.bias = bias.data();
                pair.low = -0.75f, pair.high = 0.9f;
                pair.out = out.data(), pair.second = out.data() + out_row;

                std::vector<float> want(2 * out_row);
                for (int i = 0; i < 2; i++) {
                    DwconvRow row = {};
                    row.ky_first = std::min(3, std::max(0, pair.first - i * stride));
                    row.ky_last = std::max(row.ky_first, std::min(3, pair.last - i * stride));
                    const int skipped = row.ky_first + i * stride - pair.first;
                    row.in = in.data() + (row.ky_first < row.ky_last ? skipped * in_row : 0);
                    row.row_step = in_row, row.weight = pair.weight, row.bias = pair.bias;
                    row.out = want.data() + i * out_row, row.out_step = 1;
                    row.in_w = in_w, row.out_w = pair.out_w;
                    row.kernel_w = row.kernel_h = 3, row.dilation_w = 1, row.stride_w = stride;
                    row.pad_left = pair.before;
                    row.x_first = pair.before, row.x_last = pair.out_w - pair.after;
                    row.low = pair.low, row.high = pair.high;
                    row_kernel(row);
                }
                for (const void* from : {(const void*)in.data(), (const void*)narrow.data()}) {
                    for (float& x : out) x = 55.f;
                    pair.in = from;
                    kernels.pair[from == narrow.data()][stride - 1](pair);
                    for (size_t i = 0; i < want.size(); i++)
                        ASSERT_EQ(want[i], out[i])
                            << isa_name(set->isa) << " stride " << stride << " at " << i << " rows "
                            << pair.first << " to " << pair.last << " of " << in_w;
                }
            }
        }
}

// Pairs of rows of half floats, against the definition: off by what rounding every partial sum
// makes.
TEST(Dwconv, pairs_of_half_floats) {
    if (!host_kernel_set().f16) GTEST_SKIP() << "no arithmetic of half floats";
    enum { kPack = 8 };
    Rng rng;
    const auto fill_half = [&](Guarded<uint16_t>& values) {
        for (uint16_t& x : values) x = float32_to_float16(rng.value());
    };
    for (int stride : {1, 2})
        for (int n = 0; n < 300; n++) {
            DwconvPair pair = {};
            pair.out_w = kDwconvPairOutputs + rng.below(25);
            pair.before = rng.below(2), pair.after = rng.below(2);
            const int in_w = (pair.out_w - 1) * stride + 3 - pair.before - pair.after;
            pair.first = rng.below(4 + stride);
            pair.last = pair.first + rng.below(4 + stride - pair.first);
            const size_t in_row = (size_t)in_w * kPack, out_row = (size_t)pair.out_w * kPack;
            Guarded<uint16_t> in((pair.last - pair.first) * in_row, n % 2),
                weight(9 * kPack, n % 2);
            Guarded<uint16_t> bias(kPack, n % 2), out(2 * out_row, n % 2);
            fill_half(in), fill_half(weight), fill_half(bias);
            pair.in = in.data(), pair.row_step = in_row / 2;
            pair.weight = (const float*)weight.data(), pair.bias = (const float*)bias.data();
            pair.out = (float*)out.data(), pair.second = (float*)(out.data() + out_row);
            pair.low = -0.75f, pair.high = 1.5f;
            host_kernel_set().f16->dwconv->pair[0][stride - 1](pair);
            for (size_t i = 0; i < 2 * out_row; i++) {
                const int y = (int)(i / out_row), x = (int)(i % out_row / kPack),
                          c = (int)(i % kPack);
                double sum = float16_to_float32(bias[c]), error = 0;
                for (int k = 0; k < 9; k++) {
                    const int row = y * stride + k / 3 - pair.first;
                    const int column = x * stride + k % 3 - pair.before;
                    if (row < 0 || row >= pair.last - pair.first || column < 0 || column >= in_w)
                        continue;
                    sum += (double)float16_to_float32(in[row * in_row + column * kPack + c]) *
                           float16_to_float32(weight[k * kPack + c]);
                    error += 0x1p-11 * (fabs(sum) + error) + 0x1p-25;
                }
                ASSERT_NEAR(float16_to_float32(out[i]), std::min(1.5, std::max(-.75, sum)), error)
                    << "stride " << stride << " at " << i << " of " << pair.out_w;
            }
        }
}

TEST(Dwconv, rows_keep_nan) {
    for (Isa isa : available_isas()) {
        for (int i = 0; i < kDwconvPacks; i++) {
            const int pack = kDwconvPack[i];
            const DwconvRowKernel kernel = kernel_set(isa).dwconv->k3s1[i];
            if (!kernel) continue;
            std::vector<float> in(12 * pack, 1.f), weight(3 * pack, 1.f), bias(pack),
                out(12 * pack);
            in[5 * pack + 1] = NAN;
            DwconvRow row = {};
            row.in = in.data(), row.weight = weight.data(), row.bias = bias.data();
            row.out = out.data(), row.out_step = 1;
            row.in_w = row.out_w = 12, row.kernel_w = 3, row.kernel_h = 1;
            row.dilation_w = row.stride_w = row.pad_left = 1;
            row.ky_last = 1, row.x_first = 1, row.x_last = 11;
            row.low = 0.f, row.high = INFINITY;
            kernel(row);
            for (int x = 0; x < 12; x++)
                for (int lane = 0; lane < pack; lane++)
                    EXPECT_EQ(lane == 1 && x >= 4 && x <= 6, (bool)isnan(out[x * pack + lane]));
        }
    }
}

TEST(Dwconv, planes) {
    for (Isa isa : available_isas()) {
        SCOPED_TRACE(isa_name(isa));
        const int lanes = kernel_set(isa).lanes;
        Rng rng;
        for (int count = 1; count < 150; count++) {
            const int taps = rng.below(10);
            const bool at_end = count % 2;
            Guarded<float> in((size_t)(taps + 1) * count, at_end), out((size_t)count, at_end);
            Guarded<float> weight((size_t)taps * lanes, at_end), bias((size_t)lanes, at_end);
            fill(in, rng), fill(weight, rng), fill(bias, rng);
            std::vector<const float*> streams;
            for (int t = 0; t < taps; t++) streams.push_back(in.data() + (t + 1) * count);
            kernel_set(isa).dwconv->planes({streams.data(), weight.data(), taps, bias.data(),
                                            out.data(), (size_t)count, -0.75f, 0.9f});
            for (int x = 0; x < count; x++) {
                double sum = bias[x % lanes];
                for (int t = 0; t < taps; t++)
                    sum += (double)weight[t * lanes + x % lanes] * streams[t][x];
                ASSERT_NEAR(out[x], std::min(0.9, std::max(-0.75, sum)), 2e-6);
            }
        }
    }
}

// Rows of planar half floats. How far off a sum may be: what rounding every partial sum makes.
void check_planar(DwconvPlanarKernel kernel, int stride, int out_w, int out_h, int before_x,
                  int before_y, int more, bool at_end, Rng& rng) {
    DwconvPlanar r = {};
    // more: columns and rows behind what the last window needs; -1: it has one of padding.
    r.in_w = (out_w - 1) * stride + 3 - before_x + more;
    r.in_h = (out_h - 1) * stride + 3 - before_y + more;
    if (stride == 2) r.in_w = std::max(r.in_w, 2 * out_w);
    r.before_x = before_x, r.before_y = before_y, r.out_w = out_w, r.y_last = out_h;
    r.low = -0.75f, r.high = 1.5f;
    const auto half = [&] { return float32_to_float16(rng.value()); };
    Guarded<uint16_t> in((size_t)r.in_w * r.in_h, at_end), out((size_t)out_w * out_h, at_end);
    Guarded<uint16_t> weight(kDwconvPlanarWeights, at_end);
    for (auto* values : {&in, &weight})
        for (uint16_t& x : *values) x = half();
    r.in = in.data(), r.weight = weight.data(), r.out = out.data();
    if (out_h > 1) {  // in two parts
        r.y_last = out_h / 2;
        kernel(r);
        r.out += r.y_last * out_w;
        r.y_first = r.y_last, r.y_last = out_h;
    }
    kernel(r);
    for (int y = 0; y < out_h; y++)
        for (int x = 0; x < out_w; x++) {
            double sum = float16_to_float32(weight[9]), error = 0;
            for (int k = 0; k < 9; k++) {
                const int row = y * stride - before_y + k / 3;
                const int column = x * stride - before_x + k % 3;
                if (row < 0 || row >= r.in_h || column < 0 || column >= r.in_w) continue;
                sum += (double)float16_to_float32(in[row * r.in_w + column]) *
                       float16_to_float32(weight[k]);
                error += 0x1p-11 * (fabs(sum) + error) + 0x1p-25;
            }
            ASSERT_NEAR(float16_to_float32(out[y * out_w + x]), std::min(1.5, std::max(-.75, sum)),
                        error)
                << "stride " << stride << " outputs " << out_w << "x" << out_h << " at " << x << ","
                << y << " padding " << before_x << "," << before_y << " more " << more;
        }
}

TEST(Dwconv, planar_half_floats) {
    if (!host_kernel_set().f16) GTEST_SKIP() << "no arithmetic of half floats";
    Rng rng;
    for (int stride : {1, 2})
        for (int out_w : {8, 9, 14, 15, 16, 17, 28})
            for (int out_h : {1, 2, 5, 8})
                for (int before : {0, 1, 2, 3})
                    for (int more : {-1, 0, 1})
                        for (bool at_end : {false, true}) {
                            if (out_h == 1 && more < 0) continue;
                            check_planar(host_kernel_set().f16->dwconv->planar[stride - 1], stride,
                                         out_w, out_h, before & 1, before >> 1,
                                         stride == 1 && more > 0 ? 0 : more, at_end, rng);
                            if (HasFatalFailure()) return;
                        }
}

TEST(Dwconv, pack_rows) {
    for (Isa isa : available_isas()) {
        SCOPED_TRACE(isa_name(isa));
        Rng rng;
        for (int i = 0; i < 400; i++) {
            DwconvPackRows r = {};
            r.pack = 1 << (i % 3 == 0 ? 0 : i % 3 + 1);
            r.stride = 1 + rng.below(3), r.in_w = 1 + rng.below(70), r.before = rng.below(8);
            r.above = rng.below(3), r.rows = rng.below(4), r.below = rng.below(3);
            r.width = 1 + (size_t)rng.below(90);
            r.row_step = (size_t)r.in_w * r.pack, r.pad_value = 7.f;
            const size_t rows = (size_t)(r.above + r.rows + r.below);
            r.plane = rows * r.width * r.pack;
            Guarded<float> in(r.rows * r.row_step, i % 2);
            Guarded<float> to(r.plane * r.stride + kDwconvSlack, i % 2);
            fill(in, rng);
            r.in = in.data(), r.to = to.data();
            kernel_set(isa).dwconv->pack_rows(r);
            for (size_t j = 0; j < r.plane * r.stride; j++) {
                const size_t phase = j / r.plane, at = j % r.plane, row = at / (r.width * r.pack);
                const int column = (int)(at / r.pack % r.width) * r.stride + (int)phase - r.before;
                const int y = (int)row - r.above;
                const bool inside = y >= 0 && y < r.rows && column >= 0 && column < r.in_w;
                const float want =
                    inside ? in[y * r.row_step + (size_t)column * r.pack + at % r.pack] : 7.f;
                ASSERT_EQ(to[j], want) << i << ' ' << j;
            }
        }
    }
}

TEST(Dwconv, gathers_rows) {
    for (Isa isa : available_isas()) {
        SCOPED_TRACE(isa_name(isa));
        Rng rng;
        for (size_t floats = 1; floats < 70; floats++) {
            const int rows = 1 + rng.below(4);
            const size_t pitch = floats + (size_t)rng.below(9);
            Guarded<float> from((rows - 1) * pitch + floats, floats % 2);
            Guarded<float> to(rows * floats, floats % 2);
            fill(from, rng);
            kernel_set(isa).dwconv->rows(from.data(), pitch, rows, floats, to.data());
            for (size_t i = 0; i < rows * floats; i++)
                ASSERT_EQ(to[i], from[i / floats * pitch + i % floats]);
        }
    }
}

TEST(Dwconv, selection) {
    const DwconvKernels& k = *host_kernel_set().dwconv;
    EXPECT_EQ(k.k3s1[0], select_dwconv_row(k, 4, 3, 1, 1));
    EXPECT_EQ(k.k5s2[0], select_dwconv_row(k, 4, 5, 2, 1));
    EXPECT_EQ(k.any[0], select_dwconv_row(k, 4, 3, 1, 2));
    EXPECT_EQ(k.any[0], select_dwconv_row(k, 4, 3, 3, 1));
    EXPECT_EQ(nullptr, select_dwconv_row(k, 1, 3, 1, 1));
}

}  // namespace
