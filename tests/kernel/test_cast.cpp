// The casts of every ISA against the scalar conversions, bit for bit except in NaN.
#include <gtest/gtest.h>
#include <math.h>
#include <string.h>

#include <algorithm>
#include <string>
#include <vector>

#include "guarded.h"
#include "layer/cpu/cast/storage.h"
#include "layer/cpu/gemm/gemm_run.h"
#include "layer/cpu/gemm/wide_gemm.h"
#include "quoll/layer.h"
#include "quoll/modelbin.h"
#include "quoll/paramdict.h"
#include "runtime/scalar.h"

using namespace quoll;

namespace {

struct Conversions {
    DType dtype;
    unsigned short (*narrow)(float);
    float (*widen)(unsigned short);
};
const Conversions kConversions[] = {{DType::f16, half_from_float, float_from_half},
                                    {DType::bf16, bfloat_from_float, float_from_bfloat}};

// The kernels of each level, and those of this machine, which may be another form of the last.
std::vector<const KernelSet*> kernel_sets() {
    std::vector<const KernelSet*> sets;
    for (Isa isa : available_isas()) sets.push_back(&kernel_set(isa));
    sets.push_back(&host_kernel_set());
    return sets;
}

// Equal but for NaN; AVX512-BF16 takes denormals as zero.
void expect_same(uint16_t got, uint16_t want, const Conversions& c, const KernelSet& set,
                 const std::string& what) {
    const bool denormal = c.dtype == DType::bf16 && (want & 0x7fff) <= 0x80;
    if (isnan(c.widen(want))) {
        ASSERT_TRUE(isnan(c.widen(got))) << isa_name(set.isa) << " " << what;
    } else if (!denormal || (got & 0x7fff) != 0) {
        ASSERT_EQ(got, want) << isa_name(set.isa) << " " << what;
    }
}

}  // namespace

TEST(Cast, widens_all_values) {
    for (const KernelSet* set : kernel_sets())
        for (const Conversions& c : kConversions) {
            const StorageKernels& kernels = *storage_kernels(*set, c.dtype);
            Guarded<uint16_t> in(1 << 16);
            Guarded<float> out(1 << 16);
            for (int i = 0; i < 1 << 16; i++) in[i] = (uint16_t)i;
            kernels.widen(in.data(), out.data(), 1 << 16);
            for (int i = 0; i < 1 << 16; i++) {
                const float want = c.widen((uint16_t)i);
                if (isnan(want))
                    ASSERT_TRUE(isnan(out[i])) << isa_name(set->isa) << i;
                else
                    ASSERT_EQ(bits_of(out[i]), bits_of(want)) << isa_name(set->isa) << i;
            }
        }
}

TEST(Cast, narrows_every_kind_of_value) {
    // All exponents and signs with mantissas about every rounding, and any length.
    std::vector<float> values;
    for (uint32_t top = 0; top < 1 << 16; top += 3)
        for (uint32_t low : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0xffffu})
            values.push_back(float_of(top << 16 | low));
    for (const KernelSet* set : kernel_sets())
        for (const Conversions& c : kConversions) {
            const StorageKernels& kernels = *storage_kernels(*set, c.dtype);
            for (size_t count : {(size_t)1, (size_t)7, (size_t)33, values.size()}) {
                Guarded<float> in(count);
                Guarded<uint16_t> out(count);
                for (size_t i = 0; i < count; i++) in[i] = values[values.size() - count + i];
                kernels.narrow(in.data(), out.data(), count);
                for (size_t i = 0; i < count; i++)
                    expect_same(out[i], c.narrow(in[i]), c, *set, std::to_string(bits_of(in[i])));
            }
        }
}

