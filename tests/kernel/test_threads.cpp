// Answers have the same bits whatever the number of threads, that for which the net is loaded and
// that with which it runs; and whether items come as a batch or one by one. And a thread with a
// small stack can load and run all of it.
#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "emulated/emulation.h"
#include "layer/cpu/common/kernel_set.h"
#include "quoll/net.h"
#include "random_weights.h"

using namespace quoll;

namespace {

// Random weights of int8 layers with a bias: their scales are such that products do not vanish.
class Int8Weights : public DataReader {
public:
    size_t read(void* buf, size_t size) const override {
        // What a layer reads: the tag of fp32 weights, these, the bias, their scales and the
        // input's. Other layers read no tag.
        enum { kTag, kWeights, kBias, kScales, kInputScale };
        const int part = next_;
        if (part == kTag && size != 4) return weights_.read(buf, size);
        next_ = part == kInputScale ? kTag : part + 1;
        const size_t count = size / 4;
        if (part == kWeights) scale_ = 127.f * sqrtf(sqrtf((float)count));
        if (part < kScales) return weights_.read(buf, size);
        uint64_t state = 3;
        if (part == kScales) fill_random((float*)buf, count, scale_ * .5f, scale_, &state);
        if (part == kInputScale) fill_random((float*)buf, count, 60.f, 60.f, &state);
        return size;
    }

private:
    RandomWeights weights_;
    mutable int next_ = 0;
    mutable float scale_ = 1;
};

struct Job {
    std::string text;  // of the .param
    std::vector<Shape> inputs;
    Option opt;
    bool int8;
};

// Values of all outputs, as bytes; empty after a failure. item: that of the batch alone.
std::vector<char> answer(const Net& net, const Job& job, int threads, int item = -1) {
    Extractor ex = net.create_extractor();
    ex.set_num_threads(threads);
    uint64_t state = 5;
    for (size_t i = 0; i < job.inputs.size(); i++) {
        Mat in;
        in.create(job.inputs[i], 1);
        for (int b = 0; b < in.n; b++)
            for (int c = 0; c < in.c; c++)
                fill_random(in.batch(b).channel(c), (size_t)in.w * in.h * in.d, -1.f, 1.f, &state);
        if (item >= 0) in = in.batch(item).clone();
        if (ex.input(net.input_indexes()[i], in)) return {};
    }
    std::vector<char> bytes;
    for (int blob : net.output_indexes()) {
        Mat out;
        if (ex.extract(blob, out)) return {};
        for (int i = 0; i < out.n * out.c; i++) {
            const char* from = (const char*)out.batch(i / out.c).channel(i % out.c).data;
            bytes.insert(bytes.end(), from, from + (size_t)out.w * out.h * out.d * out.elemsize);
        }
    }
    return bytes;
}

bool load(const Job& job, int threads, Net* net) {
    net->opt = job.opt;
    net->opt.num_threads = threads;
    if (net->load_param_mem(job.text.c_str())) return false;
    return (job.int8 ? net->load_model(Int8Weights()) : net->load_model(RandomWeights())) == 0;
}

bool is_zero(const std::vector<char>& bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0; });
}

const std::vector<int> kMany = {2, 3, 4, 7, 16}, kFew = {2, 7}, kOne = {3};

// What an embedded system gives a thread; sanitizers need more. Emulated tiles are thread-local
// and lie there too.
#if defined(QUOLL_SANITIZED)
enum { kSmallStack = 1 << 20 };
#elif defined(QUOLL_EMULATED_TILES)
enum { kSmallStack = (64 << 10) + (41 << 10) };
#else
enum { kSmallStack = 64 << 10 };
#endif

// f() in a thread of its own with such a stack.
template <class F>
void on_small_stack(F f) {
    pthread_attr_t small;
    pthread_t thread;
    ASSERT_EQ(0, pthread_attr_init(&small));
    // aarch64's threads have twice as much at least.
    const size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN);
    ASSERT_EQ(0, pthread_attr_setstacksize(&small, std::max<size_t>(kSmallStack, least)));
    const auto run = [](void* argument) -> void* {
        (*(F*)argument)();
        return nullptr;
    };
    ASSERT_EQ(0, pthread_create(&thread, &small, run, &f));
    ASSERT_EQ(0, pthread_join(thread, nullptr));
    pthread_attr_destroy(&small);
}

