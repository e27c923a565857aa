// ncnn's names for blobs on a device: VkMat, its allocators, VkCompute, PipelineCache. Skipped
// where there is no device.
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "gpu/device.h"
#include "runtime/log_mute.h"
#include "vulkan_nets.h"

namespace quoll {
namespace {

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
    const auto pick = [](const Net& net, int first, int second, bool record, Mat* out,
                         bool waits = true) {
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
        return waits ? cmd.submit_and_wait() : cmd.submit();
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
        if (!record) continue;
        // A run whose end nobody waited for says nothing of the next one.
        ASSERT_EQ(0, pick(gpu, 3, 64, record, &got, false));
        ASSERT_EQ(0, pick(gpu, 63, -64, record, &got));
        EXPECT_LT(difference(got, want), 1e-6);
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
// Copies of copies have the values of their turn, though what they come from is written again.
TEST_F(VulkanApi, copies_follow_each_other) {
    const VulkanDevice* device = get_gpu_device();
    const Option opt;
    VkCompute cmd(device);
    VkMat batch(33, 2, 3, (size_t)4, 1, 2, device->acquire_blob_allocator());
    std::vector<Mat> from, to(8);
    for (int round = 0; round < 4; round++) {
        from.push_back(Mat(33, 2, 3));
        for (size_t i = 0; i < from.back().total(); i++)
            ((float*)from.back().data)[i] = (float)(i + 1000 * (size_t)round);
        VkMat item = batch.batch(round % 2), first, again;
        ASSERT_EQ(0, cmd.record_clone(from.back(), item, opt));
        ASSERT_EQ(0, cmd.record_clone(item, first, opt));
        ASSERT_EQ(0, cmd.record_clone(first, again, opt));
        ASSERT_EQ(0, cmd.record_clone(again, to[2 * round], opt));
        ASSERT_EQ(0, cmd.record_clone(batch.batch(0), to[2 * round + 1], opt));
    }
    ASSERT_EQ(0, cmd.submit_and_wait());
    for (size_t k = 0; k < to.size(); k++) {
        const Mat& wanted = from[k % 2 ? k / 4 * 2 : k / 2];
        for (int q = 0; q < 3; q++)
            EXPECT_EQ(0, memcmp(wanted.channel(q).data, to[k].channel(q).data, 33 * 2 * 4)) << k;
    }
}

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
    VkMat like;
    like.create_like(m, get_gpu_device()->acquire_blob_allocator());
    EXPECT_TRUE(like.empty());
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

}  // namespace
}  // namespace quoll
