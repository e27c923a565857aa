// Pixels to and from Mats, resizing of pixels, YUV: against ncnn's results and against formulas.
#include "quoll/image.h"

#include <gtest/gtest.h>
#include <math.h>

#include "mat_helpers.h"
#include "pixel_cases.h"

#if QUOLL_PIXEL

using namespace quoll;

namespace {

const int kFormats[] = {Mat::PIXEL_RGB, Mat::PIXEL_BGR, Mat::PIXEL_GRAY, Mat::PIXEL_RGBA,
                        Mat::PIXEL_BGRA};
const int kChannels[] = {3, 3, 1, 4, 4};

int pixel_type(int source, int target) {
    return source == target ? kFormats[source]
                            : kFormats[source] | kFormats[target] << Mat::PIXEL_CONVERT_SHIFT;
}

std::vector<unsigned char> random_image(size_t bytes, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<unsigned char> image(bytes);
    for (unsigned char& b : image) b = random();
    return image;
}

Mat run_case(const PixelCase& c) {
    const unsigned char* img = c.given.bytes.data();
    const std::vector<int>& p = c.params;
    if (c.op == "from_pixels") return Mat::from_pixels(img, p[0], p[1], p[2], p[3]);
    if (c.op == "from_pixels_resize")
        return Mat::from_pixels_resize(img, p[0], p[1], p[2], p[3], p[4], p[5]);
    if (c.op == "from_pixels_roi")
        return Mat::from_pixels_roi(img, p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]);
    if (c.op == "from_pixels_roi_resize")
        return Mat::from_pixels_roi_resize(img, p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7],
                                           p[8], p[9]);
    return Mat();
}

}  // namespace

TEST(Pixel, AgreesWithNcnnBitForBit) {
    for (const PixelCase& c : pixel_cases("from_pixels"))
        expect_result(run_case(c), c.expected, 0.f, c.name());
}

// The forms without a stride are those with the packed stride.
TEST(Pixel, DefaultStride) {
    const int w = 9, h = 4;
    for (int f = 0; f < 5; f++) {
        const int type = pixel_type(f, (f + 1) % 5), stride = w * kChannels[f];
        const std::vector<unsigned char> img = random_image(stride * h, f);
        const unsigned char* p = img.data();
        EXPECT_EQ(0, count_differences(Mat::from_pixels(p, type, w, h),
                                       Mat::from_pixels(p, type, w, h, stride)));
        EXPECT_EQ(0, count_differences(Mat::from_pixels_resize(p, type, w, h, 5, 6),
                                       Mat::from_pixels_resize(p, type, w, h, stride, 5, 6)));
        EXPECT_EQ(0, count_differences(Mat::from_pixels_roi(p, type, w, h, 1, 2, 3, 2),
                                       Mat::from_pixels_roi(p, type, w, h, stride, 1, 2, 3, 2)));
        EXPECT_EQ(0, count_differences(
                         Mat::from_pixels_roi_resize(p, type, w, h, 1, 2, 3, 2, 7, 7),
                         Mat::from_pixels_roi_resize(p, type, w, h, stride, 1, 2, 3, 2, 7, 7)));
    }
}

// A negative stride reads an image whose rows lie from the bottom up.
TEST(Pixel, NegativeStride) {
    const std::vector<unsigned char> img = random_image(3 * 4 * 2, 5);
    const Mat up = Mat::from_pixels(img.data() + 12, Mat::PIXEL_RGB, 4, 2, -12);
    const Mat down = Mat::from_pixels(img.data(), Mat::PIXEL_RGB, 4, 2);
    ASSERT_FALSE(up.empty());
    for (int x = 0; x < 4; x++) EXPECT_EQ(up.channel(1).row(0)[x], down.channel(1).row(1)[x]);
}

// to_pixels is the inverse of from_pixels for every pair of formats that keeps all information.
TEST(Pixel, RoundTrip) {
    const int w = 13, h = 5;
    for (int s = 0; s < 5; s++) {
        for (int t = 0; t < 5; t++) {
            if (kChannels[t] < kChannels[s]) continue;
            const int row = w * kChannels[s], stride = row + 3;
            const std::vector<unsigned char> img = random_image(stride * h, s * 5 + t);
            const Mat m = Mat::from_pixels(img.data(), pixel_type(s, t), w, h, stride);
            std::vector<unsigned char> back(stride * h, 0xee), packed(row * h);
            // grey again from three equal channels is the grey value
            m.to_pixels(back.data(), pixel_type(t, s), stride);
            m.to_pixels(packed.data(), pixel_type(t, s));
            for (int y = 0; y < h; y++) {
                EXPECT_EQ(0, memcmp(&back[y * stride], &img[y * stride], row)) << s << " " << t;
                EXPECT_EQ(0, memcmp(&packed[y * row], &img[y * stride], row)) << s << " " << t;
                for (int i = row; i < stride; i++) EXPECT_EQ(back[y * stride + i], 0xee);
            }
        }
    }
}

