// Random graphs, run in every way, against the scalar reference of each layer one after the other,
// and against themselves where the bits have to be the same. QUOLL_GRAPHS=FIRST:COUNT says which,
// 0:150 at first.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "quoll/log.h"
#include "quoll/net.h"
#include "random_graph.h"
#include "random_weights.h"
#include "runtime/cpu_features.h"
#include "runtime/log_mute.h"

namespace quoll {
namespace {

typedef std::vector<Mat> Mats;

Mat input_of(const Shape& shape, uint64_t seed) {
    Mat m(shape);
    for (int q = 0; q < m.c; q++)
        fill_random(m.channel(q), (size_t)m.w * m.h * m.d, -1.f, 1.f, &seed);
    return m;
}

// x, and every value a little larger or smaller.
Mat disturbed(const Mat& x, float by) {
    Mat y = x.clone();
    unsigned state = 1;
    for (int q = 0; q < y.c; q++)
        for (int i = 0; i < y.w * y.h * y.d; i++) {
            state = state * 1664525u + 1013904223u;
            y.channel(q)[i] *= 1.f + (state >> 31 ? by : -by);
        }
    return y;
}

struct Weights : RandomWeights {
    // For blobs that were fused away.
    DataReader* reopen() const override { return new (std::nothrow) RandomWeights; }
};

struct Runner {
    Runner(const RandomGraph& graph, const std::vector<std::string>& wanted)
        : text(graph.param()), outputs(wanted) {}
    // Of all outputs; empty when the graph was refused.
    Mats operator()(const Option& opt, const std::vector<Mat>& inputs, int threads = 1) const {
        Net net;
        net.opt = opt;
        net.opt.num_threads = threads;
        if (net.load_param_mem(text.c_str()) != 0 || net.load_model(Weights()) != 0)
            return {};
        Mats all;
        for (const Mat& in : inputs) all = outputs_of(net, in);
        return all;
    }
    Mats outputs_of(const Net& net, const Mat& in) const {
        Mats all(outputs.size());
        for (size_t i = 0; i < outputs.size(); i++) {
            Extractor ex = net.create_extractor();
            if (ex.input("x0", in) != 0 || ex.extract(outputs[i].c_str(), all[i]) != 0) return {};
        }
        return all;
    }

    const std::string text;
    const std::vector<std::string> outputs;
};

std::vector<float> values_of(const Mat& m) {
    std::vector<float> all;
    for (int n = 0; n < m.n; n++) {
        const Mat item = m.batch(n);
        for (int q = 0; q < item.c; q++) {
            const float* p = item.channel(q);
            all.insert(all.end(), p, p + (size_t)item.w * item.h * item.d);
        }
    }
    return all;
}

float range_of(const std::vector<float>& v) {
    float most = 0;
    for (float x : v)
        if (isfinite(x)) most = std::max(most, fabsf(x));
    return most;
}

float difference(const Mat& a, const Mat& b) {
    const std::vector<float> x = values_of(a), y = values_of(b);
    float most = 0;
    for (size_t i = 0; i < x.size(); i++)
        if (isfinite(x[i]) && isfinite(y[i])) most = std::max(most, fabsf(x[i] - y[i]));
    return most;
}

Option reference_options() {
    Option opt;
    opt.use_reference_layers = true;
    opt.use_graph_fusion = false;
    opt.use_packing_layout = false;
    return opt;
}

class RandomGraphs : public testing::TestWithParam<unsigned> {
protected:
    RandomGraphs() : RandomGraphs(&RandomGraph::outputs) {}
    explicit RandomGraphs(std::vector<std::string> (RandomGraph::*wanted)() const)
        : graph_(GetParam(), 3 + (int)(GetParam() % 10)), run_(graph_, (graph_.*wanted)()) {}

    // How much a relative error of `epsilon` in the inputs changes each output: what rounding
    // within may do too.
    std::vector<float> sensitivity(const Mat& x, const Mats& expected, float epsilon) const {
        const Mats moved = run_(reference_options(), {disturbed(x, epsilon)});
        std::vector<float> all;
        for (size_t i = 0; i < expected.size(); i++)
            all.push_back(difference(expected[i], moved[i]));
        return all;
    }

    // The largest magnitude of any blob: roundings of it may reach a sum that comes out near 0.
    float largest_blob(const Mat& x) const {
        float most = 0;
        for (const Mat& blob : Runner(graph_, graph_.blobs())(reference_options(), {x}))
            most = std::max(most, range_of(values_of(blob)));
        return most;
    }

