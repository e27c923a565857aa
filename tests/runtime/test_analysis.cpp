// Sizes, multiply-accumulates and memory of models, told without running them.
#include <gtest/gtest.h>

#include <string.h>

#include <algorithm>
#include <map>

#include "graph/analysis.h"
#include "graph/optimize.h"
#include "quoll/datareader.h"
#include "quoll/net.h"

namespace quoll {
namespace {

Model model_of(const std::string& text) {
    const int layers = (int)std::count(text.begin(), text.end(), '\n');
    const std::string param = "7767517\n" + std::to_string(layers) + " 99\n" + text;
    Model model;
    const unsigned char* p = (const unsigned char*)param.data();
    EXPECT_EQ(0, model.load_param(DataReaderFromMemory(p, param.size())));
    return model;
}

// Endless small numbers.
class Weights : public DataReader {
public:
    size_t read(void* buf, size_t size) const override {
        memset(buf, 0, size);
        return size;
    }
};

// Counts the bytes that are in use.
class CountingAllocator : public Allocator {
public:
    void* fastMalloc(size_t size) override {
        void* p = fast_malloc(size);
        sizes_[p] = size;
        live_ += size;
        peak = std::max(peak, live_);
        return p;
    }
    void fastFree(void* p) override {
        live_ -= sizes_[p];
        sizes_.erase(p);
        fast_free(p);
    }
    size_t peak = 0;

private:
    std::map<void*, size_t> sizes_;
    size_t live_ = 0;
};

const char* const kNets[] = {
    // a chain, with layers that work in place
    "Input in 0 1 in 0=32 1=32 2=3\nConvolution c 1 1 in a 0=16 1=3 4=1 6=432\nReLU r 1 1 a b\n"
    "Sigmoid s 1 1 b c\nConvolution d 1 1 c out 0=4 1=3 4=1 6=576\n",
    // a residual block: the blob that is added stays alive
    "Input in 0 1 in 0=32 1=32 2=3\nConvolution c 1 1 in a 0=16 1=3 4=1 6=432\nSplit s 1 2 a b c\n"
    "Convolution d 1 1 b d 0=32 1=3 4=1 6=4608\nConvolution e 1 1 d e 0=16 1=1 6=512\n"
    "BinaryOp f 2 1 e c f\nReLU g 1 1 f out\n",
    // branches of which only some last
    "Input in 0 1 in 0=32 1=32 2=3\nConvolution c 1 1 in a 0=16 1=3 4=1 6=432\nSplit s 1 3 a b c "
    "d\n"
    "Pooling p 1 1 b e 1=2 2=2\nConvolution q 1 1 c f 0=8 1=2 3=2 6=512\nPooling g 1 1 d h 4=1\n"
    "Concat i 2 1 e f out\nFlatten j 1 1 h out2\n",
    // two outputs, one after the other
    "Input in 0 1 in 0=32 1=32 2=3\nSplit s 1 2 in a b\nConvolution c 1 1 a out 0=64 1=1 6=192\n"
    "Convolution d 1 1 b e 0=32 1=1 6=96\nConvolution f 1 1 e out2 0=1 1=1 6=32\n",
};

TEST(Analysis, PeakIsWhatTheExtractorUses) {
    for (const char* text : kNets) {
        const Model model = model_of(text);
        ModelFacts facts;
        ASSERT_EQ(0, analyse_model(model, {}, &facts));
        EXPECT_TRUE(facts.memory.complete);
        Net net;
        CountingAllocator counting;
        net.opt.use_reference_layers = true;
        net.opt.use_graph_fusion = net.opt.use_packing_layout = false;
        net.opt.num_threads = 1;
        net.opt.blob_allocator = &counting;
        const std::string param =
            "7767517\n" + std::to_string(model.layers.size()) + " 99\n" + text;
        ASSERT_EQ(0, net.load_param_mem(param.c_str()));
        ASSERT_EQ(0, net.load_model(Weights()));
        Mat in(32, 32, 3);
        in.fill(0.5f);
        {
            Extractor ex = net.create_extractor();
            ASSERT_EQ(0, ex.input("in", in));
            for (const std::string& name : output_blobs(model)) {
                const int index = net.find_blob_index_by_name(name.c_str());
                Mat out;
                ASSERT_EQ(0, ex.extract(index, out));
            }
        }
        const double planned = (double)facts.memory.peak - (double)blob_bytes(Shape(32, 32, 3));
        EXPECT_NEAR((double)counting.peak, planned, 0.01 * planned + 512) << text;
        EXPECT_GE(facts.memory.sum, facts.memory.peak);
    }
}

int64_t macs_of(const std::string& layers, const BlobSizes& sizes) {
    ModelFacts facts;
    EXPECT_EQ(0, analyse_model(model_of(layers), sizes, &facts));
    EXPECT_TRUE(facts.macs_complete) << layers;
    return facts.macs;
}

TEST(Analysis, MacsOfSeveralInputs) {
    BlobSizes sizes;
    sizes["a"] = Shape(6, 5, 2), sizes["b"] = Shape(7, 6, 2);
    const std::string inputs = "Input a 0 1 a\nInput b 0 1 b\n";
    EXPECT_EQ(2 * 5 * 6 * 7, macs_of(inputs + "MatMul m 2 1 a b out\n", sizes));
    sizes["b"] = Shape(6, 7, 2);
    EXPECT_EQ(2 * 5 * 6 * 7, macs_of(inputs + "MatMul m 2 1 a b out 0=1\n", sizes));
    sizes["a"] = Shape(6, 5), sizes["b"] = Shape(7, 6);
    EXPECT_EQ(5 * 6 * 7, macs_of(inputs + "Gemm m 2 1 a b out\n", sizes));
    sizes["a"] = Shape(5, 6);
    EXPECT_EQ(5 * 6 * 7, macs_of(inputs + "Gemm m 2 1 a b out 2=1\n", sizes));
    // 3 heads of 5 queries and 9 keys of 8 values; values of 4.
    sizes["a"] = Shape(8, 5, 3), sizes["b"] = Shape(8, 9, 3), sizes["c"] = Shape(4, 9, 3);
    EXPECT_EQ(3 * 5 * 9 * (8 + 4),
              macs_of(inputs + "Input c 0 1 c\nSDPA s 3 1 a b c out\n", sizes));
    // Key and value from 9 other rows of 8.
    sizes["a"] = Shape(8, 5), sizes["b"] = Shape(8, 9);
    EXPECT_EQ(2 * 5 * 64 + 2 * 9 * 64 + 2 * 5 * 9 * 8,
              macs_of(inputs + "MultiHeadAttention m 2 1 a b out 0=8 1=2 2=64\n", sizes));
}

TEST(Analysis, OrderAndSizesWhateverTheOrderOfTheFile) {
    const Model model =
        model_of("ReLU r 1 1 a out\nPooling p 1 1 in a 1=2 2=2\nInput in 0 1 in 0=8 1=6 2=3\n");
    EXPECT_EQ((std::vector<int>{2, 1, 0}), execution_order(model));
    BlobSizes sizes;
    ASSERT_EQ(0, infer_blob_sizes(model, {}, &sizes));
    EXPECT_EQ(Shape(4, 3, 3), sizes["out"]);
    EXPECT_EQ(std::vector<std::string>{"out"}, output_blobs(model));
}

TEST(Optimize, SplitsComeBackWhereTheyAreNeeded) {
    Model model = model_of(
        "Input in 0 1 in\nReLU r 1 1 in a\nSplit s 1 2 a b c\nSplit t 1 2 b d e\nNoop n 1 1 d f\n"
        "Sigmoid g 1 1 f out\nTanH h 1 1 e out2\nAbsVal i 1 1 c out3\n");
    OptimizeReport report;
    ASSERT_EQ(0, run_graph_passes(&model, {}, &report));
    ASSERT_EQ(6u, model.layers.size());
    EXPECT_EQ("Split", model.layers[2].type);
    EXPECT_EQ(3u, model.layers[2].outputs.size());
    EXPECT_EQ((std::vector<std::string>{"Noop left out (1)", "Split left out (1)"}),
              report.lines());
    EXPECT_EQ(0, model.check());
    // A blob that had several readers before keeps them.
    model = model_of("Input in 0 1 in\nReLU r 1 1 in a\nSigmoid g 1 1 a out\nTanH h 1 1 a out2\n");
    ASSERT_EQ(0, run_graph_passes(&model, {}, &report));
    EXPECT_EQ(4u, model.layers.size());
}

}  // namespace
}  // namespace quoll