TEST(Pixel, ToPixelsCutsOffAndClamps) {
    const float values[] = {-1e30f, -0.5f, 0.99f, 1.f, 254.999f, 255.f, 255.5f, 1e30f, NAN};
    const unsigned char want[] = {0, 0, 0, 1, 254, 255, 255, 255, 0};
    unsigned char got[9];
    Mat(9, 1, 1, (void*)values).to_pixels(got, Mat::PIXEL_GRAY);
    EXPECT_EQ(0, memcmp(got, want, sizeof(want)));
    memset(got, 7, sizeof(got));
    Mat(9, 1, (void*)values).to_pixels(got, Mat::PIXEL_GRAY);  // two axes are one channel
    EXPECT_EQ(0, memcmp(got, want, sizeof(want)));
}

TEST(Pixel, ToPixelsGrey) {
    Mat m(2, 1, 3);
    m.channel(0).fill(200.9f), m.channel(1).fill(100.f), m.channel(2).fill(-3.f);
    unsigned char got[2];
    m.to_pixels(got, Mat::PIXEL_RGB2GRAY);
    EXPECT_EQ(got[1], (77 * 200 + 150 * 100) >> 8);
    m.to_pixels(got, Mat::PIXEL_BGR2GRAY);
    EXPECT_EQ(got[1], (150 * 100 + 29 * 200) >> 8);
}

// to_pixels_resize is to_pixels, then the resize of 8-bit pixels in the target format.
TEST(Pixel, ToPixelsResize) {
    const int w = 7, h = 6, tw = 10, th = 4;
    const Mat m = random_values(Shape(w, h, 4), 1, 3, 300.f);
    std::vector<unsigned char> own(w * h * 3), want(tw * th * 3), got(want), strided(th * 40, 0xee);
    m.to_pixels(own.data(), Mat::PIXEL_RGBA2BGR);
    ASSERT_EQ(0, resize_bilinear_c3(own.data(), w, h, want.data(), tw, th));
    m.to_pixels_resize(got.data(), Mat::PIXEL_RGBA2BGR, tw, th);
    EXPECT_EQ(got, want);
    m.to_pixels_resize(strided.data(), Mat::PIXEL_RGBA2BGR, tw, th, 40);
    for (int y = 0; y < th; y++) {
        EXPECT_EQ(0, memcmp(&strided[y * 40], &want[y * 30], 30));
        EXPECT_EQ(strided[y * 40 + 35], 0xee);
    }
    m.to_pixels_resize(own.data(), Mat::PIXEL_RGBA2BGR, w, h);
    std::vector<unsigned char> same(own.size());
    m.to_pixels(same.data(), Mat::PIXEL_RGBA2BGR);
    EXPECT_EQ(own, same);
}

// Each channel of c2, c3 and c4 is what c1 makes of that channel, with and without strides.
TEST(Pixel, ResizeChannelsAreIndependent) {
    typedef int (*Resize)(const unsigned char*, int, int, int, unsigned char*, int, int, int);
    typedef int (*Packed)(const unsigned char*, int, int, unsigned char*, int, int);
    const Resize resize[] = {resize_bilinear_c1, resize_bilinear_c2, resize_bilinear_c3,
                             resize_bilinear_c4};
    const Packed packed[] = {resize_bilinear_c1, resize_bilinear_c2, resize_bilinear_c3,
                             resize_bilinear_c4};
    const int w = 11, h = 7, tw = 6, th = 16;
    for (int c = 1; c <= 4; c++) {
        const std::vector<unsigned char> img = random_image(w * h * c, c);
        std::vector<unsigned char> out(tw * th * c), wide(th * (tw * c + 5), 0xee);
        std::vector<unsigned char> padded(h * (w * c + 2));
        for (int y = 0; y < h; y++) memcpy(&padded[y * (w * c + 2)], &img[y * w * c], w * c);
        ASSERT_EQ(0, packed[c - 1](img.data(), w, h, out.data(), tw, th));
        ASSERT_EQ(0,
                  resize[c - 1](padded.data(), w, h, w * c + 2, wide.data(), tw, th, tw * c + 5));
        for (int k = 0; k < c; k++) {
            std::vector<unsigned char> plane(w * h), want(tw * th);
            for (int i = 0; i < w * h; i++) plane[i] = img[i * c + k];
            ASSERT_EQ(0, resize_bilinear_c1(plane.data(), w, h, want.data(), tw, th));
            for (int i = 0; i < tw * th; i++) {
                ASSERT_EQ(out[i * c + k], want[i]) << c << " " << k;
                ASSERT_EQ(wide[i / tw * (tw * c + 5) + i % tw * c + k], want[i]) << c << " " << k;
            }
        }
        EXPECT_EQ(wide.back(), 0xee);
    }
}

