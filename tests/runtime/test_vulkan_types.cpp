// Products of bf16 and s8 on a device against sums in double and in whole numbers, and the code
// that bf16 has. Where a device has no such matrix units, blobs of bf16 are f32 on it, and s8 is
// multiplied as floats.
#include <math.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "forwarding_backend.h"
#include "gpu/device.h"
#include "gpu/shaders.h"
#include "gpu/spirv.h"
#include "product_check.h"
#include "quoll/gpu.h"
#include "quoll/net.h"
#include "random_weights.h"

namespace quoll {
namespace {

class VulkanTypes : public testing::Test {
protected:
    void SetUp() override {
        if (get_gpu_count() == 0) GTEST_SKIP() << "no Vulkan device";
    }
};

MatrixUnits units() { return open_gpu(get_default_gpu_index())->features().matrix; }

// What of a module concerns one type of floats, by the numbers of the SPIR-V specification.
struct Halves {
    enum { kCapability = 17, kTypeFloat = 22, kTypeVector = 23, kTypeMatrix = 4456 };
    int types = 0, encoded = 0;
    std::set<uint32_t> capabilities, operations;  // that make values of the type, or take them

    explicit Halves(const std::vector<uint32_t>& words) {
        std::set<uint32_t> halves, values;
        for (size_t at = 5; at < words.size(); at += words[at] >> 16) {
            const uint32_t op = words[at] & 0xffff, count = (words[at] >> 16) - 1;
            const uint32_t* o = &words[at + 1];
            if (op == kCapability) capabilities.insert(o[0]);
            if (op == kTypeFloat && o[1] == 16) {
                halves.insert(o[0]), types++, encoded += count == 3 && o[2] == 0;
            } else if ((op == kTypeVector || op == kTypeMatrix) && halves.count(o[1])) {
                halves.insert(o[0]);
            } else if (op > kTypeVector && count >= 2 && halves.count(o[0])) {
                values.insert(o[1]), operations.insert(op);
            } else {
                for (uint32_t i = 2; op > kTypeMatrix && i < count; i++)
                    if (values.count(o[i])) operations.insert(op);
            }
        }
    }
};

// The types may be exchanged as long as no shader calculates with halves, or has constants of them.
// Those that do are never taken for bf16 (Recorder::half_form).
TEST(Bfloat16Code, moves_converts_and_multiplies_matrices) {
    const uint32_t kPointer = 32, kArray = 28, kRuntimeArray = 29, kLoad = 61, kConvert = 115;
    const uint32_t kMatrixLoad = 4457, kMatrixStore = 4458, kMatrixProduct = 4459;
    const std::set<uint32_t> allowed = {kPointer, kArray,      kRuntimeArray, kLoad,
                                        kConvert, kMatrixLoad, kMatrixStore,  kMatrixProduct};
    for (int i = 0; i < kShaderCount; i++) {
        const ShaderCode code = shader_code((Shader)i, Storage::bf16);
        SCOPED_TRACE(shader_name((Shader)i));
        EXPECT_EQ(shader_code((Shader)i, Storage::f16).packed, code.packed);
        const std::string name = shader_name((Shader)i);
        const bool calculates = name.size() > 5 && name.substr(name.size() - 5) == "_half";
        if (!code.words || calculates) continue;
        const std::vector<uint32_t> words = code.spirv(), made = as_bfloat16(words);
        ASSERT_TRUE(is_spirv(made.data(), made.size()));
        const Halves before(words), after(made);
        EXPECT_EQ(0, before.encoded);
        EXPECT_EQ(before.types, after.encoded);
        EXPECT_EQ(before.types, after.types);
        EXPECT_EQ(1u, after.capabilities.count(5116));
        EXPECT_EQ(before.capabilities.count(6022), after.capabilities.count(5118));
        for (uint32_t op : after.operations) EXPECT_EQ(1u, allowed.count(op)) << "operation " << op;
    }
}

// Values of 8 bits.
Mat exact_bfloats(int w, int h, int seed) {
    Mat m(w, h);
    for (int i = 0; i < w * h; i++)
        m[(size_t)i] = ldexpf((float)((i * 37 + seed * 11) % 255 - 127), -(i % 7 + 60));
    return m;
}

// Terms far below what f16 has, so that none of them is made of f16.
void expect_bf16_product(int rows, int columns, int depth, int transposed) {
    Net net;
    net.opt.num_threads = 1;
    net.opt.use_bf16_storage = true;
    net.opt.use_fp16_arithmetic = true;  // not for bf16
    const auto backend = std::make_shared<ForwardingBackend>(net.opt);
    net.add_backend(backend);
    const std::string text =
        "7767517\n3 3\nInput a 0 1 a\nInput b 0 1 b\nMatMul product 2 1 a b y 0=" +
        std::to_string(transposed) + "\n";
    ASSERT_EQ(0, net.load_param_mem(text.c_str()));
    const float none = 0.f;
    ASSERT_EQ(0, net.load_model((const unsigned char*)&none));
    const Mat a = exact_bfloats(depth, rows, 1);
    const Mat b = transposed ? exact_bfloats(depth, columns, 2) : exact_bfloats(columns, depth, 2);
    expect_product(net, a, b, transposed != 0, 1. / 256, 0, 31);
}

TEST_F(VulkanTypes, bf16_products_stay_within_their_bound) {
    for (int depth : {16, 130, 516, 2048})
        for (int transposed : {0, 1}) expect_bf16_product(37, 70, depth, transposed);
}

TEST_F(VulkanTypes, large_bf16_products) {
    if (!units().bfloat16) GTEST_SKIP() << "no matrix units of bf16";
    const int sizes[][3] = {{1601, 768, 264}, {33001, 64, 256}, {2001, 1531, 321}, {6001, 512, 36}};
    for (const auto& size : sizes) expect_bf16_product(size[0], size[1], size[2], 1);
}

// A convolution of int8 whose scales are 1, so that its outputs are the sums.
struct Int8Case {
    int w, h, inputs, outputs, kernel, stride, pad, group;
    bool large;  // the first half of the terms adds up to more than 2^24, the second to -that
};

int input_value(const Int8Case& c, int x, int y, int q) {
    if (c.large) return 127;
    return (x * 31 + y * 17 + q * 7) % 255 - 127;
}
int weight_value(const Int8Case& c, int p, int q, int tap) {
    const int inputs = c.inputs / c.group;
    if (c.large) return q * 2 == inputs ? -126 : q * 2 < inputs ? 127 : -127;
    return (p * 13 + q * 5 + tap * 29) % 7 - 3;
}

// `less`: how far inputs are below the whole numbers, in magnitude, that they are rounded to.
void expect_whole_sums(const Int8Case& c, bool half, float less = 0.f) {
    SCOPED_TRACE(testing::Message()
                 << c.inputs << " x " << c.outputs << ", kernel " << c.kernel << ", stride "
                 << c.stride << (half ? ", f16" : ", f32") << ", inputs less " << less);
    const int taps = c.kernel * c.kernel, inputs = c.inputs / c.group;
    std::vector<float> weights = {0.f};
    for (int p = 0; p < c.outputs; p++)
        for (int q = 0; q < inputs; q++)
            for (int tap = 0; tap < taps; tap++)
                weights.push_back((float)weight_value(c, p, q, tap));
    const std::string size = std::to_string((int)weights.size() - 1);
    for (int i = 0; i < (c.group > 1 ? c.group : c.outputs) + 1; i++) weights.push_back(1.f);
    const std::string text =
        std::string("7767517\n2 2\nInput in 0 1 in\n") +
        (c.group > 1 ? "ConvolutionDepthWise" : "Convolution") +
        " conv 1 1 in out 0=" + std::to_string(c.outputs) + " 1=" + std::to_string(c.kernel) +
        " 3=" + std::to_string(c.stride) + " 4=" + std::to_string(c.pad) + " 6=" + size +
        (c.group > 1 ? " 7=" + std::to_string(c.group) + " 8=1" : " 8=2") + "\n";
    Net net;
    net.opt.num_threads = 1;
    net.opt.use_fp16_storage = half;
    net.opt.use_fp16_arithmetic = true;  // not for int8
    net.add_backend(std::make_shared<ForwardingBackend>(net.opt));
    ASSERT_EQ(0, net.load_param_mem(text.c_str()));
    ASSERT_GT(net.load_model((const unsigned char*)weights.data()), 0);
    Mat in(c.w, c.h, c.inputs), out;
    for (int q = 0; q < c.inputs; q++)
        for (int y = 0; y < c.h; y++)
            for (int x = 0; x < c.w; x++) {
                const float v = (float)input_value(c, x, y, q);
                in.channel(q).row(y)[x] = v > 0 ? v - less : v < 0 ? v + less : v;
            }
    Extractor ex = net.create_extractor();
    ASSERT_EQ(0, ex.input("in", in));
    ASSERT_EQ(0, ex.extract("out", out));
    ASSERT_EQ(c.outputs, out.c);
    for (int p = 0; p < c.outputs; p++)
        for (int y = 0; y < out.h; y++)
            for (int x = 0; x < out.w; x++) {
                int64_t sum = 0;
                for (int q = 0; q < inputs; q++)
                    for (int tap = 0; tap < taps; tap++) {
                        const int at_x = x * c.stride - c.pad + tap % c.kernel;
                        const int at_y = y * c.stride - c.pad + tap / c.kernel;
                        if (at_x < 0 || at_y < 0 || at_x >= c.w || at_y >= c.h) continue;
                        const int from = p / (c.outputs / c.group) * inputs + q;
                        sum += input_value(c, at_x, at_y, from) * weight_value(c, p, q, tap);
                    }
                // What f16 rounds to is exact up to 2048.
                const double bound = half && llabs(sum) > 2048 ? (double)llabs(sum) / 2048 : 0.;
                ASSERT_NEAR((double)sum, (double)out.channel(p).row(y)[x], bound)
                    << p << " " << x << " " << y;
            }
}

TEST_F(VulkanTypes, int8_sums_are_exact) {
    const Int8Case cases[] = {
        {9, 7, 16, 24, 1, 1, 0, 1, false},      {9, 7, 12, 20, 3, 1, 1, 1, false},
        {15, 9, 24, 40, 3, 2, 1, 1, false},     {14, 14, 256, 64, 3, 1, 1, 1, false},
        {7, 7, 520, 96, 1, 1, 0, 1, false},     {56, 56, 64, 64, 1, 1, 0, 1, false},
        {31, 30, 3, 32, 7, 2, 3, 1, false},     {12, 12, 64, 64, 3, 1, 1, 4, false},
        {112, 112, 32, 128, 3, 1, 1, 1, false}, {12, 12, 24, 36, 3, 1, 1, 3, false}};
    for (const Int8Case& c : cases)
        for (bool half : {false, true})
            // A half is rounded away from zero.
            for (float less : {0.f, 0.25f, 0.5f}) expect_whole_sums(c, half, less);
}

// Prior boxes are constants in f32, whatever the host made of the inputs that came before them.
TEST_F(VulkanTypes, constants_behind_inputs_in_halves) {
    const char* const text =
        "7767517\n3 3\nInput in 0 1 in\n"
        "Convolution conv 1 1 in a 0=8 1=3 4=1 6=288\n"
        "PriorBox prior 1 1 a out -23300=1,60 -23302=1,2 9=320 10=240 13=0.5\n";
    Mat in(8, 8, 4), got[2];
    in.fill(0.5f);
    for (bool gpu : {false, true}) {
        Net net;
        net.opt.use_vulkan_compute = gpu;
        net.opt.use_fp16_storage = true;
        ASSERT_EQ(0, net.load_param_mem(text));
        ASSERT_EQ(0, net.load_model(RandomWeights()));
        Extractor ex = net.create_extractor();
        ASSERT_EQ(0, ex.input("in", in));
        ASSERT_EQ(0, ex.extract("out", got[gpu]));
    }
    ASSERT_EQ(got[0].total(), got[1].total());
    for (size_t i = 0; i < got[0].total(); i++)
        ASSERT_NEAR(got[0][i], got[1][i], 1e-3 * std::max(1.f, fabsf(got[0][i]))) << i;
}

TEST_F(VulkanTypes, int8_sums_beyond_floats) {
    if (!units().int8_k) GTEST_SKIP() << "no matrix units of int8";
    expect_whole_sums({9, 9, 512, 32, 3, 1, 0, 1, true}, true);
    expect_whole_sums({9, 9, 4096, 64, 1, 1, 0, 1, true}, true);
}

}  // namespace
}  // namespace quoll
