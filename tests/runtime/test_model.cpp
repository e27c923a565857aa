// graph/model.h: what it writes, byte by byte; what it reads; what it refuses.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "graph/model.h"
#include "layer/nn/innerproduct.h"
#include "log_test.h"
#include "quoll/datareader.h"
#include "quoll/datawriter.h"
#include "quoll/net.h"
#include "runtime/weights_id.h"

namespace {

using quoll::DType;
using quoll::Mat;
using quoll::Model;
using quoll::ModelLayer;
using quoll::Shape;

using log_test::g_log;
using ModelTest = log_test::LogTest;

Mat vector_of(const std::vector<float>& values) {
    Mat m((int)values.size());
    std::copy(values.begin(), values.end(), (float*)m.data);
    return m;
}

enum Part { kText, kBinary, kWeights };

std::string saved(const Model& model, Part part) {
    std::vector<unsigned char> bytes;
    const quoll::DataWriterToMemory writer(&bytes);
    const int status = part == kText     ? model.save_param(writer)
                       : part == kBinary ? model.save_param_bin(writer)
                                         : model.save_model(writer);
    EXPECT_EQ(status, 0) << g_log;
    return std::string(bytes.begin(), bytes.end());
}

int load(Model* model, Part part, const std::string& bytes) {
    const unsigned char* p = (const unsigned char*)bytes.data();
    const quoll::DataReaderFromMemory reader(p, bytes.size());
    return part == kText     ? model->load_param(reader)
           : part == kBinary ? model->load_param_bin(reader)
                             : model->load_model(reader);
}

std::string words(const std::vector<int>& values) {
    return std::string((const char*)values.data(), values.size() * 4);
}
int bits(float v) {
    int i;
    memcpy(&i, &v, 4);
    return i;
}

// data -> fc (2 x 2) -> clip
Model small_model() {
    Model model;
    model.add("Input", "data", {}, {"data"});
    ModelLayer& fc = model.add("InnerProduct", "fc", {"data"}, {"fc"});
    EXPECT_EQ(fc.set("num_output", 2), 0);
    EXPECT_EQ(fc.set("bias_term", 1), 0);
    EXPECT_EQ(fc.set("weight_data_size", 4), 0);
    fc.set_weight("bias_data", vector_of({0.5f, -0.5f}));  // the schema's order is the file's
    Mat weight(2, 2);
    for (int i = 0; i < 4; i++) weight[i] = (float)i;
    fc.set_weight("weight_data", weight);
    ModelLayer& clip = model.add("Clip", "clip", {"fc"}, {"out"});
    EXPECT_EQ(clip.set("min", -1), 0) << "an int for a float";
    EXPECT_EQ(clip.set("max", 0.1f), 0);
    return model;
}

TEST_F(ModelTest, WritesTheFormatByteByByte) {
    const Model model = small_model();
    EXPECT_EQ(saved(model, kText),
              "7767517\n3 3\n"
              "Input data 0 1 data\n"
              "InnerProduct fc 1 1 data fc 0=2 1=1 2=4\n"
              "Clip clip 1 1 fc out 0=-1.0 1=0.1\n");
    EXPECT_EQ(
        saved(model, kBinary),
        words({7767517, 3, 3, 16, 0,    1,  0, -233, 15, 1, 1, 0,          1, 0,          2,
               1,       1, 2, 4,  -233, 54, 1, 1,    1,  2, 0, bits(-1.f), 1, bits(0.1f), -233}));
    EXPECT_EQ(saved(model, kWeights),
              words({0, bits(0), bits(1), bits(2), bits(3), bits(0.5f), bits(-0.5f)}));
}

TEST_F(ModelTest, HasColumnsWhereTheWeightsAreLarge) {
    Model model = small_model();
    ModelLayer& fc = model.layers[1];
    EXPECT_EQ(fc.set("weight_data_size", 2048), 0);
    fc.set_weight("weight_data", Mat(2048));
    EXPECT_NE(saved(model, kText).find("\nClip                     clip                     1 1"),
              std::string::npos);
}

TEST_F(ModelTest, MakesANetThatOutlivesIt) {
    quoll::Net net;
    net.opt.use_graph_fusion = false;  // the Clip behind fc would go into it
    {
        const Model model = small_model();
        ASSERT_EQ(model.make_net(&net), 0) << g_log;
    }
    quoll::Extractor ex = net.create_extractor();
    ASSERT_EQ(ex.input("data", vector_of({0.1f, -0.2f})), 0);
    Mat out;
    ASSERT_EQ(ex.extract("fc", out), 0);
    EXPECT_FLOAT_EQ(out[0], 0.5f - 0.2f);
    EXPECT_FLOAT_EQ(out[1], -0.5f + 0.2f - 0.6f);
}

TEST_F(ModelTest, DefaultsAreLeftOutEvenWhenTheyReferToOtherParams) {
    Model model;
    model.add("Input", "data", {}, {"data"});
    ModelLayer& conv = model.add("Convolution", "conv", {"data"}, {"out"});
    for (const char* side : {"kernel_w", "kernel_h"}) ASSERT_EQ(conv.set(side, 3), 0);
    for (const char* side : {"stride_w", "stride_h"}) ASSERT_EQ(conv.set(side, 1), 0);
    ASSERT_EQ(conv.set("num_output", 1), 0);
    ASSERT_EQ(conv.set("weight_data_size", 9), 0);
    EXPECT_NE(saved(model, kText).find(" data out 0=1 1=3 6=9\n"), std::string::npos);
    ASSERT_EQ(conv.set("kernel_h", 1), 0);
    ASSERT_EQ(conv.set("weight_data_size", 3), 0);
    EXPECT_NE(saved(model, kText).find(" data out 0=1 1=3 6=3 11=1\n"), std::string::npos);
}

// Every float that a text can hold reads back as the same bits.
TEST_F(ModelTest, FloatsAreExact) {
    unsigned state = 12345;
    for (int i = 0; i < 2000; i++) {
        state = state * 1664525 + 1013904223;
        float v;
        memcpy(&v, &state, 4);
        if (i < 4) v = i & 1 ? -0.f : INFINITY;
        if (v != v) continue;
        Model model;
        model.add("Input", "i", {}, {"x"});
        ASSERT_EQ(model.add("Clip", "c", {"x"}, {"y"}).set("max", v), 0);
        Model read;
        ASSERT_EQ(load(&read, kText, saved(model, kText)), 0) << g_log;
        EXPECT_EQ(bits(read.layers[1].params.get(1, 7.f)), bits(v)) << v;
    }
}

const char kCustom[] =
    "7767517\n4 4\n"
    "Input i 0 1 x -23330=4,1,8,1,1\n"
    "Mine a 1 1 x y 0=1 1=0.5 2=\"a b\" -23303=0 "
    "-23304=2,1.0,2.0 -23305=1,7 -23331=1,3\n"
    "Other b 1 1 y z\n"
    "Mine c 1 1 z w\n";

TEST_F(ModelTest, CustomLayersAndUnknownParamsAreKept) {
    Model model;
    ASSERT_EQ(load(&model, kText, kCustom), 0) << g_log;
    EXPECT_EQ(saved(model, kText), kCustom);
    EXPECT_TRUE(model.layers[1].custom());
    EXPECT_EQ(model.custom_types(), (std::vector<std::string>{"Mine", "Other"}));
    const std::string binary = saved(model, kBinary);
    Model again;
    ASSERT_EQ(load(&again, kBinary, binary), 0) << g_log;
    EXPECT_EQ(saved(again, kBinary), binary);
    EXPECT_EQ(again.layers[3].type, "Custom0");
    EXPECT_EQ(again.layers[2].custom_index, 1);
    const std::string text = saved(again, kText);
    EXPECT_NE(text.find("0 1 0 -23330=4,1,8,1,1\n"), std::string::npos) << text;
    EXPECT_NE(text.find("1 1 0 1 0=1 1=0.5 2=\"a b\" -23303=0 -23304=2,1.0,2.0 -23305=1,7 "
                        "-23331=1,3\n"),
              std::string::npos)
        << text;
    EXPECT_EQ(load(&model, kWeights, ""), 0);
    EXPECT_EQ(saved(model, kWeights), "");
    EXPECT_LT(load(&model, kWeights, "some"), 0) << "weights of custom layers cannot be known";
    EXPECT_TRUE(logged("Mine")) << g_log;
}

// Type indexes from 256 on are custom layers in ncnn's files; this engine's own have others there.
TEST_F(ModelTest, CustomBitOfABinaryParam) {
    int own_ones = 0;
    for (const std::string& type : quoll::layer_types()) {
        const int index = quoll::layer_to_index(type.c_str());
        if (index < 256) continue;
        Model model, again;
        quoll::ModelLayer input, layer;
        input.type = "Input", input.name = "i", input.outputs = {"x"};
        layer.type = type, layer.name = "l", layer.inputs = {"x"}, layer.outputs = {"y"};
        model.layers = {input, layer};
        if (model.check() != 0) continue;  // it needs parameters
        own_ones++;
        const std::string binary = saved(model, kBinary);
        ASSERT_EQ(load(&again, kBinary, binary), 0) << type << g_log;
        EXPECT_EQ(again.layers[1].type, type);
        std::string theirs = words({7767517, 2, 2, 16, 0, 1, 0, -233, index, 1, 1, 0, 1, -233});
        ASSERT_EQ(load(&again, kBinary, theirs), 0) << type << g_log;
        EXPECT_EQ(again.layers[1].custom_index, index - 256);
        EXPECT_EQ(again.layers[1].type, "Custom" + std::to_string(index - 256));
        EXPECT_EQ(saved(again, kBinary), theirs);
    }
    EXPECT_GE(own_ones, 5);
}

// The hash of weights does not depend on the pieces in which they come, but on every sample, and on
// the size.
TEST_F(ModelTest, HashOfWeights) {
    std::vector<unsigned char> bytes(200001);
    for (size_t i = 0; i < bytes.size(); i++) bytes[i] = (unsigned char)(i * 7 % 251);
    for (size_t size : {(size_t)1, (size_t)4097, (size_t)65536, (size_t)65537, bytes.size()}) {
        const quoll::WeightsId id = quoll::weights_id_of(bytes.data(), size);
        EXPECT_EQ(id.size, size);
        for (size_t piece : {3, 64, 1000, 70000}) {
            const quoll::WeightsHash hash(size);
            for (size_t at = 0; at < size; at += piece)
                hash.write(&bytes[at], std::min(piece, size - at));
            EXPECT_EQ(hash.hash(), id.hash) << size << " " << piece;
        }
        for (size_t at : {(size_t)0, size - 1}) {
            bytes[at] ^= 1;
            EXPECT_NE(quoll::weights_id_of(bytes.data(), size).hash, id.hash) << size << " " << at;
            bytes[at] ^= 1;
        }
        if (size > 1) {
            EXPECT_NE(quoll::weights_id_of(bytes.data(), size - 1).hash, id.hash);
        }
    }
}

TEST_F(ModelTest, WeightsKeepTheirStorage) {
    const std::string param = "7767517\n2 2\nInput i 0 1 x\nInnerProduct f 1 1 x y 0=1 1=1 2=5\n";
    std::string table = words({0x00000101});
    for (int i = 0; i < 256; i++) table += words({bits((float)i)});
    const std::string bias = words({bits(2.5f)});
    for (const std::string& weight :
         {words({0, 1, 2, 3, 4, 5}), words({0x0002C056, 1, 2, 3, 4, 5}),
          words({0x01306B47, 0x3c003c00, 0x3c003c00, 0x00003c00}),
          words({0x000D4B38, 0x01020304, 0x05}), table + words({0x01020304, 0x05})}) {
        const std::string both = weight + bias;  // outlives the model, which refers to it
        Model model;
        ASSERT_EQ(load(&model, kText, param), 0);
        ASSERT_EQ(load(&model, kWeights, both), 0) << g_log;
        EXPECT_EQ(saved(model, kWeights), both);
        for (size_t size = 0; size < weight.size() + 4; size++) {
            Model cut;
            ASSERT_EQ(load(&cut, kText, param), 0);
            EXPECT_LT(load(&cut, kWeights, both.substr(0, size)), 0);
            EXPECT_TRUE(cut.layers.empty());
        }
    }
}

TEST_F(ModelTest, OperatorsAreReadAndChangedByTheirFields) {
    Model model = small_model();
    ModelLayer& layer = model.layers[1];
    layer.params.set(31, 5);  // not the schema's
    const std::unique_ptr<quoll::Layer> op = layer.make_operator(true);
    ASSERT_TRUE(op);
    auto& fc = static_cast<quoll::InnerProduct&>(*op);
    EXPECT_EQ(fc.num_input(), 2);
    EXPECT_EQ(fc.weight_data[3], 3.f);
    fc.bias_term = 0;
    layer.set_params(fc);
    layer.remove_weight("bias_data");
    EXPECT_NE(saved(model, kText).find(" data fc 0=2 2=4 31=5\n"), std::string::npos);
    EXPECT_EQ(saved(model, kWeights).size(), 20u);
    layer.set_weight("weight_data", vector_of({1, 2, 3}));
    EXPECT_FALSE(layer.make_operator(true));
    layer.params.set(0, -4);
    EXPECT_FALSE(layer.make_operator());
}

TEST_F(ModelTest, FindsProducersAndConsumers) {
    Model model = small_model();
    model.add("Noop", "n", {"fc", "out"}, {"end"});
    EXPECT_EQ(model.producer("fc"), 1);
    EXPECT_EQ(model.producer("none"), -1);
    EXPECT_EQ(model.consumers("fc"), (std::vector<int>{2, 3}));
    EXPECT_EQ(model.blob_names(), (std::vector<std::string>{"data", "fc", "out", "end"}));
}

TEST_F(ModelTest, FilesAndTheirErrors) {
    const std::string dir = testing::TempDir(), param = dir + "quoll_model.param",
                      binary = dir + "quoll_model.param.bin", bin = dir + "quoll_model.bin";
    const Model model = small_model();
    ASSERT_EQ(model.save_param(param.c_str()), 0);
    ASSERT_EQ(model.save_param_bin(binary.c_str()), 0);
    ASSERT_EQ(model.save_model(bin.c_str()), 0);
    for (bool text : {true, false}) {
        Model read;
        ASSERT_EQ(text ? read.load_param(param.c_str()) : read.load_param_bin(binary.c_str()), 0);
        ASSERT_EQ(read.load_model(bin.c_str()), 0);
        EXPECT_EQ(saved(read, kBinary), saved(model, kBinary));
        EXPECT_EQ(saved(read, kWeights), saved(model, kWeights));
    }
    for (const std::string& path : {param, binary, bin}) remove(path.c_str());
    Model read;
    EXPECT_LT(read.load_param("/nonexistent/model.param"), 0);
    EXPECT_TRUE(logged("/nonexistent/model.param"));
    EXPECT_LT(model.save_param("/nonexistent/model.param"), 0);
    EXPECT_LT(model.save_model("/dev/full"), 0) << "nothing may be lost unseen";
    EXPECT_TRUE(logged("/dev/full"));
    EXPECT_LT(model.save_model("/dev/full"), 0) << "a device is not removed";
}

TEST_F(ModelTest, RefusesWhatFilesCannotHold) {
    const struct {
        const char* message;
        void (*spoil)(Model*);
    } cases[] = {
        {"there are no layers", [](Model* m) { m->layers.clear(); }},
        {"'my fc': a name has to be a word", [](Model* m) { m->layers[1].name = "my fc"; }},
        {"'': a name has to be a word", [](Model* m) { m->layers[1].outputs[0] = ""; }},
        {"a: no layer makes this input", [](Model* m) { m->layers[1].inputs[0] = "a"; }},
        {"[Clip clip] output 'fc' is made by [InnerProduct fc] too",
         [](Model* m) { m->layers[2].outputs[0] = "fc"; }},
        {"[Clip clip] expected 1 input and 1 output",
         [](Model* m) { m->layers[2].inputs.push_back("data"); }},
        {"[InnerProduct fc] num_output (0): expected at least 1, got -1",
         [](Model* m) { m->layers[1].params.set(0, -1); }},
        {"[X clip] parameter 3: a string with a quote",
         [](Model* m) { m->layers[2].type = "X", m->layers[2].params.set(3, std::string("\"")); }},
        {"[X clip] parameter 3: expected a 1-D array of f32 or s32, got 2 axes of f32",
         [](Model* m) { m->layers[2].type = "X", m->layers[2].params.set(3, Mat(2, 2)); }},
    };
    for (const auto& c : cases) {
        g_log.clear();
        Model model = small_model();
        c.spoil(&model);
        std::vector<unsigned char> bytes;
        EXPECT_LT(model.save_param(quoll::DataWriterToMemory(&bytes)), 0) << c.message;
        EXPECT_TRUE(logged(c.message)) << g_log << "expected: " << c.message;
    }
    g_log.clear();
    Model model = small_model();
    EXPECT_LT(model.layers[1].set("num_outputs", 3), 0);
    EXPECT_TRUE(logged("[InnerProduct fc] num_outputs: the operator has no parameter")) << g_log;
    EXPECT_LT(model.layers[1].set("num_output", 3.f), 0);
    EXPECT_TRUE(logged("num_output: expected an int, got a float")) << g_log;
    EXPECT_LT(model.layers[1].set("num_output", std::vector<int>{3}), 0);
    EXPECT_LT(model.layers[1].set("num_output", "3"), 0);
}

TEST_F(ModelTest, RefusesWrongWeights) {
    const struct {
        const char* message;
        void (*spoil)(ModelLayer*);
    } cases[] = {
        {"weight_data: needs 4 values, got 0",
         [](ModelLayer* l) { l->remove_weight("weight_data"); }},
        {"weight_data: needs 4 values, got 3",
         [](ModelLayer* l) {
             l->set_weight("weight_data", vector_of({1, 2, 3}));
         }},
        {"it has 2 weights, got 3", [](ModelLayer* l) { l->set_weight("weights", Mat(4)); }},
        {"bias_data: expected f32, got s8",
         [](ModelLayer* l) { l->set_weight("bias_data", Mat(Shape(2, DType::s8))); }},
        {"u8 with a table of 256, got u8 with a table of 0",
         [](ModelLayer* l) { l->set_weight("weight_data", Mat(Shape(4, DType::u8))); }},
        {"got s32", [](ModelLayer* l) { l->set_weight("weight_data", Mat(Shape(4, DType::s32))); }},
    };
    for (const auto& c : cases) {
        g_log.clear();
        Model model = small_model();
        c.spoil(&model.layers[1]);
        std::vector<unsigned char> bytes;
        EXPECT_LT(model.save_model(quoll::DataWriterToMemory(&bytes)), 0) << c.message;
        EXPECT_TRUE(logged(c.message)) << g_log << "expected: " << c.message;
    }
}

// data -> one -> two, which have the same weights in blocks of their own -> three, which has not.
Model twins() {
    Model model;
    model.add("Input", "data", {}, {"data"});
    const char* names[] = {"data", "one", "two", "three"};
    for (int i = 1; i < 4; i++) {
        ModelLayer& fc = model.add("InnerProduct", names[i], {names[i - 1]}, {names[i]});
        EXPECT_EQ(fc.set("num_output", 16), 0);
        EXPECT_EQ(fc.set("weight_data_size", 256), 0);
        Mat weight(256);
        for (int k = 0; k < 256; k++) weight[k] = (float)((k * 37 + (i == 3)) % 64 - 32) / 64.f;
        fc.set_weight("weight_data", weight);
    }
    return model;
}

std::vector<float> answers(const Model& model, bool binary, const std::string& weights) {
    quoll::Net net;
    const std::string param = saved(model, binary ? kBinary : kText);
    const unsigned char* p = (const unsigned char*)param.data();
    const quoll::DataReaderFromMemory text(p, param.size());
    EXPECT_EQ(binary ? net.load_param_bin(text) : net.load_param(text), 0) << g_log;
    const unsigned char* w = (const unsigned char*)weights.data();
    EXPECT_EQ(net.load_model(quoll::DataReaderFromMemory(w, weights.size())), 0) << g_log;
    quoll::Extractor ex = net.create_extractor();
    Mat in(16), out;
    for (int i = 0; i < 16; i++) in[i] = (float)(i - 5);
    const int last = (int)net.blobs().size() - 1;
    EXPECT_EQ(ex.input(0, in), 0);
    EXPECT_EQ(ex.extract(last, out), 0);
    return std::vector<float>((float*)out, (float*)out + 16);
}

TEST_F(ModelTest, WeightsOfTheSameValuesAreWrittenOnceIfAsked) {
    Model model = twins();
    const std::string apart = saved(model, kWeights);
    const std::vector<float> want = answers(model, false, apart);
    EXPECT_EQ(apart.size(), 3u * (4 + 1024));
    model.share_weights();
    const std::string together = saved(model, kWeights);
    EXPECT_EQ(together, apart.substr(0, 1028) + apart.substr(2 * 1028));
    EXPECT_NE(saved(model, kText).find("two 0=16 2=256 -23328=2,1380010067,1\n"), std::string::npos)
        << saved(model, kText);
    for (bool binary : {false, true}) EXPECT_EQ(answers(model, binary, together), want);

    Model again;
    ASSERT_EQ(load(&again, kText, saved(model, kText)), 0) << g_log;
    EXPECT_EQ(saved(again, kText), saved(model, kText)) << "without weights";
    ASSERT_EQ(load(&again, kWeights, together), 0) << g_log;
    EXPECT_EQ(saved(again, kText), saved(model, kText));
    EXPECT_EQ(saved(again, kWeights), together);
    quoll::Net net;
    EXPECT_EQ(again.make_net(&net), 0) << g_log;
}

TEST_F(ModelTest, RefusesSharedWeightsThatAreNotThere) {
    Model model = twins();
    model.share_weights();
    const std::string text = saved(model, kText), weights = saved(model, kWeights);
    for (const char* number : {"2", "9", "-1", "2147483647"}) {
        std::string damaged = text;
        damaged.replace(damaged.find("67,1\n") + 3, 1, number);
        Model loaded;
        ASSERT_EQ(load(&loaded, kText, damaged), 0) << g_log;
        EXPECT_LT(load(&loaded, kWeights, weights), 0) << number;
        quoll::Net net;
        const unsigned char* p = (const unsigned char*)damaged.data();
        ASSERT_EQ(net.load_param(quoll::DataReaderFromMemory(p, damaged.size())), 0);
        const unsigned char* w = (const unsigned char*)weights.data();
        EXPECT_LT(net.load_model(quoll::DataReaderFromMemory(w, weights.size())), 0) << number;
    }
}

}  // namespace
