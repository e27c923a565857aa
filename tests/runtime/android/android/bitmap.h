// What the library takes of the NDK's bitmaps, with its declarations.
#ifndef QUOLL_TESTS_BITMAP_H
#define QUOLL_TESTS_BITMAP_H

#include <stdint.h>

#include <jni.h>

enum { ANDROID_BITMAP_RESULT_SUCCESS = 0, ANDROID_BITMAP_RESULT_BAD_PARAMETER = -1 };
enum {
    ANDROID_BITMAP_FORMAT_RGBA_8888 = 1,
    ANDROID_BITMAP_FORMAT_RGB_565 = 4,
    ANDROID_BITMAP_FORMAT_A_8 = 8,
};
struct AndroidBitmapInfo {
    uint32_t width, height, stride;
    int32_t format;
    uint32_t flags;
};

extern "C" {
int AndroidBitmap_getInfo(JNIEnv* env, jobject bitmap, AndroidBitmapInfo* info);
int AndroidBitmap_lockPixels(JNIEnv* env, jobject bitmap, void** pixels);
int AndroidBitmap_unlockPixels(JNIEnv* env, jobject bitmap);
}

#endif
