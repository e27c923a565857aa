// Running nets: laziness, light mode, depth, batches, threads, wrong calls.
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "net_test.h"
#include "quoll/datareader.h"

namespace {

using namespace net_test;

// For one thread, as UnlockedPoolAllocator; slow enough for others to be seen.
class OwnThreadAllocator : public quoll::Allocator {
public:
    void* fastMalloc(size_t size) override {
        if (std::this_thread::get_id() != owner) foreign = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return quoll::fast_malloc(size);
    }
    void fastFree(void* ptr) override { quoll::fast_free(ptr); }
    const std::thread::id owner = std::this_thread::get_id();
    std::atomic<bool> foreign{false};
};

TEST_F(NetTest, PreparesLayersInParallelWithoutTheAllocatorsOfOneThread) {
    const int layers = 32, size = 8;
    std::string text = "7767517\n" + std::to_string(layers + 1) + " " + std::to_string(layers + 1) +
                       "\nInput b0 0 1 b0\n";
    for (int i = 1; i <= layers; i++) {
        const std::string from = " b" + std::to_string(i - 1), to = " b" + std::to_string(i);
        text += "Gemm g" + std::to_string(i) + " 1 1" + from + to + " 5=1 6=1 8=8 9=8 10=-1\n";
    }
    const std::string weights(layers * (4 + size * size * sizeof(float)), '\0');
    OwnThreadAllocator allocator;
    Net net;
    net.opt.num_threads = 4;
    net.opt.blob_allocator = net.opt.workspace_allocator = &allocator;
    ASSERT_EQ(load_text(&net, text, weights), 0);
    EXPECT_FALSE(allocator.foreign);
}

TEST_F(NetTest, RunsOnlyWhatIsNeededAndKeepsResults) {
    for (bool light : {true, false}) {
        Net net;
        register_layers(&net);
        ASSERT_EQ(load_text(&net, kDiamond), 0);
        Extractor ex = net.create_extractor();
        ex.set_light_mode(light);
        ASSERT_EQ(ex.input("data", vector_of({1, 2})), 0);
        Mat out;
        AddConstant::runs = 0;
        ASSERT_EQ(ex.extract("b", out), 0);
        EXPECT_EQ(out[1], 13.f);
        EXPECT_EQ(AddConstant::runs, 2);
        ASSERT_EQ(ex.extract("b", out), 0);
        EXPECT_EQ(AddConstant::runs, 2) << "results are kept";
        ASSERT_EQ(ex.extract("e", out), 0);
        EXPECT_EQ(out[0], 2 + 110 + 2 + 1000.f);
        EXPECT_EQ(AddConstant::runs, 4) << "a and b are not run again";
        ASSERT_EQ(ex.extract("a", out), 0);
        EXPECT_EQ(out[0], 2.f);
        ASSERT_EQ(ex.extract("data", out), 0);
        EXPECT_EQ(out[0], 1.f);
    }
}

TEST_F(NetTest, NamesAndIndexes) {
    Net net;
    register_layers(&net);
    ASSERT_EQ(load_text(&net, kDiamond), 0);
    ASSERT_EQ(net.input_names().size(), 1u);
    EXPECT_STREQ(net.input_names()[0], "data");
    ASSERT_EQ(net.output_names().size(), 1u);
    EXPECT_STREQ(net.output_names()[0], "e");
    Extractor ex = net.create_extractor();
    ASSERT_EQ(ex.input(net.input_indexes()[0], vector_of({5})), 0);
    Mat out;
    ASSERT_EQ(ex.extract(net.output_indexes()[0], out), 0);
    EXPECT_EQ(out[0], 1122.f);
    EXPECT_EQ(net.layers().size(), 7u);
    EXPECT_EQ(net.find_layer_index_by_name("c"), 4);
}

// Layers that called each other would overflow the stack.
TEST_F(NetTest, ChainOfAHundredThousandLayers) {
#ifdef QUOLL_EMULATED_CPU
    const int n = 10000;
#else
    const int n = 100000;
#endif
    std::string text =
        "7767517\n" + std::to_string(n + 1) + " " + std::to_string(n + 1) + "\nInput in 0 1 0\n";
    for (int i = 1; i <= n; i++)
        text += "AddConstant l" + std::to_string(i) + " 1 1 " + std::to_string(i - 1) + " " +
                std::to_string(i) + "\n";
    for (bool light : {true, false}) {
        Net net;
        register_layers(&net);
        ASSERT_EQ(load_text(&net, text), 0);
        Extractor ex = net.create_extractor();
        ex.set_light_mode(light);
        ASSERT_EQ(ex.input("0", vector_of({0})), 0);
        Mat out;
        ASSERT_EQ(ex.extract(std::to_string(n).c_str(), out), 0);
        EXPECT_EQ(out[0], (float)n);
    }
}

// Each stage doubles the number of paths: running along paths instead of layers would never end.
TEST_F(NetTest, DeepDiamondsRunEachLayerOnce) {
    const int n = 64;
    std::string text = "7767517\n" + std::to_string(3 * n + 1) + " " + std::to_string(4 * n + 1) +
                       "\nInput in 0 1 x0\n";
    for (int i = 0; i < n; i++) {
        const std::string a = std::to_string(i), b = std::to_string(i + 1);
        text += "Split s" + a + " 1 2 x" + a + " p" + a + " q" + a + "\n";
        text += "AddConstant c" + a + " 1 1 p" + a + " r" + a + " 0=0.0\n";
        text += "AddTwo t" + a + " 2 1 r" + a + " q" + a + " x" + b + "\n";
    }
    Net net;
    register_layers(&net);
    ASSERT_EQ(load_text(&net, text), 0);
    Extractor ex = net.create_extractor();
    ASSERT_EQ(ex.input("x0", vector_of({1})), 0);
    Mat out;
    AddConstant::runs = 0;
    ASSERT_EQ(ex.extract("x64", out), 0);
    EXPECT_EQ(out[0], 18446744073709551616.f);
    EXPECT_EQ(AddConstant::runs, n);
    ASSERT_EQ(ex.extract("x32", out), 0) << "a blob that light mode freed is made again";
    EXPECT_EQ(out[0], 4294967296.f);
}

// A blob that several layers read without a Split is legal, in light mode too.
TEST_F(NetTest, SharedBlobWithoutSplit) {
    Net net;
    register_layers(&net);
    ASSERT_EQ(load_text(&net,
                        "7767517\n4 4\nInput i 0 1 x\nAddConstant a 1 1 x a\nReLU r 1 1 a "
                        "r\nAddTwo t 2 1 a r y\n"),
              0);
    Extractor ex = net.create_extractor();
    ASSERT_EQ(ex.input("x", vector_of({-3, 3})), 0);
    Mat out;
    ASSERT_EQ(ex.extract("y", out), 0);
    EXPECT_EQ(out[0], -2.f)
        << "an in-place layer must not overwrite a blob that another still reads";
    EXPECT_EQ(out[1], 8.f);
}

TEST_F(NetTest, InputsAreNotOverwritten) {
    Net net;
    ASSERT_EQ(load_text(&net, "7767517\n2 2\nInput i 0 1 x\nReLU r 1 1 x y\n"), 0);
    const Mat in = vector_of({-1, 1});
    Extractor ex = net.create_extractor();
    ASSERT_EQ(ex.input("x", in), 0);
    Mat out;
    ASSERT_EQ(ex.extract("y", out), 0);
    EXPECT_EQ(in[0], -1.f);
    EXPECT_EQ(out[0], 0.f);
    float own[2] = {-5.f, 5.f};
    Extractor second = net.create_extractor();
    ASSERT_EQ(second.input("x", Mat(2, (void*)own)), 0);
    ASSERT_EQ(second.extract("y", out), 0);
    EXPECT_EQ(own[0], -5.f);
}

TEST_F(NetTest, Batch) {
    Net net;
    register_layers(&net);
    ASSERT_EQ(load_text(&net, kDiamond), 0);
    quoll::Shape shape(5, 3, 2);
    shape.n = 3;
    Mat in(shape);
    for (int b = 0; b < 3; b++) in.batch(b).fill((float)b);
    Extractor ex = net.create_extractor();
    ASSERT_EQ(ex.input("data", in), 0);
    Mat out;
    ASSERT_EQ(ex.extract("c", out), 0);
    ASSERT_EQ(out.n, 3);
    for (int b = 0; b < 3; b++) EXPECT_EQ(out.batch(b).channel(1).row(2)[4], b + 111.f);
}

// Items of a Mat that the application made lie farther apart than those of a blob.
TEST_F(NetTest, BatchIntoAMatOfOtherSteps) {
    Net net;
    ASSERT_EQ(load_text(&net, "7767517\n2 2\nInput i 0 1 x\nAbsVal a 1 1 x y\n"), 0);
    quoll::Shape shape(3);
    shape.n = 2;
    Mat in(shape);
    for (int b = 0; b < 2; b++) in.batch(b).fill(-1.f - b);
    Extractor ex = net.create_extractor();
    ASSERT_EQ(ex.input("x", in), 0);
    Mat out(3, (size_t)4u, 1, 2);
    for (int b = 0; b < 2; b++) out.batch(b).fill(0.f);
    ASSERT_NE(out.nstep, in.nstep);
    ASSERT_EQ(ex.extract("y", out), 0);
    for (int b = 0; b < 2; b++) EXPECT_EQ(((const Mat&)out).batch(b)[2], 1.f + b);
}

// Threads share the items; each is what the reference layers make of it alone.
TEST_F(NetTest, BatchOfThreads) {
    const char* const text =
        "7767517\n7 9\nInput in 0 1 x\nSplit s 1 3 x q k v\nSDPA a 3 1 q k v b\n"
        "Permute p 1 1 b c 0=2\nPooling m 1 1 c d 0=1 1=3 2=2 3=1 5=1\nSoftmax t 1 1 d e 0=1 1=1\n"
        "Reduction r 1 1 e y 0=3 1=0 -23303=1,1 4=1 5=1\n";
    Net fast, plain;
    fast.opt.num_threads = 4;
    plain.opt.use_reference_layers = true;
    ASSERT_EQ(load_text(&fast, text), 0);
    ASSERT_EQ(load_text(&plain, text), 0);
    quoll::Shape shape(32, 49, 3);
    shape.n = 9;
    Mat in(shape);
    std::mt19937 random(3);
    for (int b = 0; b < in.n; b++)
        for (int q = 0; q < in.c; q++)
            for (int i = 0; i < in.w * in.h; i++)
                in.batch(b).channel(q)[i] = (float)(random() % 2001) / 1000 - 1;
    Mat all;
    Extractor ex = fast.create_extractor();
    ASSERT_EQ(ex.input("x", in), 0);
    ASSERT_EQ(ex.extract("y", all), 0);
    ASSERT_EQ(all.n, in.n);
    for (int b = 0; b < in.n; b++) {
        Mat one;
        Extractor alone = plain.create_extractor();
        ASSERT_EQ(alone.input("x", in.batch(b).clone()), 0);
        ASSERT_EQ(alone.extract("y", one), 0);
        const Mat item = all.batch(b);
        ASSERT_TRUE(one.w == item.w && one.h == item.h && one.c == item.c);
        for (int q = 0; q < one.c; q++)
            for (int i = 0; i < one.w * one.h; i++)
                EXPECT_NEAR(item.channel(q)[i], one.channel(q)[i], 1e-5f);
    }
}

TEST_F(NetTest, ManyThreadsOneNet) {
    Net net;
    register_layers(&net);
    ASSERT_EQ(load_text(&net, kDiamond), 0);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 200; i++) {
                Extractor ex = net.create_extractor();
                Mat out;
                wrong += ex.input("data", vector_of({(float)t})) != 0;
                wrong += ex.extract("e", out) != 0 || out[0] != 2.f * t + 1112.f;
            }
        });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0);
}

