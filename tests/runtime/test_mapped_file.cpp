// Weights that are loaded from a path: mapped while they are loaded, independent of the file then.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log_test.h"
#include "quoll/datareader.h"
#include "quoll/net.h"

namespace {

using log_test::collect;
using log_test::g_log;
using quoll::Mat;
using quoll::Net;

// Weights beyond the size from which they are mapped, and below; a constant that is extracted.
const char kParam[] =
    "7767517\n5 5\n"
    "Input in 0 1 in 0=9 1=7 2=64\n"
    "Convolution big 1 1 in a 0=64 1=3 4=1 5=1 6=36864\n"
    "Convolution small 1 1 a b 0=8 1=1 5=1 6=512\n"
    "MemoryData constant 0 1 c 0=20000\n"
    "BinaryOp scaled 1 1 c d 0=2 1=1 2=1.0\n";

void add_weight(std::vector<float>* values, size_t count, bool tagged) {
    if (tagged) values->push_back(0.f);
    for (size_t i = 0; i < count; i++) values->push_back((float)((i * 37 + 11) % 101) / 500 - .1f);
}

std::vector<float> weights() {
    std::vector<float> values;
    add_weight(&values, 36864, true);
    add_weight(&values, 64, false);
    add_weight(&values, 512, true);
    add_weight(&values, 8, false);
    add_weight(&values, 20000, false);
    return values;
}

class MappedFile : public testing::Test {
protected:
    void SetUp() override {
        path_ = testing::TempDir() + "quoll_mapped_" + std::to_string(getpid());
        write(weights());
        in_.create(9, 7, 64);
        for (int q = 0; q < 64; q++)
            for (int i = 0; i < 63; i++) ((float*)in_.channel(q))[i] = (float)((q + i) % 7) - 3;
    }
    void TearDown() override { remove(path_.c_str()); }

    // Over what is there, in the same file.
    void write(const std::vector<float>& values) {
        FILE* fp = fopen(path_.c_str(), "wb");
        ASSERT_NE(fp, nullptr);
        ASSERT_EQ(fwrite(values.data(), 4, values.size(), fp), values.size());
        fclose(fp);
    }
    std::vector<float> answer(const Net& net, const char* blob) {
        quoll::Extractor ex = net.create_extractor();
        Mat out;
        EXPECT_EQ(ex.input("in", in_), 0);
        EXPECT_EQ(ex.extract(blob, out), 0);
        std::vector<float> values;
        for (int q = 0; q < out.c; q++) {
            const float* p = out.channel(q);
            values.insert(values.end(), p, p + out.w * out.h);
        }
        return values;
    }
    int load(Net* net, bool reference) {
        net->opt.use_reference_layers = reference;
        const int status = net->load_param_mem(kParam);
        return status ? status : net->load_model(path_.c_str());
    }

