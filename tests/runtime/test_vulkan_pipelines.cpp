// Files of pipelines and of what was tuned: PipelineCache, TuningTable. Skipped where there is no
// device.
#include <stdio.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "gpu/device.h"
#include "gpu/pipeline.h"
#include "gpu/shaders.h"
#include "gpu/tuning.h"
#include "quoll/log.h"
#include "runtime/log_mute.h"
#include "vulkan_nets.h"

namespace quoll {
namespace {

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
    // Known sizes are not measured again: there is one submission, that of the run, besides the
    // copy of weights, for which the first run waits where the device has memory of its own.
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
        EXPECT_EQ(before + 1 + !on.features().unified_memory, on.submissions());
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
            (uint32_t)Shader::conv_tiled_planar, (uint32_t)Storage::f32, 0, 33 * 17, 16, 36, 1};
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

// ---------------------------------------------------------------- many threads

// Counts the pipelines that the driver makes while it lives, and how many at a time.
struct CountedPipelines {
    static PFN_vkCreateComputePipelines real;
    static std::atomic<int> calls, running, most, wanted, fail;
    static VkResult create(VkDevice device, VkPipelineCache cache, uint32_t count,
                           const VkComputePipelineCreateInfo* infos,
                           const VkAllocationCallbacks* with, VkPipeline* made) {
        calls++;
        const int now = ++running;
        for (int before = most; now > before && !most.compare_exchange_weak(before, now);) {
        }
        // Until as many run at the same time as are wanted; 10 seconds at most.
        for (int i = 0; i < 10000 && most < wanted; i++)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        running--;
        if (fail-- > 0) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
        return real(device, cache, count, infos, with, made);
    }
    explicit CountedPipelines(int at_a_time) {
        destroy_gpu_instance();  // with the pipelines of tests before
        device = open_gpu(get_default_gpu_index());
        PFN_vkCreateComputePipelines& f =
            const_cast<DeviceFunctions&>(device->vk()).CreateComputePipelines;
        real = f, f = create;
        calls = running = most = fail = 0, wanted = at_a_time;
    }
    ~CountedPipelines() {
        const_cast<DeviceFunctions&>(device->vk()).CreateComputePipelines = real;
        destroy_gpu_instance();
    }
    std::shared_ptr<GpuDevice> device;
};
PFN_vkCreateComputePipelines CountedPipelines::real;
std::atomic<int> CountedPipelines::calls, CountedPipelines::running, CountedPipelines::most,
    CountedPipelines::wanted, CountedPipelines::fail;

PipelineKey unary_key(uint32_t which) { return {Shader::unary, Storage::f32, 2, {which}}; }

// Gets what `keys` says for each thread; the number of threads that failed.
int get_in_threads(const GpuDevice& device, const std::vector<std::vector<uint32_t>>& keys,
                   std::vector<std::vector<VkPipeline>>* made) {
    std::atomic<int> failed(0);
    std::vector<std::thread> threads;
    made->resize(keys.size());
    for (size_t t = 0; t < keys.size(); t++)
        threads.emplace_back([&, t] {
            const LogMute mute;
            std::vector<PipelineKey> wanted;
            for (const uint32_t key : keys[t]) wanted.push_back(unary_key(key));
            failed += device.pipelines().get(wanted, 1, &(*made)[t]) != 0;
        });
    for (std::thread& thread : threads) thread.join();
    return failed;
}

TEST_F(VulkanApi, different_pipelines_are_made_side_by_side) {
    const CountedPipelines counted(2);
    std::vector<std::vector<VkPipeline>> made;
    EXPECT_EQ(0, get_in_threads(*counted.device, {{1}, {2}}, &made));
    EXPECT_EQ(2, CountedPipelines::calls);
    EXPECT_EQ(2, CountedPipelines::most);
    EXPECT_NE(made[0], made[1]);
}

TEST_F(VulkanApi, each_pipeline_is_made_once) {
    const CountedPipelines counted(1);
    std::vector<std::vector<VkPipeline>> made;
    // In orders in which threads would wait for each other if any waited before its own are made.
    EXPECT_EQ(0, get_in_threads(*counted.device,
                                {{1, 2, 3, 1}, {3, 2, 1, 3}, {2, 3, 1, 2}, {1, 2, 3, 1}}, &made));
    EXPECT_EQ(3, CountedPipelines::calls);
    EXPECT_EQ(made[0], made[3]);
    EXPECT_EQ(made[0][0], made[0][3]);
    EXPECT_EQ(made[0][0], made[1][2]);
    EXPECT_EQ(made[0][1], made[2][0]);
}

// One thread gets the error; another one of those that wait for it makes the pipeline.
TEST_F(VulkanApi, a_pipeline_that_failed_is_made_by_another_thread) {
    const CountedPipelines counted(1);
    CountedPipelines::fail = 1;
    std::vector<std::vector<VkPipeline>> made;
    EXPECT_EQ(1, get_in_threads(*counted.device, {{1}, {1}, {1}, {1}, {1}, {1}}, &made));
    EXPECT_EQ(2, CountedPipelines::calls);
    EXPECT_EQ(1u, counted.device->pipelines().count());
}

}  // namespace
}  // namespace quoll
