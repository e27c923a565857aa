// Layouts that plans forecast are those that blobs come in.
#include <dirent.h>
#include <stdlib.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "layer/control/input.h"
#include "plan/layout_plan.h"
#include "quoll/datareader.h"
#include "quoll/net.h"
#include "random_weights.h"
#include "runtime/cpu_features.h"

namespace quoll {
namespace {

class Watch : public LayerObserver {
public:
    void before(const Layer&) override {}
    void after(const Layer&, const std::vector<Mat>&) override {}
    void laid_out(const Layer& layer, const StepLayout* layout) override {
        (layout ? planned : unplanned).insert(layer.name);
    }
    // values_known: none of f16 blobs becomes f32 because of its values.
    explicit Watch(bool values_known = true) : values_known_(values_known) {}
    void unexpected(const Layer& layer, const char* what) override {
        const std::string text = what;
        const bool overflown = text.find("expected f16") != std::string::npos &&
                               text.find("got f32") != std::string::npos;
        if (overflown && !values_known_) return;
        surprises.push_back(layer.type + " " + layer.name + " " + what);
    }
    std::set<std::string> planned, unplanned;
    std::vector<std::string> surprises;

private:
    const bool values_known_;
};

struct Mode {
    bool fp16, bf16, packing;
};
const Mode kModes[] = {
    {false, false, true}, {true, false, true}, {false, true, true}, {false, false, false}};

// Runs a param on inputs of the sizes that its Input layers tell.
void run(const std::string& path, const Mode& mode, bool bundled) {
    Net net;
    net.opt.num_threads = 1;
    net.opt.use_fp16_storage = mode.fp16, net.opt.use_bf16_storage = mode.bf16;
    net.opt.use_packing_layout = mode.packing;
    if (net.load_param(path.c_str()) != 0 || net.load_model(RandomWeights()) != 0) {
        EXPECT_FALSE(bundled) << path;
        return;
    }
    Watch watch(bundled);
    Extractor ex = net.create_extractor();
    ex.set_layer_observer(&watch);
    for (int blob : net.input_indexes()) {
        const Input* input = as<Input>(net.layers()[net.blobs()[blob].producer]);
        // Its positions are constants.
        const int size = path.find("vision_transformer") != std::string::npos ? 384 : 224;
        Mat in = input && input->c ? Mat(input->w, input->h, input->c) : Mat(size, size, 3);
        in.fill(0.01f);
        ASSERT_EQ(0, ex.input(blob, in));
    }
    for (int blob : net.output_indexes()) {
        Mat out;
        ASSERT_EQ(0, ex.extract(blob, out)) << path;
    }
    EXPECT_TRUE(watch.unplanned.empty())
        << path << ": " << watch.unplanned.size() << ", as " << *watch.unplanned.begin();
    EXPECT_TRUE(watch.surprises.empty()) << path
                                         << (mode.fp16   ? " fp16"
                                             : mode.bf16 ? " bf16"
                                                         : "")
                                         << (mode.packing ? "" : " planar") << ": "
                                         << watch.surprises.size() << ", as " << watch.surprises[0];
    EXPECT_FALSE(watch.planned.empty());
}

std::vector<std::string> params_in(const std::string& folder) {
    std::vector<std::string> found;
    DIR* dir = opendir(folder.c_str());
    while (const dirent* entry = dir ? readdir(dir) : nullptr) {
        const std::string name = entry->d_name;
        if (name.size() > 6 && name.substr(name.size() - 6) == ".param")
            found.push_back(folder + "/" + name);
    }
    if (dir) closedir(dir);
    return found;
}

TEST(Layouts, bundled_graphs_run_as_planned) {
    const std::vector<std::string> paths = params_in("benchmark/models");
    ASSERT_GE(paths.size(), 12u) << "run from the source tree";
    for (const std::string& path : paths)
        for (const Mode& mode : kModes) run(path, mode, true);
}

TEST(Layouts, graphs_of_ncnn_run_as_planned) {
    const char* data = getenv("QUOLL_DATA");
    if (!data) GTEST_SKIP() << "QUOLL_DATA is not set";
    const std::vector<std::string> paths = params_in(std::string(data) + "/models/ncnn-bench");
    ASSERT_GE(paths.size(), 30u);
    for (const std::string& path : paths)
        for (const Mode& mode : {kModes[0], kModes[2]}) run(path, mode, false);
}

// What f16 cannot hold stays f32: no plan foresees it, the answer is right all the same.
TEST(Layouts, blobs_that_overflow_are_noticed) {
    const char text[] =
        "7767517\n4 4\nInput in 0 1 in\nPower scale 1 1 in a 1=1000000.0\n"
        "ReLU r 1 1 a b\nPower back 1 1 b out 1=0.000001\n";
    Net net;
    net.opt.use_fp16_storage = true, net.opt.use_graph_fusion = false;
    ASSERT_EQ(0, net.load_param_mem(text));
    ASSERT_EQ(0, net.load_model(RandomWeights()));
    Mat in(8, 8, 16);
    for (const float value : {0.01f, 2.f}) {
        in.fill(value);
        Watch watch;
        Extractor ex = net.create_extractor();
        ex.set_layer_observer(&watch);
        ASSERT_EQ(0, ex.input("in", in));
        Mat out;
        ASSERT_EQ(0, ex.extract("out", out));
        for (int q = 0; q < out.c; q++) ASSERT_NEAR(value, out.channel(q)[5], value * 2e-3f);
        EXPECT_EQ(value > 1.f, !watch.surprises.empty()) << value;
    }
}

// 1x1 convolutions whose weights are half floats, which may multiply inputs of such as they are:
// answers are those of products of floats, also where half floats cannot hold an input, where the
// sum is made in the place of what is added, and in the parts of a Concat.
TEST(Layouts, half_floats_with_sums_of_floats_run_as_planned) {
    const char text[] =
        "7767517\n7 9\nInput in 0 1 in\nConvolution c1 1 1 in a 0=16 1=1 6=256 9=1\n"
        "Split s 1 3 a a1 a2 a3\nConvolution c2 1 1 a1 b 0=32 1=1 6=512\n"
        "Convolution c3 2 1 b a2 d 0=16 1=1 6=512 29=1 9=1\nConvolution c4 1 1 a3 e 0=32 1=1 3=1 "
        "6=512\n"
        "Concat j 2 1 d e out\n";
    std::string weights;
    for (const int count : {256, 512, 512, 512}) {
        weights.append(4, '\0');
        for (int i = 0; i < count; i++) {
            const float value = (float)(i * 37 % 101 - 45) / 64;
            weights.append((const char*)&value, sizeof(value));
        }
    }
    Mat in(7, 5, 16);
    for (const float scale : {0.01f, 3000.f}) {
        std::vector<Mat> outs;
        for (const char* mask : {"-asimdfhm", (const char*)nullptr}) {
            set_cpu_mask(mask);
            Net net;
            net.opt.use_fp16_storage = true;
            ASSERT_EQ(0, net.load_param_mem(text));
            const unsigned char* from = (const unsigned char*)weights.data();
            ASSERT_EQ(0, net.load_model(DataReaderFromMemory(from, weights.size())));
            for (int q = 0; q < in.c; q++)
                for (int i = 0; i < 35; i++)
                    ((float*)in.channel(q))[i] = scale * (float)((q * 35 + i) * 29 % 83 - 20);
            Watch watch(scale < 1);
            Extractor ex = net.create_extractor();
            ex.set_layer_observer(&watch);
            ASSERT_EQ(0, ex.input("in", in));
            Mat out;
            ASSERT_EQ(0, ex.extract("out", out));
            EXPECT_TRUE(scale > 1 || watch.surprises.empty()) << watch.surprises[0];
            outs.push_back(out.clone());
        }
        set_cpu_mask(nullptr);
        ASSERT_EQ(outs[0].c, outs[1].c);
        for (int q = 0; q < outs[0].c; q++)
            for (int i = 0; i < 35; i++)
                ASSERT_EQ(((const float*)outs[0].channel(q))[i],
                          ((const float*)outs[1].channel(q))[i])
                    << "scale " << scale << " channel " << q << " at " << i;
    }
}

// What a net is given is f32: results of its first layer may be f16 all the same.
TEST(Layouts, first_layers_run_as_planned) {
    for (const int channels : {3, 6, 8, 16}) {
        const std::string c = std::to_string(channels);
        const std::string text =
            "7767517\n3 3\nInput in 0 1 in\nConvolutionDepthWise c 1 1 in a 0=" + c +
            " 1=3 4=1 5=1 6=" + std::to_string(9 * channels) + " 7=" + c +
            "\nReLU r 1 1 a out 0=0.1\n";
        Net net;
        net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = true;
        net.opt.use_graph_fusion = false;
        ASSERT_EQ(0, net.load_param_mem(text.c_str()));
        ASSERT_EQ(0, net.load_model(RandomWeights()));
        Watch watch;
        Extractor ex = net.create_extractor();
        ex.set_layer_observer(&watch);
        Mat in(24, 24, channels);
        in.fill(0.5f);
        ASSERT_EQ(0, ex.input("in", in));
        Mat out;
        ASSERT_EQ(0, ex.extract("out", out));
        EXPECT_TRUE(watch.surprises.empty()) << watch.surprises[0];
    }
}

// A packed blob of which all readers take planar ones is unpacked once, where it is made.
TEST(Layouts, blobs_for_planar_readers_are_unpacked_once) {
    class Outputs : public LayerObserver {
    public:
        void laid_out(const Layer& layer, const StepLayout* layout) override {
            if (layout) layouts[layer.name] = *layout;
        }
        void unexpected(const Layer&, const char* what) override { ADD_FAILURE() << what; }
        void before(const Layer&) override {}
        void after(const Layer&, const std::vector<Mat>&) override {}
        std::map<std::string, StepLayout> layouts;
    };
    const std::string head =
        "7767517\n7 8\nInput in 0 1 in\nConvolution c 1 1 in a 0=16 1=3 4=1 6=432\n"
        "Split s 1 2 a a0 a1\nMVN x 1 1 a0 b\n";
    const std::string tail = "\nBinaryOp sum 2 1 b d e\nReLU r 1 1 e out\n";
    for (const bool both : {true, false}) {
        const std::string text = head + (both ? "MVN y 1 1 a1 d" : "ReLU y 1 1 a1 d") + tail;
        Mat answers[2];
        int packs[2] = {};
        for (const bool packing : {true, false}) {
            Net net;
            net.opt.use_packing_layout = packing;
            ASSERT_EQ(0, net.load_param_mem(text.c_str()));
            ASSERT_EQ(0, net.load_model(RandomWeights()));
            Outputs outputs;
            Extractor ex = net.create_extractor();
            ex.set_layer_observer(&outputs);
            Mat in(9, 9, 3);
            for (size_t i = 0; i < in.total(); i++) in[i] = (float)((int)i * 31 % 17) - 8.f;
            ASSERT_EQ(0, ex.input("in", in));
            ASSERT_EQ(0, ex.extract("out", answers[packing]));
            const StepLayout& c = outputs.layouts["c"];
            ASSERT_TRUE(c.known && c.makes.size() == 1);
            packs[packing] = c.makes[0].elempack;
            EXPECT_EQ(both ? 1 : c.makes[0].elempack, c.outputs[0].elempack);
            for (const char* reader : {"x", "y"}) {
                const StepLayout& r = outputs.layouts[reader];
                EXPECT_TRUE(!both || same_layout(r.arrives[0], r.inputs[0])) << reader;
            }
        }
        EXPECT_EQ(1, packs[0]);
        for (int q = 0; q < 16; q++)
            for (int i = 0; i < answers[0].w * answers[0].h; i++)
                ASSERT_NEAR(answers[0].channel(q)[i], answers[1].channel(q)[i], 1e-4f);
    }
}

}  // namespace
}  // namespace quoll
