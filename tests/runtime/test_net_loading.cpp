// Loading nets every way, and files that are wrong.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "net_test.h"
#include "quoll/datareader.h"

namespace {

using namespace net_test;

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

// As ncnn's converter for Caffe wrote the size of im_info.
TEST_F(NetTest, SizesBelowZeroAreNotSaid) {
    Net net;
    ASSERT_EQ(load_text(&net, "7767517\n1 1\nInput i 0 1 x 0=3 1=-233 2=-233\n"), 0);
    std::vector<quoll::Shape> out;
    ASSERT_EQ(net.layers()[0]->infer_shapes({}, out), 0);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].dims, 1);
    EXPECT_EQ(out[0].w, 3);
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
        {"7767517\n1 1\npnnx.Expression i 0 1 x\n", "pnnx could not convert"},
        {"7767517\n1 1\naten::numel i 0 1 x\n", "pnnx could not convert"},
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

// Sizes that a file hints are no more than hints: in ncnn's form of four values per output, in that
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

}  // namespace
