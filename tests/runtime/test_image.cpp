// Turning, warping and drawing: against NumPy's results, and the properties that every form shares.
#include "quoll/image.h"

#include <gtest/gtest.h>
#include <math.h>
#include <string.h>

#include <algorithm>
#include <functional>
#include <random>

#include "pixel_cases.h"

#if QUOLL_PIXEL

using namespace quoll;

namespace {

typedef std::vector<unsigned char> Bytes;

std::vector<PixelCase> image_cases(const char* prefix) {
    return pixel_cases(prefix, "tests/data/image_cases.bin");
}

Bytes random_bytes(size_t count, unsigned seed) {
    std::mt19937 random(seed);
    Bytes bytes(count);
    for (unsigned char& b : bytes) b = (unsigned char)random();
    return bytes;
}

// Rows of `row` bytes moved apart to `stride`, and back.
Bytes padded(const Bytes& image, int row, int stride) {
    Bytes wide(image.size() / row * stride, 0xee);
    for (size_t y = 0; y < image.size() / row; y++) memcpy(&wide[y * stride], &image[y * row], row);
    return wide;
}

Bytes packed(const Bytes& wide, int row, int stride) {
    Bytes image(wide.size() / stride * row);
    for (size_t y = 0; y < wide.size() / stride; y++) {
        memcpy(&image[y * row], &wide[y * stride], row);
        for (int i = row; i < stride; i++) EXPECT_EQ(wide[y * stride + i], 0xee) << "beside a row";
    }
    return image;
}

}  // namespace

#if QUOLL_PIXEL_ROTATE
namespace {

typedef int (*Rotate)(const unsigned char*, int, int, unsigned char*, int, int, int);
typedef int (*RotateRows)(const unsigned char*, int, int, int, unsigned char*, int, int, int, int);
const Rotate kRotate[] = {kanna_rotate_c1, kanna_rotate_c2, kanna_rotate_c3, kanna_rotate_c4};
const RotateRows kRotateRows[] = {kanna_rotate_c1, kanna_rotate_c2, kanna_rotate_c3,
                                  kanna_rotate_c4};

}  // namespace

TEST(Rotate, AgreesWithNumPy) {
    for (const PixelCase& c : image_cases("kanna_rotate")) {
        const int type = c.params[0], w = c.params[1], h = c.params[2], n = c.params[3];
        const int tw = c.expected.shape[1], th = c.expected.shape[0];
        Bytes out(c.expected.bytes.size());
        ASSERT_EQ(0, kRotate[n - 1](c.given.bytes.data(), w, h, out.data(), tw, th, type));
        EXPECT_EQ(out, c.expected.bytes) << c.name();
        const Bytes in = padded(c.given.bytes, w * n, w * n + 3);
        Bytes wide(th * (tw * n + 5), 0xee);
        ASSERT_EQ(0, kRotateRows[n - 1](in.data(), w, h, w * n + 3, wide.data(), tw, th, tw * n + 5,
                                        type));
        EXPECT_EQ(packed(wide, tw * n, tw * n + 5), c.expected.bytes) << c.name();
    }
}

TEST(Rotate, YuvTurnsBothPlanes) {
    const int w = 6, h = 10;
    const Bytes yuv = random_bytes(w * h * 3 / 2, 3);
    for (int type = 1; type <= 8; type++) {
        const int tw = type < 5 ? w : h, th = type < 5 ? h : w;
        Bytes got(yuv.size()), want(yuv.size());
        ASSERT_EQ(0, kanna_rotate_yuv420sp(yuv.data(), w, h, got.data(), tw, th, type));
        ASSERT_EQ(0, kanna_rotate_c1(yuv.data(), w, h, want.data(), tw, th, type));
        ASSERT_EQ(0,
                  kanna_rotate_c2(&yuv[w * h], w / 2, h / 2, &want[w * h], tw / 2, th / 2, type));
        EXPECT_EQ(got, want);
    }
}

