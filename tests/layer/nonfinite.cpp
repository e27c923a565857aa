// NaN and infinity go through operators as IEEE arithmetic has it, on every ISA, reference and fast
// form, planar and packed.
#include <math.h>

#include "layer/cpu/common/kernel_set.h"
#include "layer_test.h"
#include "quoll/cpu.h"

namespace quoll {

static const float kInf = INFINITY;

// Runs the layer in all forms and compares with `want`; one output.
static void expect_everywhere(const char* type, const std::string& params,
                              const std::vector<Mat>& inputs, const Mat& want,
                              const std::vector<Mat>& weights = {}) {
    for (Isa isa : available_isas()) {
        set_cpu_mask(isa_name(isa));
        for (bool reference : {true, false}) {
            const LayerPtr layer =
                make_layer(type, params, weights, (int)inputs.size(), 1, reference);
            ASSERT_TRUE(layer != nullptr);
            for (int pack : {1, 4, 8, 16}) {
                if (pack > 1 && !layer->support_packing) continue;
                std::vector<Mat> packed(inputs.size());
                for (size_t i = 0; i < inputs.size(); i++)
                    convert_packing(inputs[i], packed[i], pack);
                const std::vector<Mat> got = run_layer(*layer, packed);
                ASSERT_EQ(1u, got.size());
                Tolerance tolerance;
                tolerance.terms = 64, tolerance.magnitude = 8;
                ASSERT_TRUE(nearly_equal(got[0], want, tolerance))
                    << type << " " << params << ", " << isa_name(isa)
                    << (reference ? ", reference" : ", fast") << ", elempack " << pack;
            }
        }
        set_cpu_mask(nullptr);
    }
}

// 16 x 16: row i is all `rest` but value i, which is special[i].
static Mat diagonal(const std::vector<float>& special, float rest) {
    Mat m(16, 16);
    m.fill(rest);
    for (int i = 0; i < 16; i++) m.row(i)[i] = special[i % special.size()];
    return m;
}

template <class F>
static Mat mapped(const Mat& m, F f) {
    Mat y = m.clone();
    for (size_t i = 0; i < m.total(); i++) y[i] = f(y[i]);
    return y;
}

static const std::vector<float> kSpecial = {NAN, kInf, -kInf, 0.f, -0.f, 1.f, -1.f};

TEST(NonFinite, unary) {
    const Mat x = diagonal(kSpecial, 0.5f);
    const struct {
        const char* params;
        double (*f)(double);
    } functions[] = {
        {"0=0", [](double v) { return fabs(v); }},
        {"0=1", [](double v) { return -v; }},
        {"0=2", [](double v) { return floor(v); }},
        {"0=3", [](double v) { return ceil(v); }},
        {"0=4", [](double v) { return v * v; }},
        {"0=5", [](double v) { return sqrt(v); }},
        {"0=6", [](double v) { return 1 / sqrt(v); }},
        {"0=7", [](double v) { return exp(v); }},
        {"0=8", [](double v) { return log(v); }},
        {"0=9", [](double v) { return sin(v); }},
        {"0=10", [](double v) { return cos(v); }},
        {"0=11", [](double v) { return tan(v); }},
        {"0=12", [](double v) { return asin(v); }},
        {"0=13", [](double v) { return acos(v); }},
        {"0=14", [](double v) { return atan(v); }},
        {"0=15", [](double v) { return 1 / v; }},
        {"0=16", [](double v) { return tanh(v); }},
        {"0=17", [](double v) { return log10(v); }},
        {"0=18", [](double v) { return nearbyint(v); }},
        {"0=19", [](double v) { return trunc(v); }},
        {"0=21", [](double v) { return expm1(v); }},
        {"0=22", [](double v) { return sinh(v); }},
        {"0=23", [](double v) { return asinh(v); }},
        {"0=24", [](double v) { return cosh(v); }},
        {"0=25", [](double v) { return acosh(v); }},
        {"0=26", [](double v) { return atanh(v); }},
        {"0=27", [](double v) { return log1p(v); }},
    };
    for (const auto& f : functions)
        expect_everywhere("UnaryOp", f.params, {x},
                          mapped(x, [&](float v) { return (float)f.f(v); }));
}

TEST(NonFinite, activations) {
    const Mat x = diagonal({NAN, kInf, -kInf}, 0.f);
    // For 0, NaN, infinity, -infinity.
    const struct {
        const char *type, *params;
        float zero, up, down;
    } layers[] = {
        {"ReLU", "", 0, kInf, 0},         {"ReLU", "0=0.5", 0, kInf, -kInf},
        {"Clip", "0=-2 1=3", 0, 3, -2},   {"Sigmoid", "", 0.5f, 1, 0},
        {"TanH", "", 0, 1, -1},           {"ELU", "0=2", 0, kInf, -2},
        {"SELU", "0=2 1=3", 0, kInf, -6}, {"CELU", "0=2", 0, kInf, -2},
        {"AbsVal", "", 0, kInf, kInf},    {"Erf", "", 0, 1, -1},
        {"HardSigmoid", "", 0.5f, 1, 0},  {"Softplus", "", logf(2.f), kInf, 0},
        {"BNLL", "", logf(2.f), kInf, 0}, {"Exp", "", 1, kInf, 0},
        {"Power", "0=3", 0, kInf, -kInf}, {"Shrink", "0=1 1=2", 0, kInf, -kInf},
        {"Mish", "", 0, kInf, 0},         {"Swish", "", 0, kInf, 0},
        {"HardSwish", "", 0, kInf, 0},    {"GELU", "", 0, kInf, 0},
        {"GELU", "0=1", 0, kInf, 0},      {"ReLU", "0=-1", 0, kInf, kInf},
    };
    for (const auto& f : layers)
        expect_everywhere(f.type, f.params, {x}, mapped(x, [&](float v) {
                              return isnan(v) ? v : v == 0 ? f.zero : v > 0 ? f.up : f.down;
                          }));
    expect_everywhere("Threshold", "", {x}, mapped(x, [](float v) { return v > 0 ? 1.f : 0.f; }));
}

// Each output has one input: 0, NaN, infinity or -infinity, and a weight of 1.
TEST(NonFinite, activations_of_products) {
    Mat row(7, 3);
    for (int i = 0; i < 21; i++) row[i] = kSpecial[i % 4 == 3 ? 3 : i % 4];
    Mat image(7, 3, 1), channels(7, 3, 16), one(1);
    for (int q = 0; q < 16; q++)
        for (int i = 0; i < 21; i++) image[i] = channels.channel(q)[i] = row[i];
    Mat ones(16);
    ones.fill(1.f);
    const struct {
        const char* activation;
        float zero, up, down;
    } cases[] = {
        {"9=1", 0, kInf, 0},
        {"9=2 -23310=1,0.1", 0, kInf, -kInf},
        {"9=2 -23310=1,0", 0, kInf, 0},
        {"9=3 -23310=2,-1,2", 0, 2, -1},
        {"9=3 -23310=2,2,-1", -1, -1, -1},  // raised to 2, then lowered to -1
        {"9=4", 0.5f, 1, 0},
        {"9=5", 0, kInf, 0},
        {"9=6 -23310=2,0.2,0.5", 0, kInf, 0},
        {"9=7", 0, kInf, 0},
        {"9=8 -23310=1,0", 0, kInf, 0},
        {"9=8 -23310=1,1", 0, kInf, 0},
    };
    for (const auto& c : cases) {
        const auto f = [&](float v) {
            return isnan(v) ? v : v == 0 ? c.zero : v > 0 ? c.up : c.down;
        };
        Mat want(7, 3, 16);
        for (int q = 0; q < 16; q++)
            for (int i = 0; i < 21; i++) want.channel(q)[i] = f(row[i]);
        const std::string more = std::string(" 1=1 6=16 ") + c.activation;
        for (const char* type : {"Convolution", "Deconvolution"})
            expect_everywhere(type, "0=16" + more, {image}, want, {ones});
        for (const char* type : {"ConvolutionDepthWise", "DeconvolutionDepthWise"})
            expect_everywhere(type, "0=16 7=16" + more, {channels}, want, {ones});
        for (float v : {0.f, NAN, kInf, -kInf}) {
            one[0] = v;
            Mat sums(16);
            sums.fill(f(v));
            expect_everywhere("InnerProduct", std::string("0=16 2=16 ") + c.activation, {one}, sums,
                              {ones});
        }
    }
}

TEST(NonFinite, binary) {
    const float values[] = {NAN, kInf, -kInf, 0.f, -0.f, 1.f, -2.f, 3.f};
    Mat a(8, 8), b(8, 8);
    for (int i = 0; i < 64; i++) a[i] = values[i / 8], b[i] = values[i % 8];
    const struct {
        const char* params;
        double (*f)(double, double);
    } functions[] = {
        {"0=0", [](double x, double y) { return x + y; }},
        {"0=1", [](double x, double y) { return x - y; }},
        {"0=2", [](double x, double y) { return x * y; }},
        {"0=3", [](double x, double y) { return x / y; }},
        {"0=4", [](double x, double y) { return x > y || isnan(x) ? x : y; }},
        {"0=5", [](double x, double y) { return x < y || isnan(x) ? x : y; }},
        {"0=6", [](double x, double y) { return pow(x, y); }},
        {"0=7", [](double x, double y) { return y - x; }},
        {"0=8", [](double x, double y) { return y / x; }},
        {"0=10", [](double x, double y) { return atan2(x, y); }},
        {"0=12", [](double x, double y) { return fmod(x, y); }},
        {"0=15", [](double x, double y) { return floor(x / y); }},
        {"0=17", [](double x, double y) { return remainder(x, y); }},
    };
    for (const auto& f : functions) {
        Mat want(8, 8);
        for (int i = 0; i < 64; i++) want[i] = (float)f.f(a[i], b[i]);
        expect_everywhere("BinaryOp", f.params, {a, b}, want);
    }
    Mat greatest(8, 8);
    for (int i = 0; i < 64; i++) greatest[i] = a[i] > b[i] || isnan(a[i]) ? a[i] : b[i];
    expect_everywhere("Eltwise", "0=2", {a, b}, greatest);
}

// What each operation gives for lines of 16 ones of which one, and then two, are special.
TEST(NonFinite, reductions) {
    const auto line = [](float first, float second) {
        Mat m(16, 16);
        m.fill(1.f);
        for (int i = 0; i < 16; i++) m.row(i)[i] = first, m.row(i)[(i + 5) % 16] = second;
        return m;
    };
    const auto each = [](float v) {
        Mat m(16);
        m.fill(v);
        return m;
    };
    for (int op = 0; op <= 10; op++) {
        const std::string params = "0=" + std::to_string(op) + " 1=0 -23303=1,1 5=1";
        const std::string columns = "0=" + std::to_string(op) + " 1=0 -23303=1,0 5=1";
        const std::string all = "0=" + std::to_string(op);
        for (float other : {1.f, kInf, -kInf}) {
            expect_everywhere("Reduction", params, {line(NAN, other)}, each(NAN));
            expect_everywhere("Reduction", params, {line(other, NAN)}, each(NAN));
            expect_everywhere("Reduction", columns, {line(NAN, other)}, each(NAN));
            expect_everywhere("Reduction", all, {line(other, NAN)}, mat_of(Shape(1), {NAN}));
        }
        const bool squares = op == 1 || op == 2 || op == 7 || op == 8;
        const float least = op == 5 ? 1.f : kInf;
        expect_everywhere("Reduction", params, {line(kInf, 1)}, each(least));
        const float down = op == 4    ? 1.f
                           : op == 10 ? 1 + logf(15.f)
                           : op == 9  ? NAN
                           : squares  ? kInf
                                      : -kInf;
        expect_everywhere("Reduction", params, {line(-kInf, 1)}, each(down));
        const bool sums = op == 0 || op == 3 || op == 9;
        const float both = sums ? NAN : op == 5 || op == 6 ? -kInf : kInf;
        expect_everywhere("Reduction", params, {line(kInf, -kInf)}, each(both));
    }
}

TEST(NonFinite, pooling) {
    // 6 x 6 of 16 channels; windows of 2 x 2, of 3 x 3, adaptive ones of 2 x 2, all.
    for (float special : {NAN, kInf, -kInf}) {
        Mat x(6, 6, 16);
        x.fill(-1.f);
        for (int q = 0; q < 16; q++) x.channel(q).row(2)[q % 6] = special;
        for (const char* kind : {"0=0 ", "0=1 "}) {
            const bool max = kind[2] == '0';
            for (int size : {2, 3, 6}) {
                Mat want(6 / size, 6 / size, 16);
                for (int q = 0; q < 16; q++) {
                    want.channel(q).fill(-1.f);
                    float& hit = want.channel(q).row(2 / size)[q % 6 / size];
                    hit = max && special == -kInf ? -1.f : special;
                }
                const std::string n = std::to_string(size), out = std::to_string(6 / size);
                expect_everywhere("Pooling", kind + ("1=" + n + " 2=" + n), {x}, want);
                expect_everywhere("Pooling", kind + ("7=1 8=" + out), {x}, want);
                if (size == 6)
                    expect_everywhere("Pooling", kind + std::string("4=1"), {x}, want.reshape(16));
            }
        }
    }
    // A window of -infinity alone is that; one without pixels is ncnn's least.
    Mat low(4, 4, 16);
    low.fill(-kInf);
    Mat want(2, 2, 16);
    want.fill(-kInf);
    expect_everywhere("Pooling", "0=0 1=2 2=2", {low}, want);
}

TEST(NonFinite, softmax) {
    const int n = 16;
    const auto line_of = [&](const std::vector<float>& values, int axis) {
        Mat m(n, n);
        for (int i = 0; i < n; i++)
            for (int k = 0; k < n; k++) (axis ? m.row(i)[k] : m.row(k)[i]) = values[k];
        return m;
    };
    for (int axis : {0, 1}) {
        const std::string params = "0=" + std::to_string(axis) + " 1=1";
        std::vector<float> x(n, 0.f), y(n, 1.f / (n - 1));
        x[3] = -kInf, y[3] = 0.f;
        expect_everywhere("Softmax", params, {line_of(x, axis)}, line_of(y, axis));
        // No overflow: the largest is taken out.
        std::vector<float> large(n, -1e30f), one(n, 0.f);
        large[5] = large[7] = 1e30f, one[5] = one[7] = 0.5f;
        expect_everywhere("Softmax", params, {line_of(large, axis)}, line_of(one, axis));
        const std::vector<float> nan(n, NAN);
        for (float special : {NAN, kInf}) {
            x[3] = special;
            expect_everywhere("Softmax", params, {line_of(x, axis)}, line_of(nan, axis));
        }
        expect_everywhere("Softmax", params, {line_of(std::vector<float>(n, -kInf), axis)},
                          line_of(nan, axis));
        // A line with NaN leaves the others alone.
        Mat mixed = line_of(std::vector<float>(n, 2.f), axis), want = mixed.clone();
        want.fill(1.f / n);
        for (int k = 0; k < n; k++) (axis ? want.row(4)[k] : want.row(k)[4]) = NAN;
        mixed.row(4)[4] = NAN;
        expect_everywhere("Softmax", params, {mixed}, want);
    }
}

}  // namespace quoll