TEST(Cast, adds_and_multiplies) {
    for (const KernelSet* set : kernel_sets())
        for (const Conversions& c : kConversions)
            for (size_t count : {1, 5, 16, 31, 32, 64, 77, 300}) {
                const StorageKernels& kernels = *storage_kernels(*set, c.dtype);
                Guarded<uint16_t> a(count), b(count), sum(count), product(count);
                float pattern[16];
                for (size_t i = 0; i < count; i++) {
                    a[i] = c.narrow(((int)(i * 37 % 101) - 50) * .37f);
                    b[i] = c.narrow(((int)(i * 11 % 29) - 14) * 1.7f);
                }
                if (count > 5) a[3] = c.narrow(NAN), b[4] = c.narrow(INFINITY);
                for (int i = 0; i < 16; i++) pattern[i] = i * .3f - 2;
                const auto check = [&](const char* what) {
                    for (size_t i = 0; i < count; i++) {
                        const float x = c.widen(a[i]);
                        const float y = *what == 'p' ? pattern[i % 16] : c.widen(b[i]);
                        expect_same(sum[i], c.narrow(x + y), c, *set, what);
                        expect_same(product[i], c.narrow(x * y), c, *set, what);
                    }
                };
                kernels.add.vectors(a.data(), b.data(), sum.data(), count);
                kernels.mul.vectors(a.data(), b.data(), product.data(), count);
                check("vectors");
                kernels.add.pattern(a.data(), pattern, sum.data(), count);
                std::copy_n(a.data(), count, product.data());
                kernels.mul.pattern(product.data(), pattern, product.data(), count);
                check("pattern");
            }
}

TEST(Cast, sums) {
    for (const KernelSet* set : kernel_sets())
        for (const Conversions& c : kConversions)
            for (size_t pack : {1, 4, 8, 16})
                for (size_t n : {1, 3, 8, 49, 200}) {
                    if (pack > (size_t)set->lanes) continue;
                    Guarded<uint16_t> in(n * pack), out(pack);
                    std::vector<double> want(pack);
                    for (size_t i = 0; i < n * pack; i++) {
                        in[i] = c.narrow((float)((int)(i * 37 % 101) - 40) * .125f);
                        want[i % pack] += c.widen(in[i]) * .25;
                    }
                    storage_kernels(*set, c.dtype)->sum(in.data(), n, pack, .25f, out.data());
                    for (size_t j = 0; j < pack; j++)
                        expect_same(out[j], c.narrow((float)want[j]), c, *set, "sum");
                }
}

TEST(Cast, moments_and_what_is_made_of_them) {
    for (const KernelSet* set : kernel_sets())
        for (const Conversions& c : kConversions)
            for (size_t pack : {1, 4, 8, 16})
                for (size_t n : {1, 2, 3, 8, 49, 200, 2500}) {
                    const StorageKernels& k = *storage_kernels(*set, c.dtype);
                    if (!k.moments || pack > (size_t)set->lanes) continue;
                    Guarded<uint16_t> in(n * pack);
                    Guarded<float> means(pack), squares(pack), factor(pack), term(pack);
                    std::vector<double> sum(pack), square(pack);
                    for (size_t i = 0; i < n * pack; i++) {
                        // Means far from zero, other ones for each channel.
                        in[i] = c.narrow((float)((int)(i * 37 % 101) + 200 * (int)(i % pack)));
                        sum[i % pack] += c.widen(in[i]);
                    }
                    for (size_t i = 0; i < n * pack; i++) {
                        const double d = c.widen(in[i]) - sum[i % pack] / (double)n;
                        square[i % pack] += d * d;
                    }
                    k.moments(in.data(), n, pack, means.data(), squares.data());
                    for (size_t j = 0; j < pack; j++) {
                        const double mean = sum[j] / (double)n;
                        ASSERT_NEAR(means[j], mean, 1e-6 * (1 + mean)) << isa_name(set->isa);
                        ASSERT_NEAR(squares[j], square[j], 1e-5 * (1 + square[j])) << n;
                        factor[j] = .01f * (float)(j + 1), term[j] = (float)j - 3;
                    }
                    const std::vector<uint16_t> before(in.data(), in.data() + n * pack);
                    const bool none = n % 2;
                    k.scale_centred(in.data(), n, pack, means.data(), factor.data(),
                                    none ? nullptr : term.data(), -.5f, 2.f);
                    for (size_t i = 0; i < n * pack; i++) {
                        const size_t j = i % pack;
                        const float centred = c.widen(before[i]) - means[j];
                        const double want = (double)centred * factor[j] + (none ? 0 : term[j]);
                        const double limited = std::min(2., std::max(-.5, want));
                        ASSERT_NEAR(c.widen(in[i]), limited, .004 * (1e-3 + fabs(limited)))
                            << isa_name(set->isa) << " " << pack << " " << n;
                    }
                }
}

