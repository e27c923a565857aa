// Nets with a Vulkan device as back end: the answers of the CPU, whole networks in one region,
// sizes that change, several threads, blobs of f16. Skipped where there is no device.
#include <stdlib.h>

#include <atomic>
#include <iterator>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "beyond_limits.h"
#include "gpu/device.h"
#include "gpu/limit_options.h"
#include "layer/vulkan/compiled_region.h"
#include "layer/vulkan/conv_tiles.h"
#include "layer/vulkan/vulkan_backend.h"
#include "layer/vulkan/winograd_vulkan.h"
#include "log_test.h"
#include "product_check.h"
#include "quoll/gpu.h"
#include "quoll/log.h"
#include "quoll/net.h"
#include "runtime/log_mute.h"
#include "vulkan_beside_cpu.h"

namespace quoll {
namespace {

class VulkanGraph : public Vulkan, public testing::WithParamInterface<const char*> {};

TEST_P(VulkanGraph, gives_the_answers_of_the_cpu) {
    const std::string text = graph(GetParam());
    const VulkanNet cpu(text, false), gpu(text, true);
    for (int size : {96, 64, 96}) {
        const double most = difference(gpu.run(size), cpu.run(size));
        printf("%s %d: differs by %.2g of the range\n", GetParam(), size, most);
        EXPECT_LT(most, 1e-5);
    }
    // A region for each size, whose steps are all there are.
    EXPECT_EQ(2, gpu.backend->regions);
    EXPECT_EQ("", gpu.backend->refused);
}

// f16 keeps 11 bits: the errors of some hundred layers in a row, which are random, stay below 5 %.
TEST_P(VulkanGraph, f16_blobs) {
    const std::string text = graph(GetParam());
    const VulkanNet cpu(text, false), gpu(text, true, true);
    const double most = difference(gpu.run(96), cpu.run(96));
    printf("%s f16: differs by %.2g of the range\n", GetParam(), most);
    EXPECT_LT(most, 0.05);
}

// All products are of halves, and the answers as near as with products of floats.
TEST_P(VulkanGraph, f16_arithmetic) {
    if (!get_gpu_info().support_fp16_arithmetic()) GTEST_SKIP() << "no arithmetic of halves";
    const std::string text = graph(GetParam());
    const VulkanNet cpu(text, false), gpu(text, true, true, true);
    const double most = difference(gpu.run(96), cpu.run(96));
    printf("%s f16 arithmetic: differs by %.2g of the range\n", GetParam(), most);
    EXPECT_LT(most, 0.05);
    EXPECT_LT(0, gpu.backend->count("conv_tiled_half"));
    for (const char* shader :
         {"conv_tiled", "conv_tiled_planar", "conv_depthwise", "innerproduct", "product"})
        EXPECT_EQ(0, gpu.backend->count(shader)) << shader;
}

INSTANTIATE_TEST_SUITE_P(Bundled, VulkanGraph,
                         testing::Values("squeezenet", "mobilenet_v2", "resnet18", "shufflenet_v2"),
                         [](const testing::TestParamInfo<const char*>& info) {
                             return std::string(info.param);
                         });

// ctest runs this program once more with the validation layer; its messages are looked for there.
// That the layer is there and speaks up is seen here: a buffer of no bytes is against the rules.
TEST_F(Vulkan, validation_speaks_when_it_should) {
    if (!getenv("QUOLL_EXPECT_VALIDATION")) GTEST_SKIP() << "run without the validation layer";
    testing::internal::CaptureStdout();
    {
        const std::shared_ptr<GpuDevice> device = open_gpu(get_default_gpu_index());
        ASSERT_TRUE(device != nullptr);
        VkBufferCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                   nullptr,
                                   0,
                                   0,
                                   0,
                                   VK_SHARING_MODE_EXCLUSIVE,
                                   0,
                                   nullptr};
        VkBuffer buffer = VK_NULL_HANDLE;
        if (device->vk().CreateBuffer(device->handle(), &info, nullptr, &buffer) == VK_SUCCESS)
            device->vk().DestroyBuffer(device->handle(), buffer, nullptr);
    }
    EXPECT_NE(std::string::npos, testing::internal::GetCapturedStdout().find("VUID-"));
}

TEST_F(Vulkan, out_of_memory_is_an_error_beyond_limits) {
    const std::shared_ptr<GpuDevice> device = open_gpu(get_default_gpu_index());
    ASSERT_TRUE(device != nullptr);
    if (forbidden_by_validation()) GTEST_SKIP() << "such sizes are against the rules";
    const LogMute mute;
    for (MemoryUse use : {MemoryUse::kDevice, MemoryUse::kWeights, MemoryUse::kUpload})
        EXPECT_EQ(nullptr, GpuBuffer::create(*device, use, (size_t)1 << 46));
    EXPECT_NE(nullptr, GpuBuffer::create(*device, MemoryUse::kDevice, 1024));
}

// A region of a chain of two layers, by hand: dispatches, barriers between them, times of each.
TEST_F(Vulkan, profile_times_each_dispatch) {
    Option opt;
    opt.num_threads = 1;
    const std::unique_ptr<VulkanBackend> backend =
        VulkanBackend::create(get_default_gpu_index(), opt);
    ASSERT_TRUE(backend != nullptr);
    const std::unique_ptr<Layer> relu(create_layer_reference("ReLU"));
    const std::unique_ptr<Layer> sigmoid(create_layer_reference("Sigmoid"));
    ASSERT_EQ(0, relu->load_param(ParamDict()));
    ASSERT_EQ(0, backend->prepare(*relu, opt));
    ASSERT_EQ(0, backend->prepare(*sigmoid, opt));
    Region region;
    for (int i = 0; i < 3; i++) {
        RegionValue value;
        value.blob = i, value.shape = Shape(16, 16, 6), value.made = i - 1, value.last_read = i;
        value.is_downloaded = i == 2;
        region.values.push_back(value);
    }
    region.steps = {RegionStep{relu.get(), {0}, {1}}, RegionStep{sigmoid.get(), {1}, {2}}};
    const std::shared_ptr<const CompiledRegion> compiled = backend->compile(region, opt);
    ASSERT_TRUE(compiled != nullptr);
    const VulkanRegion& vulkan = static_cast<const VulkanRegion&>(*compiled);
    std::vector<int> steps;
    std::vector<bool> barriers;
    for (const Dispatch& dispatch : vulkan.program().dispatches) {
        steps.push_back(dispatch.step);
        barriers.push_back(dispatch.barrier_before);
    }
    EXPECT_EQ((std::vector<int>{-1, 0, 1, 1}), steps);  // with the upload and the download
    EXPECT_EQ((std::vector<bool>{false, true, true, true}), barriers);
    EXPECT_GE(vulkan.arena_bytes(), 2 * 16 * 16 * 8 * sizeof(float));
    EXPECT_LT(vulkan.arena_bytes(), 3 * 16 * 16 * 8 * sizeof(float));
    RegionTimes times;
    const std::vector<double>& seconds = times.dispatches;
    std::vector<Mat> downloads;
    Mat six(16, 16, 6);
    six.fill(1.f);
    ASSERT_EQ(0, vulkan.run_timed({six}, &downloads, Option(), &times));
    ASSERT_EQ(4u, seconds.size());
    double sum = 0;
    for (double s : seconds) {
        EXPECT_GE(s, 0);
        sum += s;
    }
    // Mesa's software device writes all timestamps at the end.
    if (get_gpu_info().type() != 3) {
        EXPECT_GT(sum, 0);
    }
}

// Values that f16 holds exactly, none of them alike for long.
Mat exact_halves(int w, int h, int seed) {
    Mat m(w, h);
    for (int i = 0; i < w * h; i++) m[(size_t)i] = (float)((i * 37 + seed * 11) % 127 - 63) / 64.f;
    return m;
}

// Sums of exact products in fp32, of any order, then rounded to f16: on matrix units where the
// device has them. Depths that are and are not whole vec4s, and that are divided among groups.
TEST_F(Vulkan, f16_products_stay_within_their_bound) {
    for (int depth : {16, 130, 516, 2048}) {
        for (int transposed : {0, 1}) {
            Net net;
            net.opt.num_threads = 1;
            net.opt.use_fp16_storage = true;
            net.add_backend(std::make_shared<CountingBackend>(net.opt));
            const std::string text =
                "7767517\n3 3\nInput a 0 1 a\nInput b 0 1 b\nMatMul product 2 1 a b y 0=" +
                std::to_string(transposed) + "\n";
            ASSERT_EQ(0, net.load_param_mem(text.c_str()));
            ASSERT_EQ(0, net.load_model(RandomWeights()));
            const int rows = 37, columns = 70;
            const Mat a = exact_halves(depth, rows, 1);
            const Mat b =
                transposed ? exact_halves(depth, columns, 2) : exact_halves(columns, depth, 2);
            expect_product(net, a, b, transposed != 0, 1. / 2048, 1e-7, 1);
        }
    }
}

// The bound of docs/vulkan.md, "Half floats". Positive terms, of which groups of 16 would be lost
// beside sums of halves of 8192 and more. Few rows are those of innerproduct.comp.
TEST_F(Vulkan, products_of_halves_stay_within_their_bound) {
    if (!get_gpu_info().support_fp16_arithmetic()) GTEST_SKIP() << "no arithmetic of halves";
    const ConvTiling undivided = {conv_tiles(false)[0], 1};
    for (int depth : {16, 130, 516, 65536}) {
        for (int rows : {7, 37}) {
            Net net;
            net.opt.num_threads = 1;
            net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = true;
            net.opt.use_cooperative_matrix = false;
            const auto backend = std::make_shared<CountingBackend>(net.opt);
            net.add_backend(backend);
            ASSERT_EQ(0, net.load_param_mem("7767517\n3 3\nInput a 0 1 a\nInput b 0 1 b\n"
                                            "MatMul product 2 1 a b y 0=1\n"));
            ASSERT_EQ(0, net.load_model(RandomWeights()));
            Mat a = exact_halves(depth, rows, 1), b = exact_halves(depth, 70, 2);
            for (Mat* m : {&a, &b})
                for (size_t i = 0; i < m->total(); i++) (*m)[i] = fabsf((*m)[i]);
            if (depth > 10000) force_tiling(&undivided);
            expect_product(net, a, b, true, 1. / 2048, 1e-7 + depth * 2. / 16384, 1,
                           pow(1 + 1. / 1024, 16) - 1);
            force_tiling(nullptr);
            const bool few = rows < 8 && depth % 4 == 0;
            EXPECT_EQ(1, backend->count(few ? "innerproduct_half" : "product_half"));
        }
    }
}

// A net turns off what its device cannot do, and says so.
TEST(VulkanOptions, are_limited_to_the_device) {
    log_test::g_log.clear();
    set_log_sink(log_test::collect, nullptr);
    const LogLevel before = get_log_level();
    set_log_level(kLogInfo);
    Option opt;
    opt.use_fp16_arithmetic = true;
    limit_options(GpuInfo(), &opt);
    set_log_level(before);
    set_log_sink(nullptr, nullptr);
    EXPECT_FALSE(opt.use_fp16_arithmetic);
    EXPECT_FALSE(opt.use_fp16_storage);
    EXPECT_NE(std::string::npos, log_test::g_log.find("cannot follow use_fp16_arithmetic"));
    EXPECT_EQ(std::string::npos, log_test::g_log.find("use_fp16_storage"));
}

// y = a b in f16, some rows of it against the sums in double.
void expect_large_product(int rows, int columns, int depth) {
    Net net;
    net.opt.num_threads = 1;
    net.opt.use_fp16_storage = true;
    net.add_backend(std::make_shared<CountingBackend>(net.opt));
    ASSERT_EQ(0, net.load_param_mem("7767517\n3 3\nInput a 0 1 a\nInput b 0 1 b\n"
                                    "MatMul product 2 1 a b y 0=1\n"));
    ASSERT_EQ(0, net.load_model(RandomWeights()));
    const Mat a = exact_halves(depth, rows, 1), b = exact_halves(depth, columns, 2);
    expect_product(net, a, b, true, 1. / 2048, 1e-7, rows > 100 ? 31 : 1);
}

// Products that fill a device several times, for each tile of conv_tiles.cpp that they may have
// there: wide, tall, shallow; sizes that fill no tile.
TEST_F(Vulkan, large_products_on_matrix_units) {
    if (!get_gpu_info().support_cooperative_matrix()) GTEST_SKIP() << "no matrix units";
    const int sizes[][3] = {{1601, 768, 264},  {1601, 761, 257},  {33001, 64, 256},
                            {2001, 1536, 320}, {2001, 1531, 321}, {6001, 510, 64},
                            {6001, 512, 36},   {197, 768, 768}};
    for (const auto& size : sizes) expect_large_product(size[0], size[1], size[2]);
}

// Each tile and division that tuning may choose.
TEST_F(Vulkan, all_tiles_on_matrix_units) {
    if (!get_gpu_info().support_cooperative_matrix()) GTEST_SKIP() << "no matrix units";
    for (const ConvTile& tile : conv_tiles(true)) {
        for (int splits : {1, 2, 5}) {
            const ConvTiling tiling = {tile, splits};
            force_tiling(&tiling);
            expect_large_product(201, 137, 1030);
            force_tiling(nullptr);
        }
    }
}

// Tiles of product.comp take no more shared memory than a device has, and tuning, which also goes
// through those of matrix units, has no others for it.
TEST_F(Vulkan, tiles_fit_the_shared_memory) {
    const std::shared_ptr<GpuDevice> device = open_gpu(get_default_gpu_index());
    ASSERT_TRUE(device != nullptr);
    uint32_t& shared =
        const_cast<VkPhysicalDeviceLimits&>(device->limits()).maxComputeSharedMemorySize;
    const uint32_t own = shared;
    Program program;
    WeightStore constants(*device, 4096);
    Recorder recorder(*device, Storage::f32, Option(), &program, &constants);
    const ConvProduct large = {4096, 4096, 64, 1};
    const ConvTiling forced = {conv_tiles(false)[1], 1};
    for (const uint32_t kilobytes : {16, 32}) {
        shared = kilobytes << 10;
        const int rows = kilobytes == 16 ? 32 : 64;
        EXPECT_EQ(rows, choose_tiling(recorder, Shader::product, false, large).tile.rows);
        force_tiling(&forced);
        EXPECT_EQ(rows, choose_tiling(recorder, Shader::product, false, large).tile.rows);
        force_tiling(nullptr);
    }
    shared = own;
    for (const ConvTile& tile : conv_tiles(true)) {
        const ConvTiling of_units = {tile, 1};
        force_tiling(&of_units);
        const ConvTile made = choose_tiling(recorder, Shader::product, false, large).tile;
        force_tiling(nullptr);
        EXPECT_EQ(16, made.depth);
    }
}

// A weight that is a blob, read in both layouts and by several layers, in the middle of a region.
// Products large enough for conv_window.comp: pixels and rows that fill no tile, windows without
// padding and of 2x3, channels of half a large tile, a blob that is added.
TEST_F(Vulkan, large_windows_on_matrix_units) {
    if (!get_gpu_info().support_cooperative_matrix()) GTEST_SKIP() << "no matrix units";
    force_winograd(0);
    const std::string text =
        "7767517\n9 10\nInput in 0 1 in\n"
        "Convolution c1 1 1 in a 0=64 1=3 4=1 5=1 6=1728 9=1\n"
        "Convolution c2 1 1 a b 0=128 1=3 4=1 5=1 6=73728 9=1\n"
        "Convolution c3 1 1 b c 0=96 1=3 5=1 6=110592 9=1\n"
        "Convolution c4 1 1 c d 0=128 1=1 6=12288\n"
        "Split split 1 2 d d1 d2\n"
        "Convolution c5 1 1 d1 e 0=128 1=3 4=1 6=147456\n"
        "BinaryOp sum 2 1 e d2 f 0=0\n"
        "Convolution c6 1 1 f out 0=64 1=2 11=3 5=1 6=49152 9=2 -23310=1,0.1\n";
    const VulkanNet cpu(text, false), gpu(text, true, true);
    EXPECT_LT(difference(gpu.run(91), cpu.run(91)), 5e-3);
    EXPECT_EQ(4, gpu.backend->count("conv_window")) << gpu.backend->shaders;
    force_winograd(-1);
}

// Fewer outputs than a large tile has.
TEST_F(Vulkan, large_windows_of_few_outputs) {
    if (!get_gpu_info().support_cooperative_matrix()) GTEST_SKIP() << "no matrix units";
    force_winograd(0);
    const std::string text =
        "7767517\n3 3\nInput in 0 1 in\n"
        "Convolution c1 1 1 in a 0=64 1=1 5=1 6=192\n"
        "Convolution c2 1 1 a out 0=32 1=3 4=1 5=1 6=18432 9=1\n";
    const VulkanNet cpu(text, false), gpu(text, true, true);
    EXPECT_LT(difference(gpu.run(135), cpu.run(135)), 5e-3);
    EXPECT_EQ(1, gpu.backend->count("conv_window")) << gpu.backend->shaders;
    force_winograd(-1);
}

// Those with fewer multiplications, whose rows lie end to end: divided depths, groups, windows
// without padding and of 2x3, a blob that is added.
TEST_F(Vulkan, few_windows_on_matrix_units) {
    if (!get_gpu_info().support_cooperative_matrix()) GTEST_SKIP() << "no matrix units";
    force_winograd(0);
    const std::string text =
        "7767517\n8 9\nInput in 0 1 in\n"
        "Convolution c1 1 1 in a 0=128 1=3 3=3 4=1 5=1 6=3456 9=1\n"
        "Convolution c2 1 1 a b 0=256 1=3 4=1 5=1 6=294912 9=1\n"
        "Split split 1 2 b b1 b2\n"
        "ConvolutionDepthWise c3 1 1 b1 c 0=256 1=3 4=1 5=1 6=294912 7=2\n"
        "BinaryOp sum 2 1 c b2 d 0=0\n"
        "Convolution c4 1 1 d e 0=192 1=3 5=1 6=442368 9=1\n"
        "Convolution c5 1 1 e out 0=384 1=2 11=3 5=1 6=442368 9=2 -23310=1,0.1\n";
    for (int size : {45, 46, 60}) {
        const VulkanNet cpu(text, false), gpu(text, true, true);
        EXPECT_LT(difference(gpu.run(size), cpu.run(size)), 5e-3);
        EXPECT_EQ(4, gpu.backend->count("conv_window")) << gpu.backend->shaders;
    }
    force_winograd(-1);
}

// 2.1 million pixels are more tiles than groups can be along an axis of some devices.
TEST_F(Vulkan, images_of_many_pixels) {
    const char* const text =
        "7767517\n2 2\nInput in 0 1 in\n"
        "Convolution conv 1 1 in out 0=4 1=3 4=1 5=1 6=108\n";
    const VulkanNet cpu(text, false), gpu(text, true);
    EXPECT_LT(difference(gpu.run(1449), cpu.run(1449)), 1e-5);
}

// NaN of either sign stays, and only in its windows; infinities of both signs are values.
TEST_F(Vulkan, pooling_keeps_what_is_not_finite) {
    Mat in(27, 26, 3);
    for (int q = 0; q < 3; q++) {
        float* values = in.channel(q);
        for (int i = 0; i < 27 * 26; i++) values[i] = (float)((i * 37 + q) % 101) - 50.f;
        values[100 * q + 31] = NAN, values[100 * q + 200] = -NAN;
        values[100 * q + 300] = INFINITY, values[100 * q + 302] = values[0] = -INFINITY;
    }
    for (const char* window : {"1=3 2=2 5=0", "1=3 2=1 3=1 5=1", "1=2 2=2", "1=2 2=3 3=1 5=1",
                               "1=2 2=1 3=3 5=1", "1=1 2=1 3=1 5=1"}) {
        const std::string text =
            "7767517\n3 3\nInput in 0 1 in\n"
            "ConvolutionDepthWise deep 1 1 in a 0=3 1=3 4=1 6=27 7=3\n"
            "Pooling pool 1 1 a out 0=0 " +
            std::string(window) + "\n";
        const VulkanNet cpu(text, false), gpu(text, true);
        Mat want, got;
        for (const VulkanNet* net : {&cpu, &gpu}) {
            Extractor ex = net->net.create_extractor();
            ASSERT_EQ(0, ex.input("in", in));
            ASSERT_EQ(0, ex.extract("out", net == &cpu ? want : got));
        }
        EXPECT_EQ(1, gpu.backend->count("pool")) << window;
        int nans = 0, infinities = 0;
        for (int q = 0; q < 3; q++)
            for (int i = 0; i < want.w * want.h; i++) {
                const float a = want.channel(q)[i], b = got.channel(q)[i];
                nans += isnan(a), infinities += isinf(a);
                EXPECT_TRUE(isnan(a) ? isnan(b) : a == b || fabsf(a - b) < 1e-4f) << a << " " << b;
            }
        EXPECT_GT(nans, 0);
        EXPECT_GT(infinities, 0);
    }
}

// A channel with NaN has no length, whatever its least one is.
TEST_F(Vulkan, lengths_of_nan) {
    for (const char* mode : {"0", "1", "2"}) {
        const std::string text =
            "7767517\n3 3\nInput in 0 1 in\n"
            "ConvolutionDepthWise deep 1 1 in a 0=3 1=3 4=1 6=27 7=3\n"
            "Normalize norm 1 1 a out 0=1 4=0 1=1 2=0.01 3=1 9=" +
            std::string(mode) + "\n";
        const VulkanNet gpu(text, true);
        Mat in = image(9, 0), out;
        in.channel(1)[40] = NAN;
        Extractor ex = gpu.net.create_extractor();
        ASSERT_EQ(0, ex.input("in", in));
        ASSERT_EQ(0, ex.extract("out", out));
        EXPECT_EQ(1, gpu.backend->count("normalize"));
        for (int q = 0; q < 3; q++)
            for (int i = 0; i < 81; i++) EXPECT_EQ(q == 1, isnan(out.channel(q)[i])) << mode;
    }
}

// Vulkan's division may be off by 2.5 units in the last place, which whole numbers must not show.
TEST_F(Vulkan, quotients_are_those_of_the_cpu) {
    // The convolution changes nothing: without one the device would not be worth its copies.
    const char* const text =
        "7767517\n4 4\nInput a 0 1 a\nInput b 0 1 b\nBinaryOp divide 2 1 a b q 0=3\n"
        "ConvolutionDepthWise deep 1 1 q out 0=3 1=5 4=2 6=75 7=3\n";
    float weights[1 + 3 * 25] = {};
    for (int q = 0; q < 3; q++) weights[1 + q * 25 + 12] = 1.f;
    Net net;
    const auto backend = std::make_shared<CountingBackend>(net.opt);
    net.add_backend(backend);
    ASSERT_EQ(0, net.load_param_mem(text));
    ASSERT_GT(net.load_model((const unsigned char*)weights), 0);
    Mat a(64, 64, 3), b(64, 64, 3), out;
    uint32_t state = 1;
    const auto random = [&] { return (state = state * 1664525u + 1013904223u) >> 8; };
    for (int q = 0; q < 3; q++)
        for (int i = 0; i < 64 * 64; i++) {
            float &x = a.channel(q)[i], &y = b.channel(q)[i];
            if (q < 2) {  // exact ones, half of them half way between two whole numbers
                y = (float)(random() % 4095 + 1) / 65536.f;
                x = (float)(i % 2047 + 1) * 0.5f * y;
            } else {
                y = (float)(random() + 1) * 1e-9f;
                x = (float)(random() % 2 ? 1 : -1) * (float)(random() + 1) * 1e-6f;
            }
        }
    Extractor ex = net.create_extractor();
    ASSERT_EQ(0, ex.input("a", a));
    ASSERT_EQ(0, ex.input("b", b));
    ASSERT_EQ(0, ex.extract("out", out));
    EXPECT_EQ(1, backend->count("binary") + backend->count("binary_strided"));
    int others = 0;
    for (int q = 0; q < 3; q++)
        for (int i = 0; i < 64 * 64; i++) {
            const float want = a.channel(q)[i] / b.channel(q)[i], got = out.channel(q)[i];
            others += want != got;
            ASSERT_TRUE(q == 2 || want == got) << q << " " << i << ": " << got << ", not " << want;
        }
    EXPECT_LE(others, 2);
}

// A point that is NaN is the edge, as on the CPU.
TEST_F(Vulkan, points_of_nan) {
    for (const char* sampling : {"1", "2", "3"}) {
        const std::string text =
            "7767517\n4 4\nInput in 0 1 in\nInput grid 0 1 grid\n"
            "ConvolutionDepthWise deep 1 1 in a 0=3 1=3 4=1 6=27 7=3\n"
            "GridSample sample 2 1 a grid out 1=1 0=" +
            std::string(sampling) + "\n";
        const VulkanNet cpu(text, false), gpu(text, true);
        Mat grid(2, 9, 9), outs[2];
        for (int q = 0; q < 9; q++)
            for (int i = 0; i < 18; i++) grid.channel(q)[i] = (float)((i + q) % 7 - 3) * 0.37f;
        grid.channel(4)[8] = grid.channel(5)[3] = NAN;
        for (const bool on_gpu : {false, true}) {
            Extractor ex = (on_gpu ? gpu : cpu).net.create_extractor();
            ASSERT_EQ(0, ex.input("in", image(9, 0)));
            ASSERT_EQ(0, ex.input("grid", grid));
            ASSERT_EQ(0, ex.extract("out", outs[on_gpu]));
        }
        EXPECT_LT(difference({outs[1]}, {outs[0]}), 1e-5) << sampling;
        EXPECT_EQ(1, gpu.backend->count("gridsample"));
    }
}

TEST_F(Vulkan, constants_end_no_region) {
    const char* const text =
        "7767517\n8 10\nInput in 0 1 in\n"
        "Convolution conv 1 1 in a 0=8 1=3 4=1 5=1 6=216\n"
        "MemoryData data 0 1 m 0=16 1=16 2=8 21=1\n"
        "Split split 1 2 m m1 m2\n"
        "BinaryOp sum 2 1 a m1 b 0=0\n"
        "Permute turned 1 1 m2 mt 0=1\n"
        "BinaryOp product 2 1 b mt c 0=2\n"
        "Convolution last 1 1 c out 0=4 1=3 4=1 5=1 6=288\n";
    for (bool half : {false, true}) {
        const VulkanNet cpu(text, false), gpu(text, true, half);
        EXPECT_LT(difference(gpu.run(16), cpu.run(16)), half ? 5e-3 : 1e-5);
        EXPECT_EQ(1, gpu.backend->regions);
    }
}

TEST_F(Vulkan, threads_share_a_net) {
    const VulkanNet gpu(graph("squeezenet"), true);
    std::vector<std::vector<Mat>> want;
    for (int seed = 0; seed < 4; seed++) want.push_back(gpu.run(64, seed));
    EXPECT_GT(difference(want[0], want[1]), 1e-3);  // else the test says nothing
    std::atomic<int> wrong(0);
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; t++) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 4; i++)
                if (difference(gpu.run(64, (t + i) % 4), want[(t + i) % 4]) != 0) wrong++;
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(0, wrong);
}

