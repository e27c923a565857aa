// The arena that runs take their blobs from: what lies where, who owns it, and who may share it.
#include <string.h>

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "count_allocations.h"
#include "plan/layout_plan.h"
#include "plan/run_buffers.h"
#include "quoll/net.h"
#include "random_weights.h"

namespace quoll {
namespace {

void load(Net* net, const char* graph) {
    net->opt.num_threads = 1;
    const std::string path = std::string("benchmark/models/") + graph + ".param";
    ASSERT_EQ(0, net->load_param(path.c_str())) << "run from the source tree";
    ASSERT_EQ(0, net->load_model(RandomWeights()));
}

Mat image(int size, float value) {
    Mat m(size, size, 3);
    for (size_t i = 0; i < m.total(); i++) m[i] = value + (float)(i % 13) * 0.01f;
    return m;
}

Mat run(const Net& net, const Mat& in, LayerObserver* observer = nullptr, bool light = true) {
    Extractor ex = net.create_extractor();
    ex.set_light_mode(light);
    ex.set_layer_observer(observer);
    Mat out;
    EXPECT_EQ(0, ex.input(net.input_indexes()[0], in));
    EXPECT_EQ(0, ex.extract(net.output_indexes()[0], out));
    return out;
}

void expect_same(const Mat& a, const Mat& b) {
    ASSERT_TRUE(!a.empty() && a.logical_shape() == b.logical_shape());
    EXPECT_EQ(0, memcmp(a.data, b.data, a.total() * a.elemsize));
}

// Where the outputs of layers lie.
class Places : public LayerObserver {
public:
    void laid_out(const Layer&, const StepLayout* layout) override {
        if (layout) memory = layout->memory;
    }
    void before(const Layer&) override {}
    void after(const Layer& layer, const std::vector<Mat>& outputs) override {
        for (const Mat& m : outputs) at[layer.name] = (const char*)m.refcount;
    }
    const SegmentMemory* memory = nullptr;  // while the net has the plan
    std::map<std::string, const char*> at;
};

// Every blob that the plan has a block for is found in it, at the same offset in each run.
TEST(RunBuffers, blobs_lie_where_the_plan_says) {
    for (const char* graph : {"mobilenet_v2", "shufflenet_v2", "squeezenet", "resnet18"}) {
        Net net;
        load(&net, graph);
        const Mat in = image(graph[0] == 's' && graph[1] == 'h' ? 224 : 96, 0.1f);
        Places first, second;
        expect_same(run(net, in, &first), run(net, in, &second));
        ASSERT_TRUE(first.memory) << graph;
        EXPECT_EQ(first.memory->plan.bytes, first.memory->plan.most_alive) << graph;
        EXPECT_LT(first.memory->plan.bytes, first.memory->all_bytes / 2) << graph;
        // All but the answer, and what becomes it in place, lie in one block of the planned size.
        std::vector<const char*> at;
        for (const auto& blob : first.at) at.push_back(blob.second);
        std::sort(at.begin(), at.end());
        size_t most = 0;
        for (size_t i = 0; i < at.size(); i++) {
            size_t within = i;
            while (within < at.size() && at[within] < at[i] + first.memory->plan.bytes) within++;
            most = std::max(most, within - i);
        }
        EXPECT_GE(most + 2, at.size()) << graph;
        size_t moved = 0;
        for (const auto& blob : first.at) moved += second.at[blob.first] != blob.second;
        EXPECT_LE(moved, 2u) << graph;
    }
}

// A light run gives what one does that keeps all blobs in memory of their own.
TEST(RunBuffers, answers_are_those_without) {
    for (const char* graph : {
             "mobilenet_v3",
#ifndef QUOLL_EMULATED_CPU
             "googlenet",
             "yolov4_tiny",
#endif
         }) {
        Net net;
        load(&net, graph);
        const Mat in = image(224, 0.2f);
        expect_same(run(net, in), run(net, in, nullptr, false));
    }
}

TEST(RunBuffers, answers_outlive_the_net) {
    Mat out;
    {
        Net net;
        load(&net, "squeezenet");
        out = run(net, image(64, 0.3f));
    }
    const Mat copy = out.clone();
    expect_same(out, copy);
}

TEST(RunBuffers, released_memory_is_allocated_anew) {
    Net net;
    load(&net, "mobilenet_v2");
    const Mat in = image(96, 0.1f), want = run(net, in).clone();
    run(net, in);
    size_t before = block_allocations();
    run(net, in);
    const size_t steady = block_allocations() - before;
    net.release_buffers();
    before = block_allocations();
    expect_same(run(net, in), want);
    EXPECT_GT(block_allocations() - before, steady);
    before = block_allocations();
    run(net, in);
    EXPECT_EQ(block_allocations() - before, steady);
}

TEST(RunBuffers, released_while_an_extractor_has_results) {
    Net net;
    load(&net, "squeezenet");
    const Mat in = image(64, 0.1f), want = run(net, in).clone();
    Extractor ex = net.create_extractor();
    Mat out;
    ASSERT_EQ(0, ex.input(net.input_indexes()[0], in));
    ASSERT_EQ(0, ex.extract(net.output_indexes()[0], out));
    net.release_buffers();
    Mat again;
    ASSERT_EQ(0, ex.extract(net.output_indexes()[0], again));
    expect_same(again, want);
}

// Two nets in turn allocate nothing when they have run before, and need one arena.
TEST(RunBuffers, nets_share_them) {
    Net a, b;
    load(&a, "mobilenet_v2");
    load(&b, "squeezenet");
    const Mat in = image(96, 0.1f), want_a = run(a, in).clone(), want_b = run(b, in).clone();
    b.share_buffers(a);
    Places in_a, in_b;
    for (int i = 0; i < 3; i++) {
        const size_t before = block_allocations();
        const Mat got_a = run(a, in, &in_a), got_b = run(b, in, &in_b);
        const size_t allocated = block_allocations() - before;
        EXPECT_TRUE(i < 2 || allocated <= 2) << allocated << ", expected the two answers";
        expect_same(got_a, want_a);
        expect_same(got_b, want_b);
    }
    size_t common = 0;
    for (const auto& x : in_a.at)
        for (const auto& y : in_b.at) common += x.second == y.second;
    EXPECT_GT(common, 0u) << "no blob of one lies where one of the other does";
}

TEST(RunBuffers, nets_that_share_them_run_at_once) {
    Net nets[2];
    load(&nets[0], "mobilenet_v2");
    load(&nets[1], "squeezenet");
    nets[1].share_buffers(nets[0]);
    const Mat in = image(64, 0.1f);
    const Mat want[2] = {run(nets[0], in).clone(), run(nets[1], in).clone()};
    std::vector<Mat> got(8);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < got.size(); i++)
        threads.emplace_back([&, i] {
            for (int k = 0; k < 4; k++) got[i] = run(nets[i % 2], in);
            nets[i % 2].release_buffers();
        });
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < got.size(); i++) expect_same(got[i], want[i % 2]);
}