TEST(Cast, clamps) {
    for (const KernelSet* set : kernel_sets())
        for (const Conversions& c : kConversions)
            for (size_t count : {1, 5, 16, 31, 32, 64, 77, 300}) {
                const StorageKernels& k = *storage_kernels(*set, c.dtype);
                if (!k.clamp) continue;
                Guarded<uint16_t> in(count), out(count);
                for (size_t i = 0; i < count; i++)
                    in[i] = c.narrow(((int)(i * 37 % 101) - 50) * .37f);
                if (count > 5) in[3] = c.narrow(NAN), in[4] = c.narrow(INFINITY);
                k.clamp(in.data(), out.data(), count, 0.f, INFINITY);
                for (size_t i = 0; i < count; i++)
                    expect_same(out[i], c.widen(in[i]) < 0 ? 0 : in[i], c, *set, "relu");
                k.clamp(in.data(), in.data(), count, -1.f, 6.f);
                for (size_t i = 0; i < count; i++)
                    ASSERT_TRUE(!(c.widen(in[i]) < -1) && !(c.widen(in[i]) > 6)) << i;
            }
}

TEST(Cast, relu_of_sums) {
    for (const KernelSet* set : kernel_sets())
        for (const Conversions& c : kConversions)
            for (size_t count : {1, 5, 16, 31, 32, 64, 77, 300}) {
                const StorageKernels& k = *storage_kernels(*set, c.dtype);
                if (!k.add_relu) continue;
                Guarded<uint16_t> a(count), b(count), sum(count), out(count);
                for (size_t i = 0; i < count; i++) {
                    a[i] = c.narrow(((int)(i * 37 % 101) - 50) * .37f);
                    b[i] = c.narrow(((int)(i * 53 % 97) - 48) * .41f);
                }
                if (count > 5) a[3] = c.narrow(NAN), a[4] = c.narrow(-INFINITY);
                k.add.vectors(a.data(), b.data(), sum.data(), count);
                k.add_relu(a.data(), b.data(), out.data(), count);
                for (size_t i = 0; i < count; i++)
                    expect_same(out[i], c.widen(sum[i]) < 0 ? 0 : sum[i], c, *set, "sum");
                k.add_relu(a.data(), b.data(), a.data(), count);
                for (size_t i = 0; i < count; i++) ASSERT_EQ(a[i], out[i]) << i;
            }
}

