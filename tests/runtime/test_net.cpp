// Loading nets every way, and running them: laziness, light mode, depth, batches, threads, wrong
// calls.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "quoll/datareader.h"
#include "quoll/log.h"
#include "quoll/net.h"

namespace {

using quoll::Extractor;
using quoll::Mat;
using quoll::Net;
using quoll::Option;

std::string g_log;
void collect(quoll::LogLevel, const char* message, void*) { g_log += std::string(message) + "\n"; }

class NetTest : public testing::Test {
protected:
    void SetUp() override {
        g_log.clear();
        quoll::set_log_sink(collect, nullptr);
    }
    void TearDown() override { quoll::set_log_sink(nullptr, nullptr); }
    static bool logged(const std::string& text) { return g_log.find(text) != std::string::npos; }
};

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
    static std::atomic<int> runs;
};
std::atomic<int> AddConstant::runs{0};

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

DEFINE_LAYER_CREATOR(AddConstant)
DEFINE_LAYER_CREATOR(AddTwo)

void register_layers(Net* net) {
    ASSERT_EQ(net->register_custom_layer("AddConstant", AddConstant_layer_creator), 0);
    ASSERT_EQ(net->register_custom_layer("AddTwo", AddTwo_layer_creator), 0);
}

int load_text(Net* net, const std::string& text, const std::string& weights = "") {
    const int status = net->load_param_mem(text.c_str());
    if (status != 0) return status;
    const unsigned char* p = (const unsigned char*)weights.data();
    return net->load_model(quoll::DataReaderFromMemory(p, weights.size()));
}

