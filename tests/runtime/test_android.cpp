// The Android parts on a stand-in for the NDK: assets are files of models/digits, which come in
// pieces of 1000 bytes, bitmaps lie in memory.
#include "quoll/log.h"

// As the compiler for Android has it, for what follows alone.
#define __ANDROID__ 1
#include "quoll/ncnn/net.h"
#include "runtime/android.cpp"
#undef __ANDROID__

#include <stdarg.h>
#include <string.h>

#include <cstdio>
#include <string>
#include <vector>

#include <gtest/gtest.h>

struct AAsset {
    FILE* file;
};
struct AAssetManager {
    int open = 0;
};
struct JNIEnv {};
struct _jobject {
    AndroidBitmapInfo info;
    std::vector<unsigned char> pixels;
    int locks = 0;
};

static AAssetManager g_assets;
static std::string g_logged;

int __android_log_print(int priority, const char* tag, const char* format, ...) {
    char line[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    g_logged += std::to_string(priority) + " " + tag + " " + line + "\n";
    return 1;
}

AAsset* AAssetManager_open(AAssetManager* manager, const char* name, int) {
    FILE* file = fopen((std::string("models/digits/") + name).c_str(), "rb");
    if (!file) return nullptr;
    manager->open++;
    return new AAsset{file};
}
int AAsset_read(AAsset* asset, void* buf, size_t count) {
    return (int)fread(buf, 1, count < 1000 ? count : 1000, asset->file);
}
off64_t AAsset_getRemainingLength64(AAsset* asset) {
    const long at = ftell(asset->file);
    fseek(asset->file, 0, SEEK_END);
    const long end = ftell(asset->file);
    fseek(asset->file, at, SEEK_SET);
    return end - at;
}
void AAsset_close(AAsset* asset) {
    fclose(asset->file);
    delete asset;
    g_assets.open--;
}
int AndroidBitmap_getInfo(JNIEnv*, jobject bitmap, AndroidBitmapInfo* info) {
    if (!bitmap) return ANDROID_BITMAP_RESULT_BAD_PARAMETER;
    *info = bitmap->info;
    return ANDROID_BITMAP_RESULT_SUCCESS;
}
int AndroidBitmap_lockPixels(JNIEnv*, jobject bitmap, void** pixels) {
    bitmap->locks++;
    *pixels = bitmap->pixels.data();
    return ANDROID_BITMAP_RESULT_SUCCESS;
}
int AndroidBitmap_unlockPixels(JNIEnv*, jobject bitmap) {
    bitmap->locks--;
    return ANDROID_BITMAP_RESULT_SUCCESS;
}

namespace {

using quoll::Mat;

Mat answer(quoll::Net* net) {
    Mat in(8, 8, 1), out;
    for (int i = 0; i < 64; i++) in[i] = float(i % 7) / 7;
    quoll::Extractor ex = net->create_extractor();
    EXPECT_EQ(ex.input("data", in), 0);
    EXPECT_EQ(ex.extract("prob", out), 0);
    return out;
}

TEST(Android, MessagesOfProgramsForNcnnReachTheSystemsLog) {
    g_logged.clear();
    NCNN_LOGE("%d of %s", 2, "three");
    EXPECT_EQ(g_logged, "5 ncnn 2 of three\n");
}

TEST(Android, AssetsGiveTheModelOfTheFiles) {
    quoll::Net files, assets;
    ASSERT_EQ(files.load_param("models/digits/digits.param"), 0);
    ASSERT_EQ(files.load_model("models/digits/digits.bin"), 0);
    ASSERT_EQ(assets.load_param(&g_assets, "digits.param"), 0);
    ASSERT_EQ(assets.load_model(&g_assets, "digits.bin"), 0);
    EXPECT_EQ(g_assets.open, 0);
    const Mat expected = answer(&files), got = answer(&assets);
    ASSERT_EQ(got.w, expected.w);
    for (int i = 0; i < got.w; i++) EXPECT_EQ(got[i], expected[i]) << i;
}

// As applications for ncnn open them: the asset stays open for them to close.
TEST(Android, OpenAssetsAndReaders) {
    ncnn::Net net, readers;
    AAsset* param = AAssetManager_open(&g_assets, "digits.param", AASSET_MODE_BUFFER);
    AAsset* model = AAssetManager_open(&g_assets, "digits.bin", AASSET_MODE_BUFFER);
    ASSERT_EQ(net.load_param(param), 0);
    ASSERT_EQ(net.load_model(model), 0);
    rewind(param->file);
    rewind(model->file);
    const ncnn::DataReaderFromAndroidAsset text(param), weights(model);
    ASSERT_EQ(readers.load_param(text), 0);
    ASSERT_EQ(readers.load_model(weights), 0);
    EXPECT_EQ(g_assets.open, 2);
    AAsset_close(param);
    AAsset_close(model);
    const Mat expected = answer(&net), got = answer(&readers);
    ASSERT_GT(got.w, 1);
    for (int i = 0; i < got.w; i++) EXPECT_EQ(got[i], expected[i]) << i;
    EXPECT_NE(net.load_param((AAsset*)nullptr), 0);
    EXPECT_NE(net.load_param_bin((AAsset*)nullptr), 0);
    EXPECT_NE(net.load_model((AAsset*)nullptr), 0);
}

TEST(Android, MissingAssetsAreErrors) {
    quoll::Net net;
    EXPECT_NE(net.load_param(&g_assets, "none.param"), 0);
    EXPECT_NE(net.load_param((AAssetManager*)nullptr, "digits.param"), 0);
    EXPECT_NE(net.load_param(&g_assets, "digits.bin"), 0);
    EXPECT_NE(net.load_param_bin(&g_assets, "digits.param"), 0);
    EXPECT_EQ(g_assets.open, 0);
}

_jobject bitmap(int format, int size) {
    // Rows have bytes beyond the pixels.
    _jobject made{{3, 2, unsigned(3 * size + 5), format, 0}, {}};
    for (unsigned i = 0; i < 2 * made.info.stride; i++)
        made.pixels.push_back((unsigned char)(i * 37));
    return made;
}

TEST(Android, BitmapsToMatsAndBack) {
    _jobject picture = bitmap(ANDROID_BITMAP_FORMAT_RGBA_8888, 4);
    JNIEnv env;
    const Mat bgr = Mat::from_android_bitmap(&env, &picture, Mat::PIXEL_BGR);
    ASSERT_EQ(bgr.c, 3);
    for (int y = 0; y < 2; y++)
        for (int x = 0; x < 3; x++)
            for (int c = 0; c < 3; c++)
                EXPECT_EQ(bgr.channel(c).row(y)[x],
                          picture.pixels[size_t(y) * picture.info.stride + size_t(x * 4 + 2 - c)]);
    _jobject copy = bitmap(ANDROID_BITMAP_FORMAT_RGBA_8888, 4);
    for (unsigned char& byte : copy.pixels) byte = 9;
    ASSERT_EQ(bgr.to_android_bitmap(&env, &copy, Mat::PIXEL_BGR), 0);
    for (size_t i = 0; i < copy.pixels.size(); i++) {
        const size_t x = i % copy.info.stride;
        const int expected = x >= 12 ? 9 : x % 4 == 3 ? 255 : picture.pixels[i];
        EXPECT_EQ(copy.pixels[i], expected) << i;
    }
    EXPECT_EQ(picture.locks + copy.locks, 0);
    _jobject grey = bitmap(ANDROID_BITMAP_FORMAT_A_8, 1);
    const Mat alpha = Mat::from_android_bitmap(&env, &grey, Mat::PIXEL_GRAY);
    ASSERT_EQ(alpha.c, 1);
    EXPECT_EQ(alpha.row(1)[2], grey.pixels[grey.info.stride + 2]);
}

bool same(const Mat& a, const Mat& b) {
    if (a.empty() || a.w != b.w || a.h != b.h || a.c != b.c) return false;
    for (int q = 0; q < a.c; q++)
        if (memcmp(a.channel(q).data, b.channel(q).data, size_t(a.w) * a.h * sizeof(float)))
            return false;
    return true;
}

TEST(Android, PartsAndSizesOfBitmapsAreThoseOfPixels) {
    _jobject picture = bitmap(ANDROID_BITMAP_FORMAT_RGBA_8888, 4);
    const unsigned char* pixels = picture.pixels.data();
    const int stride = int(picture.info.stride), type = Mat::PIXEL_RGBA2RGB;
    JNIEnv env;
    EXPECT_TRUE(same(Mat::from_android_bitmap_resize(&env, &picture, Mat::PIXEL_RGB, 5, 4),
                     Mat::from_pixels_resize(pixels, type, 3, 2, stride, 5, 4)));
    EXPECT_TRUE(same(Mat::from_android_bitmap_roi(&env, &picture, Mat::PIXEL_RGB, 1, 0, 2, 1),
                     Mat::from_pixels_roi(pixels, type, 3, 2, stride, 1, 0, 2, 1)));
    EXPECT_TRUE(
        same(Mat::from_android_bitmap_roi_resize(&env, &picture, Mat::PIXEL_RGB, 1, 0, 2, 2, 4, 3),
             Mat::from_pixels_roi_resize(pixels, type, 3, 2, stride, 1, 0, 2, 2, 4, 3)));
    // A Mat of another size fills the bitmap.
    const Mat large = Mat::from_pixels_resize(pixels, type, 3, 2, stride, 7, 6);
    _jobject copy = bitmap(ANDROID_BITMAP_FORMAT_RGBA_8888, 4), expected = copy;
    ASSERT_EQ(large.to_android_bitmap(&env, &copy, Mat::PIXEL_RGB), 0);
    large.to_pixels_resize(expected.pixels.data(), Mat::PIXEL_RGB2RGBA, 3, 2, stride);
    EXPECT_EQ(copy.pixels, expected.pixels);
    EXPECT_EQ(picture.locks + copy.locks, 0);
}

TEST(Android, OtherBitmapsAreErrors) {
    JNIEnv env;
    _jobject small = bitmap(ANDROID_BITMAP_FORMAT_RGB_565, 2);
    EXPECT_TRUE(Mat::from_android_bitmap(&env, &small, Mat::PIXEL_RGB).empty());
    EXPECT_TRUE(Mat::from_android_bitmap(&env, nullptr, Mat::PIXEL_RGB).empty());
    _jobject picture = bitmap(ANDROID_BITMAP_FORMAT_RGBA_8888, 4);
    EXPECT_NE(Mat().to_android_bitmap(&env, &picture, Mat::PIXEL_RGB), 0);
    EXPECT_NE(Mat(3, 2, 3).to_android_bitmap(&env, &small, Mat::PIXEL_RGB), 0);
    EXPECT_TRUE(Mat::from_android_bitmap_roi(&env, &picture, Mat::PIXEL_RGB, 2, 0, 2, 2).empty());
    EXPECT_EQ(picture.locks, 0);
}

}  // namespace
