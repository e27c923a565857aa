// For tests of graph passes: nets from a text of layers and random weights, run with fusion and
// without.
#ifndef QUOLL_TESTS_RUNTIME_FUSED_NETS_H
#define QUOLL_TESTS_RUNTIME_FUSED_NETS_H

#include <gtest/gtest.h>
#include <math.h>
#include <string.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "quoll/datareader.h"
#include "quoll/net.h"

namespace quoll {

// Weights for a text of floats: every value drawn anew, tags where 'tagged' says so.
class Weights {
public:
    Weights& tagged(int count) {
        bytes_.insert(bytes_.end(), 4, 0);
        return raw(count);
    }
    Weights& raw(int count, float low = -1.f, float high = 1.f) {
        std::uniform_real_distribution<float> next(low, high);
        for (int i = 0; i < count; i++) {
            const float x = next(rng_);
            bytes_.insert(bytes_.end(), (const unsigned char*)&x, (const unsigned char*)&x + 4);
        }
        return *this;
    }
    // slope, mean, var, bias
    Weights& batchnorm(int channels) {
        return raw(channels, 0.5f, 2.f).raw(channels).raw(channels, 0.5f, 2.f).raw(channels);
    }
    // Aligned, as load_model from memory wants it.
    const unsigned char* data() {
        words_.assign((bytes_.size() + 3) / 4 + 1, 0);  // not empty, so that there is an address
        std::copy(bytes_.begin(), bytes_.end(), (unsigned char*)words_.data());
        return (const unsigned char*)words_.data();
    }
    size_t size() const { return bytes_.size(); }

private:
    std::mt19937 rng_{7};
    std::vector<unsigned char> bytes_;
    std::vector<uint32_t> words_;
};

inline int load(Net* net, const std::string& text, Weights* weights, bool fuse) {
    net->opt.use_graph_fusion = fuse;
    net->opt.num_threads = 1;
    const int layers = (int)std::count(text.begin(), text.end(), '\n');
    const std::string param = "7767517\n" + std::to_string(layers) + " 99\n" + text;
    if (net->load_param_mem(param.c_str()) != kOk) return kError;
    const unsigned char* bytes = weights->data();
    return net->load_model(DataReaderFromMemory(bytes, weights->size()));
}

inline Mat image(const Shape& shape) {
    Mat m;
    m.create(shape);
    std::mt19937 rng(3);
    std::uniform_real_distribution<float> next(-2, 2);
    for (int q = 0; q < m.c; q++)
        for (int i = 0; i < m.w * m.h * m.d; i++) ((float*)m.channel(q))[i] = next(rng);
    return m;
}

inline Mat run(const Net& net, const Mat& in, const char* out = "out") {
    Extractor ex = net.create_extractor();
    Mat m;
    EXPECT_EQ(ex.input("in", in), kOk);
    EXPECT_EQ(ex.extract(out, m), kOk);
    return m;
}

inline void expect_near(const Mat& a, const Mat& b) {
    ASSERT_TRUE(a.logical_shape() == b.logical_shape());
    float range = 1e-3f;
    for (int q = 0; q < b.c; q++)
        for (int i = 0; i < b.w * b.h * b.d; i++)
            range = std::max(range, fabsf(((const float*)b.channel(q))[i]));
    for (int q = 0; q < b.c; q++)
        for (int i = 0; i < b.w * b.h * b.d; i++)
            ASSERT_NEAR(((const float*)a.channel(q))[i], ((const float*)b.channel(q))[i],
                        1e-5f * range)
                << "channel " << q << " index " << i;
}

// Layers that are left, but for Input and what holds constants.
inline int layers_that_run(const Net& net) {
    int count = 0;
    for (const Layer* layer : net.layers())
        count += !layer->tops.empty() && layer->type != "Input" && layer->type != "MemoryData";
    return count;
}

}  // namespace quoll

#endif