    // Within what roundings of `epsilon` explain.
    void expect_near(const char* what, const Mats& got, const Mats& expected,
                     const std::vector<float>& sensitivity, float epsilon) const {
        ASSERT_EQ(got.size(), expected.size()) << what << "\n" << run_.text;
        for (size_t i = 0; i < got.size(); i++) {
            ASSERT_EQ(got[i].logical_shape(), expected[i].logical_shape())
                << what << " " << run_.outputs[i] << "\n"
                << run_.text;
            const std::vector<float> y = values_of(got[i]), e = values_of(expected[i]);
            const float allowed =
                30 * sensitivity[i] + epsilon * (30 * range_of(e) + 8 * largest_) + 1e-6f;
            for (size_t k = 0; k < e.size(); k++) {
                const bool right = isfinite(e[k]) ? fabsf(y[k] - e[k]) <= allowed : !isfinite(y[k]);
                ASSERT_TRUE(right) << what << " " << run_.outputs[i] << "[" << k << "]: " << y[k]
                                   << ", expected " << e[k] << " within " << allowed << "\n"
                                   << run_.text;
            }
        }
    }
    void expect_same(const char* what, const Mats& got, const Mats& expected) const {
        ASSERT_EQ(got.size(), expected.size()) << what << "\n" << run_.text;
        for (size_t i = 0; i < got.size(); i++) {
            ASSERT_EQ(got[i].logical_shape(), expected[i].logical_shape())
                << what << " " << run_.outputs[i] << "\n"
                << run_.text;
            const std::vector<float> y = values_of(got[i]), e = values_of(expected[i]);
            for (size_t k = 0; k < e.size(); k++)
                ASSERT_TRUE(memcmp(&y[k], &e[k], 4) == 0 || (isnan(y[k]) && isnan(e[k])))
                    << what << " " << run_.outputs[i] << "[" << k << "]: " << y[k] << ", expected "
                    << e[k] << "\n"
                    << run_.text;
        }
    }

