// A run of shapes seen before takes all memory for values from what earlier runs left.
#include <string>

#include <gtest/gtest.h>

#include "count_allocations.h"
#include "quoll/net.h"
#include "random_weights.h"

namespace {

using quoll::Mat;

struct Case {
    const char* graph;
    int threads;
    bool bf16, one_extractor;
    int items = 1;
};

class Allocations : public testing::TestWithParam<Case> {};

int run(quoll::Extractor* ex, const quoll::Net& net, const Mat& in, Mat* out) {
    const int status = ex->input(net.input_indexes()[0], in);
    return status ? status : ex->extract(net.output_indexes()[0], *out);
}

TEST_P(Allocations, NoneInSteadyState) {
    const Case& c = GetParam();
    quoll::Net net;
    net.opt.num_threads = c.threads;
    net.opt.use_bf16_storage = c.bf16;
    const std::string param = std::string("benchmark/models/") + c.graph + ".param";
    ASSERT_EQ(net.load_param(param.c_str()), 0) << "run from the source tree";
    ASSERT_EQ(net.load_model(quoll::RandomWeights()), 0);
    // googlenet's last window is 7 wide; a batch of small images stays in the caches.
    const int size = c.graph == std::string("googlenet") || c.items > 1 ? 224 : 64;
    quoll::Shape shape(size, size, 3);
    shape.n = c.items;
    Mat in(shape), out;
    for (int b = 0; b < c.items; b++) in.batch(b).fill(0.25f);
    quoll::Extractor kept = net.create_extractor();
    size_t blocks = 0, small = 0;
    for (int i = 0; i < 6; i++) {
        blocks = quoll::block_allocations(), small = quoll::small_allocations();
        if (c.one_extractor) {
            kept.clear();
            ASSERT_EQ(run(&kept, net, in, &out), 0);
        } else {
            quoll::Extractor ex = net.create_extractor();
            ASSERT_EQ(run(&ex, net, in, &out), 0);
        }
        blocks = quoll::block_allocations() - blocks, small = quoll::small_allocations() - small;
        if (i >= 3) {
            EXPECT_EQ(blocks, 0u) << "run " << i;
            // An Extractor has lists of its own, whatever the number of layers; layers that run
            // item by item, outside a stretch, have some for each item.
            if (c.items > 1) continue;
            EXPECT_LE(small, c.one_extractor ? 0u : 32u) << "run " << i;
        }
    }
}

const Case kCases[] = {
    {"squeezenet", 1, false, false},      {"squeezenet", 2, false, true},
    {"squeezenet", 2, true, false},       {"mobilenet_v3", 1, false, true},
    {"mobilenet_v3", 2, true, true},      {"shufflenet_v2", 1, false, false},
    {"shufflenet_v2", 1, false, true},    {"shufflenet_v2", 2, false, true},
    {"resnet18", 1, false, true},         {"resnet18", 1, true, true},
    {"efficientnet_b0", 1, false, true},
#ifndef QUOLL_EMULATED_CPU
    {"googlenet", 1, false, true},        {"mobilenet_v3", 1, false, true, 3},
    {"mobilenet_v3", 1, false, false, 3},
#endif
};
INSTANTIATE_TEST_SUITE_P(Graphs, Allocations, testing::ValuesIn(kCases));

// The counters count.
TEST(Allocations, AreCounted) {
    const size_t blocks = quoll::block_allocations(), small = quoll::small_allocations();
    Mat m(10, 10);
    ::operator delete(::operator new(8));
    EXPECT_EQ(quoll::block_allocations() - blocks, 1u);
    EXPECT_GE(quoll::small_allocations() - small, 1u);
}

// A Mat that somebody else holds keeps its values.
TEST(Allocations, AnswersThatAreSharedAreNotWrittenOver) {
    quoll::Net net;
    ASSERT_EQ(net.load_param_mem("7767517\n2 2\nInput in 0 1 in 0=4\nReLU r 1 1 in out\n"), 0);
    const unsigned char nothing[4] = {};
    net.load_model(nothing, 0);
    Mat in(4), out;
    in.fill(1.f);
    quoll::Extractor ex = net.create_extractor();
    ASSERT_EQ(run(&ex, net, in, &out), 0);
    const Mat held = out;
    in = Mat(4);
    in.fill(2.f);
    ex.clear();
    ASSERT_EQ(run(&ex, net, in, &out), 0);
    EXPECT_EQ(held[0], 1.f);
    EXPECT_EQ(out[0], 2.f);
    const float* place = out;
    ex.clear();
    out.fill(0.f);
    ASSERT_EQ(run(&ex, net, in, &out), 0);
    EXPECT_EQ(place, (const float*)out);
    EXPECT_EQ(out[3], 2.f);
}

}  // namespace
