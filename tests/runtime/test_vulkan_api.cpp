// ncnn's names for blobs on a device: VkMat, its allocators, VkCompute, PipelineCache; what happens
// when memory ends or a device is lost. Skipped where there is no device.
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "gpu/device.h"
#include "gpu/program.h"
#include "gpu/shaders.h"
#include "gpu/tuning.h"
#include "quoll/command.h"
#include "quoll/gpu.h"
#include "quoll/log.h"
#include "quoll/net.h"
#include "random_weights.h"
#include "runtime/log_mute.h"

namespace quoll {
namespace {

const char* const kFirst =
    "7767517\n3 3\nInput in 0 1 in\n"
    "Convolution conv 1 1 in a 0=8 1=3 4=1 5=1 6=216\n"
    "Swish swish 1 1 a out\n";
const char* const kSecond =
    "7767517\n4 4\nInput in 0 1 in\n"
    "Convolution conv 1 1 in a 0=16 1=3 3=2 4=1 5=1 6=1152\n"
    "Pooling pool 1 1 a b 0=1 4=1\n"
    "InnerProduct fc 1 1 b out 0=10 1=1 2=160\n";
const char* const kWithHostLayer =
    "7767517\n4 4\nInput in 0 1 in\n"
    "Convolution conv 1 1 in a 0=8 1=3 4=1 5=1 6=216\n"
    "Doubled host 1 1 a b\n"
    "Convolution last 1 1 b out 0=8 1=3 4=1 5=1 6=576\n";

// No device runs layers of the application.
class Doubled : public Layer {
public:
    Doubled() { one_blob_only = true, support_inplace = true; }
    int forward_inplace(Mat& m, const Option&) const override {
        for (size_t i = 0; i < m.total(); i++) ((float*)m.data)[i] *= 2.f;
        return 0;
    }
    int infer_shapes(const std::vector<Shape>& in, std::vector<Shape>& out) const override {
        out = in;
        return 0;
    }
};
DEFINE_LAYER_CREATOR(Doubled)

int load(Net* net, const char* text) {
    net->register_custom_layer("Doubled", Doubled_layer_creator);
    net->opt.num_threads = 1;
    const int status = net->load_param_mem(text);
    return status == 0 ? net->load_model(RandomWeights()) : status;
}

int load_gpu(Net* net, const char* text) {
    net->opt.use_vulkan_compute = true;
    return load(net, text);
}

Mat image() {
    Mat m(33, 17, 3);
    for (int q = 0; q < m.c; q++)
        for (int i = 0; i < m.w * m.h; i++) m.channel(q)[i] = (float)((i * 37 + q * 11) % 101 - 50);
    return m;
}

int run(const Net& net, const Mat& in, Mat* out) {
    Extractor ex = net.create_extractor();
    const int status = ex.input("in", in);
    return status == 0 ? ex.extract("out", *out) : status;
}

double difference(const Mat& got, const Mat& want) {
    if (got.logical_shape() != want.logical_shape() || got.empty()) return INFINITY;
    double range = 0, most = 0;
    for (int q = 0; q < want.c; q++) {
        const float *a = got.channel(q), *b = want.channel(q);
        for (int i = 0; i < want.w * want.h * want.d; i++) {
            range = std::max(range, (double)fabsf(b[i]));
            most = std::max(most, (double)fabsf(a[i] - b[i]));
        }
    }
    return range > 0 ? most / range : INFINITY;
}

// Every copy between host and device takes such memory.
class CountingStaging : public VkStagingAllocator {
public:
    explicit CountingStaging(const VulkanDevice* device) : VkStagingAllocator(device) {}
    VkBufferMemory* fastMalloc(size_t size) override {
        copies++;
        bytes += size;
        return VkStagingAllocator::fastMalloc(size);
    }
    int copies = 0;
    size_t bytes = 0;
};

class VulkanApi : public testing::Test {
protected:
    void SetUp() override {
        if (get_gpu_count() == 0) GTEST_SKIP() << "no Vulkan device";
    }
};

void chain(bool half) {
    Net first, second, cpu1, cpu2;
    first.opt.use_fp16_storage = second.opt.use_fp16_storage = half;
    ASSERT_EQ(0, load_gpu(&first, kFirst));
    ASSERT_EQ(0, load_gpu(&second, kSecond));
    ASSERT_EQ(0, load(&cpu1, kFirst));
    ASSERT_EQ(0, load(&cpu2, kSecond));
    Mat middle_host, want, by_host;
    ASSERT_EQ(0, run(cpu1, image(), &middle_host));
    ASSERT_EQ(0, run(cpu2, middle_host, &want));
    ASSERT_EQ(0, run(first, image(), &middle_host));
    ASSERT_EQ(0, run(second, middle_host, &by_host));

    const VulkanDevice* device = first.vulkan_device();
    ASSERT_TRUE(device != nullptr);
    CountingStaging staging(device);
    VkBlobAllocator blobs(device);
    for (int again = 0; again < 3; again++) {
        staging.copies = 0, staging.bytes = 0;
        Option opt;
        opt.blob_vkallocator = &blobs, opt.staging_vkallocator = &staging;
        VkCompute cmd(device);
        Extractor one = first.create_extractor(), two = second.create_extractor();
        for (Extractor* ex : {&one, &two}) {
            ex->set_blob_vkallocator(&blobs);
            ex->set_staging_vkallocator(&staging);
        }
        VkMat in, middle, out;
        Mat got;
        ASSERT_EQ(0, cmd.record_upload(image(), in, opt));
        ASSERT_EQ(0, one.input("in", in));
        ASSERT_EQ(0, one.extract("out", middle, cmd));
        EXPECT_EQ(half ? DType::f16 : DType::f32, middle.dtype);
        ASSERT_EQ(0, two.input("in", middle));
        ASSERT_EQ(0, two.extract("out", out, cmd));
        ASSERT_EQ(0, cmd.record_download(out, got, opt));
        EXPECT_EQ(2, staging.copies);
        EXPECT_EQ(sizeof(float) * 33 * 17 * 3 + 10 * (half ? 2 : 4), staging.bytes);
        ASSERT_EQ(0, cmd.submit_and_wait());
        EXPECT_EQ(0, difference(got, by_host));
        EXPECT_LT(difference(got, want), half ? 0.01 : 1e-5);
    }
}

TEST_F(VulkanApi, two_nets_without_the_host) { chain(false); }
TEST_F(VulkanApi, two_nets_without_the_host_f16) { chain(true); }

// One submission runs the same net several times, on memory of its own for each.
TEST_F(VulkanApi, many_runs_in_one_submission) {
    Net net;
    ASSERT_EQ(0, load_gpu(&net, kFirst));
    VkCompute cmd(net.vulkan_device());
    std::vector<Mat> got(7), want(7);
    for (size_t i = 0; i < got.size(); i++) {
        Mat in = image();
        in.channel(0).fill((float)i);
        ASSERT_EQ(0, run(net, in, &want[i]));
        Extractor ex = net.create_extractor();
        VkMat out;
        ASSERT_EQ(0, ex.input("in", in));
        ASSERT_EQ(0, ex.extract("out", out, cmd));
        ASSERT_EQ(0, cmd.record_download(out, got[i], net.opt));
    }
    ASSERT_EQ(0, cmd.submit_and_wait());
    for (size_t i = 0; i < got.size(); i++) EXPECT_EQ(0, difference(got[i], want[i])) << i;
}

TEST_F(VulkanApi, layers_of_the_host_in_between) {
    Net net;
    ASSERT_EQ(0, load_gpu(&net, kWithHostLayer));
    Mat want, got;
    ASSERT_EQ(0, run(net, image(), &want));
    CountingStaging staging(net.vulkan_device());
    net.opt.staging_vkallocator = &staging;
    VkCompute cmd(net.vulkan_device());
    Extractor ex = net.create_extractor();
    VkMat in, out;
    ASSERT_EQ(0, cmd.record_upload(image(), in, net.opt));
    ASSERT_EQ(0, ex.input("in", in));
    ASSERT_EQ(0, ex.extract("out", out, cmd));
    ASSERT_EQ(0, cmd.record_download(out, got, net.opt));
    EXPECT_EQ(4, staging.copies);
    ASSERT_EQ(0, cmd.submit_and_wait());
    EXPECT_EQ(0, difference(got, want));
    net.opt.staging_vkallocator = nullptr;
}

// A blob of the device for a net on the CPU, and one on the device asked for a Mat.
// Indexes are checked where they are read, and what was wrong is said behind the run.
TEST_F(VulkanApi, a_wrong_index_ends_the_run) {
    const char* const text =
        "7767517\n4 4\nInput in 0 1 in\nInput which 0 1 which\n"
        "Convolution conv 1 1 in a 0=64 1=3 4=1 5=1 6=1728\n"
        "Gather pick 2 1 a which out\n";
    Net cpu, gpu;
    ASSERT_EQ(0, load(&cpu, text));
    ASSERT_EQ(0, load_gpu(&gpu, text));
    const auto pick = [](const Net& net, int first, int second, bool record, Mat* out) {
        Mat which(Shape(2, DType::s32));
        ((int32_t*)which.data)[0] = first, ((int32_t*)which.data)[1] = second;
        Extractor ex = net.create_extractor();
        ex.input("in", image());
        ex.input("which", which);
        if (!record) return ex.extract("out", *out);
        VkCompute cmd(net.vulkan_device());
        VkMat there;
        QUOLL_RETURN_IF_ERROR(ex.extract("out", there, cmd));
        QUOLL_RETURN_IF_ERROR(cmd.record_download(there, *out, net.opt));
        return cmd.submit_and_wait();
    };
    for (const bool record : {false, true}) {
        Mat want, got;
        ASSERT_EQ(0, pick(cpu, 63, -64, false, &want));
        ASSERT_EQ(0, pick(gpu, 63, -64, record, &got));
        EXPECT_LT(difference(got, want), 1e-6);
        for (const int wrong : {64, -65, INT_MAX, INT_MIN}) {
            const LogMute mute;
            EXPECT_NE(0, pick(gpu, 3, wrong, record, &got)) << wrong;
            EXPECT_NE(0, pick(cpu, 3, wrong, false, &got)) << wrong;
        }
        ASSERT_EQ(0, pick(gpu, 63, -64, record, &got));
        EXPECT_LT(difference(got, want), 1e-6);
    }
}

TEST_F(VulkanApi, work_comes_in_slices) {
    for (const char* text : {kSecond, kFirst}) {
        Net whole, sliced;
        sliced.opt.vulkan_slice_us = 1;
        ASSERT_EQ(0, load_gpu(&whole, text));
        ASSERT_EQ(0, load_gpu(&sliced, text));
        Net before;
        ASSERT_EQ(0, load(&before, kFirst));
        Mat in = image(), want, got;
        if (text == kSecond) {
            ASSERT_EQ(0, run(before, image(), &in));
        }
        ASSERT_EQ(0, run(whole, in, &want));
        ASSERT_EQ(0, run(sliced, in, &got));
        EXPECT_EQ(0.0, difference(got, want));
        const GpuDevice& gpu = *whole.vulkan_device()->gpu();
        const uint64_t begin = gpu.submissions();
        ASSERT_EQ(0, run(whole, in, &want));
        const uint64_t one = gpu.submissions() - begin;
        ASSERT_EQ(0, run(sliced, in, &got));
        EXPECT_EQ(1u, one);
        EXPECT_GT(gpu.submissions() - begin - one, 1u);
        EXPECT_EQ(0.0, difference(got, want));
        // Recorded, too.
        VkCompute cmd(sliced.vulkan_device());
        VkMat out;
        Extractor ex = sliced.create_extractor();
        ASSERT_EQ(0, ex.input("in", in));
        ASSERT_EQ(0, ex.extract("out", out, cmd));
        ASSERT_EQ(0, cmd.record_download(out, got, sliced.opt));
        ASSERT_EQ(0, cmd.submit_and_wait());
        EXPECT_EQ(0.0, difference(got, want));
    }
}

// Parts whose code says at which group they begin, as for drivers that ignore it: convolutions of
// both sorts, depthwise ones, pooling, sums with gl_WorkGroupID as a vector and by its components.
TEST_F(VulkanApi, parts_with_code_of_their_own) {
    force_moved_parts(2);
    Net whole, sliced;
    sliced.opt.vulkan_slice_us = 1;
    const char* const text =
        "7767517\n7 8\nInput in 0 1 in\n"
        "Convolution c1 1 1 in a 0=16 1=3 4=1 5=1 6=432 9=1\n"
        "ConvolutionDepthWise c2 1 1 a b 0=16 1=3 4=1 5=1 6=144 7=16\n"
        "Split split 1 2 b b1 b2\n"
        "Pooling mean 1 1 b1 m 0=1 4=1\n"
        "Softmax softmax 1 1 b2 s\n"
        "BinaryOp sum 2 1 s m out\n";
    EXPECT_EQ(0, load_gpu(&whole, text));
    EXPECT_EQ(0, load_gpu(&sliced, text));
    Mat want, got;
    EXPECT_EQ(0, run(whole, image(), &want));
    const GpuDevice& gpu = *whole.vulkan_device()->gpu();
    const size_t before = gpu.pipelines().count();
    EXPECT_EQ(0, run(sliced, image(), &got));
    force_moved_parts(0);
    EXPECT_EQ(0.0, difference(got, want));
    EXPECT_GT(gpu.pipelines().count(), before);
}

// One dispatch that takes longer than a submission may: by rows of groups, all of them once.
TEST_F(VulkanApi, long_dispatches_are_divided) {
    const GpuDevice& device = *get_gpu_device()->gpu();
    Dispatch shortest = {}, longest = {};
    longest.key = shortest.key = {Shader::unary, Storage::f32, 2, {}};
    shortest.groups[0] = 5, shortest.groups[1] = shortest.groups[2] = 1;
    longest.groups[0] = 4, longest.groups[1] = 7, longest.groups[2] = 1;
    longest.barrier_before = true;
    for (const bool moved : {!device.divides_dispatches(), true}) {
        Program program;
        program.add(shortest), program.add(longest);
        force_moved_parts(moved ? 16 : 0);
        ASSERT_EQ(0, program.divide(device, {0.5, 2.5}, 1.));
        force_moved_parts(0);
        // 3 parts of 3, 3 and 1 rows; the first one does not fit behind the short dispatch.
        ASSERT_EQ(4u, program.dispatches.size());
        EXPECT_EQ(std::vector<size_t>({1, 2, 3}), program.submissions);
        const uint32_t first[] = {0, 0, 3, 6}, rows[] = {1, 3, 3, 1};
        for (size_t i = 0; i < 4; i++) {
            const Dispatch& d = program.dispatches[i];
            EXPECT_EQ(first[i], moved ? d.key.first_group[1] : d.first[1]) << i;
            EXPECT_EQ(0u, moved ? d.first[1] : d.key.first_group[1]) << i;
            EXPECT_EQ(rows[i], d.groups[1]) << i;
            EXPECT_EQ(i == 0 ? 5u : 4u, d.groups[0]) << i;
            EXPECT_EQ(i == 1, d.barrier_before) << i;
            EXPECT_EQ(!moved && i > 0, d.key.has_first_group) << i;
        }
    }
}

TEST_F(VulkanApi, submissions_in_flight_are_bounded) {
    for (const int most : {1, 2}) {
        Net net;
        net.opt.vulkan_max_in_flight = most;
        ASSERT_EQ(0, load_gpu(&net, kFirst));
        Mat want;
        ASSERT_EQ(0, run(net, image(), &want));
        const GpuDevice& gpu = *net.vulkan_device()->gpu();
        gpu.highest_in_flight();
        std::atomic<int> right{0};
        std::vector<std::thread> threads;
        for (int t = 0; t < 8; t++)
            threads.emplace_back([&] {
                for (int i = 0; i < 20; i++) {
                    Mat got;
                    right += run(net, image(), &got) == 0 && difference(got, want) == 0;
                }
            });
        for (std::thread& thread : threads) thread.join();
        EXPECT_EQ(160, right);
        EXPECT_LE(gpu.highest_in_flight(), most);
    }
}

// One thread has several command buffers on the device at once.
TEST_F(VulkanApi, several_are_in_flight) {
    Net net;
    ASSERT_EQ(0, load_gpu(&net, kFirst));
    Mat want;
    ASSERT_EQ(0, run(net, image(), &want));
    const GpuDevice& device = *net.vulkan_device()->gpu();
    const size_t count = 3;
    std::vector<std::unique_ptr<VkCompute>> flying;
    std::vector<Mat> outs(count);
    device.highest_in_flight();
    for (size_t i = 0; i < count; i++) {
        flying.emplace_back(new VkCompute(net.vulkan_device()));
        Extractor ex = net.create_extractor();
        VkMat y;
        ASSERT_EQ(0, ex.input("in", image()));
        ASSERT_EQ(0, ex.extract("out", y, *flying[i]));
        ASSERT_EQ(0, flying[i]->record_download(y, outs[i], net.opt));
        ASSERT_EQ(0, flying[i]->submit());
    }
    EXPECT_EQ((int)count, device.highest_in_flight());
    {
        const LogMute mute;
        VkMat y;
        Extractor ex = net.create_extractor();
        ASSERT_EQ(0, ex.input("in", image()));
        EXPECT_NE(0, ex.extract("out", y, *flying[0]));
        EXPECT_NE(0, flying[0]->record_upload(image(), y, net.opt));
        EXPECT_NE(0, flying[0]->submit());
        EXPECT_NE(0, VkCompute(net.vulkan_device()).wait());
    }
    for (size_t i = 0; i < count; i++) {
        ASSERT_EQ(0, flying[i]->wait());
        EXPECT_EQ(0, difference(outs[i], want));
    }
    VkMat y;
    ASSERT_EQ(0, flying[0]->record_upload(image(), y, net.opt));  // once more
    ASSERT_EQ(0, flying[0]->submit());
    flying.clear();  // which waits
    device.highest_in_flight();
    EXPECT_EQ(0, device.highest_in_flight());
}

TEST_F(VulkanApi, mats_and_vkmats_mix) {
    for (bool gpu : {false, true}) {
        Net net;
        ASSERT_EQ(0, gpu ? load_gpu(&net, kFirst) : load(&net, kFirst));
        Mat want, got, last;
        ASSERT_EQ(0, run(net, image(), &want));
        VkCompute cmd(get_gpu_device());
        VkMat in, out;
        ASSERT_EQ(0, cmd.record_upload(image(), in, net.opt));
        ASSERT_EQ(0, cmd.submit_and_wait());
        Extractor ex = net.create_extractor();
        ASSERT_EQ(0, ex.input("in", in));
        ASSERT_EQ(0, ex.extract("out", got));
        EXPECT_EQ(0, difference(got, want));
        ASSERT_EQ(0, ex.extract("out", out, cmd));
        ASSERT_EQ(0, cmd.record_download(out, last, net.opt));
        ASSERT_EQ(0, cmd.submit_and_wait());
        EXPECT_EQ(0, difference(last, want));
    }
}

TEST_F(VulkanApi, clones_keep_values) {
    const VulkanDevice* device = get_gpu_device();
    Option opt;
    for (DType type : {DType::f32, DType::f16, DType::s32, DType::s8}) {
        for (const Shape& shape :
             {Shape(5, type), Shape(3, 5, type), Shape(7, 5, 3, type), Shape(3, 2, 5, 3, type)}) {
            Shape batch = shape;
            batch.n = 2;
            Mat from(batch), packed, to;
            memset(from.data, 0, from.total() * from.elemsize);
            for (size_t i = 0; i < from.total() * from.elemsize; i++)
                ((unsigned char*)from.data)[i] = (unsigned char)(i * 7 % 101);
            VkCompute cmd(device);
            VkMat one, two;
            ASSERT_EQ(0, cmd.record_clone(from, one, opt));
            ASSERT_EQ(0, cmd.record_clone(one, two, opt));
            ASSERT_EQ(0, cmd.record_clone(two, to, opt));
            ASSERT_EQ(0, cmd.submit_and_wait());
            ASSERT_TRUE(to.logical_shape() == batch);
            for (int b = 0; b < 2; b++)
                for (int q = 0; q < from.c; q++)
                    EXPECT_EQ(0, memcmp((char*)from.batch(b).channel(q).data,
                                        (char*)to.batch(b).channel(q).data,
                                        (size_t)from.w * from.h * from.d * from.elemsize));
        }
    }
    Mat packed(4, 4, 2, (size_t)16, 4), planar, back;
    for (int i = 0; i < 32 * 4; i++) ((float*)packed.data)[i] = (float)i;
    convert_packing(packed, planar, 1);
    VkCompute cmd(device);
    VkMat m;
    ASSERT_EQ(0, cmd.record_upload(packed, m, opt));
    EXPECT_EQ(8, m.c);
    ASSERT_EQ(0, cmd.record_download(m, back, opt));
    ASSERT_EQ(0, cmd.submit_and_wait());
    EXPECT_EQ(0, difference(back, planar));
}

// What GpuInfo and VulkanDevice say of Vulkan's own objects.
TEST_F(VulkanApi, names_of_vulkan) {
    VulkanDevice* device = get_gpu_device();
    const GpuInfo& info = device->info;
    ASSERT_EQ(get_default_gpu_index(), info.device_index());
    EXPECT_TRUE(get_gpu_instance() && info.physicalDevice() && device->vkdevice());
    EXPECT_EQ(info.physicalDevice(), info.physical_device());
    const VkPhysicalDeviceProperties& p = info.physicalDeviceProperties();
    EXPECT_STREQ(p.deviceName, info.device_name());
    EXPECT_EQ(p.limits.maxComputeWorkGroupSize[2], info.max_workgroup_size_z());
    EXPECT_EQ(p.limits.maxComputeWorkGroupCount[1], info.max_workgroup_count_y());
    EXPECT_EQ(p.limits.maxImageDimension3D, info.max_image_dimension_3d());
    EXPECT_EQ(0, memcmp(p.pipelineCacheUUID, info.pipeline_cache_uuid(), 16));
    EXPECT_EQ(info.physicalDevicefeatures().shaderInt16 != 0, info.support_int16_arithmetic());
    ASSERT_FALSE(info.deviceExtensionProperties().empty());
    const VkExtensionProperties& first = info.deviceExtensionProperties()[0];
    EXPECT_EQ((int)first.specVersion, info.extension_version(first.extensionName));
    const int storage = info.extension_version("VK_KHR_8bit_storage");
    EXPECT_EQ(storage, info.support_VK_KHR_8bit_storage());
    EXPECT_EQ(info.type() == 3, info.rough_score() == 0);

    const VkPhysicalDeviceMemoryProperties& memory = info.physical_device_memory_properties();
    const uint32_t host = device->find_memory_index(~0u, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT, 0, 0);
    ASSERT_LT(host, memory.memoryTypeCount);
    EXPECT_TRUE(device->is_mappable(host));
    const uint32_t own = device->find_memory_index(~0u, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0,
                                                   VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT);
    ASSERT_LT(own, memory.memoryTypeCount);
    EXPECT_TRUE(device->is_device_local(own));
    EXPECT_EQ(device->is_coherent(own),
              (memory.memoryTypes[own].propertyFlags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0);
    EXPECT_EQ(0xffffffffu, device->find_memory_index(0, 0, 0, 0));
    EXPECT_FALSE(device->is_mappable(99));
}

// ncnn's images, which are buffers here.
TEST_F(VulkanApi, images_copy) {
    VulkanDevice* device = get_gpu_device();
    Option opt;
    VkCompute cmd(device);
    VkMat m;
    VkImageMat one, two;
    Mat back;
    ASSERT_EQ(0, cmd.record_clone(image(), one, opt));
    ASSERT_EQ(0, cmd.record_clone(one, two, opt));
    ASSERT_EQ(0, cmd.record_clone(two, m, opt));
    ASSERT_EQ(0, cmd.record_clone(m, back, opt));
    ASSERT_EQ(0, cmd.submit_and_wait());
    EXPECT_EQ(0, difference(back, image()));
    const VkImageMat same = one;
    EXPECT_TRUE(one.refcount && *one.refcount >= 2 && same.data == one.data);
    VkMat batch(4, 3, 2, (size_t)4, 1, 3, device->acquire_blob_allocator());
    EXPECT_EQ(nullptr, batch.batch(1).refcount);  // of items
    one.create_like(batch, device->acquire_blob_allocator());
    EXPECT_TRUE(one.empty());
    VkMat many;
    many.create_like(image(), 2, device->acquire_blob_allocator());
    EXPECT_EQ(2, many.n);
    VkMat packed;
    device->convert_packing(m, packed, 1, cmd, opt);
    EXPECT_EQ(m.data, packed.data);
}

TEST_F(VulkanApi, pipelines_in_an_open_file) {
    Net net;
    ASSERT_EQ(0, load_gpu(&net, kFirst));
    Mat out;
    ASSERT_EQ(0, run(net, image(), &out));
    const PipelineCache* cache = get_gpu_device()->get_pipeline_cache();
    EXPECT_GT(cache->size(), 0u);
    FILE* file = tmpfile();
    ASSERT_TRUE(file != nullptr);
    EXPECT_EQ(0, cache->save_cache(file));
    rewind(file);
    EXPECT_EQ(0, cache->load_cache(file));
    const LogMute mute;
    EXPECT_NE(0, cache->load_cache(file));  // at its end
    fclose(file);
}

TEST_F(VulkanApi, errors_say_so) {
    const LogMute mute;
    Net net;
    ASSERT_EQ(0, load_gpu(&net, kFirst));
    Option opt;
    VkMat m;
    Mat host;
    VkCompute none(nullptr), cmd(get_gpu_device());
    EXPECT_NE(0, none.record_upload(image(), m, opt));
    EXPECT_NE(0, none.submit_and_wait());
    EXPECT_NE(0, cmd.record_download(m, host, opt));
    EXPECT_NE(0, cmd.submit_and_wait());  // recording had failed
    EXPECT_EQ(0, cmd.submit_and_wait());  // which is forgotten
    Extractor ex = net.create_extractor();
    EXPECT_NE(0, ex.input("in", m));
    EXPECT_NE(0, ex.extract("out", m, cmd));
    ex.clear();
    ASSERT_EQ(0, ex.input("in", image()));
    EXPECT_NE(0, ex.extract("nothing", m, cmd));
    EXPECT_NE(0, ex.extract("out", m, none));
    EXPECT_EQ(nullptr, get_gpu_device(999));
    VkBlobAllocator lost(nullptr);
    opt.blob_vkallocator = &lost;
    EXPECT_NE(0, cmd.record_upload(image(), m, opt));
    cmd.reset();
    ex.clear();
    ex.set_blob_vkallocator(&lost);
    ASSERT_EQ(0, ex.input("in", image()));
    EXPECT_NE(0, ex.extract("out", m, cmd));
    const VulkanDevice invalid(999);
    EXPECT_FALSE(invalid.is_valid());
    VkMat empty(4, 4, 4u, invalid.acquire_blob_allocator());
    EXPECT_TRUE(empty.empty());
}

TEST_F(VulkanApi, allocators_keep_memory) {
    const VulkanDevice* device = get_gpu_device();
    VkBlobAllocator blobs(device, 4096);
    VkMat a(16, 16, 4u, &blobs);
    const VkBuffer buffer = a.buffer();
    VkMat b = a;
    a.release();
    EXPECT_EQ(buffer, b.buffer());
    b.release();
    VkMat c(16, 15, 4u, &blobs);
    EXPECT_EQ(buffer, c.buffer());
    EXPECT_EQ(nullptr, c.mapped_ptr());
    VkStagingAllocator staging(device);
    VkMat d(16, 16, 4u, &staging);
    EXPECT_NE(nullptr, d.mapped_ptr());
}

// ---------------------------------------------------------------- pipelines

class PipelineFile : public VulkanApi {
protected:
    void SetUp() override {
        VulkanApi::SetUp();
        path = testing::TempDir() + "pipelines" + std::to_string(getpid()) + ".cache";
    }
    void TearDown() override { remove(path.c_str()); }
    std::vector<unsigned char> read() const {
        std::ifstream file(path, std::ios::binary);
        return std::vector<unsigned char>(std::istreambuf_iterator<char>(file), {});
    }
    void write(const std::vector<unsigned char>& data) const {
        std::ofstream(path, std::ios::binary).write((const char*)data.data(), (long)data.size());
    }
    std::string path;
};

TEST_F(PipelineFile, serves_the_next_process) {
    Net net;
    ASSERT_EQ(0, load_gpu(&net, kFirst));
    Mat want, got;
    ASSERT_EQ(0, run(net, image(), &want));
    std::vector<unsigned char> memory;
    {
        const PipelineCache cache(net.vulkan_device());
        EXPECT_NE(0, cache.load_cache(path.c_str()));  // not there yet
        ASSERT_EQ(0, cache.save_cache(path.c_str()));
        ASSERT_EQ(0, cache.save_cache(&memory));
    }
    EXPECT_GT(read().size(), (size_t)64);
    net.clear();
    destroy_gpu_instance();
    for (bool from_memory : {false, true}) {
        const PipelineCache cache(get_gpu_device());
        ASSERT_EQ(0, from_memory ? cache.load_cache(memory.data(), memory.size())
                                 : cache.load_cache(path.c_str()));
        Net again;
        ASSERT_EQ(0, load_gpu(&again, kFirst));
        ASSERT_EQ(0, run(again, image(), &got));
        EXPECT_EQ(0, difference(got, want));
        ASSERT_EQ(0, cache.save_cache(path.c_str()));  // merged with what is there
        EXPECT_EQ(0, cache.load_cache(path.c_str()));
    }
}

TEST_F(PipelineFile, refuses_what_does_not_fit) {
    const PipelineCache cache(get_gpu_device());
    ASSERT_EQ(0, cache.save_cache(path.c_str()));
    const std::vector<unsigned char> good = read();
    const LogMute mute;
    EXPECT_EQ(0, cache.load_cache(good.data(), good.size()));
    // The magic, the version, the device, the driver, its UUID, the shaders, the sizes, the data.
    for (size_t i = 0; i < good.size(); i += i < 96 ? 1 : 13) {
        std::vector<unsigned char> bad = good;
        bad[i] ^= 0x10;
        EXPECT_NE(0, cache.load_cache(bad.data(), bad.size())) << "byte " << i;
    }
    for (size_t size : {(size_t)0, (size_t)7, (size_t)80, good.size() - 1})
        EXPECT_NE(0, cache.load_cache(good.data(), size)) << size;
    std::vector<unsigned char> longer = good;
    longer.push_back(0);
    EXPECT_NE(0, cache.load_cache(longer.data(), longer.size()));
    // A damaged file is replaced, one that is none too; what cannot be written is an error.
    write(longer);
    EXPECT_NE(0, cache.load_cache(path.c_str()));
    EXPECT_EQ(0, cache.save_cache(path.c_str()));
    EXPECT_EQ(0, cache.load_cache(path.c_str()));
    EXPECT_NE(0, cache.save_cache("/nowhere/at/all"));
    EXPECT_NE(0, cache.load_cache("/"));
    EXPECT_NE(0, PipelineCache(nullptr).save_cache(path.c_str()));
}

TEST_F(PipelineFile, says_why) {
    static std::string said;
    const PipelineCache cache(get_gpu_device());
    ASSERT_EQ(0, cache.save_cache(path.c_str()));
    std::vector<unsigned char> bad = read();
    bad[8] ^= 1;
    write(bad);
    said.clear();
    set_log_sink([](LogLevel, const char* text, void*) { said += text; }, nullptr);
    EXPECT_NE(0, cache.load_cache(path.c_str()));
    set_log_sink(nullptr, nullptr);
    EXPECT_NE(std::string::npos, said.find("another version of the library")) << said;
    EXPECT_NE(std::string::npos, said.find(path)) << said;
}

// ---------------------------------------------------------------- what was measured

// 16 outputs of 3x3x8 at 33 x 17, by 2 tiles and 8 divisions.
const char* const kTuned =
    "7767517\n2 2\nInput in 0 1 in\n"
    "Convolution conv 1 1 in out 0=16 1=3 4=1 5=1 6=432\n";

TEST_F(PipelineFile, keeps_what_was_tuned) {
    destroy_gpu_instance();
    Mat want, got;
    {
        Net plain;
        ASSERT_EQ(0, load_gpu(&plain, kTuned));
        ASSERT_EQ(0, run(plain, image(), &want));
    }
    std::vector<unsigned char> untuned, tuned;
    const PipelineCache cache(get_gpu_device());
    ASSERT_EQ(0, cache.save_cache(&untuned));
    TuningTable& table = get_gpu_device()->gpu()->tuning();
    EXPECT_TRUE(table.save().empty());
    cache.set_tuning(true);
    const GpuDevice& gpu = *get_gpu_device()->gpu();
    {
        Net net;
        ASSERT_EQ(0, load_gpu(&net, kTuned));
        ASSERT_EQ(0, run(net, image(), &got));
        EXPECT_LT(difference(got, want), 1e-6);
    }
    const std::vector<unsigned char> rows = table.save();
    ASSERT_EQ((2u + 7 + 8) * 4, rows.size());
    ASSERT_EQ(0, cache.save_cache(path.c_str()));
    // What is known is not measured again: one submission, that of the run.
    for (bool fresh : {false, true}) {
        if (fresh) {
            destroy_gpu_instance();
            const PipelineCache again(get_gpu_device());
            again.set_tuning(true);
            ASSERT_EQ(0, again.load_cache(path.c_str()));
        }
        const GpuDevice& on = fresh ? *get_gpu_device()->gpu() : gpu;
        EXPECT_EQ(rows, on.tuning().save());
        Net net;
        ASSERT_EQ(0, load_gpu(&net, kTuned));
        const uint64_t before = on.submissions();
        ASSERT_EQ(0, run(net, image(), &got));
        EXPECT_EQ(before + 1, on.submissions());
        EXPECT_LT(difference(got, want), 1e-6);
    }
    PipelineCache(get_gpu_device()).set_tuning(false);
}

// The form of a table is taken, whatever the library would choose; one that is none is not.
TEST_F(VulkanApi, takes_what_was_tuned) {
    destroy_gpu_instance();
    const auto splits_of_run = [](const TuningTable::Words* form) {
        TuningTable& table = get_gpu_device()->gpu()->tuning();
        const TuningTable::Words key = {
            (uint32_t)Shader::conv_tiled, (uint32_t)Storage::f32, 0, 33 * 17, 16, 36, 1};
        if (form) table.put(key, *form);
        Net net;
        Mat got;
        EXPECT_EQ(0, load_gpu(&net, kTuned));
        EXPECT_EQ(0, run(net, image(), &got));
        return got;
    };
    const Mat want = splits_of_run(nullptr);
    const TuningTable::Words large = {64, 64, 16, 8, 2, 1, 1, 2}, wrong = {1, 2, 3};
    const TuningTable::Words too_many = {64, 64, 16, 8, 2, 1, 1, 99};
    // Sums of two parts round in another way.
    EXPECT_GT(difference(splits_of_run(&large), want), 0);
    EXPECT_LT(difference(splits_of_run(&large), want), 1e-6);
    EXPECT_EQ(0, difference(splits_of_run(&wrong), want));
    EXPECT_EQ(0, difference(splits_of_run(&too_many), want));
    destroy_gpu_instance();
}

TEST(TuningTable, merges_and_refuses) {
    TuningTable one, two;
    one.put({1, 2}, {3}), one.put({5}, {});
    two.put({1, 2}, {4}), two.put({}, {7, 8, 9});
    const std::vector<unsigned char> saved = one.save();
    ASSERT_TRUE(two.merge(saved.data(), saved.size()));
    TuningTable::Words form;
    ASSERT_TRUE(two.find({1, 2}, &form));
    EXPECT_EQ(TuningTable::Words({4}), form);  // its own stays
    ASSERT_TRUE(two.find({5}, &form));
    EXPECT_TRUE(form.empty());
    EXPECT_FALSE(two.find({6}, &form));
    TuningTable three;
    for (size_t size = 1; size < saved.size(); size++)
        if (size != 8 && size != 20) {  // where a row ends
            EXPECT_FALSE(three.merge(saved.data(), size)) << size;
        }
    const uint32_t huge[] = {0xffffffffu, 0xffffffffu, 0};
    EXPECT_FALSE(three.merge((const unsigned char*)huge, sizeof(huge)));
    EXPECT_TRUE(three.save().empty());
    EXPECT_TRUE(three.merge(nullptr, 0));
}

// ---------------------------------------------------------------- the host's memory, priorities

struct Pages {
    explicit Pages(size_t bytes) { EXPECT_EQ(0, posix_memalign(&data, 1 << 16, bytes)); }
    ~Pages() { free(data); }
    void* data = nullptr;
};

TEST_F(VulkanApi, memory_of_the_host_as_it_lies) {
    const VulkanDevice* device = get_gpu_device();
    const size_t step = VkImportedMemory::alignment(device);
    if (!step) GTEST_SKIP() << "the device takes none";
    const size_t bytes = (size_t)1 << 16;
    Pages in_pages(bytes), out_pages(bytes);
    Net net;
    ASSERT_EQ(0, load_gpu(&net, kTuned));
    Mat want;
    ASSERT_EQ(0, run(net, image(), &want));
    VkImportedMemory in(device, in_pages.data, bytes), out(device, out_pages.data, bytes);
    ASSERT_TRUE(in.is_valid() && out.is_valid());
    CountingStaging staging(device);
    net.opt.staging_vkallocator = &staging;
    for (int again = 0; again < 2; again++) {
        VkMat from(33, 17, 3, 4u, &in), made, to;
        ASSERT_FALSE(from.empty());
        EXPECT_EQ(in_pages.data, from.mapped_ptr());
        for (int q = 0; q < 3; q++)
            memcpy((float*)in_pages.data + q * 33 * 17, image().channel(q), 33 * 17 * 4);
        memset(out_pages.data, 0, bytes);
        VkCompute cmd(device);
        Extractor ex = net.create_extractor();
        ASSERT_EQ(0, ex.input("in", from));
        ASSERT_EQ(0, ex.extract("out", made, cmd));
        Option to_host = net.opt;
        to_host.blob_vkallocator = &out;
        ASSERT_EQ(0, cmd.record_clone(made, to, to_host));
        ASSERT_EQ(0, cmd.submit_and_wait());
        for (int q = 0; q < 16; q++)
            EXPECT_EQ(0,
                      memcmp((float*)out_pages.data + q * 33 * 17, want.channel(q), 33 * 17 * 4));
        EXPECT_EQ(0, staging.copies);
    }
    net.opt.staging_vkallocator = nullptr;
    const LogMute mute;
    {
        const VkMat first(33, 4u, &in), second(33, 4u, &in);
        EXPECT_FALSE(first.empty());
        EXPECT_TRUE(second.empty()) << "one at a time";
    }
    EXPECT_TRUE(VkMat((int)bytes, 4u, &in).empty()) << "too large";
    EXPECT_FALSE(VkImportedMemory(device, (char*)in_pages.data + 4, bytes - step).is_valid());
    EXPECT_FALSE(VkImportedMemory(device, in_pages.data, bytes - 4).is_valid());
    EXPECT_FALSE(VkImportedMemory(device, nullptr, bytes).is_valid());
    EXPECT_FALSE(VkImportedMemory(nullptr, in_pages.data, bytes).is_valid());
    EXPECT_EQ(0u, VkImportedMemory::alignment(nullptr));
}

// A device that has VK_KHR_global_priority as far as the library sees.
struct Priorities {
    static InstanceFunctions real;
    static std::vector<int> asked;  // 0: none
    static bool granted;
    static VkResult extensions(VkPhysicalDevice device, const char* layer, uint32_t* count,
                               VkExtensionProperties* all) {
        const uint32_t room = *count;
        const VkResult result = real.EnumerateDeviceExtensionProperties(device, layer, count, all);
        if (all && room > *count) strcpy(all[*count].extensionName, "VK_KHR_global_priority");
        ++*count;
        return result;
    }
    static VkResult create(VkPhysicalDevice device, const VkDeviceCreateInfo* info,
                           const VkAllocationCallbacks* with, VkDevice* made) {
        bool enabled = false;
        std::vector<const char*> names;
        for (uint32_t i = 0; i < info->enabledExtensionCount; i++) {
            const bool own = !strcmp(info->ppEnabledExtensionNames[i], "VK_KHR_global_priority");
            enabled |= own;
            if (!own) names.push_back(info->ppEnabledExtensionNames[i]);
        }
        EXPECT_TRUE(enabled);
        const auto* priority =
            (const VkDeviceQueueGlobalPriorityCreateInfoKHR*)info->pQueueCreateInfos[0].pNext;
        asked.push_back(priority ? (int)priority->globalPriority : 0);
        if (priority && !granted) return VK_ERROR_NOT_PERMITTED_KHR;
        VkDeviceQueueCreateInfo queue = info->pQueueCreateInfos[0];
        queue.pNext = nullptr;
        VkDeviceCreateInfo plain = *info;
        plain.pQueueCreateInfos = &queue;
        plain.enabledExtensionCount = (uint32_t)names.size();
        plain.ppEnabledExtensionNames = names.data();
        return real.CreateDevice(device, &plain, with, made);
    }
};
InstanceFunctions Priorities::real;
std::vector<int> Priorities::asked;
bool Priorities::granted;

TEST_F(VulkanApi, priorities) {
    const std::shared_ptr<GpuInstance> instance = GpuInstance::create(nullptr);
    InstanceFunctions& vk = const_cast<InstanceFunctions&>(instance->vk());
    Priorities::real = vk;
    vk.EnumerateDeviceExtensionProperties = Priorities::extensions;
    vk.CreateDevice = Priorities::create;
    Priorities::granted = true;
    const GpuPriority levels[] = {GpuPriority::low, GpuPriority::normal, GpuPriority::high,
                                  GpuPriority::realtime};
    for (const GpuPriority level : levels)
        EXPECT_TRUE(GpuDevice::open(instance, 0, level) != nullptr);
    EXPECT_EQ(std::vector<int>({128, 0, 512, 1024}), Priorities::asked);
    Priorities::granted = false, Priorities::asked.clear();
    const LogMute mute;
    EXPECT_TRUE(GpuDevice::open(instance, 0, GpuPriority::high) != nullptr);
    EXPECT_EQ(std::vector<int>({512, 0}), Priorities::asked);
    vk = Priorities::real;
    // Of a device that is open, or none.
    get_gpu_device();
    EXPECT_NE(0, set_gpu_priority(GpuPriority::high));
    EXPECT_NE(0, set_gpu_priority(GpuPriority::high, 999));
    destroy_gpu_instance();
    const bool has = probe_features(instance->vk(), instance->physical(0)).priorities != nullptr;
    EXPECT_EQ(has, set_gpu_priority(GpuPriority::low, 0) == 0);
    destroy_gpu_instance();
}

// ---------------------------------------------------------------- what goes wrong on devices

// Functions of the device replaced while it lives: memory that ends, a device that is lost.
struct Faults {
    static DeviceFunctions real;
    static std::atomic<int> live, left;  // blocks; allocations until they fail, -1: never
    static std::atomic<bool> lost, denied;
    static VkResult allocate(VkDevice device, const VkMemoryAllocateInfo* info,
                             const VkAllocationCallbacks* with, VkDeviceMemory* memory) {
        if (left == 0) {
            denied = true;
            return VK_ERROR_OUT_OF_DEVICE_MEMORY;
        }
        if (left > 0) left--;
        const VkResult result = real.AllocateMemory(device, info, with, memory);
        live += result == VK_SUCCESS;
        return result;
    }
    static void free(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks* with) {
        live--;
        real.FreeMemory(device, memory, with);
    }
    static VkResult submit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos,
                           VkFence fence) {
        return lost ? VK_ERROR_DEVICE_LOST : real.QueueSubmit(queue, count, infos, fence);
    }
    // A device of its own, which is the one that nets get.
    Faults() {
        destroy_gpu_instance();
        device = open_gpu(get_default_gpu_index());
        DeviceFunctions& vk = const_cast<DeviceFunctions&>(device->vk());
        real = vk;
        live = 0, left = -1, lost = false;
        vk.AllocateMemory = allocate, vk.FreeMemory = free, vk.QueueSubmit = submit;
    }
    ~Faults() {
        destroy_gpu_instance();
        EXPECT_EQ(0, live);
        const_cast<DeviceFunctions&>(device->vk()) = real;
    }
    std::shared_ptr<GpuDevice> device;
};
DeviceFunctions Faults::real;
std::atomic<int> Faults::live, Faults::left;
std::atomic<bool> Faults::lost, Faults::denied;

TEST_F(VulkanApi, every_allocation_may_fail) {
    const LogMute mute;
    Faults faults;
    Net cpu;
    ASSERT_EQ(0, load(&cpu, kSecond));
    Mat in(16, 16, 8), want;
    in.fill(1.f);
    ASSERT_EQ(0, run(cpu, in, &want));
    for (bool fallback : {false, true}) {
        int failed = 0;
        for (int left = 0;; left++) {
            Faults::left = left;
            Faults::denied = false;
            Net net;
            net.opt.vulkan_fallback = fallback;
            Mat got;
            int status = load_gpu(&net, kSecond);
            if (status == 0) status = run(net, in, &got);
            const bool had_enough = !Faults::denied;
            Faults::left = -1;
            if (fallback || had_enough) {
                EXPECT_EQ(0, status) << left;
                EXPECT_LT(difference(got, want), 1e-5) << left;
            } else {
                EXPECT_NE(0, status) << left;
                failed++;
            }
            // The Net is as good as before.
            if (status != 0) {
                EXPECT_EQ(0, load_gpu(&net, kSecond));
                EXPECT_EQ(0, run(net, in, &got));
                EXPECT_LT(difference(got, want), 1e-5) << left;
            }
            if (had_enough) break;
            ASSERT_LT(left, 100);
        }
        // Weights, arena, uploads, downloads; counters, where the depth of a product is divided;
        // the host's copies of four weights where memory is not shared.
        const int most = faults.device->info().type() == 0 ? 9 : 5;
        if (fallback)
            EXPECT_EQ(0, failed);
        else
            EXPECT_TRUE(failed == most - 1 || failed == most) << failed;
    }
}

// lavapipe does not know budgets: it leaves 0 in them.
TEST_F(VulkanApi, the_budget_is_respected) {
    destroy_gpu_instance();
    const std::shared_ptr<GpuDevice> gpu = open_gpu(get_default_gpu_index());
    if (gpu->features().memory_budget) {
        EXPECT_GT(gpu->memory_budget(), 0u);
        EXPECT_LE(gpu->memory_budget(), gpu->info().heap_size());
        GTEST_SKIP() << "the device tells its budget";
    }
    EXPECT_EQ(gpu->info().heap_size(), gpu->memory_budget());
    Net cpu;
    ASSERT_EQ(0, load(&cpu, kFirst));
    Mat want, got;
    ASSERT_EQ(0, run(cpu, image(), &want));
    const_cast<GpuFeatures&>(gpu->features()).memory_budget = true;
    static std::string said;
    said.clear();
    set_log_sink([](LogLevel, const char* text, void*) { said += text; }, nullptr);
    for (bool fallback : {false, true}) {
        Net net;
        net.opt.vulkan_fallback = fallback;
        int status = load_gpu(&net, kFirst);
        if (status == 0) status = run(net, image(), &got);
        EXPECT_EQ(fallback, status == 0);
    }
    set_log_sink(nullptr, nullptr);
    EXPECT_LT(difference(got, want), 1e-6);
    EXPECT_NE(std::string::npos, said.find("of which 0 are left")) << said;
    const_cast<GpuFeatures&>(gpu->features()).memory_budget = false;
    destroy_gpu_instance();
}

TEST_F(VulkanApi, a_lost_device_is_opened_anew) {
    const LogMute mute;
    Faults faults;
    Net net, next;
    Mat want, got;
    ASSERT_EQ(0, load_gpu(&net, kFirst));
    ASSERT_EQ(0, run(net, image(), &want));
    VulkanDevice* before = get_gpu_device();
    Faults::lost = true;
    EXPECT_NE(0, run(net, image(), &got));
    VkCompute cmd(before);
    VkMat m;
    ASSERT_EQ(0, cmd.record_upload(image(), m, net.opt));
    EXPECT_NE(0, cmd.submit_and_wait());
    Faults::lost = false;
    EXPECT_NE(0, run(net, image(), &got));  // it stays lost
    ASSERT_EQ(0, load_gpu(&next, kFirst));
    EXPECT_NE(get_gpu_device(), before);
    ASSERT_EQ(0, run(next, image(), &got));
    EXPECT_EQ(0, difference(got, want));
    m.release();
    net.clear();
    ASSERT_EQ(0, load_gpu(&net, kFirst));
    ASSERT_EQ(0, run(net, image(), &got));
    EXPECT_EQ(0, difference(got, want));
}

TEST_F(VulkanApi, a_thousand_loads) {
    Faults faults;
    Net net;
    Mat got;
    for (int i = 0; i < 1000; i++) {
        ASSERT_EQ(0, load_gpu(&net, kFirst));
        EXPECT_GT(Faults::live, 0);
        if (i % 100 == 0) {
            ASSERT_EQ(0, run(net, image(), &got));
        }
        net.clear();
        ASSERT_EQ(0, Faults::live) << i;
    }
}

TEST_F(VulkanApi, nets_and_threads) {
    Net first, second;
    ASSERT_EQ(0, load_gpu(&first, kFirst));
    ASSERT_EQ(0, load_gpu(&second, kSecond));
    Mat middle_want, want;
    ASSERT_EQ(0, run(first, image(), &middle_want));
    ASSERT_EQ(0, run(second, middle_want, &want));
    std::atomic<int> wrong(0);
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; t++) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 6; i++) {
                Mat middle, got;
                if (t % 2) {
                    if (run(first, image(), &middle) != 0 || run(second, middle, &got) != 0)
                        wrong++;
                } else {
                    VkCompute cmd(first.vulkan_device());
                    Extractor one = first.create_extractor(), two = second.create_extractor();
                    VkMat m, out;
                    if (one.input("in", image()) != 0 || one.extract("out", m, cmd) != 0 ||
                        two.input("in", m) != 0 || two.extract("out", out, cmd) != 0 ||
                        cmd.record_download(out, got, first.opt) != 0 || cmd.submit_and_wait() != 0)
                        wrong++;
                }
                if (difference(got, want) != 0) wrong++;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(0, wrong);
}

// A sum is not worth its copies; behind a convolution it comes for nothing.
TEST_F(VulkanApi, islands_stay_on_the_host) {
    class Observer : public LayerObserver {
    public:
        void before(const Layer&) override {}
        void after(const Layer&, const std::vector<Mat>&) override {}
        void left_to_host(const Layer& layer) override { left += " " + layer.name; }
        void runs_on(const Layer& layer, const char*) override { ran += " " + layer.name; }
        std::string left, ran;
    };
    for (bool alone : {true, false}) {
        const std::string conv = "Convolution conv 1 1 in a 0=8 1=3 4=1 5=1 6=216\n";
        Net net;
        net.opt.use_graph_fusion = false;
        ASSERT_EQ(
            0, load_gpu(&net, (std::string("7767517\n") + (alone ? "2 2" : "3 3") +
                               "\nInput in 0 1 in\n" + (alone ? "" : conv) + "BinaryOp plus 1 1 " +
                               (alone ? "in" : "a") + " out 0=0 1=1 2=3.0\n")
                                  .c_str()));
        Observer observer;
        Extractor ex = net.create_extractor();
        ex.set_layer_observer(&observer);
        Mat out;
        ASSERT_EQ(0, ex.input("in", image()));
        ASSERT_EQ(0, ex.extract("out", out));
        EXPECT_EQ(alone ? " plus" : "", observer.left);
        EXPECT_EQ(alone ? "" : " conv plus", observer.ran);
    }
}

// Split and MemoryData are values of the region: nothing of the net is left to the host.
TEST_F(VulkanApi, splits_and_constants_are_of_the_region) {
    const char* const text =
        "7767517\n5 6\nInput in 0 1 in\n"
        "Convolution conv 1 1 in a 0=8 1=3 4=1 5=1 6=216\nSplit two 1 2 a b c\n"
        "TensorBinary sum 2 1 b c d 0=0\nConvolution last 1 1 d out 0=8 1=1 5=1 6=64\n";
    const char* const with_constant =
        "7767517\n5 6\nInput in 0 1 in\nMemoryData factors 0 1 factors 0=1 1=1 2=8\n"
        "Convolution conv 1 1 in a 0=8 1=3 4=1 5=1 6=216\n"
        "BinaryOp mul 2 1 a factors b 0=2\nConvolution last 1 1 b out 0=8 1=1 5=1 6=64\n";
    for (const char* net_text : {text, with_constant}) {
        Net cpu, gpu;
        ASSERT_EQ(0, load(&cpu, net_text));
        ASSERT_EQ(0, load_gpu(&gpu, net_text));
        Mat want, got;
        ASSERT_EQ(0, run(cpu, image(), &want));
        ASSERT_EQ(0, run(gpu, image(), &got));
        EXPECT_LT(difference(got, want), 1e-5);
        const GpuDevice& device = *gpu.vulkan_device()->gpu();
        const uint64_t before = device.submissions();
        ASSERT_EQ(0, run(gpu, image(), &got));
        EXPECT_EQ(before + 1, device.submissions());
    }
}

TEST_F(VulkanApi, the_first_layer_that_is_not_finite) {
    static std::string said;
    Net net;
    net.opt.use_fp16_storage = true;
    net.opt.check_finite = true;
    net.opt.use_graph_fusion = false;
    ASSERT_EQ(0, load_gpu(&net,
                          "7767517\n4 4\nInput in 0 1 in\n"
                          "Convolution conv 1 1 in a 0=8 1=3 4=1 5=1 6=216\n"
                          "BinaryOp large 1 1 a b 0=2 1=1 2=60000.0\n"
                          "AbsVal abs 1 1 b out\n"));
    said.clear();
    set_log_sink([](LogLevel, const char* text, void*) { said += text; }, nullptr);
    Mat out;
    EXPECT_NE(0, run(net, image(), &out));
    set_log_sink(nullptr, nullptr);
    EXPECT_NE(std::string::npos, said.find("[BinaryOp large]")) << said;
}

}  // namespace
}  // namespace quoll
