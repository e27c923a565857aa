#include <math.h>

#include "layer/common/elementtype.h"
#include "layer_test.h"

namespace quoll {

// A narrow storage type must not change what is rounded: whole numbers.
static void make_whole(std::vector<Mat>& in) {
    for (int q = 0; q < in[0].c; q++) {
        float* p = in[0].channel(q);
        for (int i = 0; i < in[0].w * in[0].h; i++) p[i] = roundf(p[i]);
    }
}

static std::vector<LayerCase> narrow_cases() {
    std::vector<LayerCase> all;
    for (int type = 1; type <= 28; type++) {
        const ElementInfo* info = element_info(type);
        if (!info || info->bits > 16) continue;
        const std::string params = "0=" + std::to_string(type);
        const bool floats = info->dtype == DType::f32;
        for (const char* more : {"", " 1=0 2=1", " 2=2"}) {
            all.push_back(LayerCase({Shape(5, 3, 16, info->dtype)}, params + more)
                              .range(type == 24 || info->dtype == DType::u8 ? 1 : -99, 99));
            if (floats) all.back().fill(make_whole);
            if (!floats) break;
        }
    }
    return all;
}
static const std::vector<LayerCase> kNarrow = narrow_cases();
QUOLL_LAYER_CASES(NarrowTo, kNarrow)

static const std::vector<LayerCase> kBits = {
    LayerCase({Shape(5, 3, 16, DType::s32)}, "0=6 1=12").range(-99, 99),
    LayerCase({Shape(19, DType::s8)}, "0=3 1=2").range(-99, 99),
    LayerCase({Shape(5, 8, DType::u8)}, "0=2 1=3").range(0, 255),
    LayerCase({Shape(5, 8, DType::s32)}, "0=4 1=5").range(0, 65535),
    LayerCase({Shape(5, 8, DType::u8)}, "0=21 1=22").range(0, 15),
};
QUOLL_LAYER_CASES(BitCast, kBits)

TEST(NarrowTo, floats_by_hand) {
    const float inf = INFINITY;
    const Mat x = mat_of(Shape(8), {0.47892547f, 1e6f, -1e6f, inf, -inf, 464, 465, 1e-7f});
    const struct {
        const char* params;
        std::vector<float> want;
    } cases[] = {
        {"0=17", {0.46875f, 448, -448, 448, -448, 448, 448, 0}},
        {"0=17 1=0", {0.46875f, NAN, NAN, NAN, NAN, 448, NAN, 0}},
        {"0=18", {0.46875f, 240, -240, 240, -240, 240, 240, 0}},
        {"0=19", {0.5f, 57344, -57344, 57344, -57344, 448, 448, 0}},
        {"0=19 1=0", {0.5f, inf, -inf, inf, -inf, 448, 448, 0}},
        {"0=20 1=0", {0.5f, NAN, NAN, NAN, NAN, 448, 448, 0}},
        {"0=23", {0.5f, 6, -6, 6, -6, 6, 6, 0}},
        {"0=24 2=1", {0.5f, 1048576, NAN, ldexpf(1, 127), NAN, 512, 512, ldexpf(1, -23)}},
        {"0=16 1=0", {0.478515625f, 999424, -999424, inf, -inf, 464, 464, 1.0011717677e-7f}},
        {"0=10 1=0", {0.47900390625f, inf, -inf, inf, -inf, 464, 465, 1.1920928955e-7f}},
    };
    for (const auto& c : cases)
        expect_values("NarrowTo", c.params, {}, {x}, mat_of(Shape(8), c.want));
}

TEST(NarrowTo, integers_by_hand) {
    expect_values("NarrowTo", "0=22", {}, {mat_of(Shape(4, DType::s8), {-9, -8, 7, 8})},
                  mat_of(Shape(4, DType::s8), {7, -8, 7, -8}));
    expect_values("NarrowTo", "0=25", {}, {mat_of(Shape(4, DType::u8), {3, 4, 5, 255})},
                  mat_of(Shape(4, DType::u8), {3, 0, 1, 3}));
    expect_values("NarrowTo", "0=4", {}, {mat_of(Shape(2, DType::s32), {-1, 65536})},
                  mat_of(Shape(2, DType::s32), {65535, 0}));
}

TEST(BitCast, by_hand) {
    expect_values("BitCast", "0=1 1=6", {}, {mat_of(Shape(2), {1.f, -2.5f})},
                  mat_of(Shape(2, DType::s32), {1065353216.f, -1071644672.f}));
    expect_values("BitCast", "0=6 1=1", {}, {mat_of(Shape(1, DType::s32), {1065353216.f})},
                  mat_of(Shape(1), {1.f}));
    expect_values("BitCast", "0=10 1=4", {}, {mat_of(Shape(2), {1.f, -1.5f})},
                  mat_of(Shape(2, DType::s32), {0x3c00, 0xbe00}));
    expect_values("BitCast", "0=23 1=21", {}, {mat_of(Shape(3), {0.5f, -6.f, 3.f})},
                  mat_of(Shape(3, DType::u8), {1, 15, 5}));
}

TEST(ElementType, codes_and_values) {
    int formats = 0;
    for (int number = 1; number <= 28; number++) {
        const ElementInfo* info = element_info(number);
        if (!info || !info->has_format()) continue;
        formats++;
        const FloatFormat& format = info->format;
        for (unsigned code = 0; code < 1u << info->bits; code++) {
            const float x = format.decode(code);
            if (x != x) {
                EXPECT_TRUE(isnan(format.decode(format.encode(x)))) << info->name;
                continue;
            }
            EXPECT_EQ(code, format.encode(x)) << info->name;
            EXPECT_EQ(x, format.round(x, false)) << info->name << " " << x;
            if (number == 10) {
                EXPECT_EQ(x, float16_to_float32((unsigned short)code));
            }
        }
    }
    EXPECT_EQ(10, formats);
}

// Each code's neighbourhood: what lies between two values goes to the nearer one.
TEST(ElementType, rounds_to_the_nearest_value) {
    for (int number = 16; number <= 28; number++) {
        const ElementInfo* info = element_info(number);
        if (!info->has_format() || !info->is_signed || info->bits > 8) continue;
        const FloatFormat& format = info->format;
        for (unsigned code = 0; format.decode(code) < format.largest(); code++) {
            const float low = format.decode(code), high = format.decode(code + 1);
            const float middle = low + (high - low) / 2;
            EXPECT_EQ(low, format.round(nextafterf(middle, low), false)) << info->name;
            EXPECT_EQ(high, format.round(nextafterf(middle, high), false)) << info->name;
            EXPECT_EQ(code % 2 ? high : low, format.round(middle, false)) << info->name;
            EXPECT_EQ(high, format.round(middle, false, FloatFormat::kUp)) << info->name;
            EXPECT_EQ(low, format.round(middle, false, FloatFormat::kDown)) << info->name;
        }
    }
}

}  // namespace quoll
