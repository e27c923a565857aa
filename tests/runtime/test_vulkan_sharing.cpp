// A device that others use, too: work in slices, submissions in flight, priorities, the memory of
// the host. Skipped where there is no device.
#include <string.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "gpu/device.h"
#include "gpu/program.h"
#include "gpu/shaders.h"
#include "layer/vulkan/compiled_region.h"
#include "quoll/log.h"
#include "runtime/log_mute.h"
#include "vulkan_nets.h"

namespace quoll {
namespace {

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

// As long as no times are known, no submission has two dispatches: neither of the runs that find
// the times.
TEST_F(VulkanApi, dispatches_are_timed_one_by_one) {
    Net net;
    net.opt.vulkan_slice_us = 60000000;
    ASSERT_EQ(0, load_gpu(&net, kSecond));
    Mat in(16, 16, 8), out;
    in.fill(1.f);
    const GpuDevice& gpu = *net.vulkan_device()->gpu();
    const uint64_t begin = gpu.submissions();
    ASSERT_EQ(0, run(net, in, &out));
    const uint64_t first = gpu.submissions() - begin;
    ASSERT_EQ(0, run(net, in, &out));
    EXPECT_EQ(1u, gpu.submissions() - begin - first);
    // Twice for the convolution, twice for what follows it, and the run.
    EXPECT_GE(first, 2u * 2 + 1);
}

class LastTimes final : public RegionTimer {
public:
    void ran(const VulkanRegion& region, const RegionTimes& times) override {
        EXPECT_EQ(region.program().dispatches.size(), times.dispatches.size());
        submissions = region.program().submissions.size() + 1, last = times;
    }
    size_t submissions = 0;
    RegionTimes last;
};

TEST_F(VulkanApi, slices_are_timed_too) {
    Net net;
    net.opt.vulkan_slice_us = 1;
    ASSERT_EQ(0, load_gpu(&net, kFirst));
    Mat want, got;
    ASSERT_EQ(0, run(net, image(), &want));
    {
        LastTimes times;
        ASSERT_EQ(0, run(net, image(), &got));
        EXPECT_EQ(0.0, difference(got, want));
        EXPECT_GT(times.submissions, 1u);
        EXPECT_GT(times.last.submission, 0);
        for (double seconds : times.last.dispatches) {
            EXPECT_GE(seconds, 0);
            EXPECT_LE(seconds, times.last.submission);
        }
        times.submissions = 0;
        std::thread([&] { EXPECT_EQ(0, run(net, image(), &got)); }).join();
        EXPECT_EQ(0u, times.submissions);  // of its own thread alone
    }
    EXPECT_EQ(0, run(net, image(), &got));
}

TEST_F(VulkanApi, a_queue_without_timestamps) {
    destroy_gpu_instance();
    const std::shared_ptr<GpuDevice> gpu = open_gpu(get_default_gpu_index());
    Net whole, sliced;
    sliced.opt.vulkan_slice_us = 1;
    ASSERT_EQ(0, load_gpu(&whole, kSecond));
    ASSERT_EQ(0, load_gpu(&sliced, kSecond));
    Mat in(16, 16, 8), want, got;
    in.fill(1.f);
    ASSERT_EQ(0, run(whole, in, &want));
    const_cast<ComputeFamily&>(gpu->compute_family()).timestamp_bits = 0;
    static std::string said;
    said.clear();
    set_log_sink([](LogLevel, const char* text, void*) { said += text; }, nullptr);
    EXPECT_EQ(0, run(sliced, in, &got));
    EXPECT_EQ(0.0, difference(got, want));
    EXPECT_NE(std::string::npos, said.find("no timestamps: each dispatch is a slice")) << said;
    said.clear();
    {
        LastTimes times;
        EXPECT_NE(0, run(whole, in, &got));
        EXPECT_NE(std::string::npos, said.find("no timestamps, which tell how long")) << said;
    }
    set_log_sink(nullptr, nullptr);
    EXPECT_EQ(0, run(whole, in, &got));
    destroy_gpu_instance();
}

// Parts whose code says at which group they begin, as for drivers that ignore it.
void expect_same_in_parts(const char* text) {
    force_moved_parts(2);
    Net whole, sliced;
    sliced.opt.vulkan_slice_us = 1;
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

// Convolutions of both sorts, depthwise ones, pooling, sums with gl_WorkGroupID as a vector and by
// its components; groups of which the last one to arrive makes the softmax.
TEST_F(VulkanApi, parts_with_code_of_their_own) {
    expect_same_in_parts(
        "7767517\n7 8\nInput in 0 1 in\n"
        "Convolution c1 1 1 in a 0=16 1=3 4=1 5=1 6=432 9=1\n"
        "ConvolutionDepthWise c2 1 1 a b 0=16 1=3 4=1 5=1 6=144 7=16\n"
        "Split split 1 2 b b1 b2\n"
        "Pooling mean 1 1 b1 m 0=1 4=1\n"
        "Softmax softmax 1 1 b2 s\n"
        "BinaryOp sum 2 1 s m out\n");
    expect_same_in_parts(
        "7767517\n3 3\nInput in 0 1 in\n"
        "InnerProduct classes 1 1 in a 0=40 1=1 2=67320\n"
        "Softmax softmax 1 1 a out\n");
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

// One thread has more of them than the bound allows, and waits for them in the end only.
TEST_F(VulkanApi, submissions_of_one_thread_are_bounded) {
    Net net;
    net.opt.vulkan_max_in_flight = 2;
    ASSERT_EQ(0, load_gpu(&net, kFirst));
    Mat want;
    ASSERT_EQ(0, run(net, image(), &want));
    const GpuDevice& gpu = *net.vulkan_device()->gpu();
    gpu.highest_in_flight();
    std::vector<std::unique_ptr<VkCompute>> commands;
    std::vector<Mat> got(5);
    for (Mat& out : got) {
        commands.emplace_back(new VkCompute(net.vulkan_device()));
        Extractor ex = net.create_extractor();
        VkMat made;
        ASSERT_EQ(0, ex.input("in", image()));
        ASSERT_EQ(0, ex.extract("out", made, *commands.back()));
        ASSERT_EQ(0, commands.back()->record_download(made, out, net.opt));
        ASSERT_EQ(0, commands.back()->submit());
    }
    for (size_t i = 0; i < got.size(); i++) {
        ASSERT_EQ(0, commands[i]->wait());
        EXPECT_EQ(0, difference(got[i], want)) << i;
    }
    EXPECT_LE(gpu.highest_in_flight(), 2);
}

// ---------------------------------------------------------------- queues of an application

// By a thread whose submissions have not been waited for, as many as may be in flight.
TEST_F(VulkanApi, a_queue_is_free_once_it_was_submitted_to) {
    Net net;
    net.opt.vulkan_max_in_flight = 1;
    ASSERT_EQ(0, load_gpu(&net, kFirst));
    Mat want, got;
    ASSERT_EQ(0, run(net, image(), &want));
    const VulkanDevice* device = net.vulkan_device();
    const uint32_t family = device->info.compute_queue_family_index();
    VkCompute cmd(device);
    VkMat made;
    Extractor ex = net.create_extractor();
    ASSERT_EQ(0, ex.input("in", image()));
    ASSERT_EQ(0, ex.extract("out", made, cmd));
    ASSERT_EQ(0, cmd.record_download(made, got, net.opt));
    ASSERT_EQ(0, cmd.submit());
    std::vector<VkQueue> all;
    {
        const LogMute mute;
        while (const VkQueue queue = device->acquire_queue(family)) all.push_back(queue);
        EXPECT_NE(0, run(net, image(), &want)) << "its own thread has all queues";
    }
    EXPECT_FALSE(all.empty());
    ASSERT_EQ(0, cmd.wait());
    std::thread other([&] { EXPECT_EQ(0, run(net, image(), &want)); });  // waits for a queue
    device->reclaim_queue(family, all.back());
    other.join();
    EXPECT_EQ(0, difference(got, want));
    all.pop_back();
    for (VkQueue queue : all) device->reclaim_queue(family, queue);
    ASSERT_EQ(0, run(net, image(), &want));
    EXPECT_EQ(0, difference(got, want));
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

}  // namespace
}  // namespace quoll
