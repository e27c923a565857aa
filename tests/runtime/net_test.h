// What the tests of nets share: small layers of their own, and texts that hold them.
#ifndef QUOLL_TESTS_RUNTIME_NET_TEST_H
#define QUOLL_TESTS_RUNTIME_NET_TEST_H

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <string>

#include <gtest/gtest.h>

#include "log_test.h"
#include "quoll/datareader.h"
#include "quoll/net.h"

namespace net_test {

using quoll::Extractor;
using quoll::Mat;
using quoll::Net;
using quoll::Option;

using log_test::g_log;
using NetTest = log_test::LogTest;

// y = x + addend, counting how often it runs; `weight` more values come from the .bin.
class AddConstant : public quoll::Layer {
public:
    AddConstant() { one_blob_only = true; }
    int load_param(const quoll::ParamDict& pd) override {
        addend = pd.get(0, 1.f);
        weights = pd.get(1, 0);
        return 0;
    }
    int load_model(const quoll::ModelBin& mb) override {
        if (weights) weight = mb.load(weights, 1);
        return weights && weight.empty() ? -100 : 0;
    }
    int forward(const Mat& in, Mat& out, const Option& opt) const override {
        runs++;
        out.create_like(in, opt.blob_allocator);
        if (out.empty()) return -100;
        for (size_t i = 0; i < in.total(); i++)
            out[i] = in[i] + addend + (weights ? weight[0] : 0.f);
        return 0;
    }
    float addend = 1.f;
    int weights = 0;
    Mat weight;
    static inline std::atomic<int> runs{0};
};
class AddTwo : public quoll::Layer {
public:
    int forward(const std::vector<Mat>& in, std::vector<Mat>& out,
                const Option& opt) const override {
        if (in[0].w != in[1].w) return fail("widths %d and %d differ", in[0].w, in[1].w);
        out[0].create_like(in[0], opt.blob_allocator);
        for (int i = 0; i < in[0].w; i++) out[0][i] = in[0][i] + in[1][i];
        return 0;
    }
};

inline DEFINE_LAYER_CREATOR(AddConstant) inline DEFINE_LAYER_CREATOR(AddTwo)

    inline void register_layers(Net* net) {
    ASSERT_EQ(net->register_custom_layer("AddConstant", AddConstant_layer_creator), 0);
    ASSERT_EQ(net->register_custom_layer("AddTwo", AddTwo_layer_creator), 0);
}

inline int load_text(Net* net, const std::string& text, const std::string& weights = "") {
    const int status = net->load_param_mem(text.c_str());
    if (status != 0) return status;
    const unsigned char* p = (const unsigned char*)weights.data();
    return net->load_model(quoll::DataReaderFromMemory(p, weights.size()));
}

inline Mat vector_of(std::initializer_list<float> values) {
    Mat m((int)values.size());
    std::copy(values.begin(), values.end(), (float*)m.data);
    return m;
}

inline std::string words(std::initializer_list<int> values) {
    return std::string((const char*)values.begin(), values.size() * 4);
}

// data -> a -> split -> (b -> c), (d); e = c + d
const char kDiamond[] =
    "7767517\n7 9\n"
    "Input data 0 1 data\n"
    "AddConstant a 1 1 data a 0=1.0\n"
    "Split s 1 2 a a0 a1\n"
    "AddConstant b 1 1 a0 b 0=10.0\n"
    "AddConstant c 1 1 b c 0=100.0\n"
    "AddConstant d 1 1 a1 d 0=1000.0\n"
    "AddTwo e 2 1 c d e\n";

}  // namespace net_test

#endif
