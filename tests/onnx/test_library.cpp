// convert_onnx and load_onnx as programs call them, on the models that the fuzzer starts from.
#include <gtest/gtest.h>
#include <math.h>
#include <stdio.h>

#include <string>
#include <vector>

#include "failing_heap.h"
#include "layer/control/input.h"
#include "onnx/convert.h"
#include "quoll/log.h"
#include "quoll/net.h"

using namespace quoll;

namespace {

const std::string kFolder = "tests/fuzz/corpus/onnx/seed-";

std::string bytes_of(const std::string& path) {
    std::string bytes;
    FILE* fp = fopen(path.c_str(), "rb");
    char buffer[4096];
    for (size_t n; fp && (n = fread(buffer, 1, sizeof(buffer), fp)) > 0;) bytes.append(buffer, n);
    if (fp) fclose(fp);
    return bytes;
}

// x / 2 (1 + erf(x / sqrt 2)), then a swish.
float expected(float x) {
    const float y = x * 0.5f * (1.f + erff(x * 0.70710678f));
    return y / (1.f + expf(-y));
}

TEST(OnnxLibrary, LoadsANet) {
    Net net;
    ASSERT_EQ(load_onnx(kFolder + "fused", OnnxOptions(), &net), 0);
    Mat x(6, 5, 4), y;
    for (int i = 0; i < 120; i++) x.channel(i / 30)[i % 30] = (float)(i - 60) / 20.f;
    Extractor ex = net.create_extractor();
    ASSERT_EQ(ex.input("x", x), 0);
    ASSERT_EQ(ex.extract("y", y), 0);
    ASSERT_EQ(y.logical_shape().total(), 120u);
    for (int i = 0; i < 120; i++)
        EXPECT_NEAR(y.channel(i / 30)[i % 30], expected((float)(i - 60) / 20.f), 1e-5f);
}

TEST(OnnxLibrary, ConvertsFromMemory) {
    const std::string bytes = bytes_of(kFolder + "conv");
    ASSERT_FALSE(bytes.empty());
    OnnxOptions options;
    options.shapes["x"] = {1, 3, 8, 8};
    options.storage = DType::f16;
    size_t calls = 0, last = 0;
    options.progress = [&](size_t done, size_t total) {
        calls++;
        last = done;
        EXPECT_EQ(total, 5u);
    };
    OnnxResult result;
    ASSERT_EQ(convert_onnx(bytes.data(), bytes.size(), "", options, &result), 0);
    EXPECT_EQ(calls, 6u);
    EXPECT_EQ(last, 5u);
    EXPECT_EQ(result.counts.at("nodes converted"), 5);
    const int conv = result.model.producer("a");
    ASSERT_GE(conv, 0);
    EXPECT_EQ(result.model.layers[(size_t)conv].find_weight("weight_data")->data.dtype, DType::f16);
}

// A field of a protobuf message, of up to 127 bytes of tags, by its number; any length of content.
std::string field(int number, const std::string& content) {
    std::string bytes(1, (char)((number << 3) | 2));
    size_t left = content.size();
    for (; left > 127; left >>= 7) bytes += (char)((left & 127) | 128);
    return bytes + (char)left + content;
}
std::string number_field(int number, int value) {
    return std::string(1, (char)(number << 3)) + (char)value;
}
std::string value_info(const std::string& name) {
    const std::string axis = field(1, number_field(1, 4)), shape = field(2, axis);
    return field(1, name) + field(2, field(1, number_field(1, 1) + shape));
}

// x, then so many unary operators one behind the other.
std::string chain(int nodes) {
    const char* const ops[] = {"Relu", "Neg", "Abs", "Sigmoid"};
    std::string graph, from = "x";
    for (int i = 0; i < nodes; i++) {
        const std::string to = "blob_" + std::to_string(i);
        graph += field(1, field(1, from) + field(2, to) + field(4, ops[i % 4]));
        from = to;
    }
    graph += field(2, "g") + field(11, value_info("x")) + field(12, value_info(from));
    return number_field(1, 8) + field(7, graph) + field(8, number_field(2, 17));
}

struct Work {
    long convert, load;  // allocations
};
void work_of(int nodes, Work* work) {
    const std::string bytes = chain(nodes);
    OnnxResult result;
    long begin = count_allocations();
    ASSERT_EQ(convert_onnx(bytes.data(), bytes.size(), "", OnnxOptions(), &result), 0);
    work->convert = count_allocations() - begin;
    EXPECT_GE(result.model.layers.size(), (size_t)nodes);
    std::string text;
    for (const ModelLayer& l : result.model.layers)
        text += l.type + " " + l.name + " " + std::to_string(l.inputs.size()) + " " +
                std::to_string(l.outputs.size()) + (l.inputs.empty() ? "" : " " + l.inputs[0]) +
                (l.outputs.empty() ? "" : " " + l.outputs[0]) + "\n";
    const std::string count = std::to_string(result.model.layers.size());
    Net net;
    begin = count_allocations();
    ASSERT_EQ(net.load_param_mem(("7767517\n" + count + " " + count + "\n" + text).c_str()), 0);
    const float none = 0;
    ASSERT_EQ(net.load_model((const unsigned char*)&none), 0);
    ASSERT_FALSE(net.layers().empty());
    work->load = count_allocations() - begin;
}

// What a node costs does not grow with the number of nodes.
TEST(OnnxLibrary, LongChainsTakeLinearWork) {
    Work small, large;
    work_of(1000, &small);
    work_of(16000, &large);
    EXPECT_GT(small.convert, 1000);
    EXPECT_GT(small.load, 1000);
    EXPECT_LE(large.convert, 16 * 1.1 * small.convert);
    EXPECT_LE(large.load, 16 * 1.1 * small.load);
    EXPECT_LE(large.convert, 16000 * 60);
    EXPECT_LE(large.load, 16000 * 22);
}

TEST(OnnxLibrary, ListsProblemsAndStaysUsable) {
    std::string bytes = bytes_of(kFolder + "fused");
    bytes.replace(bytes.find("Sigmoid"), 7, "Sigmund");
    OnnxResult result;
    EXPECT_NE(convert_onnx(bytes.data(), bytes.size(), "", OnnxOptions(), &result), 0);
    ASSERT_EQ(result.problems.size(), 1u);
    EXPECT_EQ(result.problems[0].op, "Sigmund");
    EXPECT_TRUE(result.model.layers.empty());
    set_log_level(kLogOff);
    Net net;
    EXPECT_NE(load_onnx("tests/no/such.onnx", OnnxOptions(), &net), 0);
    EXPECT_NE(convert_onnx(bytes.data(), 20, "", OnnxOptions(), &result), 0);
    set_log_level(kLogInfo);
    EXPECT_EQ(load_onnx(kFolder + "norm", OnnxOptions(), &net), 0);
}

}  // namespace
