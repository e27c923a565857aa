// Parameters as text and binary: numbers whatever their digits and the locale, arrays, strings,
// errors.
#include <cfloat>
#include <climits>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "quoll/datareader.h"
#include "quoll/paramdict.h"

namespace {

int parse(const std::string& text, quoll::ParamDict* pd) {
    const unsigned char* p = (const unsigned char*)text.data();
    return pd->load_param(quoll::DataReaderFromMemory(p, text.size()), "[Test t]");
}

float parse_float(const std::string& text) {
    quoll::ParamDict pd;
    EXPECT_EQ(parse("0=" + text, &pd), 0) << text;
    return pd.get(0, -12345.f);
}

TEST(ParamDict, ReadsIntsFloatsArraysAndStrings) {
    quoll::ParamDict pd;
    ASSERT_EQ(
        parse(" 0=32  1=-7 2=1.5e-3 -23303=3,1,2.5,-3 -23304=2,5,6 5=\"*(0w,0.5),-1\" 6=4,5\n9=9",
              &pd),
        0);
    EXPECT_EQ(pd.get(0, 0), 32);
    EXPECT_EQ(pd.get(1, 0), -7);
    EXPECT_EQ(pd.get(2, 0.f), 1.5e-3f);
    const quoll::Mat floats = pd.get_floats(3, quoll::Mat());
    ASSERT_EQ(floats.w, 3);
    EXPECT_EQ(floats[0], 1.f);
    EXPECT_EQ(floats[1], 2.5f);
    EXPECT_EQ(floats[2], -3.f);
    const quoll::Mat ints = pd.get(4, quoll::Mat());
    ASSERT_EQ(ints.w, 2);
    EXPECT_EQ(((const int*)ints)[1], 6);
    EXPECT_EQ(pd.get(5, std::string()), "*(0w,0.5),-1");
    EXPECT_EQ(pd.get_ints(6, quoll::Mat()).w, 2);
    EXPECT_EQ(pd.get(9, 1), 1) << "the next line belongs to the next layer";
}

TEST(ParamDict, EmptyArray) {
    quoll::ParamDict pd;
    ASSERT_EQ(parse("-23309=0 1=2", &pd), 0);
    EXPECT_TRUE(pd.get_ints(9, quoll::Mat(3)).empty());
    EXPECT_EQ(pd.get(1, 0), 2);
}

TEST(ParamDict, IntsAndFloatsConvert) {
    quoll::ParamDict pd;
    ASSERT_EQ(parse("0=2 1=3.0 -23302=2,1,2", &pd), 0);
    EXPECT_EQ(pd.get(0, 0.f), 2.f);
    EXPECT_EQ(pd.get(1, 0), 3);
    EXPECT_EQ(pd.get_floats(2, quoll::Mat())[1], 2.f);
}

TEST(ParamDict, ManyDigits) {
    EXPECT_EQ(parse_float("0.00999999978"), 0.00999999978f);
    EXPECT_EQ(parse_float("0.10000000149011611938476562500000000000001"), 0.1f);
    EXPECT_EQ(parse_float("123456789.123456789012345"), 123456789.123456789012345f);
    EXPECT_EQ(parse_float("3.4028234663852886e+38"), 3.4028234663852886e+38f);
    EXPECT_EQ(parse_float("1e-45"), 1e-45f);
    EXPECT_EQ(parse_float("-0.0"), -0.f);
    EXPECT_TRUE(std::signbit(parse_float("-0.0")));
    EXPECT_EQ(parse_float("+2.5"), 2.5f);
    EXPECT_EQ(parse_float("2.f"), 2.f) << "as public files have it";
    EXPECT_EQ(parse_float("-0.25f"), -0.25f);
    EXPECT_TRUE(std::isinf(parse_float("1e999")));
    EXPECT_EQ(parse_float("1e-999"), 0.f);
    EXPECT_TRUE(std::isinf(parse_float("-inf")));
    EXPECT_TRUE(std::isnan(parse_float("nan")));
    EXPECT_EQ(parse_float("4294967296"), 4294967296.f) << "beyond 32 bits: still a number";
}

// Random bit patterns, printed by the C library in several ways, read back exactly.
TEST(ParamDict, AgreesWithTheCLibrary) {
    std::mt19937 rng(42);
    const char* const formats[] = {"%.9g", "%.8e", "%.17g", "%f"};
    for (int i = 0; i < 20000; i++) {
        const uint32_t bits = rng();
        float value;
        memcpy(&value, &bits, 4);
        if (!std::isfinite(value)) continue;
        char text[128];
        snprintf(text, sizeof(text), formats[i % 4], value);
        EXPECT_EQ(parse_float(text), strtof(text, nullptr)) << text;
    }
}

TEST(ParamDict, WritesFloatsBitExact) {
    std::mt19937 rng(7);
    for (int i = 0; i < 20000; i++) {
        const uint32_t bits = rng();
        float value, back;
        memcpy(&value, &bits, 4);
        if (std::isnan(value)) continue;
        back = parse_float(quoll::float_to_text(value));
        EXPECT_EQ(memcmp(&value, &back, 4), 0) << quoll::float_to_text(value);
    }
    quoll::ParamDict pd;
    ASSERT_EQ(parse("0=" + quoll::float_to_text(3.f), &pd), 0);
    EXPECT_EQ(pd.type(0), quoll::ParamDict::kFloat) << "a float without a fraction stays a float";
}

TEST(ParamDict, IgnoresTheLocale) {
    const char* const commas[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8"};
    bool found = false;
    for (const char* name : commas) found = found || setlocale(LC_NUMERIC, name);
    EXPECT_EQ(parse_float("1.25"), 1.25f);
    EXPECT_EQ(quoll::float_to_text(1.25f), "1.25");
    setlocale(LC_NUMERIC, "C");
    if (!found) GTEST_SKIP() << "no locale with a decimal comma is installed";
}

TEST(ParamDict, RefusesBadText) {
    for (const char* text : {"0",
                             "=1",
                             "x=1",
                             "0=",
                             "0=a\"c",
                             "0=1x",
                             "0=1,abc",
                             "0=,",
                             "32=1",
                             "-5=1",
                             "-23300=3,1,2",
                             "-23300=-1",
                             "-23300=1.5,2",
                             "-23300=2,1,2,3",
                             "0=\"open",
                             "99999999999=1",
                             "-2147483648=1,1",
                             "0=1,,2",
                             "1.5=2",
                             "-23300=99999999999,1"}) {
        quoll::ParamDict pd;
        EXPECT_LT(parse(text, &pd), 0) << text;
    }
}

// As ncnn reads them.
TEST(ParamDict, ReadsStringsWithoutQuotes) {
    quoll::ParamDict pd;
    ASSERT_EQ(parse("5=nearest 6=linear,2.5 7=3 8=inf 9=nan,1", &pd), 0);
    EXPECT_EQ(pd.get(5, std::string()), "nearest");
    EXPECT_EQ(pd.get(6, std::string()), "linear,2.5");
    EXPECT_EQ(pd.get(7, 0), 3);
    EXPECT_EQ(pd.type(8), quoll::ParamDict::kFloat);
    EXPECT_EQ(pd.get_floats(9, quoll::Mat())[1], 1.f);
}

TEST(ParamDict, ReadsArraysOfOne) {
    quoll::ParamDict pd;
    ASSERT_EQ(parse("3=7, 4=2.5, 5=1", &pd), 0);
    const quoll::Mat ints = pd.get_ints(3, quoll::Mat()), floats = pd.get_floats(4, quoll::Mat());
    ASSERT_EQ(ints.w, 1);
    EXPECT_EQ(((const int*)ints.data)[0], 7);
    ASSERT_EQ(floats.w, 1);
    EXPECT_EQ(floats[0], 2.5f);
    EXPECT_EQ(pd.get(5, 0), 1);
    ASSERT_EQ(parse("3=7,", &pd), 0);
    EXPECT_EQ(pd.get_ints(3, quoll::Mat()).w, 1);
}

// A text in memory whose length nobody told ends with its NUL, not with what lies behind that.
TEST(ParamDict, StopsAtTheEndOfAString) {
    const char memory[] =
        "0=12\0"
        "345 1=6";
    const unsigned char* p = (const unsigned char*)memory;
    quoll::ParamDict pd;
    ASSERT_EQ(pd.load_param(quoll::DataReaderFromMemory(p)), 0);
    EXPECT_EQ(pd.get(0, 0), 12);
    EXPECT_EQ(pd.type(1), quoll::ParamDict::kNone);
}

// Nothing relies on hints of sizes.
TEST(ParamDict, SkipsHintsThatCannotBeRead) {
    for (const char* hints : {"-23330=4,3,8", "-23330=5,3,8,8,1,x", "-23330=-1", "-23330=x,1,2",
                              "-23330=", "-23330=2,1,2,3,4,5", "30=1,,2"}) {
        quoll::ParamDict pd;
        ASSERT_EQ(parse(std::string("0=1 ") + hints + " 1=2", &pd), 0) << hints;
        EXPECT_EQ(pd.get(0, 0), 1) << hints;
        EXPECT_EQ(pd.type(30), quoll::ParamDict::kNone) << hints;
        EXPECT_EQ(pd.get(1, 0), 2) << hints;
    }
    // A string without an end takes the rest of its line, and no more.
    const std::string text = "0=1 30=\"a b\n0=2\n";
    const unsigned char* p = (const unsigned char*)text.data();
    const quoll::DataReaderFromMemory reader(p, text.size());
    for (int line = 1; line <= 2; line++) {
        quoll::ParamDict pd;
        ASSERT_EQ(pd.load_param(reader), 0);
        EXPECT_EQ(pd.get(0, 0), line);
    }
}

// ncnn's Mats have no dtype: programs written for it put ints into a Mat of floats.
TEST(ParamDict, SetTakesIntsInAMat) {
    const int values[] = {-233, 0, 7, 1 << 24, INT_MAX, -100000000};
    quoll::Mat m(6);
    memcpy(m.data, values, sizeof(values));
    quoll::ParamDict pd;
    pd.set(9, m);
    const quoll::Mat ints = pd.get_ints(9, quoll::Mat()), floats = pd.get_floats(9, quoll::Mat());
    ASSERT_EQ(ints.w, 6);
    EXPECT_EQ(memcmp(ints.data, values, sizeof(values)), 0);
    EXPECT_EQ(floats[0], -233.f);
    quoll::Mat f(4);
    f[0] = 0.f, f[1] = -1.5f, f[2] = FLT_MAX, f[3] = 1e-20f;
    pd.set(9, f);
    EXPECT_EQ(pd.get_floats(9, quoll::Mat())[1], -1.5f);
    EXPECT_EQ(((const int*)pd.get_ints(9, quoll::Mat()).data)[1], -1);
    f.fill(0.f);
    pd.set(9, f);
    EXPECT_EQ(pd.type(9), quoll::ParamDict::kFloatArray);
}

// Who reads it would read behind its end.
TEST(ParamDict, SetRefusesArraysOfOtherTypes) {
    quoll::ParamDict pd;
    pd.set(9, 1);
    pd.set(9, quoll::Mat(5, (size_t)1u));
    EXPECT_EQ(pd.type(9), quoll::ParamDict::kNone);
    EXPECT_TRUE(pd.get_ints(9, quoll::Mat()).empty());
    pd.set(9, quoll::Mat(5, (size_t)2u));
    EXPECT_EQ(pd.type(9), quoll::ParamDict::kNone);
}

std::string binary(std::initializer_list<int> words) {
    return std::string((const char*)words.begin(), words.size() * 4);
}

int parse_binary(const std::string& bytes, quoll::ParamDict* pd) {
    const unsigned char* p = (const unsigned char*)bytes.data();
    return pd->load_param_bin(quoll::DataReaderFromMemory(p, bytes.size()), "[Test 0]");
}

TEST(ParamDict, ReadsBinary) {
    int half;
    const float value = 0.5f;
    memcpy(&half, &value, 4);
    quoll::ParamDict pd;
    ASSERT_EQ(parse_binary(
                  binary({0, 100, 1, half, -23303, 2, half, half, -23404, 2, 0x6968, -233}), &pd),
              0);
    EXPECT_EQ(pd.get(0, 0), 100);
    EXPECT_EQ(pd.get(1, 0.f), 0.5f);
    EXPECT_EQ(pd.get_floats(3, quoll::Mat())[1], 0.5f);
    EXPECT_EQ(pd.get_ints(3, quoll::Mat()).w, 2);
    EXPECT_EQ(pd.get(4, std::string()), "hi");
}

TEST(ParamDict, RefusesBadBinary) {
    quoll::ParamDict pd;
    for (const std::string& bytes :
         {binary({}), binary({0}), binary({0, 1}), binary({32, 1, -233}),
          binary({-23300, -1, -233}), binary({-23300, 1 << 30, -233}), binary({-23300, 3, 1, 2}),
          binary({-23400, 9, 0, -233}), binary({(int)0x80000000, 1, -233}), binary({-1, 1, -233})})
        EXPECT_LT(parse_binary(bytes, &pd), 0);
}

}  // namespace
