// The Android parts on a stand-in for the NDK: assets are files of models/digits, which come in
// pieces of 1000 bytes, bitmaps lie in memory.
#include "quoll/log.h"

// As the compiler for Android has it, for what follows alone.
#define __ANDROID__ 1
#include "runtime/android.cpp"
#undef __ANDROID__

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

TEST(Android, AssetsGiveTheModelOfTheFiles) {
    quoll::Net files, assets;
    ASSERT_EQ(files.load_param("models/digits/digits.param"), 0);
    ASSERT_EQ(files.load_model("models/digits/digits.bin"), 0);
    ASSERT_EQ(quoll::load_param(&assets, &g_assets, "digits.param"), 0);
    ASSERT_EQ(quoll::load_model(&assets, &g_assets, "digits.bin"), 0);
    EXPECT_EQ(g_assets.open, 0);
    const Mat expected = answer(&files), got = answer(&assets);
    ASSERT_EQ(got.w, expected.w);
    for (int i = 0; i < got.w; i++) EXPECT_EQ(got[i], expected[i]) << i;
}

TEST(Android, MissingAssetsAreErrors) {
    quoll::Net net;
    EXPECT_NE(quoll::load_param(&net, &g_assets, "none.param"), 0);
    EXPECT_NE(quoll::load_param(&net, nullptr, "digits.param"), 0);
    EXPECT_NE(quoll::load_param(&net, &g_assets, "digits.bin"), 0);
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
    const Mat bgr = quoll::mat_from_android_bitmap(&env, &picture, Mat::PIXEL_BGR);
    ASSERT_EQ(bgr.c, 3);
    for (int y = 0; y < 2; y++)
        for (int x = 0; x < 3; x++)
            for (int c = 0; c < 3; c++)
                EXPECT_EQ(bgr.channel(c).row(y)[x],
                          picture.pixels[size_t(y) * picture.info.stride + size_t(x * 4 + 2 - c)]);
    _jobject copy = bitmap(ANDROID_BITMAP_FORMAT_RGBA_8888, 4);
    for (unsigned char& byte : copy.pixels) byte = 9;
    ASSERT_EQ(quoll::mat_to_android_bitmap(bgr, &env, &copy, Mat::PIXEL_BGR), 0);
    for (size_t i = 0; i < copy.pixels.size(); i++) {
        const size_t x = i % copy.info.stride;
        const int expected = x >= 12 ? 9 : x % 4 == 3 ? 255 : picture.pixels[i];
        EXPECT_EQ(copy.pixels[i], expected) << i;
    }
    EXPECT_EQ(picture.locks + copy.locks, 0);
    _jobject grey = bitmap(ANDROID_BITMAP_FORMAT_A_8, 1);
    const Mat alpha = quoll::mat_from_android_bitmap(&env, &grey, Mat::PIXEL_GRAY);
    ASSERT_EQ(alpha.c, 1);
    EXPECT_EQ(alpha.row(1)[2], grey.pixels[grey.info.stride + 2]);
}

TEST(Android, OtherBitmapsAreErrors) {
    JNIEnv env;
    _jobject small = bitmap(ANDROID_BITMAP_FORMAT_RGB_565, 2);
    EXPECT_TRUE(quoll::mat_from_android_bitmap(&env, &small, Mat::PIXEL_RGB).empty());
    EXPECT_TRUE(quoll::mat_from_android_bitmap(&env, nullptr, Mat::PIXEL_RGB).empty());
    _jobject picture = bitmap(ANDROID_BITMAP_FORMAT_RGBA_8888, 4);
    EXPECT_NE(quoll::mat_to_android_bitmap(Mat(4, 2, 3), &env, &picture, Mat::PIXEL_RGB), 0);
    EXPECT_EQ(picture.locks, 0);
}

}  // namespace