void expect_same_bits(const Job& job, const std::vector<int>& counts) {
    Net one;
    std::vector<char> expected;
    bool loaded = false;
    on_small_stack([&] {
        loaded = load(job, 1, &one);
        if (loaded) expected = answer(one, job, 1);
    });
    ASSERT_TRUE(loaded);
    ASSERT_FALSE(is_zero(expected));  // nor empty
    for (int threads : counts) {
        EXPECT_TRUE(answer(one, job, threads) == expected)
            << "loaded for 1 thread, run with " << threads;
        Net net;
        ASSERT_TRUE(load(job, threads, &net));
        EXPECT_TRUE(answer(net, job, threads) == expected) << threads << " threads";
        EXPECT_TRUE(threads != counts.back() || answer(net, job, 1) == expected)
            << "loaded for " << threads << " threads, run with 1";
    }
}

// ---------------------------------------------------------------- graphs

struct Graph {
    const char* name;
    int size;  // of the input; small, as far as the graph allows
};
void PrintTo(const Graph& graph, std::ostream* out) { *out << graph.name; }
const Graph kGraphs[] = {{"alexnet", 227},      {"efficientnet_b0", 96}, {"googlenet", 224},
                         {"mobilenet_v1", 128}, {"mobilenet_v2", 96},    {"mobilenet_v3", 96},
                         {"resnet18", 224},     {"resnet50", 128},       {"shufflenet_v2", 96},
                         {"squeezenet", 128},   {"vgg16", 112},          {"yolov4_tiny", 128}};

// The graph without what follows its last convolution, if its inner products are large.
// int8: convolutions and inner products are.
std::string text_of(const std::string& name, bool int8) {
    std::ifstream file("benchmark/models/" + name + ".param");
    const bool cut = name == "alexnet" || name == "vgg16";
    std::string line, layers;
    std::getline(file, line);
    int layer_count = 0, blob_count = 0;
    file >> layer_count >> blob_count;
    std::getline(file, line);
    int count = 0;
    while (std::getline(file, line)) {
        const std::string type = line.substr(0, line.find(' '));
        if (cut && type == "InnerProduct") break;
        const bool quantized =
            type == "Convolution" || type == "ConvolutionDepthWise" || type == "InnerProduct";
        layers += line + (int8 && quantized ? " 8=1\n" : "\n");
        count++;
    }
    std::ostringstream text;
    text << "7767517\n" << count << ' ' << blob_count << '\n' << layers;
    return text.str();
}

class Graphs : public testing::TestWithParam<Graph> {
protected:
    Job job(bool int8) const {
        const int size = GetParam().size;
        return {text_of(GetParam().name, int8), {Shape(size, size, 3)}, Option(), int8};
    }
    static bool has_wide_registers() { return host_kernel_set().lanes >= 8; }
    static bool is_fast() {
        const std::string name = GetParam().name;
        return has_wide_registers() || name == "shufflenet_v2" || name == "mobilenet_v2";
    }
    static const std::vector<int>& many() { return has_wide_registers() ? kMany : kFew; }
};

// With short registers, which are often emulated, some graphs by few threads.
#define QUOLL_NEED_FAST_GRAPH() \
    if (!is_fast()) GTEST_SKIP() << "registers of less than eight floats take too long"

TEST_P(Graphs, fp32) {
    QUOLL_NEED_FAST_GRAPH();
    expect_same_bits(job(false), many());
}

TEST_P(Graphs, bf16) {
    QUOLL_NEED_FAST_GRAPH();
    Job bf16 = job(false);
    bf16.opt.use_bf16_storage = true;
    expect_same_bits(bf16, kFew);
}

TEST_P(Graphs, fp16_arithmetic) {
    QUOLL_NEED_FAST_GRAPH();
    if (!host_kernel_set().f16) GTEST_SKIP() << "no arithmetic of half floats";
    Job fp16 = job(false);
    fp16.opt.use_fp16_storage = fp16.opt.use_fp16_arithmetic = true;
    expect_same_bits(fp16, kFew);
}

TEST_P(Graphs, int8) {
    QUOLL_NEED_FAST_GRAPH();
    expect_same_bits(job(true), many());
}