Mat vector_of(std::initializer_list<float> values) {
    Mat m((int)values.size());
    std::copy(values.begin(), values.end(), (float*)m.data);
    return m;
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

TEST_F(NetTest, ChainOfAHundredThousandLayers) {
    const int n = 100000;
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

TEST_F(NetTest, HalfStorage) {
    for (bool half : {true, false}) {
        Net net;
        net.opt.use_fp16_storage = half;
        net.opt.use_bf16_storage = !half;
        register_layers(&net);
        ASSERT_EQ(load_text(&net, kDiamond), 0);
        Extractor ex = net.create_extractor();
        ASSERT_EQ(ex.input("data", vector_of({1.f})), 0);
        Mat out;
        ASSERT_EQ(ex.extract("b", out, 1), 0);
        EXPECT_EQ(out.dtype, half ? quoll::DType::f16 : quoll::DType::bf16);
        ASSERT_EQ(ex.extract("b", out), 0);
        EXPECT_EQ(out.dtype, quoll::DType::f32);
        EXPECT_EQ(out[0], 12.f);
    }
}

TEST_F(NetTest, InputsBesideStoredBlobs) {
    for (bool half : {true, false})
        for (const char* layer : {"BinaryOp b 2 1 a x y", "Eltwise b 2 1 x a y 0=1"}) {
            Net net;
            net.opt.use_fp16_storage = half;
            net.opt.use_bf16_storage = !half;
            const std::string text =
                std::string("7767517\n3 3\nInput i 0 1 x\nReLU r 1 1 x a\n") + layer + "\n";
            ASSERT_EQ(load_text(&net, text.c_str()), 0);
            Extractor ex = net.create_extractor();
            ASSERT_EQ(ex.input("x", vector_of({-1.f, 2.f})), 0);
            Mat out;
            ASSERT_EQ(ex.extract("y", out), 0) << layer;
            EXPECT_EQ(out[0], -1.f);
            EXPECT_EQ(out[1], 4.f);
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

std::string words(std::initializer_list<int> values) {
    return std::string((const char*)values.begin(), values.size() * 4);
}

// The same chain as a binary param: Input (16), ReLU (26), a custom layer by index 3.
std::string binary_chain() {
    return words(
        {7767517, 3, 3, 16, 0, 1, 0,   -233, 26, 1, 1, 0, 1, 0, 0, -233, quoll::kCustomLayerBit | 3,
         1,       1, 1, 2,  1, 1, -233});
}

void check_chain(Net* net, const std::string& weights) {
    std::vector<int> aligned((weights.size() + 3) / 4 + 1);
    memcpy(aligned.data(), weights.data(), weights.size());
    ASSERT_EQ(net->load_model((const unsigned char*)aligned.data()), (int)weights.size());
    Extractor ex = net->create_extractor();
    ASSERT_EQ(ex.input(0, vector_of({-4, 4})), 0);
    Mat out;
    ASSERT_EQ(ex.extract(2, out), 0);
    EXPECT_EQ(out[0], 1.f + 0.25f);
    EXPECT_EQ(out[1], 5.f + 0.25f);
}

TEST_F(NetTest, BinaryParamEveryWay) {
    const std::string param = binary_chain();
    const float quarter = 0.25f;
    const std::string weights((const char*)&quarter, 4);
    std::vector<int> memory(param.size() / 4);
    memcpy(memory.data(), param.data(), param.size());
    const std::string path = testing::TempDir() + "quoll_net.param.bin";
    FILE* fp = fopen(path.c_str(), "wb");
    ASSERT_TRUE(fp);
    fwrite(param.data(), 1, param.size(), fp);
    fclose(fp);
    for (int way = 0; way < 4; way++) {
        Net net;
        net.register_custom_layer(3, AddConstant_layer_creator);
        if (way == 0) {
            ASSERT_EQ(net.load_param((const unsigned char*)memory.data()), (int)param.size());
        } else if (way == 1) {
            ASSERT_EQ(net.load_param_bin(path.c_str()), 0);
        } else if (way == 2) {
            FILE* in = fopen(path.c_str(), "rb");
            ASSERT_EQ(net.load_param_bin(in), 0);
            fclose(in);
        } else {
            const unsigned char* p = (const unsigned char*)memory.data();
            ASSERT_EQ(net.load_param_bin(quoll::DataReaderFromMemory(p, param.size())), 0);
        }
        check_chain(&net, weights);
    }
    remove(path.c_str());
}

// A binary param with one layer, of this type index, behind its input.
std::string binary_of_one(int typeindex) {
    return words({7767517, 2, 2, 16, 0, 1, 0, -233, typeindex, 1, 1, 0, 1, -233});
}

std::string loaded_type(Net* net, const std::string& param) {
    const unsigned char* p = (const unsigned char*)param.data();
    const int status = net->load_param_bin(quoll::DataReaderFromMemory(p, param.size()));
    return status != 0 ? "" : net->layers()[1]->typeindex < 0 ? "custom" : net->layers()[1]->type;
}

// ncnn marks custom layers by a bit that type indexes of this engine's own layers have too.
TEST_F(NetTest, CustomLayersAndBuiltInOnesDoNotTakeEachOthersPlace) {
    int own_ones = 0;
    for (const int i : {0, 3, 5, 24, 64, 104}) {
        const int custom = quoll::kCustomLayerBit | i;
        const char* const own = quoll::layer_type_name(custom);  // of 3, 64 and 104: none
        Net marked, plain, without;
        marked.register_custom_layer(custom, AddConstant_layer_creator);
        plain.register_custom_layer(i, AddConstant_layer_creator);
        EXPECT_EQ(loaded_type(&marked, binary_of_one(custom)), "custom") << i;
        EXPECT_EQ(loaded_type(&plain, binary_of_one(custom)), "custom") << i;
        EXPECT_EQ(loaded_type(&without, binary_of_one(custom)), "") << i;
        EXPECT_TRUE(logged("custom layer " + std::to_string(i) + ", which is not registered"));
        EXPECT_EQ(loaded_type(&plain, binary_of_one(i)), "custom") << i;
        // What the parameters that are not there mean to it is the same.
        EXPECT_EQ(loaded_type(&marked, binary_of_one(i)), loaded_type(&without, binary_of_one(i)));
        if (i == 5 || i == 0) {
            EXPECT_EQ(loaded_type(&marked, binary_of_one(i)), quoll::layer_type_name(i));
        }
        if (!own) continue;
        const std::string text =
            "7767517\n2 2\nInput i 0 1 x\n" + std::string(own) + " l 1 1 x y\n";
        if (without.load_param_mem(text.c_str()) != 0) continue;  // it needs parameters
        own_ones++;
        for (Net* net : {&marked, &plain}) {
            ASSERT_EQ(net->load_param_mem(text.c_str()), 0) << own;
            EXPECT_EQ(net->layers()[1]->type, own);
            EXPECT_EQ(net->layers()[1]->typeindex, custom) << own;
        }
    }
    EXPECT_GE(own_ones, 2);
}

// As bytes of a file that somebody put into the program.
TEST_F(NetTest, OtherFormatsInMemoryAreNamed) {
    alignas(4) const unsigned char onnx[] = {8, 7, 0x12, 2, 'p', 'y', 0x3a, 4, 0x0a, 2, 0x0a, 0};
    alignas(4) const unsigned char text[] = "7767517\n2 2\nInput i 0 1 x\nReLU r 1 1 x y\n";
    alignas(4) const unsigned char caffe[] = {0x0a, 2, 'n', 'n', 0xa2, 6, 2, 0x0a, 0};
    Net net;
    EXPECT_EQ(net.load_param(onnx, sizeof(onnx)), 0);
    EXPECT_TRUE(logged("the 12 bytes are an ONNX model")) << g_log;
    EXPECT_EQ(net.load_param(text, sizeof(text)), 0);
    EXPECT_TRUE(logged("are a text param, which load_param takes")) << g_log;
    ASSERT_EQ(net.load_param_mem((const char*)text), 0);
    EXPECT_EQ(net.load_model(caffe, sizeof(caffe)), 0);
    EXPECT_TRUE(logged("the 9 bytes are a caffemodel")) << g_log;
    // Weights of all kinds are no other format, whatever their first values are.
    for (int first : {0, 0x01306B47, 0x000D4B38, 0x0002C056, 0x36314642, 1, 0x3f800000, 0x0a0a0a0a})
        for (int second : {0, 0x3f800000, 0x12070812, -1}) {
            const int words[] = {first, second, 0x0a0a0a0a, 0x3e4ccccd};
            g_log.clear();
            ASSERT_EQ(net.load_param_mem((const char*)text), 0);
            net.load_model((const unsigned char*)words, sizeof(words));
            EXPECT_FALSE(logged("bytes are")) << first << " " << second << g_log;
        }
}

// Two models, params and weights alternating, in one file.
TEST_F(NetTest, ModelsConcatenatedInOneFile) {
    FILE* fp = tmpfile();
    ASSERT_TRUE(fp);
    for (float w : {0.5f, 0.75f}) {
        fputs("7767517\n2 2\nInput i 0 1 x\nAddConstant a 1 1 x y 0=1.0 1=1\n", fp);
        fwrite(&w, 4, 1, fp);
    }
    rewind(fp);
    Net nets[2];
    for (int i = 0; i < 2; i++) {
        register_layers(&nets[i]);
        ASSERT_EQ(nets[i].load_param(fp), 0) << g_log;
        ASSERT_EQ(nets[i].load_model(fp), 0) << g_log;
        Extractor ex = nets[i].create_extractor();
        ASSERT_EQ(ex.input("x", vector_of({1})), 0);
        Mat out;
        ASSERT_EQ(ex.extract("y", out), 0);
        EXPECT_EQ(out[0], i ? 2.75f : 2.5f);
    }
    fclose(fp);
}

TEST_F(NetTest, CustomLayerReplacesABuiltIn) {
    for (bool by_index : {false, true}) {
        Net net;
        if (by_index)
            net.register_custom_layer(quoll::layer_to_index("ReLU"), AddConstant_layer_creator);
        else
            net.register_custom_layer("ReLU", AddConstant_layer_creator);
        ASSERT_EQ(load_text(&net, "7767517\n2 2\nInput i 0 1 x\nReLU r 1 1 x y 0=7.0\n"), 0);
        Extractor ex = net.create_extractor();
        ASSERT_EQ(ex.input("x", vector_of({-1})), 0);
        Mat out;
        ASSERT_EQ(ex.extract("y", out), 0);
        EXPECT_EQ(out[0], 6.f);
    }
}

TEST_F(NetTest, ClearAndReload) {
    Net net;
    register_layers(&net);
    ASSERT_EQ(load_text(&net, kDiamond), 0);
    net.clear();
    EXPECT_TRUE(net.layers().empty());
    EXPECT_TRUE(net.input_names().empty());
    ASSERT_EQ(load_text(&net, "7767517\n2 2\nInput i 0 1 x\nReLU r 1 1 x y\n"), 0);
    EXPECT_EQ(net.layers().size(), 2u);
}

TEST_F(NetTest, BadParamsSayWhatAndWhere) {
    const struct {
        const char* text;
        const char* message;
    } cases[] = {
        {"", "magic number 7767517"},
        {"123\n1 1\n", "got '123'"},
        {"7767517\n", "layer count"},
        {"7767517\n-1 5\n", "got '-1 5'"},
        {"7767517\n0 0\n", "layer count"},
        {"7767517\n2147483647 1\nInput i 0 1 x\n", "the text ends"},
        {"7767517\n2 2\nInput i 0 1 x\n", "the text ends where layer 2"},
        {"7767517\n1 1\nInputt i 0 1 x\n", "did you mean Input"},
        {"7767517\n1 1\nInput i 0 99999999 x\n", "[Input i] expected a number of inputs"},
        {"7767517\n1 1\nInput i 0 1\n", "[Input i] expected 0 inputs and 1 outputs, got 0"},
        {"7767517\n2 1\nInput i 0 1 x\nReLU r 1 1 x y\n",
         "[ReLU r] blob 'y' is one more than the 1"},
        {"7767517\n2 3\nInput i 0 1 x\nReLU r 1 1 z y\n", "[ReLU r] input 'z'"},
        {"7767517\n2 2\nInput i 0 1 x\nInput j 0 1 x\n", "produced twice"},
        {"7767517\n3 3\nInput i 0 1 x\nReLU r 1 1 b a\nReLU q 1 1 a b\n",
         "depend on its own output"},
        {"7767517\n2 2\nInput i 0 1 x\nReLU r 1 1 x y 0=abc\n",
         "[ReLU r] slope (0): expected one number, got a string"},
        {"7767517\n2 2\nInput i 0 1 x\nReLU r 1 1 x y 0=1,abc\n",
         "[ReLU r] parameter 0: expected a number, got 'abc'"},
        {"7767517\n2 2\nInput i 0 1 x\nReLU r 1 1 x y nonsense\n",
         "[ReLU r] parameters: expected id=value"},
        {"7767517\n2 3\nInput i 0 2 x z\nReLU r 2 1 x z y\n", "[ReLU r] expected 1 input"},
        {"7767517\n1 1\nInput i 0 1 x 0=-5\n", "[Input i] w (0): expected at least 0, got -5"},
    };
    for (const auto& c : cases) {
        g_log.clear();
        Net net;
        EXPECT_LT(net.load_param_mem(c.text), 0) << c.text;
        EXPECT_TRUE(logged(c.message))
            << c.text << "\nlogged: " << g_log << "\nexpected: " << c.message;
        EXPECT_TRUE(net.layers().empty());
    }
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

TEST_F(NetTest, NoWeightsNoLoadModel) {
    Net net;
    ASSERT_EQ(net.load_param_mem("7767517\n2 2\nInput i 0 1 x\nAbsVal a 1 1 x y\n"), 0);
    Mat out;
    {
        Extractor ex = net.create_extractor();
        ASSERT_EQ(ex.input("x", vector_of({-1, 2})), 0);
        ASSERT_EQ(ex.extract("y", out), 0) << g_log;
        EXPECT_EQ(out[0], 1.f);
        // A blob that nothing has read yet takes a later input.
        ASSERT_EQ(ex.extract("x", out), 0);
        EXPECT_EQ(out[0], -1.f);
    }
    const unsigned char* nothing = (const unsigned char*)"";
    EXPECT_EQ(net.load_model(quoll::DataReaderFromMemory(nothing, 0)), 0) << "it may still come";

    Net weighted;
    register_layers(&weighted);
    ASSERT_EQ(weighted.load_param_mem("7767517\n2 2\nInput i 0 1 x\nAddConstant a 1 1 x y 1=1\n"),
              0);
    Extractor early = weighted.create_extractor();
    g_log.clear();
    EXPECT_LT(early.input("x", vector_of({-1, 2})), 0);
    EXPECT_TRUE(logged("load_param and load_model have to succeed first")) << g_log;
    const float weight[] = {3.f};
    const unsigned char* bytes = (const unsigned char*)weight;
    ASSERT_EQ(weighted.load_model(quoll::DataReaderFromMemory(bytes, 4)), 0) << g_log;
    Extractor ex = weighted.create_extractor();
    ASSERT_EQ(ex.input("x", vector_of({1, 2})), 0);
    ASSERT_EQ(ex.extract("y", out), 0);
    EXPECT_EQ(out[0], 5.f) << "1 + 1 + 3";
}

namespace {
int g_own_data, g_given_data;
quoll::Layer* create_with_own_data(void* userdata) {
    EXPECT_EQ(userdata, &g_given_data);
    quoll::Layer* layer = quoll::create_layer("AbsVal");
    layer->userdata = &g_own_data;
    return layer;
}
void destroy_with_given_data(quoll::Layer* layer, void* userdata) {
    EXPECT_EQ(userdata, &g_given_data);
    EXPECT_EQ(layer->userdata, &g_own_data) << "the creator's stays";
    delete layer;
}
// Makes the layers of types that nobody knows.
struct NetOfUnknownLayers : Net {
    quoll::Layer* create_custom_layer(const char* type) override {
        asked = type;
        return quoll::create_layer("AbsVal");
    }
    std::string asked;
};
}  // namespace

TEST_F(NetTest, LayersOfApplicationsAreTheirs) {
    const char* const kParam = "7767517\n2 2\nInput i 0 1 x\nMine m 1 1 x y\n";
    Mat out;
    {
        Net net;
        net.register_custom_layer("Mine", create_with_own_data, destroy_with_given_data,
                                  &g_given_data);
        EXPECT_EQ(net.custom_layer_to_index("Mine"), 0);
        EXPECT_EQ(net.custom_layer_to_index("Yours"), -1);
        ASSERT_EQ(net.load_param_mem(kParam), 0);
        EXPECT_EQ(net.mutable_layers()[1]->userdata, &g_own_data);
        EXPECT_EQ(&net.mutable_blobs()[1], &net.blobs()[1]);
    }
    NetOfUnknownLayers net;
    ASSERT_EQ(net.load_param_mem(kParam), 0) << g_log;
    EXPECT_EQ(net.asked, "Mine");
    Extractor ex = net.create_extractor();
    ASSERT_EQ(ex.input("x", vector_of({-5})), 0);
    ASSERT_EQ(ex.extract("y", out), 0);
    EXPECT_EQ(out[0], 5.f);
}

TEST_F(NetTest, UntypedMatsAreOfTheStoredType) {
    Net net;
    net.opt.use_bf16_storage = true;
    ASSERT_EQ(net.load_param_mem("7767517\n2 2\nInput i 0 1 x\nAbsVal a 1 1 x y\n"), 0);
    for (const bool typed : {false, true}) {
        Mat in(2, (size_t)2u);
        if (typed) in.create(quoll::Shape(2, quoll::DType::f16));
        unsigned short* const v = in;
        v[0] = v[1] = quoll::float32_to_bfloat16(-3.f);
        Extractor ex = net.create_extractor();
        ASSERT_EQ(ex.input("x", in), 0);
        Mat out;
        ASSERT_EQ(ex.extract("y", out), 0);
        EXPECT_EQ(out[0] == 3.f, !typed) << out[0];
    }
}

TEST_F(NetTest, ALayerAloneMakesAsManyOutputsAsAreThere) {
    for (const char* type : {"Split", "Noop"}) {
        const std::unique_ptr<quoll::Layer> layer(quoll::create_layer(type));
        std::vector<Mat> tops(type == std::string("Split") ? 3 : 1);
        const size_t count = tops.size();
        ASSERT_EQ(layer->load_param(quoll::ParamDict()), 0);
        ASSERT_EQ(layer->forward({vector_of({1}), vector_of({2})}, tops, quoll::Option()),
                  count == 3 ? quoll::kError : quoll::kOk);
        ASSERT_EQ(layer->forward({vector_of({1})}, tops, quoll::Option()), 0);
        EXPECT_EQ(tops.size(), count);
        EXPECT_EQ(tops.back()[0], 1.f);
    }
    // One blob in, one out, of a layer that has the form for several.
    const std::unique_ptr<quoll::Layer> crop(quoll::create_layer("Crop"));
    quoll::ParamDict pd;
    pd.set(0, 1);
    pd.set(3, 2);
    ASSERT_EQ(crop->load_param(pd), 0);
    Mat out;
    ASSERT_EQ(crop->forward(vector_of({1, 2, 3, 4}), out, quoll::Option()), 0);
    ASSERT_EQ(out.w, 2);
    EXPECT_EQ(out[0], 2.f);
}

TEST_F(NetTest, AFailingLayerIsNamed) {
    Net net;
    register_layers(&net);
    ASSERT_EQ(load_text(&net, "7767517\n3 3\nInput a 0 1 a\nInput b 0 1 b\nAddTwo sum 2 1 a b y\n"),
              0);
    Extractor ex = net.create_extractor();
    ASSERT_EQ(ex.input("a", vector_of({1, 2})), 0);
    ASSERT_EQ(ex.input("b", vector_of({1, 2, 3})), 0);
    Mat out;
    EXPECT_LT(ex.extract("y", out), 0);
    EXPECT_TRUE(logged("[AddTwo sum] widths 2 and 3 differ")) << g_log;
}

TEST_F(NetTest, MissingWeightsAreNamed) {
    Net net;
    register_layers(&net);
    EXPECT_LT(load_text(&net, "7767517\n2 2\nInput i 0 1 x\nAddConstant a 1 1 x y 1=4\n", "short"),
              0);
    EXPECT_TRUE(logged("[AddConstant a] loading its weights failed")) << g_log;
    EXPECT_TRUE(net.layers().empty()) << "a failed load leaves the Net empty";
}

// A model file that is decrypted while it is read.
class XorReader : public quoll::DataReader {
public:
    explicit XorReader(const std::string& bytes) : bytes_(bytes) {}
    size_t read(void* buf, size_t size) const override {
        const size_t count = std::min(size, bytes_.size() - at_);
        for (size_t i = 0; i < count; i++) ((char*)buf)[i] = bytes_[at_ + i] ^ 0x5a;
        at_ += count;
        return count;
    }

private:
    std::string bytes_;
    mutable size_t at_ = 0;
};

TEST_F(NetTest, EncryptedModelThroughADataReader) {
    std::string text = "7767517\n2 2\nInput i 0 1 x\nAddConstant a 1 1 x y 1=1\n";
    const float weight = 3.f;
    std::string bin((const char*)&weight, 4);
    for (char& ch : text) ch ^= 0x5a;
    for (char& ch : bin) ch ^= 0x5a;
    Net net;
    register_layers(&net);
    ASSERT_EQ(net.load_param(XorReader(text)), 0);
    ASSERT_EQ(net.load_model(XorReader(bin)), 0);
    Extractor ex = net.create_extractor();
    ASSERT_EQ(ex.input("x", vector_of({0})), 0);
    Mat out;
    ASSERT_EQ(ex.extract("y", out), 0);
    EXPECT_EQ(out[0], 4.f);
}

// Sizes that a file hints are no more than hints: in ncnn's form of four values an output, in that
// of five, and wrong, too few, too many or absurd.
TEST_F(NetTest, HintsOfSizesNeverRefuseAModel) {
    const std::string input = "7767517\n3 3\nInput i 0 1 x -23330=",
                      layers = "\nConvolution c 1 1 x y 0=2 1=1 5=0 6=8 -23330=",
                      end = "\nReLU r 1 1 y z\n";
    const char* const hints[] = {"4,3,5,6,4",
                                 "5,3,5,6,1,4",
                                 "5,3,5,6,4,1",
                                 "5,3,7,9,1,3",
                                 "5,2,5,6,1,1",
                                 "1,3",
                                 "4,3,-5,6,4",
                                 "5,9,1,1,1,1",
                                 "5,3,2147483647,2147483647,1,4",
                                 "5,0,0,0,0,0",
                                 "7,1,2,3,4,5,6,7",
                                 "5,4,2,2,2,4",
                                 "3,1,2",
                                 "5,1,4,1,1,1",
                                 "5,3,100000,100000,1,4",
                                 "0",
                                 "2,3",
                                 "5,3,1,1,1,4",
                                 "4,x,y,z,w"};
    const std::string weights((1 + 8) * sizeof(float), '\0');
    for (const char* of_input : hints)
        for (const char* of_output : hints) {
            Net net;
            ASSERT_EQ(load_text(&net, input + of_input + layers + of_output + end, weights), 0)
                << of_input << " " << of_output << g_log;
            Extractor ex = net.create_extractor();
            Mat x(5, 6, 4), z;
            x.fill(1.f);
            ASSERT_EQ(ex.input("x", x), 0);
            ASSERT_EQ(ex.extract("z", z), 0) << of_input << " " << of_output << g_log;
            EXPECT_EQ(z.logical_shape(), quoll::Shape(5, 6, 2));
        }
    EXPECT_EQ(g_log, "");
}

TEST_F(NetTest, ReadsHintsOfFourAndOfFiveValues) {
    const char* const text =
        "7767517\n2 4\n"
        "Input i 0 1 x -23330=5,3,5,6,1,4\n"
        "Split s 1 3 x a b c -23330=%s\n";
    char param[256];
    for (const char* hints : {"15,3,5,6,1,4,2,7,8,1,1,4,2,3,4,5", "13,3,5,6,4,2,7,8,1,4,2,3,4,5"}) {
        snprintf(param, sizeof(param), text, hints);
        Net net;
        ASSERT_EQ(net.load_param_mem(param), 0);
        EXPECT_EQ(net.blobs()[0].shape.logical_shape(), quoll::Shape(5, 6, 4)) << hints;
        EXPECT_EQ(net.blobs()[1].shape.logical_shape(), quoll::Shape(5, 6, 4)) << hints;
        EXPECT_EQ(net.blobs()[2].shape.logical_shape(), quoll::Shape(7, 8)) << hints;
        EXPECT_EQ(net.blobs()[3].shape.logical_shape(), quoll::Shape(2, 3, 4, 5)) << hints;
    }
}

// A text in memory may end without a line end.
TEST_F(NetTest, TextWithoutALineEnd) {
    const char memory[] =
        "7767517\n2 2\nInput i 0 1 x\nClip c 1 1 x y 0=-1 1=2\0"
        "99 2=1\n";
    const unsigned char* p = (const unsigned char*)memory;
    Net net;
    ASSERT_EQ(net.load_param(quoll::DataReaderFromMemory(p)), 0) << g_log;
    ASSERT_EQ(net.load_model(quoll::EmptyDataReader()), 0) << g_log;
    Extractor ex = net.create_extractor();
    ASSERT_EQ(ex.input("x", vector_of({-5, 5})), 0);
    Mat y;
    ASSERT_EQ(ex.extract("y", y), 0);
    EXPECT_EQ(y[0], -1.f);
    EXPECT_EQ(y[1], 2.f);
    EXPECT_EQ(g_log, "");
    ASSERT_EQ(net.load_param(quoll::DataReaderFromMemory(
                  p = (const unsigned char*)"7767517\n1 1\nInput i 0 1 x")),
              0)
        << g_log;
}

// What a program does with its outputs is no business of the next run's.
TEST_F(NetTest, AnExtractedWeightIsACopy) {
    const char* const text =
        "7767517\n4 5\nMemoryData m 0 1 m 0=2 1=3\nSplit s 1 2 m a b\n"
        "Reshape r 1 1 a c 0=6\nSlice t 1 1 b d -23300=1,-233\n";
    const float values[] = {1, 2, 3, 4, 5, 6};
    const std::string weights((const char*)values, sizeof(values));
    for (bool fused : {true, false}) {
        Net net;
        net.opt.use_graph_fusion = fused;
        ASSERT_EQ(load_text(&net, text, weights), 0) << g_log;
        for (int run = 0; run < 2; run++)
            for (const char* blob : {"m", "a", "c", "d"}) {
                Extractor ex = net.create_extractor();
                Mat out;
                if (!fused || net.blobs()[net.find_blob_index_by_name(blob)].producer >= 0) {
                    ASSERT_EQ(ex.extract(blob, out), 0) << blob << g_log;
                    for (int i = 0; i < 6; i++) EXPECT_EQ(out[i], values[i]) << blob;
                    out.fill(-9.f);
                }
            }
    }
}

// What a net of 16-bit blobs holds of a constant is made once, not in each run, and is no business
// of the program's either. What f16 cannot hold stays f32.
TEST_F(NetTest, AConstantIsNarrowedOnce) {
    const char* const text =
        "7767517\n3 3\nInput x 0 1 x\nMemoryData m 0 1 m 0=2 1=3\nBinaryOp y 2 1 x m y 0=0\n";
    class Watch : public quoll::LayerObserver {
    public:
        void before(const quoll::Layer&) override {}
        void after(const quoll::Layer& layer, const std::vector<Mat>& outputs) override {
            if (layer.type == "MemoryData") seen.push_back(outputs[0]);
        }
        std::vector<Mat> seen;
    };
    for (bool large : {false, true})
        for (bool bf16 : {false, true}) {
            const float values[] = {1, 2, 3, 4, 5, large ? 1e6f : 6.f};
            Net net;
            (bf16 ? net.opt.use_bf16_storage : net.opt.use_fp16_storage) = true;
            const std::string weights((const char*)values, sizeof(values));
            ASSERT_EQ(load_text(&net, text, weights), 0);
            Watch watch;
            for (int run = 0; run < 3; run++) {
                Extractor ex = net.create_extractor();
                ex.set_layer_observer(&watch);
                Mat x(2, 3), y, m;
                x.fill(0.f);
                ASSERT_EQ(ex.input("x", x), 0);
                ASSERT_EQ(ex.extract("y", y), 0);
                for (int i = 0; i < 6; i++) EXPECT_NEAR(y[i], values[i], values[i] / 256);
                ASSERT_EQ(ex.extract("m", m, 1), 0);
                memset(m.data, 0, m.total() * m.elemsize);
            }
            ASSERT_GE(watch.seen.size(), 3u);
            const bool stays = large && !bf16;
            for (const Mat& m : watch.seen) {
                EXPECT_EQ(m.data, watch.seen[0].data);
                EXPECT_EQ(m.dtype, stays  ? quoll::DType::f32
                                   : bf16 ? quoll::DType::bf16
                                          : quoll::DType::f16);
            }
        }
}

// Masks of attention hold the smallest float. It rounds to -infinity in bf16, of which a softmax is
// NaN.
TEST_F(NetTest, FiniteValuesStayFiniteInBf16) {
    const float largest = 3.40282347e38f, infinity = std::numeric_limits<float>::infinity();
    const float values[] = {-largest, largest, infinity, 3.3895e38f};
    const std::string weights((const char*)values, sizeof(values));
    Net net;
    net.opt.use_bf16_storage = true;
    const char* const text =
        "7767517\n4 4\nInput x 0 1 x\nBinaryOp scaled 1 1 x scaled 0=2 1=1 2=-3.40282347e38\n"
        "MemoryData m 0 1 m 0=4\nSoftmax y 1 1 scaled y 0=0 1=1\n";
    ASSERT_EQ(load_text(&net, text, weights), 0);
    Extractor ex = net.create_extractor();
    Mat x(3), y, scaled, m;
    x[0] = x[1] = 1.f, x[2] = infinity;
    ASSERT_EQ(ex.input("x", x), 0);
    ASSERT_EQ(ex.extract("scaled", scaled), 0);
    EXPECT_NEAR(scaled[0], -largest, largest / 200);
    EXPECT_EQ(scaled[2], -infinity);
    ASSERT_EQ(ex.extract("m", m), 0);
    EXPECT_NEAR(m[0], -largest, largest / 200);
    EXPECT_NEAR(m[1], largest, largest / 200);
    EXPECT_EQ(m[2], infinity);
    ASSERT_EQ(ex.extract("y", y), 0);
    for (int i = 0; i < 3; i++) EXPECT_EQ(y[i], i < 2 ? 0.5f : 0.f);
}

}  // namespace