TEST(Rotate, RefusesOtherTypesAndSizes) {
    Bytes in(5 * 3), out(5 * 3);
    for (int type : {-1, 0, 9}) EXPECT_LT(kanna_rotate_c1(&in[0], 5, 3, &out[0], 5, 3, type), 0);
    EXPECT_LT(kanna_rotate_c1(&in[0], 5, 3, &out[0], 5, 3, 6), 0);
    EXPECT_LT(kanna_rotate_c1(&in[0], 5, 3, &out[0], 3, 5, 2), 0);
    EXPECT_LT(kanna_rotate_c1(nullptr, 5, 3, &out[0], 5, 3, 1), 0);
    EXPECT_LT(kanna_rotate_c1(&in[0], 5, 3, 4, &out[0], 5, 3, 5, 1), 0) << "stride below the row";
    EXPECT_LT(kanna_rotate_yuv420sp(&in[0], 5, 2, &out[0], 5, 2, 1), 0) << "odd width";
    EXPECT_LT(kanna_rotate_yuv420sp(nullptr, 4, 2, &out[0], 4, 2, 1), 0);
}
#endif  // QUOLL_PIXEL_ROTATE

#if QUOLL_PIXEL_AFFINE
namespace {

typedef int (*Warp)(const unsigned char*, int, int, unsigned char*, int, int, const float*, int,
                    unsigned int);
typedef int (*WarpRows)(const unsigned char*, int, int, int, unsigned char*, int, int, int,
                        const float*, int, unsigned int);
const Warp kWarp[] = {warpaffine_bilinear_c1, warpaffine_bilinear_c2, warpaffine_bilinear_c3,
                      warpaffine_bilinear_c4};
const WarpRows kWarpRows[] = {warpaffine_bilinear_c1, warpaffine_bilinear_c2,
                              warpaffine_bilinear_c3, warpaffine_bilinear_c4};

void expect_matrix(const float* got, const PixelCase& c) {
    double size = 1;
    for (float v : c.expected.values) size = std::max(size, (double)fabs(v));
    for (int i = 0; i < 6; i++) EXPECT_NEAR(got[i], c.expected.values[i], 1e-5 * size) << c.name();
}

}  // namespace

// A pixel may be off by 2: at most 1 because products are cut off, and a difference of neighbours
// times the 2^-10 by which a place is rounded, twice. Where the border begins, neighbours differ by
// up to 255.
TEST(Affine, WarpAgreesWithNumPy) {
    for (const PixelCase& c : image_cases("warpaffine")) {
        const int type = c.params[0], w = c.params[1], h = c.params[2], tw = c.params[3],
                  th = c.params[4], n = c.params[5];
        const unsigned int color = (unsigned int)c.params[6];
        float tm[6];
        memcpy(tm, &c.params[7], sizeof(tm));
        const size_t in_size = (size_t)w * h * n;
        const Bytes in(c.given.bytes.begin(), c.given.bytes.begin() + in_size);
        Bytes out(c.given.bytes.begin() + in_size, c.given.bytes.end());
        Bytes wide = padded(out, tw * n, tw * n + 7);
        ASSERT_EQ(0, kWarp[n - 1](in.data(), w, h, out.data(), tw, th, tm, type, color));
        for (size_t i = 0; i < out.size(); i++)
            ASSERT_NEAR(out[i], c.expected.bytes[i], 2) << c.name() << " byte " << i;
        ASSERT_EQ(0, kWarpRows[n - 1](padded(in, w * n, w * n + 2).data(), w, h, w * n + 2,
                                      wide.data(), tw, th, tw * n + 7, tm, type, color));
        EXPECT_EQ(packed(wide, tw * n, tw * n + 7), out);
    }
}

TEST(Affine, WarpIsExactOnWholeShiftsAndFarOutside) {
    const Bytes in = random_bytes(7 * 5 * 3, 4);
    Bytes out(7 * 5 * 3);
    const float still[6] = {1, 0, 0, 0, 1, 0}, away[6] = {1, 0, 1e30f, 0, 1, -1e30f};
    ASSERT_EQ(0, warpaffine_bilinear_c3(in.data(), 7, 5, out.data(), 7, 5, still));
    EXPECT_EQ(in, out);
    ASSERT_EQ(0, warpaffine_bilinear_c3(in.data(), 7, 5, out.data(), 7, 5, away, -233, 0));
    EXPECT_EQ(in, out) << "transparent";
    ASSERT_EQ(0, warpaffine_bilinear_c3(in.data(), 7, 5, out.data(), 7, 5, away, 0, 0xff030201));
    for (size_t i = 0; i < out.size(); i++) EXPECT_EQ(out[i], 1 + i % 3);
}