TEST_P(Graphs, tiles) {
    const Emulation emulation;
    if (!host_kernel_set().split6) GTEST_SKIP() << "neither AMX nor AVX-512";
    const std::string name = GetParam().name;
    if (name != "resnet18" && name != "mobilenet_v2" && name != "squeezenet")
        GTEST_SKIP() << "emulation is slow";
    for (int products : {6, 1}) {
        Job small = job(false);
        small.inputs = {Shape(96, 96, 3)};
        small.opt.use_fp32_split = products;
        small.opt.use_bf16_storage = products == 1;
        expect_same_bits(small, kFew);
    }
    Job int8 = job(true);
    int8.inputs = {Shape(96, 96, 3)};
    expect_same_bits(int8, kFew);
}

INSTANTIATE_TEST_SUITE_P(Threads, Graphs, testing::ValuesIn(kGraphs),
                         [](const auto& info) { return std::string(info.param.name); });

// ---------------------------------------------------------------- layers

struct LayerCase {
    const char *type, *params;
    std::vector<Shape> inputs;
    int outputs = 1;
    bool int8 = false;
};

void PrintTo(const LayerCase& c, std::ostream* out) {
    *out << c.type << ' ' << c.params << " of";
    for (const Shape& s : c.inputs) *out << ' ' << s.w << 'x' << s.h << 'x' << s.d << 'x' << s.c;
}

Job make_job(const LayerCase& c) {
    const int inputs = (int)c.inputs.size();
    std::ostringstream text;
    text << "7767517\n" << inputs + 1 << ' ' << inputs + c.outputs << '\n';
    for (int i = 0; i < inputs; i++) text << "Input in" << i << " 0 1 x" << i << '\n';
    text << c.type << " layer " << inputs << ' ' << c.outputs;
    for (int i = 0; i < inputs; i++) text << " x" << i;
    for (int i = 0; i < c.outputs; i++) text << " y" << i;
    text << ' ' << c.params << '\n';
    return {text.str(), c.inputs, Option(), c.int8};
}

Shape batch(int n, Shape item) {
    item.n = n;
    return item;
}

