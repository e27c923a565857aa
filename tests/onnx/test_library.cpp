// convert_onnx and load_onnx as programs call them, on the models that the fuzzer starts from.
#include <gtest/gtest.h>
#include <math.h>
#include <stdio.h>

#include <string>
#include <vector>

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
