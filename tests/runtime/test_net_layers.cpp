// Layers of applications, and those that fail.
#include <memory>
#include <string>
#include <vector>

#include "net_test.h"
#include "quoll/datareader.h"

namespace {

using namespace net_test;

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

// A net that is loaded a second time would not have what the application has changed.
TEST_F(NetTest, ChangedLayersAreNotLoadedAgain) {
    const char* const kParam =
        "7767517\n5 5\nInput i 0 1 x\nAddConstant a 1 1 x y\nBatchNorm b 1 1 y z 0=1\n"
        "Scale s 1 1 z u 0=1\nAbsVal v 1 1 u w\n";
    // The BatchNorm's slope, mean, variance and bias, then the Scale's factor.
    const float weights[] = {1, 0, 1, 0, 2};
    for (bool keeps : {false, true}) {
        Net net;
        register_layers(&net);
        ASSERT_EQ(net.load_param_mem(kParam), 0);
        if (keeps) {
            ASSERT_EQ(net.keep_blob("z"), 0);
        }
        const unsigned char* p = (const unsigned char*)weights;
        ASSERT_EQ(net.load_model(quoll::DataReaderFromMemory(p, sizeof(weights))), 0);
        static_cast<AddConstant*>(net.mutable_layers()[1])->addend = 3;
        Extractor ex = net.create_extractor();
        ASSERT_EQ(ex.input("x", vector_of({1})), 0);
        Mat z, w;
        EXPECT_EQ(ex.extract("z", z) == 0, keeps);
        if (keeps) {
            EXPECT_EQ(z[0], 4.f);
        }
        ASSERT_EQ(ex.extract("w", w), 0);
        EXPECT_EQ(w[0], 8.f);
    }
}

// After load_model the library's layers are only looked at.
TEST_F(NetTest, LayersMayBeLookedAtOnceTheyAreLoaded) {
    const float weights[] = {1, 0, 1, 0, 2};
    for (bool changes : {false, true}) {
        Net net;
        ASSERT_EQ(net.load_param_mem("7767517\n4 4\nInput i 0 1 x\nBatchNorm b 1 1 x y 0=1\n"
                                     "Scale s 1 1 y z 0=1\nAbsVal v 1 1 z w\n"),
                  0);
        if (changes) net.mutable_layers()[3]->name = "other";
        const unsigned char* p = (const unsigned char*)weights;
        ASSERT_EQ(net.load_model(quoll::DataReaderFromMemory(p, sizeof(weights))), 0);
        for (const quoll::Layer* layer : net.mutable_layers()) EXPECT_FALSE(layer->type.empty());
        Extractor ex = net.create_extractor();
        ASSERT_EQ(ex.input("x", vector_of({-3})), 0);
        Mat y;
        ASSERT_EQ(ex.extract("y", y) == 0, !changes);
        if (!changes) {
            EXPECT_EQ(y[0], -3.f);
        }
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

// Says that its output has an axis more than it makes.
class Flatter : public quoll::Layer {
public:
    Flatter() { one_blob_only = true; }
    int forward(const Mat& in, Mat& out, const quoll::Option&) const override {
        out = in.clone();
        return out.empty() ? -100 : 0;
    }
    int infer_shapes(const std::vector<quoll::Shape>& in,
                     std::vector<quoll::Shape>& out) const override {
        out.assign(1, quoll::Shape(in[0].w, in[0].h, 1, in[0].c));
        return 0;
    }
};
quoll::Layer* make_flatter(void*) { return new Flatter; }

// A batch of blobs that are not as a shape rule said is joined by what they are.
TEST_F(NetTest, BatchesOfOtherAxesThanExpected) {
    Net net;
    net.register_custom_layer("Flatter", make_flatter);
    ASSERT_EQ(net.load_param_mem("7767517\n5 6\nInput in 0 1 in\nSplit s 1 2 in i1 i2\n"
                                 "Flatter l1 1 1 i1 a\nFlatter l2 1 1 i2 b\n"
                                 "Concat join 2 1 a b out 0=-3\n"),
              0);
    ASSERT_EQ(net.load_model((const unsigned char*)""), 0);
    quoll::Shape shape(2, 2, 3);
    shape.n = 2;
    Mat in(shape), out;
    for (int b = 0; b < 2; b++)
        for (int q = 0; q < 3; q++) in.batch(b).channel(q).fill(10.f * b + q);
    quoll::Extractor ex = net.create_extractor();
    ASSERT_EQ(ex.input("in", in), 0);
    ASSERT_EQ(ex.extract("out", out), 0);
    ASSERT_EQ(out.c, 6);
    ASSERT_EQ(out.n, 2);
    for (int b = 0; b < 2; b++)
        for (int q = 0; q < 6; q++) EXPECT_EQ(out.batch(b).channel(q)[3], 10.f * b + q % 3);
}

}  // namespace