const LayerCase kLayers[] = {
    {"Convolution", "0=256 1=3 4=1 5=1 6=589824 9=1", {Shape(14, 14, 256)}},
    {"Convolution", "0=512 1=3 4=1 5=1 6=2359296", {Shape(7, 7, 512)}},
    {"Convolution", "0=512 1=3 4=1 5=1 6=2359296 9=2 -23310=1,0.1", {Shape(14, 14, 512)}},
    {"Convolution", "0=128 1=3 4=1 5=1 6=147456 9=4", {Shape(28, 28, 128)}},
    {"Convolution", "0=64 1=3 4=1 5=1 6=36864 9=5", {Shape(56, 56, 64)}},
    {"Convolution", "0=64 1=3 4=1 5=1 6=9216", {Shape(40, 24, 16)}},
    {"Convolution", "0=48 1=3 4=1 5=1 6=3456", {Shape(5, 4, 8)}},
    {"Convolution", "0=30 1=3 4=1 5=1 6=5400", {Shape(31, 17, 20)}},
    {"Convolution", "0=1024 1=1 5=1 6=1048576", {Shape(7, 7, 1024)}},
    {"Convolution", "0=256 1=1 5=1 6=262144", {Shape(14, 14, 1024)}},
    {"Convolution", "0=64 1=7 3=2 4=3 5=1 6=9408 9=1", {Shape(96, 96, 3)}},
    {"Convolution", "0=512 1=3 3=2 4=1 5=1 6=1179648", {Shape(14, 14, 256)}},
    {"Convolution", "0=1000 1=1 5=1 6=512000", {Shape(512)}},
    {"Convolution", "0=256 1=3 4=1 5=1 6=589824 8=1", {Shape(14, 14, 256)}, 1, true},
    {"Convolution", "0=512 1=3 4=1 5=1 6=2359296 8=1 9=1", {Shape(7, 7, 512)}, 1, true},
    {"Convolution", "0=64 1=7 3=2 4=3 5=1 6=9408 8=1", {Shape(96, 96, 3)}, 1, true},
    {"Convolution", "0=256 1=1 5=1 6=131072 8=1 9=4", {Shape(14, 14, 512)}, 1, true},
    {"ConvolutionDepthWise", "0=96 1=3 4=1 5=1 6=864 7=96", {Shape(28, 28, 96)}},
    {"ConvolutionDepthWise",
     "0=96 1=5 3=2 4=2 5=1 6=2400 7=96 9=6 -23310=2,0.2,0.5",
     {Shape(29, 27, 96)}},
    {"ConvolutionDepthWise", "0=90 1=3 4=1 5=1 6=9720 7=9", {Shape(20, 20, 108)}},
    {"ConvolutionDepthWise", "0=128 1=3 4=1 5=1 6=36864 7=4", {Shape(20, 20, 128)}},
    {"ConvolutionDepthWise", "0=320 1=3 4=1 5=1 6=46080 7=20", {Shape(14, 14, 320)}},
    {"ConvolutionDepthWise", "0=96 1=3 4=1 5=1 6=864 7=96 8=1", {Shape(28, 28, 96)}, 1, true},
    // Items of a batch side by side, or one after the other.
    {"Convolution", "0=64 1=3 4=1 5=1 6=18432 9=1", {batch(7, Shape(14, 14, 32))}},
    {"Convolution", "0=40 1=1 5=1 6=2560", {batch(33, Shape(9, 9, 64))}},
    {"ConvolutionDepthWise", "0=64 1=3 4=1 5=1 6=4608 7=8", {batch(5, Shape(14, 14, 64))}},
    {"InnerProduct", "0=96 1=1 2=9216", {batch(20, Shape(96, 49))}},
    {"SDPA",
     "",
     {batch(20, Shape(32, 49, 3)), batch(20, Shape(32, 49, 3)), batch(20, Shape(32, 49, 3))}},
    {"Permute", "0=2", {batch(20, Shape(32, 49, 3))}},
    {"LayerNorm", "0=96", {batch(20, Shape(96, 49))}},
    {"LSTM", "0=64 1=32768 2=2", {batch(5, Shape(64, 20))}},
    {"Pooling", "0=1 1=2 2=2 5=1", {batch(40, Shape(40, 31, 1))}},
    {"Pooling", "0=0 1=3 2=2 3=1", {batch(5, Shape(40, 31, 24))}},
    {"Pooling", "0=1 4=1", {batch(9, Shape(40, 31, 6))}},
    {"Convolution1D", "0=96 1=5 4=2 5=1 6=30720", {Shape(400, 64)}},
    // Two or three threads per item.
    {"Convolution", "0=256 1=3 4=1 5=1 6=589824 9=1", {batch(2, Shape(14, 14, 256))}},
    {"Convolution", "0=256 1=1 5=1 6=262144", {batch(3, Shape(14, 14, 1024))}},
    {"ConvolutionDepthWise", "0=320 1=3 4=1 5=1 6=46080 7=20", {batch(2, Shape(14, 14, 320))}},
    {"InnerProduct", "0=256 1=1 2=262144", {batch(2, Shape(1024, 256))}},
    {"MultiHeadAttention", "0=192 1=3 2=36864", {batch(2, Shape(192, 197))}},
    {"Deconvolution", "0=64 1=4 3=2 4=1 5=1 6=131072", {batch(2, Shape(14, 14, 128))}},
    {"Convolution3D", "0=32 1=3 4=1 5=1 6=13824 21=3", {Shape(14, 14, 8, 16)}},
    {"Deconvolution", "0=64 1=4 3=2 4=1 5=1 6=131072", {Shape(14, 14, 128)}},
    {"Deconvolution", "0=20 1=3 5=1 6=11520", {Shape(17, 9, 64)}},
    {"Deconvolution", "0=3 1=4 3=2 4=1 5=1 6=1536 9=4", {Shape(64, 61, 32)}},
    {"Deconvolution", "0=2 1=3 3=1 4=1 5=1 6=3600 9=2 -23310=1,0.1", {Shape(90, 91, 200)}},
    {"DeconvolutionDepthWise", "0=64 1=4 3=2 4=1 5=1 6=1024 7=64", {Shape(14, 14, 64)}},
    {"DeconvolutionDepthWise", "0=64 1=4 3=2 4=1 5=1 6=8192 7=4", {Shape(14, 14, 32)}},
    {"Deconvolution1D", "0=32 1=4 3=2 5=1 6=8192", {Shape(200, 64)}},
    {"InnerProduct", "0=1000 1=1 2=2048000", {Shape(2048)}},
    {"InnerProduct", "0=384 1=1 2=147456 9=1", {Shape(384, 50)}},
    {"InnerProduct", "0=256 1=1 2=262144", {Shape(1024, 256)}},
    {"InnerProduct", "0=1000 1=1 2=2048000 8=1", {Shape(2048)}, 1, true},
    {"InnerProduct", "0=384 1=1 2=147456 8=1", {Shape(384, 50)}, 1, true},
    {"Gemm", "3=1 5=1 6=1 8=768 9=256 10=-1", {Shape(256, 197)}},
    {"Gemm", "3=1 5=1 6=1 8=512 9=1024 10=-1", {Shape(1024, 128)}},
    {"Gemm", "3=1 5=1 6=1 8=2000 9=512 10=4", {Shape(512, 1)}},
    {"Gemm", "4=1 6=1 7=200 9=256 10=-1", {Shape(130, 256)}},
    {"Gemm", "0=0.5 3=1 14=1", {Shape(128, 70), Shape(128, 90)}},
    {"Gemm", "3=1", {Shape(512, 1), Shape(512, 600)}},
    {"Gemm", "", {Shape(512, 1), Shape(600, 512)}},
    {"MatMul", "", {Shape(64, 197, 6), Shape(197, 64, 6)}},
    {"MatMul", "0=1", {Shape(64, 100, 3), Shape(64, 210)}},
    {"MatMul", "", {Shape(300), Shape(400, 300)}},
    {"MatMul", "0=1", {Shape(1024, 256), Shape(1024, 256)}},
    // Fewer matrices than threads: each by some of them, or by one.
    {"MatMul", "0=1", {Shape(256, 197, 3), Shape(256, 197, 3)}},
    {"MatMul", "", {Shape(32, 100, 2), Shape(48, 32, 2)}},
    {"MatMul", "", {Shape(300, 1, 5), Shape(400, 300, 5)}},
    {"SDPA", "", {Shape(64, 197, 6), Shape(64, 197, 6), Shape(64, 197, 6)}},
    {"SDPA", "", {Shape(32, 33, 8), Shape(32, 400, 2), Shape(48, 400, 2)}},
    {"SDPA", "", {Shape(64, 1, 8), Shape(64, 300, 8), Shape(64, 300, 8)}},
    {"MultiHeadAttention", "0=192 1=3 2=36864", {Shape(192, 197)}},
    {"LSTM", "0=96 1=49152 2=2", {Shape(64, 20)}},
    {"LSTM", "0=64 1=98304 3=96", {Shape(256, 12)}},
    {"GRU", "0=128 1=49152 2=1", {Shape(128, 20)}},
    {"RNN", "0=256 1=65536 2=2", {Shape(128, 10)}},
    {"OnnxLSTM", "0=128 1=65536 2=2 6=1", {Shape(64, 8, 6)}},
    {"OnnxLSTM", "0=128 1=33792 6=1", {Shape(66, 7, 6)}},
    {"OnnxGRU", "0=128 1=24576 6=1", {Shape(64, 9, 6)}},
    {"OnnxLSTM", "0=272 1=34816 6=1", {Shape(32, 5, 6)}},
    {"Softmax", "1=1", {Shape(50, 40, 60)}},
    {"Softmax", "0=1 1=1", {Shape(50, 40, 60)}},
    {"Softmax", "0=2 1=1", {Shape(50, 40, 60)}},
    {"Softmax", "", {Shape(200001)}},
    {"Reduction", "0=0 5=1", {Shape(101, 60, 48)}},
    {"Reduction", "0=3 1=0 -23303=1,0 5=1", {Shape(101, 60, 48)}},
    {"Reduction", "0=2 1=0 -23303=2,1,2 5=1", {Shape(101, 60, 48)}},
    {"Reduction", "0=8 1=0 -23303=1,2 4=1 5=1", {Shape(101, 60, 48)}},
    {"Reduction", "0=10 5=1", {Shape(300007)}},
    {"LayerNorm", "0=192", {Shape(192, 197)}},
    {"LayerNorm", "0=2400", {Shape(60, 40, 48)}},
    {"RMSNorm", "0=512", {Shape(512, 120)}},
    {"GroupNorm", "0=8 1=64", {Shape(40, 40, 64)}},
    {"InstanceNorm", "0=64", {Shape(40, 41, 64)}},
    // Fewer blocks of channels than threads, which share their rows.
    {"InstanceNorm", "0=32", {Shape(90, 71, 32)}},
    {"GroupNorm", "0=2 1=48", {Shape(60, 61, 48)}},
    {"Padding", "0=2 1=2 2=3 3=1 4=2", {Shape(90, 71, 32)}},
    {"Padding", "0=2 1=1 2=3 3=1 8=16 5=0.5", {Shape(50, 21, 4, 32)}},
    {"Crop", "0=3 1=2 3=80 4=60 5=32", {Shape(90, 71, 32)}},
    {"Slice", "-23300=2,8,-233", {Shape(90, 71, 40)}, 2},
    {"ShuffleChannel", "0=2", {Shape(90, 71, 32)}},
    {"Interp", "0=1 3=90 4=70", {Shape(61, 41, 32)}},
    {"Interp", "0=2 3=90 4=70", {Shape(61, 41, 16)}},
    {"BatchNorm", "0=64", {Shape(40, 41, 64)}},
    {"MVN", "0=1 1=1", {Shape(61, 41, 30)}},
    {"MVN", "0=1", {Shape(61, 41, 32)}},
    {"LRN", "0=0 1=5", {Shape(33, 29, 96)}},
    {"LRN", "0=1 1=3", {Shape(33, 29, 96)}},
    {"Normalize", "0=1 4=1 1=1 3=1", {Shape(61, 41, 30)}},
    {"Normalize", "4=1 1=1 3=1", {Shape(61, 41, 32)}},
    {"StatisticsPooling", "0=1", {Shape(60, 40, 48)}},
    {"Pooling", "0=1 4=1", {Shape(61, 41, 64)}},
    {"Pooling", "0=1 1=3 2=2 3=1", {Shape(61, 41, 66)}},
    {"Pooling", "0=1 7=1 8=5", {Shape(61, 41, 64)}},
    {"Interp", "0=2 3=90 4=70", {Shape(61, 41, 36)}},
    {"Interp", "0=3 3=90 4=70", {Shape(61, 41, 33)}},
    {"GELU", "", {Shape(197, 333)}},
    {"Mish", "", {Shape(61, 41, 36)}},
    {"Swish", "", {Shape(61, 41, 7)}},
    {"TanH", "", {Shape(100003)}},
    {"BinaryOp", "0=6", {Shape(61, 41, 36), Shape(61, 41, 36)}},
    {"Eltwise", "0=1 -23301=2,0.3,0.7", {Shape(61, 41, 36), Shape(61, 41, 36)}},
    {"Permute", "0=1", {Shape(300, 85, 3)}},
    {"Permute", "0=4", {Shape(61, 41, 32)}},
    {"CumulativeSum", "", {Shape(61, 41, 36)}},
    {"GridSample", "0=1 1=1", {Shape(40, 40, 33), Shape(2, 50, 50)}},
};