// k rows by n columns, values that bf16 holds, and a row that has all bits of floats.
struct RowTimes {
    RowTimes(const KernelSet& kernels, size_t columns, size_t rows)
        : set(kernels), n(columns), k(rows), b(n * k), a(k), bias(n), out(n) {
        for (size_t i = 0; i < n * k; i++)
            b[i] = float_from_bfloat(bfloat_from_float((float)((int)(i * 37 % 101) - 50) * .03f));
        for (size_t i = 0; i < k; i++) a[i] = (float)((int)(i * 7 % 13) - 6) * .1f;
        for (size_t i = 0; i < n; i++) bias[i] = (float)(i % 5);
        const GemmKernels gemm = level_gemm(*set.gemm);
        const size_t size = gemm_packed_size(gemm, n, k);
        std::vector<float> floats(size);
        gemm_pack(gemm, b.data(), k, false, n, k, floats.data());
        panels.resize(size);
        set.cast->bf16.narrow(floats.data(), panels.data(), size);
    }
    void check() const {
        for (size_t j = 0; j < n; j++) {
            double want = bias[j];
            for (size_t i = 0; i < k; i++) want += (double)a[i] * b[j * k + i];
            want = std::min(5., std::max(-1., want));
            ASSERT_NEAR(out[j], want, 1e-5)
                << isa_name(set.isa) << " " << n << " x " << k << " column " << j;
        }
    }
    const KernelSet& set;
    const size_t n, k;
    std::vector<float> b;
    Guarded<float> a, bias, out;
    std::vector<uint16_t> panels;
};

TEST(Cast, row_times_bf16) {
    for (const KernelSet* set : kernel_sets())
        for (size_t n : {1, 15, 16, 20, 32, 33, 130, 300})
            for (size_t k : {1, 2, 7, 64}) {
                RowTimes r(*set, n, k);
                Guarded<uint16_t> stored(r.panels.size());
                std::copy(r.panels.begin(), r.panels.end(), stored.data());
                set->cast->row_times_bf16(r.a.data(), k, stored.data(), n, r.bias.data(),
                                          r.out.data(), -1.f, 5.f);
                r.check();
            }
}

// The same bits as row by row.
TEST(Cast, row_times_bf16_pairs) {
    for (const KernelSet* set : kernel_sets()) {
        if (!set->cast->row_times_bf16_pairs) continue;
        const GemmKernels gemm = level_gemm(*set->gemm);
        for (size_t n : {1, 15, 16, 20, 32, 33, 130, 300})
            for (size_t k : {2, 6, 64, 258, 2050, 4500}) {
                RowTimes r(*set, n, k);
                Guarded<uint16_t> stored(r.panels.size());
                const size_t columns = (size_t)gemm.lanes * gemm.vectors;
                for (size_t first = 0; first < n; first += columns) {
                    const size_t width = gemm_panel_width(gemm, n - first);
                    for (size_t i = 0; i < k; i++)
                        for (size_t j = 0; j < width; j++)
                            stored.data()[first * k + (i / 2 * width + j) * 2 + i % 2] =
                                r.panels[first * k + i * width + j];
                }
                const auto times = set->cast->row_times_bf16_pairs;
                times(r.a.data(), k, stored.data(), n, r.bias.data(), r.out.data(), -1.f, 5.f);
                std::vector<float> got(r.out.data(), r.out.data() + n);
                set->cast->row_times_bf16(r.a.data(), k, r.panels.data(), n, r.bias.data(),
                                          r.out.data(), -1.f, 5.f);
                for (size_t j = 0; j < n; j++) ASSERT_EQ(r.out[j], got[j]) << n << " x " << k;
            }
    }
}

namespace {

Mat make_blob(int w, int h, int c, int seed) {
    Mat m(w, h, c, 64u, 16);
    for (int q = 0; q < c; q++)
        for (int i = 0; i < w * h * 16; i++)
            ((float*)m.data)[q * m.cstep * 16 + i] = (float)((i * 37 + q * 11 + seed) % 101) - 50.f;
    return m;
}

Mat narrowed(const Mat& m, DType dtype) {
    Mat out;
    if (dtype == DType::f16) cast_float32_to_float16(m, out);
    if (dtype == DType::bf16) cast_float32_to_bfloat16(m, out);
    return out;
}

bool equal(const Mat& a, const Mat& b) {
    for (int q = 0; q < a.c; q++)
        if (memcmp((char*)a.data + q * a.cstep * a.elemsize,
                   (char*)b.data + q * b.cstep * b.elemsize, a.w * a.h * a.elemsize))
            return false;
    return a.dtype == b.dtype && a.logical_shape() == b.logical_shape();
}

}  // namespace