TEST_F(NetTest, PoolAllocatorsServeExtractors) {
    quoll::UnlockedPoolAllocator blobs;
    quoll::PoolAllocator workspace;
    {
        Net net;
        register_layers(&net);
        ASSERT_EQ(load_text(&net, kDiamond), 0);
        for (int i = 0; i < 10; i++) {
            Extractor ex = net.create_extractor();
            ex.set_blob_allocator(&blobs);
            ex.set_workspace_allocator(&workspace);
            ASSERT_EQ(ex.input("data", vector_of({1})), 0);
            Mat out;
            ASSERT_EQ(ex.extract("e", out), 0);
            EXPECT_EQ(out[0], 1114.f);
        }
    }
    blobs.clear();
    EXPECT_EQ(g_log, "");
}

TEST_F(NetTest, ResultsAndExtractorsOutliveTheNet) {
    Mat planar, raw;
    {
        std::unique_ptr<Extractor> ex;
        {
            Net net;
            register_layers(&net);
            ASSERT_EQ(load_text(&net, kDiamond), 0);
            ex.reset(new Extractor(net.create_extractor()));
            Extractor other = net.create_extractor();
            ASSERT_EQ(other.input("data", vector_of({7})), 0);
            ASSERT_EQ(other.extract("c", raw), 0);
            ASSERT_EQ(ex->input("data", vector_of({1})), 0);
            ASSERT_EQ(ex->extract("e", planar), 0);
            ASSERT_EQ(ex->extract("b", raw, 1), 0);
            *ex = other;
        }
    }
    EXPECT_EQ(planar[0], 1114.f);
    EXPECT_EQ(raw[0], 12.f);
    EXPECT_EQ(g_log, "");
}