class Layers : public testing::TestWithParam<LayerCase> {};

TEST_P(Layers, vectors) {
    const Isa best = host_kernel_set().isa;
    for (Isa isa : available_isas()) {
        SCOPED_TRACE(isa_name(isa));
        if (isa == best)
            use_processor();
        else
            ASSERT_EQ(set_cpu_mask(isa_name(isa)), 0);
        const std::vector<int>& counts = host_kernel_set().lanes >= 8 ? kMany : kOne;
        expect_same_bits(make_job(GetParam()), counts);
    }
    ASSERT_EQ(host_kernel_set().isa, best);
    if (GetParam().int8) return;
    Job job = make_job(GetParam());
    job.opt.use_bf16_storage = true;
    expect_same_bits(job, kOne);
}

TEST_P(Layers, tiles) {
    const Emulation emulation;
    if (!host_kernel_set().split6) GTEST_SKIP() << "neither AMX nor AVX-512";
    for (int products : {6, 3, 1}) {
        Job job = make_job(GetParam());
        job.opt.use_fp32_split = products;
        job.opt.use_bf16_storage = products == 1 && !job.int8;
        expect_same_bits(job, kFew);
        if (job.int8) return;
    }
}

// ---------------------------------------------------------------- batches

// A convolution of so many outputs, kernel x kernel with padding, stride.
std::string convolution(int in, int out, int kernel, int stride, bool int8) {
    std::ostringstream params;
    params << "0=" << out << " 1=" << kernel << " 3=" << stride << " 4=" << kernel / 2
           << " 5=1 9=1 6=" << in * out * kernel * kernel << (int8 ? " 8=1" : "");
    return params.str();
}