// Elementwise layers take blobs of a storage type, as if these were widened and narrowed around
// them.
TEST(Cast, elementwise_layers) {
    Option opt;
    const Mat a = make_blob(9, 7, 3, 1), b = make_blob(9, 7, 3, 5), row = make_blob(1, 1, 3, 9);
    for (const char* type : {"ReLU", "BinaryOp"}) {
        Layer* layer = create_layer(type);
        ASSERT_TRUE(layer);
        ParamDict pd;
        ASSERT_EQ(0, layer->load_param(pd));
        ASSERT_EQ(0, layer->create_pipeline(opt));
        const bool binary = !layer->one_blob_only;
        for (const DType dtype : {DType::f16, DType::bf16})
            for (const Mat& second : {b, row}) {
                std::vector<Mat> in = {a}, wide, narrow;
                if (binary) in.push_back(second);
                for (const Mat& m : in) {
                    narrow.push_back(narrowed(m, dtype));
                    Mat back;
                    if (dtype == DType::f16) cast_float16_to_float32(narrow.back(), back);
                    if (dtype == DType::bf16) cast_bfloat16_to_float32(narrow.back(), back);
                    wide.push_back(back);
                }
                std::vector<Mat> want(1), got(1);
                if (binary) {
                    ASSERT_EQ(0, layer->forward(wide, want, opt));
                    ASSERT_EQ(0, layer->forward(narrow, got, opt));
                } else {
                    ASSERT_EQ(0, layer->forward(wide[0], want[0], opt));
                    ASSERT_EQ(0, layer->forward(narrow[0], got[0], opt));
                }
                EXPECT_TRUE(equal(got[0], narrowed(want[0], dtype))) << type;
                if (binary)
                    ASSERT_EQ(0, layer->forward_inplace(narrow, opt));
                else
                    ASSERT_EQ(0, layer->forward_inplace(narrow[0], opt));
                EXPECT_TRUE(equal(narrow[0], got[0])) << type << " in place";
            }
        delete layer;
    }
}

TEST(Cast, depthwise_convolution) {
    for (int stride : {1, 2})
        for (int dilation : {1, 2})
            for (int threads : {1, 3}) {
                Option opt;
                opt.num_threads = threads;
                Layer* layer = create_layer("ConvolutionDepthWise");
                ParamDict pd;
                const int values[][2] = {{0, 48}, {1, 3},   {2, dilation}, {3, stride}, {4, 2},
                                         {5, 1},  {6, 432}, {7, 48},       {9, 1}};
                for (const auto& v : values) pd.set(v[0], v[1]);
                Mat weights[] = {Mat(432), Mat(48)};
                for (int i = 0; i < 432; i++) weights[0][i] = (float)(i * 29 % 17) - 8.f;
                for (int i = 0; i < 48; i++) weights[1][i] = (float)i;
                const ModelBinFromMatArray model(weights);
                ASSERT_EQ(0, layer->load_param(pd));
                ASSERT_EQ(0, layer->load_model(model));
                ASSERT_EQ(0, layer->create_pipeline(opt));
                for (const DType dtype : {DType::f16, DType::bf16})
                    for (int pack : {16, 4, 1}) {
                        Mat in, wide, want, got;
                        convert_packing(make_blob(13, 11, 3, 2), in, pack);
                        ASSERT_EQ(0, layer->forward(in, want, opt));  // small whole numbers
                        ASSERT_EQ(0, layer->forward(narrowed(in, dtype), got, opt));
                        EXPECT_TRUE(equal(got, narrowed(want, dtype))) << stride << dilation;
                    }
                delete layer;
            }
}

TEST(Cast, other_types_have_none) {
    EXPECT_EQ(storage_kernels(host_kernel_set(), DType::f32), nullptr);
    EXPECT_EQ(storage_kernels(host_kernel_set(), DType::s8), nullptr);
}