// Fixed point stays within 1 of bilinear interpolation in double.
TEST(Pixel, ResizeNearExact) {
    const int w = 37, h = 23, tw = 50, th = 61;
    const std::vector<unsigned char> img = random_image(w * h, 9);
    std::vector<unsigned char> out(tw * th);
    ASSERT_EQ(0, resize_bilinear_c1(img.data(), w, h, out.data(), tw, th));
    const auto clamp = [](int v, int n) { return v < 0 ? 0 : v < n ? v : n - 1; };
    for (int y = 0; y < th; y++) {
        for (int x = 0; x < tw; x++) {
            const double sx = (x + .5) * w / tw - .5, sy = (y + .5) * h / th - .5;
            const int x0 = (int)floor(sx), y0 = (int)floor(sy);
            const auto at = [&](int i, int j) { return img[clamp(j, h) * w + clamp(i, w)]; };
            const double top = at(x0, y0) + (sx - x0) * (at(x0 + 1, y0) - at(x0, y0));
            const double low = at(x0, y0 + 1) + (sx - x0) * (at(x0 + 1, y0 + 1) - at(x0, y0 + 1));
            ASSERT_NEAR(out[y * tw + x], top + (sy - y0) * (low - top), 1.0) << x << " " << y;
        }
    }
}

TEST(Pixel, ResizeKeepsConstantImages) {
    for (int v : {0, 1, 127, 254, 255}) {
        const std::vector<unsigned char> img(5 * 3, (unsigned char)v);
        std::vector<unsigned char> out(64 * 33);
        ASSERT_EQ(0, resize_bilinear_c1(img.data(), 5, 3, out.data(), 64, 33));
        for (unsigned char o : out) ASSERT_EQ(o, v);
    }
}

// JFIF's formula in double; the library's coefficients have 6 bits.
void expect_rgb(const unsigned char* rgb, double y, int u, int v) {
    const double want[] = {y + 1.402 * (v - 128), y - 0.714136 * (v - 128) - 0.344136 * (u - 128),
                           y + 1.772 * (u - 128)};
    for (int k = 0; k < 3; k++) {
        const double clamped = want[k] < 0 ? 0 : want[k] > 255 ? 255 : want[k];
        ASSERT_NEAR(rgb[k], clamped, 2.0) << y << " " << u << " " << v;
    }
}

TEST(Pixel, Yuv) {
    for (const int w : {2, 8, 7}) {
        for (const int h : {2, 4, 5}) {
            const int cw = (w + 1) / 2, ch = (h + 1) / 2;
            const std::vector<unsigned char> yuv = random_image(w * h + cw * ch * 2, w * h);
            std::vector<unsigned char> nv21(w * h * 3), nv12(nv21), half(w / 2 * (h / 2) * 3);
            ASSERT_EQ(0, yuv420sp2rgb(yuv.data(), w, h, nv21.data()));
            ASSERT_EQ(0, yuv420sp2rgb_nv12(yuv.data(), w, h, nv12.data()));
            ASSERT_EQ(0, yuv420sp2rgb_half(yuv.data(), w, h, half.data()));
            for (int i = 0; i < w * h; i++) {
                const int x = i % w, y = i / w;
                const unsigned char* pair = &yuv[w * h + (y / 2 * cw + x / 2) * 2];
                expect_rgb(&nv21[i * 3], yuv[i], pair[1], pair[0]);
                expect_rgb(&nv12[i * 3], yuv[i], pair[0], pair[1]);
            }
            for (int i = 0; i < w / 2 * (h / 2); i++) {
                const int x = i % (w / 2), y = i / (w / 2);
                const unsigned char *a = &yuv[y * 2 * w + x * 2], *b = a + w;
                const unsigned char* pair = &yuv[w * h + (y * cw + x) * 2];
                expect_rgb(&half[i * 3], (a[0] + a[1] + b[0] + b[1]) / 4.0, pair[1], pair[0]);
            }
        }
    }
}