// A convolution and another one behind it, to which is added what it reads (identity), or what a
// third one made, which nobody else needs.
std::string residual_net(int in, int out, int kernel, int stride, bool int8, bool identity) {
    const std::string first = convolution(in, out, 1, stride, int8);
    const std::string layers = identity
                                   ? "Convolution a 1 1 x a " + first + "\nSplit s 1 2 a a0 b1\n"
                                   : "Split s 1 2 x x0 x1\nConvolution a 1 1 x0 a0 " + first +
                                         "\nConvolution b 1 1 x1 b1 " + first + "\n";
    return std::string("7767517\n") + (identity ? "6 7\n" : "7 8\n") + "Input in 0 1 x\n" + layers +
           "Convolution c 1 1 a0 c " + convolution(out, out, kernel, 1, int8) +
           "\nBinaryOp sum 2 1 c b1 d 0=0\nReLU relu 1 1 d e\n";
}

void expect_items(const Job& job) {
    Net net;
    ASSERT_TRUE(load(job, 1, &net));
    std::vector<char> items;
    for (int i = 0; i < job.inputs[0].n; i++) {
        const std::vector<char> one = answer(net, job, 1, i);
        items.insert(items.end(), one.begin(), one.end());
    }
    ASSERT_FALSE(is_zero(items));
    for (int threads : {1, 2, 3, 4})
        ASSERT_TRUE(answer(net, job, threads) == items) << threads << " threads";
}

