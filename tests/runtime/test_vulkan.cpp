// Nets with a Vulkan device as back end: the answers of the CPU, whole networks in one region,
// sizes that change, several threads, blobs of f16. Skipped where there is no device.
#include <math.h>
#include <stdlib.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "forwarding_backend.h"
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
#include "random_weights.h"
#include "runtime/log_mute.h"

namespace quoll {
namespace {

// A bundled graph for inputs of any size, without the softmax at its end, which makes all answers
// alike.
std::string graph(const std::string& name) {
    std::ifstream file("benchmark/models/" + name + ".param");
    std::string magic, line, layers;
    int layer_count = 0, blob_count = 0;
    std::getline(file, magic);
    file >> layer_count >> blob_count;
    std::getline(file, line);
    while (std::getline(file, line)) {
        if (line.compare(0, 8, "Softmax ") == 0) {
            layer_count--, blob_count--;
            continue;
        }
        layers += line + "\n";
    }
    if (layer_count < 2) throw std::runtime_error(name + ".param: run from the source tree");
    layers = std::regex_replace(layers, std::regex("( *0=[0-9]+ 1=[0-9]+ 2=[0-9]+)(?=\n)"), "",
                                std::regex_constants::format_first_only);
    return magic + "\n" + std::to_string(layer_count) + " " + std::to_string(blob_count) + "\n" +
           layers;
}

// Of large values: with random weights answers depend little on small ones.
Mat image(int size, int seed) {
    Mat m(size, size, 3);
    for (int q = 0; q < m.c; q++)
        for (int i = 0; i < size * size; i++)
            m.channel(q)[i] = (float)((i * 37 + q * 11 * (seed + 1) + size) % 101 - 50) * 2.f;
    return m;
}

// Counts what it gives on to the device, and names the layers that it refuses.
class CountingBackend : public ForwardingBackend {
public:
    using ForwardingBackend::ForwardingBackend;
    bool supports(const Layer& layer, const std::vector<Shape>& in,
                  const std::vector<Shape>& out) const override {
        const bool yes = ForwardingBackend::supports(layer, in, out);
        if (!yes) refused += " " + layer.type + " " + layer.name;
        return yes;
    }
    std::shared_ptr<const CompiledRegion> compile(const Region& region,
                                                  const Option& opt) const override {
        regions++;
        const auto compiled = ForwardingBackend::compile(region, opt);
        for (const Dispatch& dispatch : as_vulkan(*compiled).program().dispatches)
            shaders += std::string(" ") + shader_name(dispatch.key.shader);
        return compiled;
    }
    // Dispatches of a shader.
    int count(const std::string& shader) const {
        int count = 0;
        std::istringstream words(shaders);
        for (std::string word; words >> word;) count += word == shader;
        return count;
    }
    mutable int regions = 0;
    mutable std::string refused, shaders;
};

class VulkanNet {
public:
    VulkanNet(const std::string& text, bool gpu, bool half = false, bool arithmetic = false) {
        net.opt.num_threads = 1;
        net.opt.use_fp16_storage = half;
        net.opt.use_fp16_arithmetic = arithmetic;
        net.opt.use_cooperative_matrix = !arithmetic;
        if (gpu) {
            backend = std::make_shared<CountingBackend>(net.opt);
            net.add_backend(backend);
        }
        EXPECT_EQ(0, net.load_param_mem(text.c_str()));
        EXPECT_EQ(0, net.load_model(RandomWeights()));
    }
    std::vector<Mat> run(int size, int seed = 0) const {
        Extractor ex = net.create_extractor();
        std::vector<Mat> outs;
        EXPECT_EQ(0, ex.input(net.input_indexes()[0], image(size, seed)));
        for (int blob : net.output_indexes()) {
            outs.emplace_back();
            EXPECT_EQ(0, ex.extract(blob, outs.back()));
        }
        return outs;
    }
    Net net;
    std::shared_ptr<CountingBackend> backend;
};

// The largest difference, of the largest value of `want`.
double difference(const std::vector<Mat>& got, const std::vector<Mat>& want) {
    double range = 0, most = 0;
    for (size_t k = 0; k < want.size(); k++) {
        if (got[k].logical_shape() != want[k].logical_shape()) return INFINITY;
        for (int q = 0; q < want[k].c; q++) {
            const float *a = got[k].channel(q), *b = want[k].channel(q);
            for (int i = 0; i < want[k].w * want[k].h * want[k].d; i++) {
                range = std::max(range, (double)fabsf(b[i]));
                most = std::max(most, (double)fabsf(a[i] - b[i]));
                if (!isfinite(a[i])) return INFINITY;
            }
        }
    }
    return range > 0 ? most / range : INFINITY;
}

class Vulkan : public testing::Test {
protected:
    void SetUp() override {
        if (get_gpu_count() == 0) GTEST_SKIP() << "no Vulkan device";
    }
};

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

TEST_F(Vulkan, out_of_memory_is_an_error) {
    const std::shared_ptr<GpuDevice> device = open_gpu(get_default_gpu_index());
    ASSERT_TRUE(device != nullptr);
    if (getenv("QUOLL_EXPECT_VALIDATION")) GTEST_SKIP() << "such sizes are against the rules";
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

// The answers of the CPU, in f32 and f16, and how often a shader is dispatched.
void check_fused(const char* layers, int size, const std::map<std::string, int>& dispatches) {
    const std::string text = std::string("7767517\n") + layers;
    for (bool half : {false, true}) {
        const VulkanNet cpu(text, false), gpu(text, true, half);
        EXPECT_LT(difference(gpu.run(size), cpu.run(size)), half ? 5e-3 : 1e-5);
        EXPECT_EQ(1, gpu.backend->regions);
        for (const auto& shader : dispatches)
            EXPECT_EQ(shader.second, gpu.backend->count(shader.first))
                << shader.first << " of" << gpu.backend->shaders;
    }
}

TEST_F(Vulkan, the_last_layer_stores_what_the_host_reads) {
    check_fused(
        "4 4\nInput in 0 1 in\n"
        "Convolution conv 1 1 in a 0=64 1=5 4=2 5=1 6=4800 9=1\n"
        "Pooling mean 1 1 a m 0=1 4=1\n"
        "Softmax softmax 1 1 m out\n",
        15, {{"softmax", 1}, {"download", 0}});
}

// A depthwise convolution adds up its pixels, of which the inner product takes the average; inputs
// in groups of 8, of 4, and others. So does a window of all pixels.
TEST_F(Vulkan, inner_products_take_averages) {
    for (int channels : {24, 20, 21}) {
        const char* const pool = channels == 20 ? "1=17 3=0" : channels == 21 ? "7=1 8=1" : "4=1";
        char layers[400];
        snprintf(layers, sizeof(layers),
                 "6 6\nInput in 0 1 in\n"
                 "Convolution conv 1 1 in a 0=%d 1=3 5=1 6=%d 9=1\n"
                 "ConvolutionDepthWise deep 1 1 a b 0=%d 1=3 4=1 5=1 6=%d 7=%d 9=1\n"
                 "Pooling mean 1 1 b c 0=1 %s\n"
                 "Reshape flat 1 1 c d 0=-1\n"
                 "InnerProduct classes 1 1 d out 0=10 1=1 2=%d\n",
                 channels, 27 * channels, channels, 9 * channels, channels, pool, 10 * channels);
        check_fused(layers, 19, {{"pool_global", 0}, {"pool_parts", 0}, {"innerproduct", 1}});
    }
}

// A window of all pixels is none that slides; one that counts its padding is.
TEST_F(Vulkan, windows_of_all_pixels) {
    const char* const conv =
        "3 3\nInput in 0 1 in\nConvolution conv 1 1 in a 0=12 1=3 5=1 6=324 9=1\n";
    for (const char* window : {"0=1 1=17", "0=0 1=17", "0=1 7=1 8=1", "0=0 7=1 8=1"})
        check_fused((conv + std::string("Pooling pool 1 1 a out ") + window + "\n").c_str(), 19,
                    {{"pool_global", 1}, {"pool", 0}});
    for (const char* window : {"0=1 1=19 3=1 6=1", "0=1 1=16", "0=1 1=17 11=16"})
        check_fused((conv + std::string("Pooling pool 1 1 a out ") + window + "\n").c_str(), 19,
                    {{"pool_global", 0}, {"pool", 1}});
}

// So does a softmax, of more values than threads too; one along an axis of one value is by itself.
TEST_F(Vulkan, softmax_takes_averages) {
    const auto layers = [](int channels, const std::string& behind) {
        char text[400];
        snprintf(text, sizeof(text),
                 "5 5\nInput in 0 1 in\n"
                 "Convolution conv 1 1 in a 0=%d 1=3 5=1 6=%d 9=1\n"
                 "ConvolutionDepthWise deep 1 1 a b 0=%d 1=3 4=1 5=1 6=%d 7=%d\n"
                 "Pooling mean 1 1 b c 0=1 4=1\n",
                 channels, 27 * channels, channels, 9 * channels, channels);
        return text + behind;
    };
    for (int channels : {10, 41, 300, 1000})
        for (const char* type : {"Softmax", "LogSoftmax"})
            check_fused(layers(channels, std::string(type) + " last 1 1 c out 0=0\n").c_str(), 19,
                        {{"pool_global", 0}, {"softmax", 1}, {"download", 0}});
    check_fused(layers(1200, "Softmax last 1 1 c out 0=0\n").c_str(), 19,
                {{"pool_global", 1}, {"softmax", 1}});
}

// 70225 rows are more than groups can be along an axis.
TEST_F(Vulkan, inner_products_of_many_rows) {
    check_fused(
        "4 4\nInput in 0 1 in\nReshape rows 1 1 in a 0=3 1=-1\n"
        "InnerProduct wide 1 1 a b 0=32 1=1 2=96\n"
        "InnerProduct narrow 1 1 b out 0=3 1=1 2=96\n",
        265, {{"innerproduct", 0}});
}

// The group of an inner product that comes last makes the softmax behind it; more outputs than
// threads, what is not the last layer, and what is too long. The host reads what it stores.
TEST_F(Vulkan, inner_products_make_softmax) {
    const auto layers = [](int outputs, const std::string& behind, int count) {
        return std::to_string(count) + " " + std::to_string(count) +
               "\nInput in 0 1 in\n"
               "Convolution conv 1 1 in a 0=13 1=5 3=3 5=1 6=975 9=1\n"
               "InnerProduct classes 1 1 a b 0=" +
               std::to_string(outputs) + " 1=1 2=" + std::to_string(325 * outputs) + "\n" + behind;
    };
    const std::string softmax = "Softmax softmax 1 1 b out\n";
    check_fused(layers(10, softmax, 4).c_str(), 18, {{"softmax", 0}, {"download", 0}});
    check_fused(layers(1000, softmax, 4).c_str(), 18, {{"softmax", 0}, {"download", 0}});
    check_fused(layers(100, "", 3).c_str(), 18, {{"innerproduct", 1}, {"download", 0}});
    check_fused(layers(2000, softmax, 4).c_str(), 18, {{"softmax", 1}});
    const std::string more = "Softmax softmax 1 1 b c 0=0\nInnerProduct last 1 1 c out 0=9 2=900\n";
    check_fused(layers(100, more, 5).c_str(), 18, {{"softmax", 0}, {"innerproduct", 2}});
}

// So do products on matrix units, with a blob that is added, and windows.
TEST_F(Vulkan, inner_products_take_averages_on_matrix_units) {
    if (!get_gpu_info().support_cooperative_matrix()) GTEST_SKIP() << "no matrix units";
    const std::string before =
        "7767517\n7 8\nInput in 0 1 in\n"
        "Convolution c1 1 1 in a 0=64 1=3 4=1 5=1 6=1728 9=1\n"
        "Split split 1 2 a a1 a2\n";
    const std::string behind =
        "BinaryOp sum 2 1 b a2 c 0=0\n"
        "Pooling mean 1 1 c d 0=1 4=1\n"
        "InnerProduct classes 1 1 d out 0=12 1=1 2=768\n";
    for (const char* layer : {"1=1 6=4096", "1=3 4=1 6=36864"}) {
        const std::string text =
            before + "Convolution c2 1 1 a1 b 0=64 5=1 " + layer + "\n" + behind;
        for (int size : {15, 91}) {
            const VulkanNet cpu(text, false), gpu(text, true, true);
            EXPECT_LT(difference(gpu.run(size), cpu.run(size)), 5e-3);
            EXPECT_EQ(0, gpu.backend->count("pool_global")) << gpu.backend->shaders;
        }
    }
}

// A depthwise convolution adds up its pixels, a convolution multiplies by the factors itself;
// channels that are no whole vec4s.
TEST_F(Vulkan, squeeze_excite_is_one_dispatch) {
    check_fused(
        "10 11\nInput in 0 1 in\n"
        "Convolution conv 1 1 in a 0=21 1=3 4=1 5=1 6=567 9=1\n"
        "ConvolutionDepthWise deep 1 1 a b 0=21 1=5 4=2 5=1 6=525 7=21 9=6 "
        "-23310=2,0.16666667,0.5\n"
        "Split split 1 2 b b1 b2\n"
        "Pooling mean 1 1 b1 p 0=1 4=1\n"
        "InnerProduct few 1 1 p q 0=6 1=1 2=126 9=1\n"
        "InnerProduct all 1 1 q r 0=21 1=1 2=126\n"
        "HardSigmoid hard 1 1 r g 0=0.2 1=0.4\n"
        "BinaryOp times 2 1 b2 g c 0=2\n"
        "Convolution last 1 1 c out 0=20 1=1 5=1 6=420\n",
        19, {{"excite", 1}, {"pool_parts", 0}, {"pool_global", 0}, {"binary", 0}, {"function", 0}});
}

// Where a product makes the input, the factors come first and are read twice, and the dense layers
// are convolutions.
TEST_F(Vulkan, squeeze_excite_between_other_layers) {
    check_fused(
        "10 12\nInput in 0 1 in\n"
        "Convolution conv 1 1 in a 0=24 1=3 4=1 5=1 6=648\n"
        "Split split 1 2 a a1 a2\n"
        "Pooling mean 1 1 a1 p 0=1 4=1\n"
        "Convolution few 1 1 p q 0=8 1=1 5=1 6=192 9=1\n"
        "Convolution all 1 1 q g 0=24 1=1 5=1 6=192 9=4\n"
        "BinaryOp times 2 1 a2 g b 0=2\n"
        "Split twice 1 2 b b1 b2\n"
        "Convolution left 1 1 b1 c 0=24 1=1 5=1 6=576\n"
        "BinaryOp sum 2 1 c b2 out 0=0\n",
        40, {{"excite", 1}, {"pool_parts", 1}, {"pool_global", 0}, {"binary", 1}});
}

// Nor are means in another order.
TEST_F(Vulkan, permuted_averages) {
    const std::string before =
        "Input in 0 1 in\n"
        "Convolution conv 1 1 in a 0=8 1=3 4=1 5=1 6=216\n"
        "ConvolutionDepthWise deep 1 1 a b 0=8 1=3 4=1 5=1 6=72 7=8\n";
    const std::string permuted =
        "Reshape matrix 1 1 p p1 0=4 1=2\n"
        "Permute turned 1 1 p1 p2 0=1\n"
        "Reshape row 1 1 p2 p3 0=8\n";
    check_fused(("8 8\n" + before + "Pooling mean 1 1 b p 0=1 4=1\n" + permuted +
                 "InnerProduct last 1 1 p3 out 0=5 1=1 2=40\n")
                    .c_str(),
                9, {{"innerproduct", 1}});
    check_fused(("12 13\n" + before + "Split split 1 2 b b1 b2\nPooling mean 1 1 b1 p 0=1 4=1\n" +
                 permuted +
                 "InnerProduct few 1 1 p3 q 0=4 1=1 2=32 9=1\n"
                 "InnerProduct all 1 1 q g 0=8 1=1 2=32 9=4\n"
                 "BinaryOp times 2 1 b2 g c 0=2\n"
                 "Convolution last 1 1 c out 0=5 1=1 5=1 6=40\n")
                    .c_str(),
                9, {{"excite", 0}});
}

// Nor are those that a view puts along w or h of as many values as there are channels.
TEST_F(Vulkan, squeeze_excite_of_channels) {
    for (const char* shape : {"0=8 1=1 2=1", "0=1 1=8 2=1", "0=1 1=1 2=8"}) {
        const std::string text =
            "9 10\nInput in 0 1 in\n"
            "Convolution conv 1 1 in a 0=8 1=3 4=1 5=1 6=216\n"
            "Split split 1 2 a a1 a2\n"
            "Pooling mean 1 1 a1 p 0=1 4=1\n"
            "InnerProduct few 1 1 p q 0=4 1=1 2=32 9=1\n"
            "InnerProduct all 1 1 q r 0=8 1=1 2=32 9=4\n"
            "Reshape view 1 1 r g " +
            std::string(shape) +
            "\n"
            "BinaryOp times 2 1 a2 g b 0=2\n"
            "Convolution last 1 1 b out 0=8 1=1 5=1 6=64\n";
        check_fused(text.c_str(), 8, {{"excite", shape[10] == '8'}});
    }
}

// A convolution of one channel, which a Softmax made planar, takes no factors.
TEST_F(Vulkan, squeeze_excite_of_one_channel) {
    check_fused(
        "9 10\nInput in 0 1 in\n"
        "Convolution conv 1 1 in a0 0=1 1=3 4=1 5=1 6=27\n"
        "Softmax softmax 1 1 a0 a 0=2 1=1\n"
        "Split split 1 2 a a1 a2\n"
        "Pooling mean 1 1 a1 p 0=1 4=1\n"
        "InnerProduct few 1 1 p q 0=4 1=1 2=4 9=1\n"
        "InnerProduct all 1 1 q g 0=1 1=1 2=4 9=4\n"
        "BinaryOp times 2 1 a2 g b 0=2\n"
        "Convolution last 1 1 b out 0=8 1=1 5=1 6=8\n",
        9, {{"excite", 1}, {"binary_strided", 1}});
}

// Factors of more than a pixel, or of one of the padding, are none.
TEST_F(Vulkan, squeeze_excite_has_one_pixel) {
    const std::string text =
        "7 8\nInput in 0 1 in\n"
        "Convolution conv 1 1 in a 0=24 1=3 4=1 5=1 6=648\n"
        "Split split 1 2 a a1 a2\n"
        "Pooling mean 1 1 a1 p 0=1 1=3 5=1\n"
        "Convolution few 1 1 p q 0=8 1=1 %s 5=1 6=192 9=1\n"
        "Convolution all 1 1 q g 0=24 1=1 5=1 6=192\n"
        "BinaryOp times 2 1 a2 g out 0=2\n";
    for (const char* padding : {"4=0", "4=1", "3=3 4=1"}) {
        char padded[700];
        snprintf(padded, sizeof(padded), text.c_str(), padding);
        check_fused(padded, 3, {{"excite", padding[2] == '0'}});
    }
}

// Rows of a matrix are pixels as they lie, made where they are joined; copied: the row before them.
TEST_F(Vulkan, patches_are_made_as_rows) {
    const std::string patches =
        "Convolution conv 1 1 in a 0=24 1=4 3=4 5=1 6=1152\n"
        "Reshape flat 1 1 a b 0=-1 1=24\n"
        "Permute rows 1 1 b c 0=1\n";
    check_fused(("5 5\nInput in 0 1 in\n" + patches + "LayerNorm norm 1 1 c out 0=24\n").c_str(),
                20, {{"copy", 0}, {"normalize", 1}});
    check_fused(("7 7\nInput in 0 1 in\n" + patches +
                 "MemoryData class 0 1 d 0=24 1=1\n"
                 "Concat join 2 1 d c e 0=0\n"
                 "LayerNorm norm 1 1 e out 0=24\n")
                    .c_str(),
                20, {{"copy", 1}, {"normalize", 1}});
    check_fused(
        "5 5\nInput in 0 1 in\n"
        "Convolution conv 1 1 in a 0=22 1=4 3=4 5=1 6=1056\n"
        "Reshape flat 1 1 a b 0=-1 1=22\n"
        "Permute rows 1 1 b c 0=1\n"
        "LayerNorm norm 1 1 c out 0=22\n",
        20, {{"copy", 2}});
}

// Three items, each as the CPU makes it by itself, in f32 and f16; check: of the net that ran.
template <class Check>
void check_batch(const std::string& text, int size, const Check& check) {
    const VulkanNet cpu(text, false);
    for (bool half : {false, true}) {
        const VulkanNet gpu(text, true, half);
        Shape shape = image(size, 0).logical_shape();
        shape.n = 3;
        const Mat batch(shape);
        for (int item = 0; item < 3; item++) {
            const Mat from = image(size, item);
            Mat to = batch.batch(item);
            for (int q = 0; q < from.c; q++)
                memcpy((float*)to.channel(q).data, from.channel(q).data,
                       (size_t)from.w * from.h * sizeof(float));
        }
        Extractor ex = gpu.net.create_extractor();
        Mat out;
        ASSERT_EQ(0, ex.input(gpu.net.input_indexes()[0], batch));
        ASSERT_EQ(0, ex.extract(gpu.net.output_indexes()[0], out));
        for (int item = 0; item < 3; item++)
            EXPECT_LT(difference({out.batch(item)}, cpu.run(size, item)), half ? 5e-3 : 1e-5)
                << item;
        check(gpu);
    }
}

TEST_F(Vulkan, patches_of_a_batch_are_made_as_rows) {
    const std::string text =
        "7767517\n8 9\nInput in 0 1 in\n"
        "Convolution conv 1 1 in a 0=24 1=4 3=4 5=1 6=1152\n"
        "Reshape flat 1 1 a b 0=-1 1=24\n"
        "Permute rows 1 1 b c 0=1\n"
        "Split split 1 2 c c1 c2\n"
        "LayerNorm norm 1 1 c1 d 0=24\n"
        "Concat join 2 1 d c2 e 0=0\n"
        "LayerNorm last 1 1 e out 0=24\n";
    check_batch(text, 20, [](const VulkanNet& gpu) { EXPECT_EQ(2, gpu.backend->count("copy")); });
}

// Items of a batch have factors of their own, also where a product multiplies them.
TEST_F(Vulkan, squeeze_excite_of_a_batch) {
    const std::string text =
        "7767517\n9 10\nInput in 0 1 in\n"
        "Convolution conv 1 1 in a 0=24 1=3 4=1 5=1 6=648\n"
        "ConvolutionDepthWise deep 1 1 a b 0=24 1=3 4=1 5=1 6=216 7=24\n"
        "Split split 1 2 b b1 b2\n"
        "Pooling mean 1 1 b1 p 0=1 4=1\n"
        "InnerProduct few 1 1 p q 0=6 1=1 2=144 9=1\n"
        "InnerProduct all 1 1 q g 0=24 1=1 2=144 9=4\n"
        "BinaryOp times 2 1 b2 g c 0=2\n"
        "Convolution last 1 1 c out 0=20 1=1 5=1 6=480\n";
    check_batch(text, 19, [](const VulkanNet& gpu) {
        EXPECT_EQ(1, gpu.backend->count("excite"));
        EXPECT_EQ(0, gpu.backend->count("pool_global"));
    });
}

// A constant, of one item, beside those of a batch: rows as the class token of a vision
// transformer, and channels.
TEST_F(Vulkan, constants_joined_with_a_batch) {
    const std::string text =
        "7767517\n8 8\nInput in 0 1 in\n"
        "MemoryData extra 0 1 extra 0=4 1=4 2=4\nMemoryData token 0 1 token 0=16 1=1\n"
        "Convolution patch 1 1 in a 0=8 1=4 3=4 5=1 6=384\n"
        "Concat channels 2 1 a extra b 0=0\n"
        "Reshape reshape 1 1 b c 0=16 1=12\n"
        "Concat rows 2 1 token c d 0=0\n"
        "InnerProduct last 1 1 d out 0=10 1=1 2=160\n";
    check_batch(text, 16, [](const VulkanNet& gpu) { EXPECT_EQ(1, gpu.backend->regions); });
}

// The host adds it to each item.
TEST_F(Vulkan, constants_added_to_a_batch) {
    for (const char* inputs : {"a extra", "extra a"}) {
        const std::string text =
            "7767517\n5 5\nInput in 0 1 in\n"
            "MemoryData extra 0 1 extra 0=5 1=5 2=8\n"
            "Convolution conv 1 1 in a 0=8 1=3 4=1 5=1 6=216\n"
            "Eltwise sum 2 1 " +
            std::string(inputs) +
            " b 0=1\n"
            "Convolution last 1 1 b out 0=20 1=1 5=1 6=160\n";
        check_batch(text, 5, [](const VulkanNet&) {});
    }
}

// The size of a batch, to which the only item is resized.
TEST_F(Vulkan, one_item_resized_as_a_batch) {
    const std::string text =
        "7767517\n6 6\nInput in 0 1 in\nInput like 0 1 like\n"
        "Interp resize 2 1 in like a 0=2 5=1\nSigmoid sigmoid 1 1 a b\n"
        "ReLU relu 1 1 b c 0=0.1\nPooling mean 1 1 c out 0=1 4=1\n";
    const VulkanNet cpu(text, false), gpu(text, true);
    Shape like(64, 48, 1);
    like.n = 2;
    std::vector<Mat> outs[2];
    for (const bool on_gpu : {false, true}) {
        Extractor ex = (on_gpu ? gpu : cpu).net.create_extractor();
        Mat size(like), out;
        size.fill(1.f);
        ASSERT_EQ(0, ex.input("in", image(5, 0)));
        ASSERT_EQ(0, ex.input("like", size));
        ASSERT_EQ(0, ex.extract("out", out));
        ASSERT_EQ(2, out.n);
        for (int b = 0; b < 2; b++) outs[on_gpu].push_back(out.batch(b).clone());
    }
    EXPECT_LT(difference(outs[1], outs[0]), 1e-5);
    EXPECT_GT(gpu.backend->regions, 0);
}

// The host begins each item with them.
TEST_F(Vulkan, constant_states_of_a_batch) {
    const std::string text =
        "7767517\n6 6\nInput in 0 1 in\n"
        "MemoryData hidden 0 1 hidden 0=6 1=1\nMemoryData cell 0 1 cell 0=6 1=1\n"
        "Reshape rows 1 1 in a 0=12 1=9\n"
        "LSTM lstm 3 1 a hidden cell b 0=6 1=288\n"
        "InnerProduct last 1 1 b out 0=10 1=1 2=60\n";
    check_batch(text, 6, [](const VulkanNet&) {});
}

// So many weights that a dispatch makes the values between the two dense layers.
TEST_F(Vulkan, large_squeeze_excite_is_two_dispatches) {
    check_fused(
        "9 10\nInput in 0 1 in\n"
        "Convolution conv 1 1 in a 0=520 1=3 3=2 4=1 5=1 6=14040\n"
        "ConvolutionDepthWise deep 1 1 a b 0=520 1=3 4=1 5=1 6=4680 7=520\n"
        "Split split 1 2 b b1 b2\n"
        "Pooling mean 1 1 b1 p 0=1 4=1\n"
        "InnerProduct few 1 1 p q 0=136 1=1 2=70720 9=1\n"
        "InnerProduct all 1 1 q g 0=520 1=1 2=70720 9=4\n"
        "BinaryOp times 2 1 b2 g c 0=2\n"
        "Convolution last 1 1 c out 0=16 1=1 5=1 6=8320\n",
        9, {{"excite", 2}, {"binary", 0}});
}

// Tokens of an image, and a block of a transformer, whose sums and activation are products' own.
std::string transformer(const std::string& patch) {
    return "7767517\n16 18\nInput in 0 1 in\n"
           "Convolution patch 1 1 in a 0=32 1=4 3=4 5=1 6=1536\n"
           "Reshape reshape 1 1 a b 0=-1 1=32\n"
           "Permute permute 1 1 b c 0=1\n"
           "Split s1 1 2 c c1 c2\n"
           "LayerNorm n1 1 1 c1 d 0=32 1=0.000001\n" +
           patch +
           "BinaryOp add1 2 1 c2 e f\n"
           "Split s2 1 2 f f1 f2\n"
           "LayerNorm n2 1 1 f1 g 0=32 1=0.000001\n"
           "Gemm up 1 1 g h 0=1.5 1=0.5 3=1 5=1 6=1 8=64 9=32 10=4\n"
           "GELU gelu 1 1 h i 0=1\n"
           "Gemm down 1 1 i j 3=1 5=1 6=1 8=32 9=64 10=4\n"
           "BinaryOp add2 2 1 f2 j k\n"
           "InnerProduct last 1 1 k l 0=10 1=1 2=320\n"
           "Swish swish 1 1 l out\n";
}

int count_products(const VulkanNet& net) {
    int count = 0;
    for (const char* shader : {"product", "product_matrix", "innerproduct"})
        count += net.backend->count(shader);
    return count;
}

// 16 tokens, and 4, which are vectors by themselves.
TEST_F(Vulkan, sums_and_activations_are_made_by_products) {
    const std::string text =
        transformer("MultiHeadAttention heads 1 1 d e 0=32 1=2 2=1024 6=0.3\n");
    for (int size : {16, 8}) {
        for (bool half : {false, true}) {
            const VulkanNet cpu(text, false), gpu(text, true, half);
            EXPECT_LT(difference(gpu.run(size), cpu.run(size)), half ? 5e-3 : 1e-5) << size;
            // Queries, keys and values are one product.
            EXPECT_EQ(5, count_products(gpu)) << gpu.backend->shaders;
            for (const char* shader : {"unary", "binary", "function"})
                EXPECT_EQ(0, gpu.backend->count(shader)) << gpu.backend->shaders;
        }
    }
}

// 36 tokens: scores that are products of matrices with a softmax between them, or queries that
// share their keys, for the first item and the last one of a batch too.
TEST_F(Vulkan, attention_of_many_queries) {
    const std::string text = transformer("MultiHeadAttention heads 1 1 d e 0=32 1=2 2=1024\n");
    const VulkanNet cpu(text, false), gpu(text, true), half(text, true, true);
    EXPECT_LT(difference(gpu.run(24), cpu.run(24)), 1e-5);
    EXPECT_EQ(1, gpu.backend->count("softmax")) << gpu.backend->shaders;
    EXPECT_LT(difference(half.run(24), cpu.run(24)), 5e-3);
    EXPECT_EQ(0, half.backend->count("softmax")) << half.backend->shaders;
    check_batch(text, 24, [](const VulkanNet&) {});
}

// Keys and values of another blob than the queries.
TEST_F(Vulkan, attention_between_blobs_has_three_products) {
    const std::string text = transformer(
        "Split s3 1 2 d d1 d2\nReLU relu 1 1 d2 d3\n"
        "MultiHeadAttention heads 2 1 d1 d3 e 0=32 1=2 2=1024\n");
    std::string counted = text;
    counted.replace(counted.find("16 18"), 5, "18 21");
    const VulkanNet cpu(counted, false), gpu(counted, true);
    EXPECT_LT(difference(gpu.run(16), cpu.run(16)), 1e-5);
    EXPECT_EQ(7, count_products(gpu)) << gpu.backend->shaders;
}

// Queries that are the first rows of the blob of the keys, as those of a class token are.
TEST_F(Vulkan, attention_of_the_first_rows) {
    check_fused(
        "8 10\nInput in 0 1 in\n"
        "Convolution patch 1 1 in a 0=32 1=4 3=4 5=1 6=1536\n"
        "Reshape flat 1 1 a b 0=-1 1=32\nPermute rows 1 1 b c 0=1\n"
        "Split split 1 2 c c1 c2\n"
        "Slice slice 1 2 c1 d e -23300=2,3,-233 1=0\n"
        "MultiHeadAttention heads 2 1 d c2 f 0=32 1=2 2=1024 6=0.01\n"
        "Concat join 2 1 f e out 0=0\n",
        16, {});
}

// Sums and activations that stay by themselves: of a product that others read, or that is an
// output; of a blob that comes later; behind an activation; where C is no bias.
TEST_F(Vulkan, what_products_do_not_make) {
    const char* const head =
        "Convolution patch 1 1 in a 0=32 1=4 3=4 5=1 6=1536\n"
        "Reshape reshape 1 1 a b 0=-1 1=32\nPermute permute 1 1 b c 0=1\n";
    const auto check = [&](const char* sizes, const char* layers, int binary, int unary) {
        const std::string text = std::string(sizes) + "\nInput in 0 1 in\n" + head + layers;
        check_fused(text.c_str(), 16, {{"binary", binary}, {"unary", unary}});
    };
    check("8 9",
          "Gemm p 1 1 c d 3=1 5=1 6=1 8=32 9=32 10=4\nSplit s 1 2 d d1 d2\n"
          "Mish f 1 1 d1 e\nBinaryOp sum 2 1 e d2 out\n",
          1, 1);
    check("8 9",
          "Split s 1 2 c c1 c2\nGemm p 1 1 c1 d 3=1 5=1 6=1 8=32 9=32 10=4\n"
          "Mish f 1 1 c2 e\nBinaryOp sum 2 1 d e out\n",
          1, 1);
    check("7 8",
          "Split s 1 2 c c1 c2\nInnerProduct p 1 1 c1 d 0=32 1=1 2=1024 9=4\n"
          "BinaryOp sum 2 1 d c2 out\n",
          1, 0);
    // A blob is added already: C, one value for all.
    check("8 9",
          "Split s 1 2 c c1 c2\nGemm p 1 1 c1 d 2=0 3=0 5=1 6=1 8=32 9=32 10=0\n"
          "BinaryOp sum 2 1 c2 d e\nMish f 1 1 e out\n",
          1, 1);
}

// Rows that are turned before they become those of other heads.
TEST_F(Vulkan, attention_of_turned_rows_in_other_heads) {
    check_fused(
        "16 23\nInput in 0 1 in\n"
        "Convolution patch 1 1 in a 0=32 1=4 3=4 5=1 6=1536\n"
        "Reshape heads 1 1 a b 0=16 1=8 2=4\nSplit split 1 3 b q k v\n"
        "MemoryData cos 0 1 c 0=8 1=8\nSplit cosines 1 2 c c1 c2\n"
        "MemoryData sin 0 1 s 0=8 1=8\nSplit sines 1 2 s s1 s2\n"
        "RotaryEmbed turn_q 3 1 q c1 s1 tq\nReshape view_q 1 1 tq vq 0=16 1=4 2=8\n"
        "RotaryEmbed turn_k 3 1 k c2 s2 tk\nReshape view_k 1 1 tk vk 0=16 1=4 2=8\n"
        "Reshape view_v 1 1 v vv 0=16 1=4 2=8\n"
        "MemoryData past 0 1 p 0=16 1=2 2=8\nSplit pasts 1 2 p pk pv\n"
        "SDPA attention 5 3 vq vk vv pk pv out all_k all_v 6=0.001 7=1\n",
        16, {{"rotary", 2}});
}

// Keys of one item, which are turned, for all items of a batch.
TEST_F(Vulkan, turned_keys_of_a_batch) {
    const std::string text =
        "7767517\n9 11\nInput q 0 1 q\nInput k 0 1 k\nInput v 0 1 v\nInput c 0 1 c\n"
        "Input s 0 1 s\nInput pk 0 1 pk\nInput pv 0 1 pv\nRotaryEmbed turned 3 1 k c s gk\n"
        "SDPA heads 5 3 q gk v pk pv y all_k all_v 7=1\n";
    const VulkanNet cpu(text, false), gpu(text, true);
    const Shape rows(32, 64, 2), past(32, 200, 2), angles(16, 64);
    const std::pair<const char*, Shape> inputs[] = {{"q", rows},   {"k", rows},   {"v", rows},
                                                    {"c", angles}, {"s", angles}, {"pk", past},
                                                    {"pv", past}};
    for (const bool pasts : {false, true}) {
        std::vector<Mat> outs[2];
        for (const bool on_gpu : {false, true}) {
            Extractor ex = (on_gpu ? gpu : cpu).net.create_extractor();
            for (const auto& input : inputs) {
                Shape shape = input.second;
                if (*input.first == 'q' || (pasts && *input.first == 'p')) shape.n = 2;
                Mat m(shape);
                for (int b = 0; b < m.n; b++)
                    for (int q = 0; q < m.c; q++)
                        for (int i = 0; i < m.w * m.h; i++)
                            m.batch(b).channel(q)[i] =
                                (float)((i * 37 + q * 11 + b * 5) % 41 - 20) * 0.05f;
                ASSERT_EQ(0, ex.input(input.first, m));
            }
            for (const char* name : {"y", "all_k", "all_v"}) {
                Mat out;
                ASSERT_EQ(0, ex.extract(name, out));
                ASSERT_EQ(2, out.n);
                for (int b = 0; b < 2; b++) outs[on_gpu].push_back(out.batch(b).clone());
            }
        }
        EXPECT_LT(difference(outs[1], outs[0]), 1e-5) << pasts;
    }
    EXPECT_GT(gpu.backend->regions, 0);
}

// Items of a batch add their own.
TEST_F(Vulkan, sums_of_products_of_a_batch) {
    check_batch(transformer("MultiHeadAttention heads 1 1 d e 0=32 1=2 2=1024\n"), 16,
                [](const VulkanNet& gpu) {
                    EXPECT_EQ(5, count_products(gpu)) << gpu.backend->shaders;
                    EXPECT_EQ(0, gpu.backend->count("binary")) << gpu.backend->shaders;
                });
}

// Channels of both inputs of a Concat, of which the first is no whole vec4s.
TEST_F(Vulkan, shuffled_channels_come_from_where_they_were_made) {
    check_fused(
        "10 12\nInput in 0 1 in\n"
        "Split split 1 2 in in1 in2\n"
        "Convolution left 1 1 in1 a 0=10 1=3 4=1 5=1 6=270\n"
        "Convolution right 1 1 in2 b 0=14 1=3 4=1 5=1 6=378\n"
        "Concat concat 2 1 a b c 0=0\n"
        "ShuffleChannel shuffle 1 1 c d 0=2\n"
        "Slice slice 1 2 d e f -23300=2,9,15 1=0\n"
        "Convolution first 1 1 e g 0=8 1=1 5=1 6=72\n"
        "Convolution second 1 1 f h 0=8 1=1 5=1 6=120\n"
        "BinaryOp sum 2 1 g h out 0=0\n",
        11, {{"gather", 2}, {"copy", 0}});
}

// A constant has one item for all of a batch.
TEST_F(Vulkan, shuffled_constants_of_a_batch) {
    const std::string text =
        "7767517\n6 6\nInput in 0 1 in\n"
        "MemoryData extra 0 1 extra 0=4 1=4 2=8\n"
        "Convolution patch 1 1 in a 0=8 1=4 3=4 5=1 6=384\n"
        "Concat concat 2 1 a extra b 0=0\n"
        "ShuffleChannel shuffle 1 1 b c 0=2\n"
        "Convolution last 1 1 c out 0=10 1=1 5=1 6=160\n";
    check_batch(text, 16, [](const VulkanNet& gpu) {
        EXPECT_EQ(1, gpu.backend->regions);
        EXPECT_EQ(0, gpu.backend->count("gather"));
    });
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