TEST(Affine, WarpOfYuvHalvesTheShift) {
    const int w = 8, h = 6;
    const Bytes yuv = random_bytes(w * h * 3 / 2, 5);
    const float tm[6] = {0.9f, 0.2f, 1.5f, -0.3f, 1.1f, 0.75f};
    const float half[6] = {0.9f, 0.2f, 0.75f, -0.3f, 1.1f, 0.375f};
    Bytes got(10 * 4 * 3 / 2), want(got);
    ASSERT_EQ(0, warpaffine_bilinear_yuv420sp(yuv.data(), w, h, &got[0], 10, 4, tm, 0, 0x302010));
    ASSERT_EQ(0, warpaffine_bilinear_c1(yuv.data(), w, h, &want[0], 10, 4, tm, 0, 0x10));
    ASSERT_EQ(0,
              warpaffine_bilinear_c2(&yuv[w * h], w / 2, h / 2, &want[40], 5, 2, half, 0, 0x3020));
    EXPECT_EQ(got, want);
}

TEST(Affine, MatricesAgreeWithNumPy) {
    for (const PixelCase& c : image_cases("get_rotation_matrix")) {
        float args[4], tm[6];
        memcpy(args, c.params.data(), sizeof(args));
        get_rotation_matrix(args[0], args[1], args[2], args[3], tm);
        expect_matrix(tm, c);
    }
    for (const PixelCase& c : image_cases("get_affine_transform")) {
        float tm[6];
        const float* points = c.given.values.data();
        ASSERT_EQ(0, get_affine_transform(points, points + 2 * c.params[0], c.params[0], tm));
        expect_matrix(tm, c);
    }
    for (const PixelCase& c : image_cases("invert_affine_transform")) {
        float tm[6];
        invert_affine_transform(c.given.values.data(), tm);
        expect_matrix(tm, c);
        std::copy(c.given.values.begin(), c.given.values.end(), tm);
        invert_affine_transform(tm, tm);
        expect_matrix(tm, c);
    }
}

TEST(Affine, RefusesWhatHasNoAnswer) {
    const float points[6] = {1, 2, 1, 2, 1, 2}, nan[6] = {1, 0, NAN, 0, 1, 0};
    float tm[6] = {2, 4, 1, 1, 2, 1};
    Bytes image(16);
    EXPECT_LT(get_affine_transform(points, points, 3, tm), 0);
    EXPECT_LT(get_affine_transform(points, points, 1, tm), 0);
    EXPECT_LT(get_affine_transform(nan, points, 3, tm), 0);
    EXPECT_LT(warpaffine_bilinear_c1(&image[0], 4, 4, &image[0], 4, 4, nan), 0);
    EXPECT_LT(warpaffine_bilinear_c1(&image[0], 4, 4, &image[0], 4, 4, nullptr), 0);
    EXPECT_LT(warpaffine_bilinear_c1(&image[0], 4, 0, &image[0], 4, 4, points), 0);
    EXPECT_LT(warpaffine_bilinear_yuv420sp(&image[0], 3, 2, &image[0], 2, 2, points), 0);
    invert_affine_transform(tm, tm);
    for (float v : tm) EXPECT_EQ(v, 0.f) << "singular";
}
#endif  // QUOLL_PIXEL_AFFINE

TEST(Resize, YuvResizesBothPlanes) {
    const int w = 8, h = 6;
    const Bytes yuv = random_bytes(w * h * 3 / 2, 6);
    Bytes got(10 * 4 * 3 / 2), want(got);
    ASSERT_EQ(0, resize_bilinear_yuv420sp(yuv.data(), w, h, &got[0], 10, 4));
    ASSERT_EQ(0, resize_bilinear_c1(yuv.data(), w, h, &want[0], 10, 4));
    ASSERT_EQ(0, resize_bilinear_c2(&yuv[w * h], w / 2, h / 2, &want[40], 5, 2));
    EXPECT_EQ(got, want);
    EXPECT_LT(resize_bilinear_yuv420sp(yuv.data(), w, h, &got[0], 9, 4), 0);
}