void check_batches() {
    const Shape inputs[] = {batch(8, Shape(7, 7, 64)),   batch(3, Shape(14, 14, 48)),
                            batch(5, Shape(9, 5, 32)),   batch(2, Shape(1, 1, 160)),
                            batch(33, Shape(3, 4, 40)),  batch(4, Shape(28, 27, 20)),
                            batch(2, Shape(56, 56, 16)), batch(6, Shape(6, 1, 18))};
    for (const Shape& in : inputs)
        for (int out : {32, 72})
            for (int kernel : {1, 3})
                for (int stride : {1, 2})
                    for (int type = 0; type < 3; type++) {
                        const bool identity = out == 32;
                        Job job = {residual_net(in.c, out, kernel, stride, type == 2, identity),
                                   {in},
                                   Option(),
                                   type == 2};
                        job.opt.use_bf16_storage = type == 1;
                        SCOPED_TRACE(job.text + std::to_string(in.n) + " items of " +
                                     std::to_string(in.w) + "x" + std::to_string(in.h) +
                                     (type == 1 ? ", bf16" : ""));
                        expect_items(job);
                        if (testing::Test::HasFatalFailure()) return;
                    }
}

TEST(Batches, vectors) {
    if (host_kernel_set().lanes < 8)
        GTEST_SKIP() << "registers of less than eight floats take too long";
    check_batches();
}

// Layers that run all items of a batch together give what each gives by itself.
TEST(Batches, other_layers) {
    const char* const pooling[] = {"0=0 1=3 2=2 3=1", "0=1 1=2 2=2 5=1", "0=1 7=1 8=3", "0=0 4=1",
                                   "0=1 4=1"};
    std::vector<std::string> nets;
    for (const char* params : pooling)
        nets.push_back("2 2\nInput in 0 1 x\nPooling pool 1 1 x y " + std::string(params));
    for (const char* axis : {"-1", "0", "1", "2"})  // two parts change places
        nets.push_back("3 4\nInput in 0 1 x\nSlice cut 1 2 x a b -23300=2,1,-233 1=" +
                       std::string(axis) + "\nConcat join 2 1 b a y 0=" + axis);
    for (const std::string& net : nets) {
        for (int channels : {2, 3, 8, 16, 20}) {
            for (bool bf16 : {false, true}) {
                SCOPED_TRACE(net + " of " + std::to_string(channels));
                Job job = {
                    "7767517\n" + net + '\n', {batch(7, Shape(13, 11, channels))}, Option(), false};
                job.opt.use_bf16_storage = bf16;
                expect_items(job);
            }
        }
    }
}

TEST(Batches, tiles) {
    const Emulation emulation;
    if (!host_kernel_set().split6) GTEST_SKIP() << "neither AMX nor AVX-512";
    check_batches();
}

std::string name_of(const testing::TestParamInfo<LayerCase>& info) {
    return info.param.type + std::string("_") + std::to_string(info.index);
}
INSTANTIATE_TEST_SUITE_P(Threads, Layers, testing::ValuesIn(kLayers), name_of);

}  // namespace
