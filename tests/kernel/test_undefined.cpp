// What once relied on undefined behaviour, compiled so that such behaviour traps (CMakeLists.txt).
#include <math.h>
#include <string.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "quoll/datareader.h"
#include "quoll/net.h"
#include "runtime/scalar.h"

using namespace quoll;

namespace {

TEST(Undefined, conversions_of_all_halves) {
    for (int bits = 0; bits < 0x10000; bits++) {
        const float x = float_from_half((unsigned short)bits);
        const int exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
        if (exponent == 31 && fraction) {
            EXPECT_TRUE(isnan(x)) << bits;
            continue;
        }
        const float magnitude = exponent == 31 ? INFINITY
                                : exponent     ? ldexpf((float)(1024 + fraction), exponent - 25)
                                               : ldexpf((float)fraction, -24);
        EXPECT_EQ(x, bits & 0x8000 ? -magnitude : magnitude) << bits;
        EXPECT_EQ(half_from_float(x), bits);
    }
}

TEST(Undefined, conversions_of_any_float) {
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += 9973) {
        const float x = float_of((uint32_t)bits);
        const float half = float_from_half(half_from_float(x)),
                    bfloat = float_from_bfloat(bfloat_from_float(x));
        EXPECT_EQ(isnan(x), isnan(half));
        EXPECT_EQ(isnan(x), isnan(bfloat));
        const int whole = int8_from_float(x);
        EXPECT_EQ(whole, isnan(x) ? 0 : (int)roundf(fminf(fmaxf(x, -127.f), 127.f))) << x;
    }
}

// The sums of a 3x3 window of ones over zeros are the padding that it covers.
void check_padding(int value) {
    std::string text = "7767517\n2 2\nInput in 0 1 in\nConvolutionDepthWise d 1 1 in out";
    text += " 0=16 1=3 4=1 6=144 7=16 8=1 18=" + std::to_string(value) + "\n";
    std::vector<uint32_t> words = {0x000D4B38};
    words.insert(words.end(), 144 / 4, 0x01010101);
    words.insert(words.end(), 16 + 1, bits_of(1.f));  // scales of the weights, of the input
    const unsigned char* memory = (const unsigned char*)words.data();
    Net net;
    ASSERT_EQ(net.load_param_mem(text.c_str()), kOk);
    ASSERT_EQ(net.load_model(DataReaderFromMemory(memory, words.size() * 4)), kOk);
    Mat in(7, 5, 16), out;
    in.fill(0.f);
    Extractor ex = net.create_extractor();
    ASSERT_EQ(ex.input("in", in), kOk);
    ASSERT_EQ(ex.extract("out", out), kOk);
    for (int q = 0; q < 16; q++)
        for (int y = 0; y < 5; y++)
            for (int x = 0; x < 7; x++) {
                const int inside = (x > 0 && x < 6 ? 3 : 2) * (y > 0 && y < 4 ? 3 : 2);
                ASSERT_EQ(out.channel(q).row(y)[x], (float)(value * (9 - inside)))
                    << value << " at " << x << ", " << y;
            }
}

TEST(Undefined, padding_of_int8_depthwise_convolutions) {
    for (int value : {-127, -100, -1, 0, 1, 77, 127}) check_padding(value);
}

}  // namespace