    const RandomGraph graph_;
    const Runner run_;
    float largest_ = 0;
};

// Squares of it overflow. Windows of a max pooling that hold nothing give -FLT_MAX.
const float kLarge = 1e15f;
const float kSingle = 6e-6f, kHalf = 1.f / 1024, kBrain = 1.f / 128;

TEST_P(RandomGraphs, AnswersAreThoseOfTheReference) {
    const Mat x = input_of(graph_.input(), GetParam() + 1);
    const Mats expected = run_(reference_options(), {x});
    ASSERT_EQ(expected.size(), run_.outputs.size()) << run_.text;
    const std::vector<float> single = sensitivity(x, expected, kSingle);
    largest_ = largest_blob(x);
    if (largest_ > kLarge) return;

    Option opt;
    const Mats fast = run_(opt, {x});
    expect_near("fast", fast, expected, single, kSingle);
    expect_same("three threads", run_(opt, {x}, 3), fast);
    Option with = opt;
    with.use_graph_fusion = false;
    expect_near("without fusion", run_(with, {x}), expected, single, kSingle);
    with = opt;
    with.use_packing_layout = false;
    expect_near("without packing", run_(with, {x}), expected, single, kSingle);
    with = opt;
    with.use_winograd_convolution = false;
    expect_near("without Winograd", run_(with, {x}), expected, single, kSingle);
    with = opt;
    with.lightmode = false;
    expect_same("every blob kept", run_(with, {x}), fast);
    with = reference_options();
    with.use_graph_fusion = true;
    expect_near("reference with fusion", run_(with, {x}), expected, single, kSingle);
    if (largest_ > 60000.f) return;  // not to be stored as f16
    with = opt;
    with.use_fp16_storage = true;
    expect_near("fp16", run_(with, {x}), expected, sensitivity(x, expected, kHalf), kHalf);
    with = opt;
    with.use_bf16_storage = true;
    expect_near("bf16", run_(with, {x}), expected, sensitivity(x, expected, kBrain), kBrain);
}

TEST_P(RandomGraphs, EveryInstructionSet) {
    const Mat x = input_of(graph_.input(), GetParam() + 1);
    const Mats expected = run_(reference_options(), {x});
    const std::vector<float> single = sensitivity(x, expected, kSingle);
    largest_ = largest_blob(x);
    if (largest_ > kLarge) return;
    for (const char* level : {"scalar", "sse4", "avx2"}) {
        set_cpu_mask(level);
        const Mats got = run_(Option(), {x});
        set_cpu_mask(nullptr);
        expect_near(level, got, expected, single, kSingle);
    }
}

// NaN and infinity reach the same values as in the reference. Winograd's algorithm spreads them
// over its tiles.
TEST_P(RandomGraphs, WhatIsNotFinite) {
    Mat x = input_of(graph_.input(), GetParam() + 1);
    if (largest_blob(x) > kLarge) return;
    for (float odd : {NAN, INFINITY, -INFINITY}) {
        x.channel(x.c / 2)[x.w * x.h * x.d / 2] = odd;
        const Mats expected = run_(reference_options(), {x});
        Option opt;
        opt.use_winograd_convolution = false;
        opt.use_graph_fusion = isnan(odd);  // x * hardsigmoid(x) at -inf: NaN, as HardSwish 0
        const Mats got = run_(opt, {x});
        ASSERT_EQ(got.size(), expected.size()) << run_.text;
        for (size_t i = 0; i < got.size(); i++) {
            const std::vector<float> y = values_of(got[i]), e = values_of(expected[i]);
            for (size_t k = 0; k < e.size(); k++)
                ASSERT_TRUE(isnan(e[k])      ? isnan(y[k])
                            : isfinite(e[k]) ? isfinite(y[k])
                                             : y[k] == e[k])
                    << odd << " " << run_.outputs[i] << "[" << k << "]: " << y[k] << ", expected "
                    << e[k] << "\n"
                    << run_.text;
        }
    }
}

TEST_P(RandomGraphs, HistoryDoesNotMatter) {
    const Mat x = input_of(graph_.input(), GetParam() + 1);
    Shape larger = graph_.input();
    larger.w += 5, larger.h += larger.dims > 1 ? 3 : 0;
    const Mat other = input_of(larger, 5);
    LogMute quiet;
    const Mats alone = run_(Option(), {x});
    expect_same("after another size", run_(Option(), {x, other, x}), alone);
    expect_same("behind another size", run_(Option(), {other, x}), alone);
}

TEST_P(RandomGraphs, ABatchIsItsItems) {
    const Mat a = input_of(graph_.input(), GetParam() + 1), b = input_of(graph_.input(), 77);
    Shape two = graph_.input();
    two.n = 2;
    Mat both(two);
    for (int n = 0; n < 2; n++)
        for (int q = 0; q < a.c; q++)
            memcpy(both.batch(n).channel(q), (n ? b : a).channel(q), (size_t)a.w * a.h * a.d * 4);
    Net net;
    ASSERT_EQ(0, net.load_param_mem(run_.text.c_str()));
    ASSERT_EQ(0, net.load_model(RandomWeights()));
    const Mats batch = run_.outputs_of(net, both), first = run_.outputs_of(net, a),
               second = run_.outputs_of(net, b);
    ASSERT_EQ(batch.size(), first.size()) << run_.text;
    Mats items[2];
    for (const Mat& m : batch) {
        ASSERT_EQ(m.n, 2) << run_.text;
        for (int n = 0; n < 2; n++) items[n].push_back(m.batch(n));
    }
    expect_same("first item", items[0], first);
    expect_same("second item", items[1], second);
}

class EveryBlobOfRandomGraphs : public RandomGraphs {
protected:
    EveryBlobOfRandomGraphs() : RandomGraphs(&RandomGraph::blobs) {}
};

// Each blob in a run of its own, also those that fusion does without; and in a net that keeps it.
TEST_P(EveryBlobOfRandomGraphs, CanBeRead) {
    const Mat x = input_of(graph_.input(), GetParam() + 1);
    const Mats expected = run_(reference_options(), {x});
    ASSERT_EQ(expected.size(), run_.outputs.size()) << run_.text;
    const std::vector<float> single = sensitivity(x, expected, kSingle);
    largest_ = largest_blob(x);
    if (largest_ > kLarge) return;
    expect_near("fused away", run_(Option(), {x}), expected, single, kSingle);
    Mats kept(expected.size());
    for (size_t i = 0; i < kept.size(); i++) {
        Net net;
        ASSERT_EQ(net.load_param_mem(run_.text.c_str()), 0);
        ASSERT_EQ(net.keep_blob(run_.outputs[i].c_str()), 0);
        ASSERT_EQ(net.load_model(RandomWeights()), 0);
        Extractor ex = net.create_extractor();
        ASSERT_EQ(ex.input("x0", x), 0);
        ASSERT_EQ(ex.extract(run_.outputs[i].c_str(), kept[i]), 0) << run_.text;
    }
    expect_near("kept", kept, expected, single, kSingle);
}

std::vector<unsigned> seeds() {
    unsigned first = 0, count = 150;
    if (const char* s = getenv("QUOLL_GRAPHS")) sscanf(s, "%u:%u", &first, &count);
    std::vector<unsigned> all;
    for (unsigned i = 0; i < count; i++) all.push_back(first + i);
    return all;
}

INSTANTIATE_TEST_SUITE_P(Seed, EveryBlobOfRandomGraphs, testing::ValuesIn(seeds()),
                         testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Seed, RandomGraphs, testing::ValuesIn(seeds()),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace quoll
