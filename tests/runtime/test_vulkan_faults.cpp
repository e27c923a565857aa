// What goes wrong on devices: memory that ends, a device that is lost, values that are not finite;
// and what stays on the host. Skipped where there is no device.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "gpu/device.h"
#include "quoll/log.h"
#include "resident.h"
#include "runtime/log_mute.h"
#include "vulkan_nets.h"

namespace quoll {
namespace {

// ---------------------------------------------------------------- what goes wrong on devices

// Functions of the device replaced while it lives: memory that ends, a device that is lost.
struct Faults {
    static DeviceFunctions real;
    static std::atomic<int> live, left;  // blocks; allocations until they fail, -1: never
    static std::atomic<int> waits, waits_before_pipelines;  // -1: no pipeline was made
    static std::atomic<uint64_t> submissions_before_pipelines;
    static std::atomic<bool> lost, lost_while_running, denied;
    static const GpuDevice* counted;
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
    static VkResult make_pipeline(VkDevice device, VkPipelineCache cache, uint32_t count,
                                  const VkComputePipelineCreateInfo* infos,
                                  const VkAllocationCallbacks* with, VkPipeline* made) {
        if (waits_before_pipelines < 0) {
            waits_before_pipelines = waits.load();
            submissions_before_pipelines = counted->submissions();
        }
        return real.CreateComputePipelines(device, cache, count, infos, with, made);
    }
    // What was submitted ends all the same, so that its memory can be freed.
    static VkResult wait(VkDevice device, uint32_t count, const VkFence* fences, VkBool32 all,
                         uint64_t nanoseconds) {
        waits++;
        const VkResult result = real.WaitForFences(device, count, fences, all, nanoseconds);
        return lost_while_running ? VK_ERROR_DEVICE_LOST : result;
    }
    static VkResult status(VkDevice device, VkFence fence) {
        waits++;
        const VkResult result = real.GetFenceStatus(device, fence);
        return lost_while_running && result == VK_SUCCESS ? VK_ERROR_DEVICE_LOST : result;
    }
    // A device of its own, which is the one that nets get. staged: weights go through staging
    // memory, though the host may see where they stay.
    explicit Faults(bool staged = false) {
        destroy_gpu_instance();
        device = open_gpu(get_default_gpu_index());
        if (staged) const_cast<GpuFeatures&>(device->features()).unified_memory = false;
        DeviceFunctions& vk = const_cast<DeviceFunctions&>(device->vk());
        real = vk;
        live = 0, left = -1, lost = lost_while_running = false;
        vk.AllocateMemory = allocate, vk.FreeMemory = free, vk.QueueSubmit = submit;
        vk.WaitForFences = wait, vk.GetFenceStatus = status;
        vk.CreateComputePipelines = make_pipeline;
        waits = 0, waits_before_pipelines = -1, counted = device.get();
    }
    ~Faults() {
        destroy_gpu_instance();
        EXPECT_EQ(0, live);
        const_cast<DeviceFunctions&>(device->vk()) = real;
    }
    std::shared_ptr<GpuDevice> device;
};
DeviceFunctions Faults::real;
std::atomic<int> Faults::live, Faults::left, Faults::waits, Faults::waits_before_pipelines;
std::atomic<uint64_t> Faults::submissions_before_pipelines;
const GpuDevice* Faults::counted;
std::atomic<bool> Faults::lost, Faults::lost_while_running, Faults::denied;

// A net without the memory for its allocation `left`, with and without the host as a fallback.
// Returns whether it had enough.
bool run_with_allocations(int left, bool fallback, const Mat& in, const Mat& want) {
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
    }
    // The Net is as good as before.
    if (status != 0) {
        EXPECT_EQ(0, load_gpu(&net, kSecond));
        EXPECT_EQ(0, run(net, in, &got));
        EXPECT_LT(difference(got, want), 1e-5) << left;
    }
    return had_enough;
}

TEST_F(VulkanApi, every_allocation_may_fail) {
    const LogMute mute;
    Net cpu;
    ASSERT_EQ(0, load(&cpu, kSecond));
    Mat in(16, 16, 8), want;
    in.fill(1.f);
    ASSERT_EQ(0, run(cpu, in, &want));
    for (bool staged : {false, true}) {
        Faults faults(staged);
        for (bool fallback : {false, true}) {
            int needed = 0;
            while (!run_with_allocations(needed, fallback, in, want)) ASSERT_LT(++needed, 100);
            // Weights, arena, uploads, downloads; counters, where the depth of a product is
            // divided. Staging memory for weights, and for counters, where memory is not shared.
            const bool copied = !faults.device->features().unified_memory;
            EXPECT_TRUE(needed == (copied ? 5 : 4) || needed == (copied ? 7 : 5)) << needed;
        }
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

// Nobody waits for the copies of weights before the pipelines of the first region are made.
TEST_F(VulkanApi, weights_are_copied_while_pipelines_are_made) {
    Net cpu;
    ASSERT_EQ(0, load(&cpu, kFirst));
    Mat want, got;
    ASSERT_EQ(0, run(cpu, image(), &want));
    Faults faults(true);
    Net net;
    ASSERT_EQ(0, load_gpu(&net, kFirst));
    ASSERT_EQ(0, run(net, image(), &got));
    EXPECT_EQ(0, Faults::waits_before_pipelines);
    EXPECT_EQ(1u, Faults::submissions_before_pipelines);
    EXPECT_GT(Faults::waits, 0);
    EXPECT_LT(difference(got, want), 1e-5);
}

// While weights are copied: the load or the first run ends with an error, and memory is freed.
TEST_F(VulkanApi, a_device_is_lost_while_weights_are_copied) {
    const LogMute mute;
    for (bool at_once : {true, false}) {
        Faults faults(true);
        Mat got;
        (at_once ? Faults::lost : Faults::lost_while_running) = true;
        {
            Net net;
            EXPECT_NE(0, load_gpu(&net, kSecond) || run(net, image(), &got));
            EXPECT_NE(0, run(net, image(), &got));
        }
        Faults::lost = Faults::lost_while_running = false;
        EXPECT_EQ(0, Faults::live);
    }
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

// While submissions run and others wait for their turn: all of them end with an error.
TEST_F(VulkanApi, a_device_is_lost_while_threads_use_it) {
    const LogMute mute;
    Faults faults;
    Net net, next;
    net.opt.vulkan_max_in_flight = 1;
    Mat want, got;
    ASSERT_EQ(0, load_gpu(&net, kFirst));
    ASSERT_EQ(0, run(net, image(), &want));
    std::atomic<int> right(0), wrong(0);
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; t++)
        threads.emplace_back([&] {
            const LogMute quiet;
            Mat out;
            while (run(net, image(), &out) == 0) (difference(out, want) == 0 ? right : wrong)++;
            wrong += run(net, image(), &out) == 0;
        });
    VkCompute cmd(net.vulkan_device());
    VkMat m;
    ASSERT_EQ(0, cmd.record_upload(image(), m, net.opt));
    ASSERT_EQ(0, cmd.submit());
    while (right < 80) std::this_thread::yield();
    Faults::lost_while_running = true;
    EXPECT_NE(0, cmd.wait());
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(0, wrong);
    Faults::lost_while_running = false;
    ASSERT_EQ(0, load_gpu(&next, kFirst));
    ASSERT_EQ(0, run(next, image(), &got));
    EXPECT_EQ(0, difference(got, want));
}

// Neither the device's memory nor the host's.
TEST_F(VulkanApi, a_thousand_loads_leave_nothing) {
    Faults faults(true);
    Net net;
    Mat got;
    size_t host = 0;
    for (int i = 0; i < 1000; i++) {
        ASSERT_EQ(0, load_gpu(&net, kFirst));
        EXPECT_GT(Faults::live, 0);
        if (i % 100 == 0) {
            ASSERT_EQ(0, run(net, image(), &got));
        }
        net.clear();
        ASSERT_EQ(0, Faults::live) << i;
        if (i == 200) host = resident_bytes();
    }
    const double more = (double)resident_bytes() - (double)host;
    printf("800 loads: host %+.2f MB\n", more / 1e6);
    // A GPU's driver may keep some.
    EXPECT_LT(more, faults.device->info().type() == 3 ? 0.8e6 : 4e6);
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