// Blobs that somebody holds are not written over by later steps and runs.
TEST(RunBuffers, held_blobs_stay) {
    class Hold : public LayerObserver {
    public:
        void before(const Layer&) override {}
        void after(const Layer&, const std::vector<Mat>& outputs) override {
            if (outputs[0].empty() || kept.size() > 20) return;
            kept.push_back(outputs[0]);
            copies.push_back(outputs[0].clone());
        }
        std::vector<Mat> kept, copies;
    };
    Net net;
    load(&net, "resnet18");
    const Mat in = image(64, 0.1f), want = run(net, in).clone();
    Hold hold;
    expect_same(run(net, in, &hold), want);
    expect_same(run(net, image(64, 0.7f)), run(net, image(64, 0.7f)));
    ASSERT_GT(hold.kept.size(), 5u);
    size_t same = 0;
    for (size_t i = 0; i < hold.kept.size(); i++)
        same += memcmp(hold.kept[i].data, hold.copies[i].data,
                       hold.copies[i].total() * hold.copies[i].elemsize) == 0;
    // What a layer works over in place is another's before it is held.
    EXPECT_EQ(hold.kept.size(), same);
}

TEST(Arena, gives_planned_blocks_gaps_and_the_rest) {
    PoolAllocator pool;
    Arena arena(&pool);
    SegmentMemory memory;
    memory.blocks = {{1000, 0}, {500, 1024}, {800, 0}};
    memory.first = {0, 2, 3};
    memory.plan.bytes = 4096;
    ASSERT_TRUE(arena.begin(memory));
    arena.begin_step(0);
    char* a = (char*)arena.fastMalloc(1000);
    char* gap = (char*)arena.workspace()->fastMalloc(700);
    char* b = (char*)arena.fastMalloc(500);
    char* other = (char*)arena.fastMalloc(500);  // planned once
    char* large = (char*)arena.workspace()->fastMalloc(3000);
    EXPECT_EQ(a + 1024, b);
    EXPECT_TRUE(gap >= b + 500 && gap + 700 <= a + 4096);
    for (char* elsewhere : {other, large})
        EXPECT_TRUE(elsewhere + 3000 < a || elsewhere > a + 4096);
    arena.begin_step(1);
    char* blocked = (char*)arena.fastMalloc(800);  // a is still there
    EXPECT_TRUE(blocked + 800 < a || blocked > a + 4096);
    for (char* p : {a, gap, b, other, large, blocked}) arena.fastFree(p);
    EXPECT_TRUE(arena.is_idle());
    arena.begin_step(1);
    char* c = (char*)arena.fastMalloc(800);
    EXPECT_EQ(a, c);
    arena.end();
    EXPECT_FALSE(arena.is_idle());
    arena.fastFree(c);
    EXPECT_TRUE(arena.is_idle());
}

}  // namespace
}  // namespace quoll