#if QUOLL_PIXEL_DRAWING
namespace {

// One drawing call on an image, with any number of channels, packed and with a stride.
typedef std::function<int(unsigned char*, int w, int h, int n, int stride, unsigned int color)>
    Draw;

#define DRAW(name, ...)                                                               \
    [=](unsigned char* pixels, int w, int h, int n, int stride, unsigned int color) { \
        if (stride == 0)                                                              \
            return n == 1   ? draw_##name##_c1(pixels, w, h, __VA_ARGS__)             \
                   : n == 2 ? draw_##name##_c2(pixels, w, h, __VA_ARGS__)             \
                   : n == 3 ? draw_##name##_c3(pixels, w, h, __VA_ARGS__)             \
                            : draw_##name##_c4(pixels, w, h, __VA_ARGS__);            \
        return n == 1   ? draw_##name##_c1(pixels, w, h, stride, __VA_ARGS__)         \
               : n == 2 ? draw_##name##_c2(pixels, w, h, stride, __VA_ARGS__)         \
               : n == 3 ? draw_##name##_c3(pixels, w, h, stride, __VA_ARGS__)         \
                        : draw_##name##_c4(pixels, w, h, stride, __VA_ARGS__);        \
    }

// What is painted on a black c1 image with the colour 255: 0 to 255 for each pixel.
Bytes mask_of(const Draw& draw, int w, int h) {
    Bytes mask(w * h);
    EXPECT_EQ(0, draw(mask.data(), w, h, 1, 0, 255));
    return mask;
}

// Every form paints the same pixels: with the colour's bytes as channels, mixed by the mask.
void expect_same_in_every_form(const Draw& draw, int w, int h, const std::string& name) {
    const Bytes mask = mask_of(draw, w, h);
    const unsigned int color = 0xd4c3b2a1;
    for (int n = 1; n <= 4; n++) {
        const Bytes before = random_bytes(w * h * n, n);
        Bytes want = before, got = before, wide = padded(before, w * n, w * n + 3);
        for (int i = 0; i < w * h * n; i++) {
            const int alpha = mask[i / n];
            want[i] = (before[i] * (255 - alpha) + (color >> i % n * 8 & 255) * alpha) / 255;
        }
        ASSERT_EQ(0, draw(got.data(), w, h, n, 0, color));
        EXPECT_EQ(got, want) << name << " c" << n;
        ASSERT_EQ(0, draw(wide.data(), w, h, n, w * n + 3, color));
        EXPECT_EQ(packed(wide, w * n, w * n + 3), want) << name << " c" << n << " with a stride";
    }
}

void expect_drawing(const Draw& draw, const PixelCase& c) {
    const int w = c.params[0], h = c.params[1];
    Bytes mask = mask_of(draw, w, h);
    for (unsigned char& m : mask) m = m == 255;
    EXPECT_EQ(mask, c.expected.bytes) << c.name();
    expect_same_in_every_form(draw, w, h, c.name());
}

}  // namespace

TEST(Drawing, AgreesWithNumPy) {
    for (const PixelCase& c : image_cases("draw_rectangle")) {
        const std::vector<int>& p = c.params;
        expect_drawing(DRAW(rectangle, p[2], p[3], p[4], p[5], color, p[6]), c);
    }
    for (const PixelCase& c : image_cases("draw_circle")) {
        const std::vector<int>& p = c.params;
        expect_drawing(DRAW(circle, p[2], p[3], p[4], color, p[5]), c);
    }
    for (const PixelCase& c : image_cases("draw_line")) {
        const std::vector<int>& p = c.params;
        expect_drawing(DRAW(line, p[2], p[3], p[4], p[5], color, p[6]), c);
    }
}