// Through the option alone; and the option without a device that there is.
TEST_F(Vulkan, option_of_a_net) {
    const std::string text = graph("squeezenet");
    const VulkanNet gpu(text, true);
    const std::vector<Mat> want = gpu.run(64);
    for (int device : {-1, 999}) {
        VulkanNet by_option(text, false);
        by_option.net.clear();
        by_option.net.opt.use_vulkan_compute = true;
        by_option.net.set_vulkan_device(device);
        const LogMute mute;
        for (int again = 0; again < 2; again++) {
            ASSERT_EQ(0, by_option.net.load_param_mem(text.c_str()));
            ASSERT_EQ(0, by_option.net.load_model(RandomWeights()));
            // The same bits on the device, others on the CPU.
            EXPECT_EQ(device < 0, difference(by_option.run(64), want) == 0);
            EXPECT_LT(difference(by_option.run(64), want), 1e-5);
        }
    }
}

TEST_F(Vulkan, nets_outlive_the_instance) {
    const VulkanNet gpu(graph("squeezenet"), true);
    const std::vector<Mat> want = gpu.run(64);
    destroy_gpu_instance();
    EXPECT_EQ(0, difference(gpu.run(64), want));
    const VulkanNet again(graph("squeezenet"), true);
    EXPECT_EQ(0, difference(again.run(64), want));
}

}  // namespace
}  // namespace quoll