TEST(Pixel, BadArgumentsGiveAnEmptyMat) {
    unsigned char img[64] = {};
    const int rgb = Mat::PIXEL_RGB;
    LogCapture log;
    for (int type : {0, 6, -1, 1 << 16, 3 | 9 << 16, 0x10000003, 0x7fffffff})
        EXPECT_TRUE(Mat::from_pixels(img, type, 2, 2).empty()) << type;
    EXPECT_TRUE(log.contains("PIXEL_x"));
    EXPECT_TRUE(Mat::from_pixels(nullptr, rgb, 2, 2).empty());
    EXPECT_TRUE(Mat::from_pixels(img, rgb, 0, 2).empty());
    EXPECT_TRUE(Mat::from_pixels(img, rgb, 2, -1).empty());
    EXPECT_TRUE(Mat::from_pixels(img, rgb, 0x7fffffff, 1).empty());
    EXPECT_TRUE(Mat::from_pixels(img, rgb, 2, 2, 5).empty());
    EXPECT_TRUE(Mat::from_pixels_resize(img, rgb, 2, 2, 0, 2).empty());
    EXPECT_TRUE(Mat::from_pixels_resize(img, rgb, 2, 2, 0x7fffffff, 0x7fffffff).empty());
    EXPECT_TRUE(Mat::from_pixels_resize(img, 0, 2, 2, 2, 2).empty());
    const int rois[][4] = {{-1, 0, 1, 1}, {0, -1, 1, 1}, {0, 0, 3, 1},         {0, 0, 1, 3},
                           {2, 0, 1, 1},  {0, 0, 0, 1},  {1, 0, 0x7fffffff, 1}};
    for (const int* r : rois) {
        EXPECT_TRUE(Mat::from_pixels_roi(img, rgb, 2, 2, r[0], r[1], r[2], r[3]).empty());
        EXPECT_TRUE(
            Mat::from_pixels_roi_resize(img, rgb, 2, 2, r[0], r[1], r[2], r[3], 2, 2).empty());
    }
    EXPECT_TRUE(log.contains("rectangle"));
    TestAllocator none;
    none.fail_from = 0;
    EXPECT_TRUE(Mat::from_pixels(img, rgb, 2, 2, &none).empty());
    EXPECT_TRUE(log.contains("out of memory"));
}

TEST(Pixel, BadArgumentsWriteNothing) {
    unsigned char out[64];
    memset(out, 0xee, sizeof(out));
    LogCapture log;
    const Mat m = random_values(Shape(2, 2, 3), 1, 1);
    Mat packed, half;
    convert_packing(random_values(Shape(2, 2, 4), 1, 1), packed, 4);
    cast_float32_to_float16(m, half);
    m.to_pixels(out, 0);
    m.to_pixels(nullptr, Mat::PIXEL_RGB);
    m.to_pixels(out, Mat::PIXEL_RGBA);
    m.to_pixels(out, Mat::PIXEL_RGB, 5);
    packed.to_pixels(out, Mat::PIXEL_RGBA);
    half.to_pixels(out, Mat::PIXEL_RGB);
    Mat().to_pixels(out, Mat::PIXEL_RGB);
    Mat(4).to_pixels(out, Mat::PIXEL_GRAY);
    m.to_pixels_resize(out, Mat::PIXEL_RGB, 0, 1);
    m.to_pixels_resize(out, Mat::PIXEL_RGB, 2, 2, 1);
    m.to_pixels_resize(out, Mat::PIXEL_RGBA, 1, 1);
    EXPECT_EQ(11u, log.messages.size());
    EXPECT_GT(0, resize_bilinear_c1(nullptr, 1, 1, out, 1, 1));
    EXPECT_GT(0, resize_bilinear_c3(out, 1, 1, nullptr, 1, 1));
    EXPECT_GT(0, resize_bilinear_c3(out, 2, 1, 5, out, 1, 1, 3));
    EXPECT_GT(0, resize_bilinear_c4(out, 1, 0, out, 1, 1));
    EXPECT_GT(0, yuv420sp2rgb(out, 0, 2, out));
    EXPECT_GT(0, yuv420sp2rgb_nv12(out, 2, 2, nullptr));
    EXPECT_GT(0, yuv420sp2rgb_half(out, 1, 1, out));
    for (unsigned char o : out) EXPECT_EQ(o, 0xee);
}

#endif  // QUOLL_PIXEL