TEST(Drawing, HugeCoordinatesAreCutOff) {
    const int big = 2147483647;
    Bytes image(12 * 9);
    EXPECT_EQ(0, draw_rectangle_c1(&image[0], 12, 9, -big, -big, big, big, 255, big));
    EXPECT_EQ(0, draw_rectangle_c1(&image[0], 12, 9, 5, 5, big, big, 255, -1));
    EXPECT_EQ(std::count(image.begin(), image.end(), 255), 12 * 9) << "the outline covers all";
    image.assign(image.size(), 0);
    EXPECT_EQ(0, draw_rectangle_c1(&image[0], 12, 9, 5, 6, big, big, 255, -1));
    EXPECT_EQ(std::count(image.begin(), image.end(), 255), 7 * 3);
    EXPECT_EQ(0, draw_circle_c1(&image[0], 12, 9, big, big, big, 255, 1));
    EXPECT_EQ(0, draw_circle_c1(&image[0], 12, 9, -big, 0, big, 255, big));
    EXPECT_EQ(0, draw_line_c1(&image[0], 12, 9, -big, -big, big, big, 255, 1));
    EXPECT_EQ(image[8 * 12 + 8], 255);
    EXPECT_EQ(0, draw_text_c1(&image[0], 12, 9, "A\nB", big, big, big, 255));
    EXPECT_EQ(0, draw_text_c1(&image[0], 12, 9, "A\nB", -big, -big, big, 255));
}

TEST(Drawing, RefusesWrongArguments) {
    Bytes image(6 * 6);
    int w = 7, h = 7;
    EXPECT_LT(draw_rectangle_c1(nullptr, 6, 6, 1, 1, 2, 2, 255, 1), 0);
    EXPECT_LT(draw_rectangle_c1(&image[0], 6, 0, 1, 1, 2, 2, 255, 1), 0);
    EXPECT_LT(draw_rectangle_c1(&image[0], 6, 6, 1, 1, 2, 2, 255, 0), 0);
    EXPECT_LT(draw_rectangle_c1(&image[0], 6, 6, 1, 1, 2, 2, 255, -2), 0);
    EXPECT_LT(draw_rectangle_c3(&image[0], 6, 2, 17, 1, 1, 2, 2, 255, 1), 0) << "stride";
    EXPECT_LT(draw_circle_c1(&image[0], 6, 6, 1, 1, -1, 255, 1), 0);
    EXPECT_LT(draw_line_c1(&image[0], 6, 6, 1, 1, 2, 2, 255, -1), 0);
    EXPECT_LT(draw_text_c1(&image[0], 6, 6, nullptr, 0, 0, 8, 255), 0);
    EXPECT_LT(draw_text_c1(&image[0], 6, 6, "a", 0, 0, 0, 255), 0);
    EXPECT_LT(draw_line_yuv420sp(&image[0], 6, 3, 1, 1, 2, 2, 255, 1), 0) << "odd height";
    EXPECT_LT(get_text_drawing_size("abc", 2147483647, &w, &h), 0);
    EXPECT_EQ(w + h, 0);
    EXPECT_LT(get_text_drawing_size("abc", -1, &w, &h), 0);
    for (unsigned char b : image) EXPECT_EQ(b, 0);
}

