// Small nets of random weights, and what the tests of Vulkan share.
#ifndef QUOLL_TESTS_RUNTIME_VULKAN_NETS_H
#define QUOLL_TESTS_RUNTIME_VULKAN_NETS_H

#include <math.h>

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "quoll/command.h"
#include "quoll/gpu.h"
#include "quoll/net.h"
#include "random_weights.h"

namespace quoll {

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

// 16 outputs of 3x3x8 at 33 x 17, by 2 tiles and 8 divisions.
const char* const kTuned =
    "7767517\n2 2\nInput in 0 1 in\n"
    "Convolution conv 1 1 in out 0=16 1=3 4=1 5=1 6=432\n";

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
inline Layer* make_doubled(void*) { return new Doubled; }

inline int load(Net* net, const char* text) {
    net->register_custom_layer("Doubled", make_doubled);
    net->opt.num_threads = 1;
    const int status = net->load_param_mem(text);
    return status == 0 ? net->load_model(RandomWeights()) : status;
}

inline int load_gpu(Net* net, const char* text) {
    net->opt.use_vulkan_compute = true;
    return load(net, text);
}

inline Mat image() {
    Mat m(33, 17, 3);
    for (int q = 0; q < m.c; q++)
        for (int i = 0; i < m.w * m.h; i++) m.channel(q)[i] = (float)((i * 37 + q * 11) % 101 - 50);
    return m;
}

inline int run(const Net& net, const Mat& in, Mat* out) {
    Extractor ex = net.create_extractor();
    const int status = ex.input("in", in);
    return status == 0 ? ex.extract("out", *out) : status;
}

inline double difference(const Mat& got, const Mat& want) {
    if (got.logical_shape() != want.logical_shape() || got.empty()) return INFINITY;
    double range = 0, most = 0;
    for (int k = 0; k < want.n * want.c; k++) {
        const Mat ours = got.batch(k / want.c), theirs = want.batch(k / want.c);
        const float *a = ours.channel(k % want.c), *b = theirs.channel(k % want.c);
        for (int i = 0; i < want.w * want.h * want.d; i++) {
            if (isnan(a[i]) != isnan(b[i])) return INFINITY;
            if (isnan(b[i])) continue;
            if (isfinite(b[i])) range = std::max(range, (double)fabsf(b[i]));
            if (a[i] != b[i]) most = std::max(most, (double)fabsf(a[i] - b[i]));
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

}  // namespace quoll

#endif