    std::string path_;
    Mat in_;
};

TEST_F(MappedFile, AnswersAreThoseOfACopy) {
    const std::vector<float> values = weights();
    for (bool reference : {false, true}) {
        Net mapped, copied;
        ASSERT_EQ(load(&mapped, reference), 0);
        copied.opt.use_reference_layers = reference;
        ASSERT_EQ(copied.load_param_mem(kParam), 0);
        ASSERT_GT(copied.load_model((const unsigned char*)values.data()), 0);
        for (const char* blob : {"b", "d"}) EXPECT_EQ(answer(mapped, blob), answer(copied, blob));
    }
}

TEST_F(MappedFile, TheFileMayChangeAndGoAfterwards) {
    for (bool reference : {false, true}) {  // reference layers keep their weights as they are
        SetUp();
        Net net;
        ASSERT_EQ(load(&net, reference), 0);
        const std::vector<float> b = answer(net, "b"), d = answer(net, "d");
        write(std::vector<float>(57000, 7.f));
        EXPECT_EQ(answer(net, "b"), b);
        EXPECT_EQ(answer(net, "d"), d);
        ASSERT_EQ(truncate(path_.c_str(), 0), 0);
        EXPECT_EQ(answer(net, "b"), b);
        EXPECT_EQ(answer(net, "d"), d);
    }
}

TEST_F(MappedFile, MatsOutliveTheNet) {
    Mat constant;
    {
        Net net;
        ASSERT_EQ(load(&net, false), 0);
        quoll::Extractor ex = net.create_extractor();
        ASSERT_EQ(ex.extract("c", constant), 0);
    }
    std::vector<float> expected;
    add_weight(&expected, 20000, false);
    ASSERT_EQ(constant.w, 20000);
    EXPECT_EQ(memcmp(constant.data, expected.data(), 80000), 0);
    constant.fill(1.f);  // memory of its own
    EXPECT_EQ(constant[19999], 1.f);
}

TEST_F(MappedFile, FilesThatEndEarlyAreRefused) {
    for (size_t left : {0, 1, 2, 36864, 36865, 37000, 40000}) {
        std::vector<float> values = weights();
        values.resize(left);
        write(values);
        Net net;
        ASSERT_EQ(net.load_param_mem(kParam), 0);
        EXPECT_LT(net.load_model(path_.c_str()), 0) << left;
        EXPECT_TRUE(net.layers().empty());
    }
}

// Wherever the pages of the file end.
TEST_F(MappedFile, AnyLengthOfFile) {
    std::vector<float> b;
    for (int constant : {20000, 20917, 20918, 20919}) {
        std::vector<float> values = weights();
        values.resize(37450);
        add_weight(&values, (size_t)constant, false);
        write(values);
        std::string param = kParam;
        param.replace(param.find("20000"), 5, std::to_string(constant));
        Net net;
        ASSERT_EQ(net.load_param_mem(param.c_str()), 0);
        ASSERT_EQ(net.load_model(path_.c_str()), 0) << constant;
        if (b.empty()) b = answer(net, "b");
        EXPECT_EQ(answer(net, "b"), b);
    }
}

TEST_F(MappedFile, BytesThatAreLeftOverAreAnError) {
    const std::vector<float> once = weights();
    std::vector<float> twice = once;
    twice.insert(twice.end(), once.begin(), once.end());
    for (const std::vector<float>& values : {twice, std::vector<float>(once.size() + 1, 1e-3f)}) {
        write(values);
        for (bool writer : {false, true}) {  // mapped, and read
            FILE* other = writer ? fopen(path_.c_str(), "r+b") : nullptr;
            Net net;
            g_log.clear();
            quoll::set_log_sink(collect, nullptr);
            EXPECT_LT(load(&net, false), 0);
            quoll::set_log_sink(nullptr, nullptr);
            EXPECT_TRUE(net.layers().empty());
            const std::string counts = "the layers read " + std::to_string(once.size() * 4) +
                                       " bytes of weights, and " +
                                       std::to_string((values.size() - once.size()) * 4) + " of " +
                                       std::to_string(values.size() * 4) + " are left over";
            if (values[0] == 0.f) {
                EXPECT_NE(g_log.find(counts), std::string::npos) << g_log;
            }
            if (other) fclose(other);
        }
    }
    write(twice);  // a FILE may hold several models
    FILE* fp = fopen(path_.c_str(), "rb");
    for (int i = 0; i < 2; i++) {
        Net net;
        ASSERT_EQ(net.load_param_mem(kParam), 0);
        EXPECT_EQ(net.load_model(fp), 0);
    }
    fclose(fp);
}

// While it is loaded, somebody cuts the file off.
class Cutter : public quoll::Layer {
public:
    Cutter() { one_blob_only = support_inplace = true; }
    int load_model(const quoll::ModelBin&) override {
        std::string* const path = (std::string*)userdata;
        thread = std::thread([path] { ASSERT_EQ(truncate(path->c_str(), 0), 0); });
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        return 0;
    }
    int forward_inplace(Mat&, const quoll::Option&) const override { return 0; }
    static std::thread thread;
};
std::thread Cutter::thread;
DEFINE_LAYER_CREATOR(Cutter)

TEST_F(MappedFile, AFileThatIsCutOffMeanwhile) {
    Net whole;
    ASSERT_EQ(load(&whole, false), 0);
    const std::vector<float> b = answer(whole, "b");
    std::string param = kParam;
    param.replace(param.find("5 5"), 3, "6 6");
    for (bool writer : {false, true})
        for (bool reference : {false, true}) {
            write(weights());
            FILE* other = writer ? fopen(path_.c_str(), "r+b") : nullptr;
            Net net;
            net.opt.use_reference_layers = reference;
            net.register_custom_layer("Cutter", Cutter_layer_creator, nullptr, &path_);
            ASSERT_EQ(net.load_param_mem((param + "Cutter cut 1 1 d e\n").c_str()), 0);
            ASSERT_EQ(net.load_model(path_.c_str()), 0);
            Cutter::thread.join();
            const std::vector<float> got = answer(net, "b");
            ASSERT_EQ(got.size(), b.size());
            for (size_t i = 0; i < b.size(); i++) ASSERT_NEAR(got[i], b[i], 1e-3f);
            struct stat st;
            ASSERT_EQ(stat(path_.c_str(), &st), 0);
            EXPECT_EQ(st.st_size, 0);
            if (other) fclose(other);
        }
}

// Half floats, which are widened.
TEST_F(MappedFile, StoredHalfFloats) {
    std::vector<float> values;
    const unsigned tag = 0x01306B47;
    values.resize(1 + 36864 / 2);
    memcpy(values.data(), &tag, 4);
    for (int i = 0; i < 36864; i++)
        ((unsigned short*)(values.data() + 1))[i] = quoll::float32_to_float16((i % 9) * .125f);
    const std::vector<float> plain = weights();
    values.insert(values.end(), plain.begin() + 1 + 36864, plain.end());
    write(values);
    Net mapped, copied;
    ASSERT_EQ(load(&mapped, false), 0);
    ASSERT_EQ(copied.load_param_mem(kParam), 0);
    ASSERT_GT(copied.load_model((const unsigned char*)values.data()), 0);
    EXPECT_EQ(answer(mapped, "b"), answer(copied, "b"));
}

}  // namespace