TEST(Drawing, YuvDrawsOnBothPlanes) {
    const int w = 32, h = 24, area = w * h;
    const unsigned int color = 0x00302010;
    const auto check = [&](const char* name, const std::function<int(unsigned char*)>& both,
                           const Draw& luma, const Draw& chroma) {
        Bytes got = random_bytes(area * 3 / 2, 7), want = got;
        ASSERT_EQ(0, both(got.data()));
        ASSERT_EQ(0, luma(&want[0], w, h, 1, 0, 0x10));
        ASSERT_EQ(0, chroma(&want[area], w / 2, h / 2, 2, 0, 0x3020));
        EXPECT_EQ(got, want) << name;
    };
    for (int t : {-1, 1, 2, 6}) {
        const int half = t < 2 ? t : t / 2;
        check(
            "rectangle",
            [=](unsigned char* p) {
                return draw_rectangle_yuv420sp(p, w, h, 4, 6, 20, 10, color, t);
            },
            DRAW(rectangle, 4, 6, 20, 10, color, t), DRAW(rectangle, 2, 3, 10, 5, color, half));
        check(
            "circle",
            [=](unsigned char* p) { return draw_circle_yuv420sp(p, w, h, 14, 8, 10, color, t); },
            DRAW(circle, 14, 8, 10, color, t), DRAW(circle, 7, 4, 5, color, half));
        if (t > 0)
            check(
                "line",
                [=](unsigned char* p) {
                    return draw_line_yuv420sp(p, w, h, 2, 4, 30, 16, color, t);
                },
                DRAW(line, 2, 4, 30, 16, color, t), DRAW(line, 1, 2, 15, 8, color, half));
    }
    check(
        "text",
        [=](unsigned char* p) { return draw_text_yuv420sp(p, w, h, "a%", 2, 2, 12, color); },
        DRAW(text, "a%", 2, 2, 12, color), DRAW(text, "a%", 1, 1, 6, color));
}

TEST(Text, SizeIsThatOfTheCells) {
    const struct {
        const char* text;
        int w, h;
    } cases[] = {{"", 0, 1},     {"abc", 3, 1}, {"ab\nabcd\n", 4, 3}, {"a\tb\x01\xe9", 2, 1},
                 {"\n\n", 0, 3}, {" ", 1, 1}};
    for (const auto& c : cases) {
        for (int size : {1, 7, 20}) {
            int w = -1, h = -1;
            ASSERT_EQ(0, get_text_drawing_size(c.text, size, &w, &h));
            EXPECT_EQ(w, c.w * size) << c.text;
            EXPECT_EQ(h, c.h * 2 * size) << c.text;
        }
    }
}

TEST(Text, StaysInItsCellsInEveryForm) {
    const char text[] = "Qg_|\n@W#~";
    int w, h;
    for (int size : {1, 2, 5, 8, 13, 24}) {
        ASSERT_EQ(0, get_text_drawing_size(text, size, &w, &h));
        const Draw draw = DRAW(text, text, 3, 4, size, color);
        const Bytes mask = mask_of(draw, w + 6, h + 8);
        for (int y = 0; y < h + 8; y++)
            for (int x = 0; x < w + 6; x++)
                if (x < 3 || x >= 3 + w || y < 4 || y >= 4 + h) {
                    EXPECT_EQ(mask[y * (w + 6) + x], 0);
                }
        EXPECT_GT(std::count_if(mask.begin(), mask.end(), [](int m) { return m > 60; }), size);
        expect_same_in_every_form(draw, w + 6, h + 8, "text");
    }
    // Part of a text that begins outside is what it would be inside.
    const Bytes whole = mask_of(DRAW(text, "Wx", 0, 0, 10, color), 20, 20);
    const Bytes part = mask_of(DRAW(text, "Wx", -7, -5, 10, color), 13, 15);
    for (int y = 0; y < 15; y++)
        for (int x = 0; x < 13; x++) EXPECT_EQ(part[y * 13 + x], whole[(y + 5) * 20 + x + 7]);
}

// At 8 pixels a character, and above, no two characters look alike; all but the blank show.
TEST(Text, CharactersDiffer) {
    for (int size : {8, 20}) {
        std::vector<Bytes> masks;
        for (char ch = ' '; ch <= '~'; ch++) {
            const char text[] = {ch, '\0'};
            masks.push_back(mask_of(DRAW(text, text, 0, 0, size, color), size, size * 2));
            const int strong = (int)std::count_if(masks.back().begin(), masks.back().end(),
                                                  [](int m) { return m > 127; });
            EXPECT_EQ(strong > 0, ch != ' ') << ch;
            for (size_t i = 0; i + 1 < masks.size(); i++) {
                int differ = 0;
                for (size_t k = 0; k < masks[i].size(); k++)
                    differ += std::abs(masks[i][k] - masks.back()[k]) > 127;
                EXPECT_GT(differ, 0) << ch << " and " << (char)(' ' + i);
            }
        }
    }
}
#endif  // QUOLL_PIXEL_DRAWING

#endif  // QUOLL_PIXEL
