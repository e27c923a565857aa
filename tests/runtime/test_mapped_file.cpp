// Weights that are loaded from a path: mapped while they are loaded, independent of the file then.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "datareader.h"
#include "net.h"

namespace {

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

// What a file has behind the weights is nobody's concern, nor where its pages end.
TEST_F(MappedFile, AnyLengthOfFile) {
    std::vector<float> values = weights();
    std::vector<float> b;
    for (size_t length : {(size_t)57450, (size_t)58367, (size_t)58368, (size_t)58369}) {
        ASSERT_GE(length, values.size());
        values.resize(length);
        write(values);
        Net net;
        ASSERT_EQ(load(&net, false), 0);
        if (b.empty()) b = answer(net, "b");
        EXPECT_EQ(answer(net, "b"), b);
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
