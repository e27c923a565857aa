// A decoder whose keys and values stay on the device from token to token. Skipped where there is no
// device.
#include <math.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "forwarding_backend.h"
#include "quoll/command.h"
#include "quoll/gpu.h"
#include "quoll/net.h"
#include "random_weights.h"

namespace quoll {
namespace {

const int kHidden = 32, kBlocks = 2, kPrompt = 5;
const int kSteps = 72;  // over two borders between lengths that are compiled together

std::string product(const std::string& name, const std::string& in, int columns = kHidden) {
    return "Gemm " + name + " 1 1 " + in + " " + name +
           " 10=4 3=1 5=1 6=1 9=32 8=" + std::to_string(columns) + "\n";
}
// Rows to two heads of 16 values.
std::string heads(const std::string& name) {
    return "Reshape r" + name + " 1 1 " + name + " r" + name + " 0=16 1=2 2=-1\nPermute p" + name +
           " 1 1 r" + name + " p" + name + " 0=2\n";
}

std::string rotated(const std::string& name, const std::string& out) {
    return "RotaryEmbed t" + name + " 3 1 " + name + " c" + name + " s" + name + " " + out + "\n";
}

// One head of 16 values, for both heads of queries.
std::string shared_head(const std::string& name, bool rotates) {
    return "Reshape r" + name + " 1 1 " + name + " r" + name + " 0=16 1=1 2=-1\nPermute h" + name +
           " 1 1 r" + name + " h" + name + " 0=2\n" +
           (rotates ? rotated("h" + name, "g" + name) : "") + "ExpandDims e" + name + " 1 1 " +
           (rotates ? "g" : "h") + name + " e" + name + " -23303=1,1\nTile t" + name + " 1 1 e" +
           name + " t" + name + " -23302=4,1,2,1,1\nReshape p" + name + " 1 1 t" + name + " p" +
           name + " 0=16 1=-1 2=2\n";
}

// Blocks as pnnx writes them for ncnn: attention with a cache behind three products, a fourth one,
// and the sum with the block's input.
std::string decoder() {
    std::string text = "Input in0 0 1 in0\nInput in1 0 1 in1\nSplit masks 1 2 in1 m0 m1\n";
    text += "Input kv 0 4 cache_k0 cache_v0 cache_k1 cache_v1\n";
    text += "Input in2 0 1 in2\nSplit cos 1 3 in2 cpq0 cpk0 chk1\n";
    text += "Input in3 0 1 in3\nSplit sin 1 3 in3 spq0 spk0 shk1\n";
    std::string in = "in0";
    for (int block = 0; block < kBlocks; block++) {
        const std::string n = std::to_string(block), x = "x" + n;
        text += "Split s" + n + " 1 4 " + in + " " + x + "q " + x + "k " + x + "v " + x + "r\n";
        for (const char* part : {"q", "k", "v"}) {
            const bool shared = block == 1 && *part != 'q';
            text += product(part + n, x + part, shared ? 16 : kHidden);
            text += shared ? shared_head(part + n, *part == 'k') : heads(part + n);
        }
        if (block == 0) text += rotated("pq0", "gpq0") + rotated("pk0", "gpk0");
        const std::string q = block == 0 ? "gpq0" : "pq1", k = block == 0 ? "gpk0" : "pk1";
        text += "SDPA a" + n + " 6 3 " + q + " " + k + " pv" + n + " m" + n + " cache_k" + n +
                " cache_v" + n + " y" + n + " out_cache_k" + n + " out_cache_v" + n +
                " 5=1 6=0.25 7=1\n";
        text += "Permute py" + n + " 1 1 y" + n + " py" + n + " 0=2\n";
        text += "Reshape ry" + n + " 1 1 py" + n + " ry" + n + " 0=32 1=-1\n";
        text += product("o" + n, "ry" + n);
        in = block + 1 < kBlocks ? "z" + n : "out0";
        text += "BinaryOp sum" + n + " 2 1 o" + n + " " + x + "r " + in + " 0=0\n";
    }
    const size_t layers = 8 + kBlocks * 15 + 6 + 3;
    return "7767517\n" + std::to_string(layers) + " 99\n" + text;
}

std::vector<std::string> caches() { return {"cache_k0", "cache_v0", "cache_k1", "cache_v1"}; }

struct Step {
    Mat in, mask, cosines, sines;
    // `tokens` rows behind `past` ones.
    Step(int past, int tokens)
        : in(kHidden, tokens), mask(past + tokens, tokens), cosines(8, tokens), sines(8, tokens) {
        for (int t = 0; t < tokens; t++) {
            for (int i = 0; i < kHidden; i++) in.row(t)[i] = sinf((float)((past + t) * 7 + i * 3));
            for (int i = 0; i < 8; i++) {
                const float angle = (float)(past + t) / (float)(1 + i * i);
                cosines.row(t)[i] = cosf(angle), sines.row(t)[i] = sinf(angle);
            }
            for (int i = 0; i < mask.w; i++) mask.row(t)[i] = i <= past + t ? 0.f : -1e38f;
        }
    }
};

int load(Net* net, bool gpu, bool half) {
    net->opt.num_threads = 1;
    net->opt.use_vulkan_compute = gpu;
    net->opt.use_fp16_storage = gpu && half;
    const int status = net->load_param_mem(decoder().c_str());
    return status == 0 ? net->load_model(RandomWeights()) : status;
}

// Keys and values are Mats, or VkMats that no copy brings to the host.
template <class Blob, class Extract>
int run(const Net& net, const Step& step, std::vector<Blob>* kept, const Extract& extract) {
    Extractor ex = net.create_extractor();
    int status = ex.input("in0", step.in) || ex.input("in1", step.mask) ||
                 ex.input("in2", step.cosines) || ex.input("in3", step.sines);
    for (size_t i = 0; status == 0 && i < kept->size(); i++)
        status = ex.input(caches()[i].c_str(), (*kept)[i]);
    kept->resize(caches().size());
    return status ? status : extract(ex);
}

int run_on_host(const Net& net, const Step& step, std::vector<Mat>* kept, Mat* out) {
    return run(net, step, kept, [&](Extractor& ex) {
        int status = ex.extract("out0", *out);
        for (size_t i = 0; status == 0 && i < kept->size(); i++)
            status = ex.extract(("out_" + caches()[i]).c_str(), (*kept)[i]);
        return status;
    });
}

class CountingStaging : public VkStagingAllocator {
public:
    explicit CountingStaging(const VulkanDevice* device) : VkStagingAllocator(device) {}
    VkBufferMemory* fastMalloc(size_t size) override {
        bytes += size;
        return VkStagingAllocator::fastMalloc(size);
    }
    size_t bytes = 0;
};

int run_on_device(const Net& net, const Step& step, CountingStaging* staging,
                  std::vector<VkMat>* kept, Mat* out) {
    VkCompute cmd(net.vulkan_device());
    return run(net, step, kept, [&](Extractor& ex) {
        ex.set_staging_vkallocator(staging);
        Option opt = net.opt;
        opt.staging_vkallocator = staging;
        VkMat last;
        int status = ex.extract("out0", last, cmd) || cmd.record_download(last, *out, opt);
        for (size_t i = 0; status == 0 && i < kept->size(); i++)
            status = ex.extract(("out_" + caches()[i]).c_str(), (*kept)[i], cmd);
        return status ? status : cmd.submit_and_wait();
    });
}

double difference(const Mat& a, const Mat& b) {
    double range = 0, most = 0;
    for (int y = 0; y < b.h; y++)
        for (int x = 0; x < b.w; x++) {
            range = std::max(range, (double)fabsf(b.row(y)[x]));
            most = std::max(most, (double)fabsf(a.row(y)[x] - b.row(y)[x]));
        }
    return a.logical_shape() == b.logical_shape() && range > 0 ? most / range : INFINITY;
}

void decode(bool half, int prompt = kPrompt, int slice_us = 0, int steps = kSteps) {
    if (get_gpu_count() == 0) GTEST_SKIP() << "no Vulkan device";
    Net cpu, gpu;
    gpu.opt.vulkan_slice_us = slice_us;
    ASSERT_EQ(0, load(&cpu, false, half));
    ASSERT_EQ(0, load(&gpu, true, half));
    CountingStaging staging(gpu.vulkan_device());
    std::vector<Mat> kept;
    std::vector<VkMat> kept_gpu;
    int past = 0, moves = 0;
    for (int i = 0; i <= steps; i++) {
        const VkBufferMemory* const before = i ? kept_gpu[0].data : nullptr;
        const Step step(past, i == 0 ? prompt : 1);
        Mat want, got;
        staging.bytes = 0;
        ASSERT_EQ(0, run_on_host(cpu, step, &kept, &want));
        ASSERT_EQ(0, run_on_device(gpu, step, &staging, &kept_gpu, &got));
        EXPECT_LT(difference(got, want), half ? 5e-3 : 1e-5) << "step " << i;
        past += step.in.h;
        EXPECT_EQ(past, kept_gpu[0].h);
        moves += kept_gpu[0].data != before;
        // The rows, the mask, the angles, the answer.
        const size_t values = 2 * step.in.total() + step.mask.total() + 2 * step.cosines.total();
        EXPECT_LE(staging.bytes, values * sizeof(float)) << "step " << i;
    }
    EXPECT_LE(moves, 2);  // rows are added where they are
}

TEST(VulkanCaches, stay_on_the_device) { decode(false); }
TEST(VulkanCaches, stay_on_the_device_f16) { decode(true); }
// Of which several groups have some each.
TEST(VulkanCaches, many_keys) { decode(true, 250); }
TEST(VulkanCaches, in_slices) { decode(true, 250, 20, 12); }

// The groups that share the keys of a net's only head come in slices, too.
TEST(VulkanCaches, one_head_in_slices) {
    if (get_gpu_count() == 0) GTEST_SKIP() << "no Vulkan device";
    const char* const text =
        "7767517\n11 16\nInput q 0 1 q\nInput k 0 1 k\nInput v 0 1 v\n"
        "Input kv 0 2 cache_k cache_v\n"
        "Input cosines 0 1 cosines\nSplit s0 1 2 cosines c0 c1\n"
        "Input sines 0 1 sines\nSplit s1 1 2 sines d0 d1\n"
        "RotaryEmbed r0 3 1 q c0 d0 gq\nRotaryEmbed r1 3 1 k c1 d1 gk\n"
        "SDPA a 5 3 gq gk v cache_k cache_v y out_k out_v 6=0.25 7=1\n";
    Net cpu, gpu;
    gpu.opt.use_vulkan_compute = gpu.opt.use_fp16_storage = true;
    gpu.opt.vulkan_slice_us = 1;
    for (Net* net : {&cpu, &gpu}) {
        ASSERT_EQ(0, net->load_param_mem(text));
        ASSERT_EQ(0, net->load_model(RandomWeights()));
    }
    std::vector<Mat> kept;
    std::vector<VkMat> kept_gpu;
    for (int i = 0, past = 0; i < 4; i++) {
        const int tokens = i == 0 ? 300 : 1;
        const Step step(past, tokens);
        std::vector<Mat> in;
        for (int k = 0; k < 3; k++) {
            in.push_back(Mat(16, tokens, 1));
            for (int t = 0; t < tokens; t++)
                for (int x = 0; x < 16; x++)
                    in[k].channel(0).row(t)[x] = sinf((float)((past + t) * (k + 3) + x * 5));
        }
        const auto give = [&](Extractor& ex) {
            return ex.input("q", in[0]) || ex.input("k", in[1]) || ex.input("v", in[2]) ||
                   ex.input("cosines", step.cosines) || ex.input("sines", step.sines);
        };
        Mat want, got;
        Extractor on_cpu = cpu.create_extractor();
        ASSERT_EQ(0, give(on_cpu));
        if (i > 0) {
            ASSERT_EQ(0, on_cpu.input("cache_k", kept[0]) || on_cpu.input("cache_v", kept[1]));
        }
        kept.resize(2);
        ASSERT_EQ(0, on_cpu.extract("y", want) || on_cpu.extract("out_k", kept[0]) ||
                         on_cpu.extract("out_v", kept[1]));
        VkCompute cmd(gpu.vulkan_device());
        Extractor ex = gpu.create_extractor();
        ASSERT_EQ(0, give(ex));
        if (i > 0) {
            ASSERT_EQ(0, ex.input("cache_k", kept_gpu[0]) || ex.input("cache_v", kept_gpu[1]));
        }
        kept_gpu.resize(2);
        VkMat made;
        ASSERT_EQ(0, ex.extract("y", made, cmd) || ex.extract("out_k", kept_gpu[0], cmd) ||
                         ex.extract("out_v", kept_gpu[1], cmd) ||
                         cmd.record_download(made, got, gpu.opt) || cmd.submit_and_wait());
        EXPECT_LT(difference(got, want), 5e-3) << "step " << i;
        past += tokens;
    }
}

// Two continuations of the same tokens: the second may not find what the first has added.
void branch(bool half) {
    if (get_gpu_count() == 0) GTEST_SKIP() << "no Vulkan device";
    Net cpu, gpu;
    ASSERT_EQ(0, load(&cpu, false, half));
    ASSERT_EQ(0, load(&gpu, true, half));
    CountingStaging staging(gpu.vulkan_device());
    struct Branch {
        std::vector<Mat> kept;
        std::vector<VkMat> kept_gpu;
        int past = 0;
    };
    std::vector<Branch> branches(1);
    const auto next = [&](Branch* b, int tokens, int salt) {
        Step step(b->past, tokens);
        for (int t = 0; t < tokens; t++)
            for (int i = 0; i < kHidden; i++) step.in.row(t)[i] += 0.1f * (float)salt;
        Mat want, got;
        ASSERT_EQ(0, run_on_host(cpu, step, &b->kept, &want));
        ASSERT_EQ(0, run_on_device(gpu, step, &staging, &b->kept_gpu, &got));
        EXPECT_LT(difference(got, want), half ? 5e-3 : 1e-5) << b->past << " " << salt;
        b->past += tokens;
    };
    next(&branches[0], kPrompt, 0);
    for (int i = 0; i < 3; i++) next(&branches[0], 1, 0);
    const VkMat before = branches[0].kept_gpu[0];
    branches.push_back(branches[0]);
    branches.push_back(branches[0]);
    for (int i = 0; i < 130; i++)  // over the room that caches have
        for (int b = 0; b < (i < 4 ? 3 : 2); b++) next(&branches[b], 1, b);
    EXPECT_EQ(branches[2].past, branches[2].kept_gpu[0].h);
    // A Mat kept from an earlier run is unchanged, and equals what the host gets.
    Mat rows;
    VkCompute cmd(gpu.vulkan_device());
    ASSERT_EQ(0, cmd.record_download(before, rows, gpu.opt));
    ASSERT_EQ(0, cmd.submit_and_wait());
    ASSERT_EQ(before.h, rows.h);
    ASSERT_EQ(2, rows.c);
    for (int q = 0; q < rows.c; q++)
        EXPECT_LT(
            difference(rows.channel(q),
                       branches[1].kept[0].channel_range(q, 1).channel(0).row_range(0, before.h)),
            half ? 5e-3 : 1e-5);
}

TEST(VulkanCaches, branch) { branch(false); }
TEST(VulkanCaches, branch_f16) { branch(true); }

// Caches in an application's own memory come without room.
TEST(VulkanCaches, own_allocator) {
    if (get_gpu_count() == 0) GTEST_SKIP() << "no Vulkan device";
    Net cpu, gpu;
    ASSERT_EQ(0, load(&cpu, false, false));
    ASSERT_EQ(0, load(&gpu, true, false));
    VkBlobAllocator own(gpu.vulkan_device());
    {
        std::vector<Mat> kept;
        std::vector<VkMat> kept_gpu;
        int past = 0;
        for (int i = 0; i < 6; i++) {
            const Step step(past, i == 0 ? kPrompt : 1);
            Mat want, got;
            ASSERT_EQ(0, run_on_host(cpu, step, &kept, &want));
            VkCompute cmd(gpu.vulkan_device());
            ASSERT_EQ(0, run(gpu, step, &kept_gpu, [&](Extractor& ex) {
                          ex.set_blob_vkallocator(&own);
                          VkMat last;
                          int status = ex.extract("out0", last, cmd) ||
                                       cmd.record_download(last, got, gpu.opt);
                          for (size_t k = 0; status == 0 && k < kept_gpu.size(); k++)
                              status = ex.extract(("out_" + caches()[k]).c_str(), kept_gpu[k], cmd);
                          return status ? status : cmd.submit_and_wait();
                      }));
            EXPECT_LT(difference(got, want), 1e-5) << "step " << i;
            past += step.in.h;
            EXPECT_EQ((size_t)kept_gpu[0].w * past, kept_gpu[0].cstep);
            EXPECT_EQ(&own, kept_gpu[0].allocator);
        }
    }
}

// Counts what is compiled, and takes what is not worth its copies, too.
class CountingBackend : public ForwardingBackend {
public:
    using ForwardingBackend::ForwardingBackend;
    bool is_profitable(const Region&) const override { return true; }
    std::shared_ptr<const CompiledRegion> compile(const Region& region,
                                                  const Option& opt) const override {
        compiled++;
        return ForwardingBackend::compile(region, opt);
    }
    mutable int compiled = 0;
};

struct Sequence {
    std::vector<Mat> kept, kept_gpu;
    int past = 0;
    void next(const Net& cpu, const Net& gpu, int tokens) {
        const Step step(past, tokens);
        Mat want, got;
        ASSERT_EQ(0, run_on_host(cpu, step, &kept, &want));
        ASSERT_EQ(0, run_on_host(gpu, step, &kept_gpu, &got));
        EXPECT_LT(difference(got, want), 1e-5) << "behind " << past;
        for (size_t i = 0; i < kept.size(); i++)
            EXPECT_EQ(kept[i].logical_shape(), kept_gpu[i].logical_shape());
        past += tokens;
    }
};

TEST(VulkanCaches, lengths_share_a_compilation) {
    if (get_gpu_count() == 0) GTEST_SKIP() << "no Vulkan device";
    Net cpu, gpu;
    ASSERT_EQ(0, load(&cpu, false, false));
    gpu.opt.num_threads = 1;
    const auto backend = std::make_shared<CountingBackend>(gpu.opt);
    gpu.add_backend(backend);
    ASSERT_EQ(0, load(&gpu, false, false));
    Sequence first, second, third;
    first.next(cpu, gpu, kPrompt);
    for (int i = 0; i < 40; i++) first.next(cpu, gpu, 1);
    // The prompt, the first token, 33 lengths from the second one on, 65 more.
    EXPECT_EQ(4, backend->compiled);
    // Sequences in turn, of lengths that are known, and of others.
    second.next(cpu, gpu, kPrompt);
    third.next(cpu, gpu, 3);
    for (int i = 0; i < 20; i++) {
        second.next(cpu, gpu, 1);
        third.next(cpu, gpu, 1);
    }
    EXPECT_EQ(7, backend->compiled);
    third.next(cpu, gpu, 2);  // two tokens at once are no growth by one
    third.next(cpu, gpu, 1);
    EXPECT_EQ(8, backend->compiled);
    for (int i = 40; i < 110; i++) first.next(cpu, gpu, 1);
    EXPECT_EQ(9, backend->compiled);  // 129 lengths behind the 65
}

}  // namespace
}  // namespace quoll