TEST_F(NetTest, WrongCallsSaySo) {
    Mat out;
    {
        Net net;
        Extractor ex = net.create_extractor();
        EXPECT_LT(ex.extract("prob", out), 0);
        EXPECT_TRUE(logged("load_param and load_model have to succeed first"));
        EXPECT_LT(ex.extract(0, out), 0);
        EXPECT_LT(ex.input("data", vector_of({1})), 0);
        EXPECT_LT(net.load_model("/nonexistent/model.bin"), 0);
        EXPECT_LT(net.load_param("/nonexistent/model.param"), 0);
        EXPECT_TRUE(logged("/nonexistent/model.param"));
        const unsigned char* none = nullptr;
        EXPECT_EQ(net.load_param(none), 0);
    }
    Net net;
    register_layers(&net);
    ASSERT_EQ(net.load_param_mem(kDiamond), 0);
    {
        Extractor ex = net.create_extractor();
        EXPECT_LT(ex.extract("e", out), 0) << "the input is missing";
    }
    const unsigned char* nothing = (const unsigned char*)"";
    ASSERT_EQ(net.load_model(quoll::DataReaderFromMemory(nothing, 0)), 0);
    Extractor ex = net.create_extractor();
    g_log.clear();
    EXPECT_LT(ex.input("dat", vector_of({1})), 0);
    EXPECT_TRUE(logged("there is no blob 'dat'; did you mean data")) << g_log;
    EXPECT_TRUE(logged("?; inputs: data; outputs: e")) << g_log;
    EXPECT_LT(ex.extract("e", out), 0);
    EXPECT_TRUE(logged("input 'data' (0) was not given")) << g_log;
    ex.clear();
    EXPECT_LT(ex.input("data", Mat()), 0);
    g_log.clear();
    EXPECT_LT(ex.input("data", Mat(8, (size_t)4, 8)), 0) << "less than a byte for each scalar";
    EXPECT_TRUE(logged("input 'data' (0): elements of 4 bytes are not 8 of f32")) << g_log;
    EXPECT_LT(ex.input("data", Mat(8, (size_t)3, 1)), 0);
    EXPECT_LT(ex.input(99, vector_of({1})), 0);
    EXPECT_LT(ex.input(-1, vector_of({1})), 0);
    ASSERT_EQ(ex.input("data", vector_of({1})), 0);
    ASSERT_EQ(ex.extract("e", out), 0);
    const float first = out[0];
    ASSERT_EQ(ex.input("data", vector_of({2})), 0);
    ASSERT_EQ(ex.extract("e", out), 0);
    EXPECT_EQ(out[0], first) << "what is there stays";
    ex.clear();
    ASSERT_EQ(ex.input("data", vector_of({2})), 0);
    ASSERT_EQ(ex.extract("e", out), 0);
    EXPECT_EQ(out[0], 1116.f);
}

}  // namespace
