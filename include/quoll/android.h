// Models of an application's assets, and its bitmaps. Empty but on Android; link `android` and,
// with pixels, `jnigraphics`.
#ifndef QUOLL_ANDROID_H
#define QUOLL_ANDROID_H

#if defined(__ANDROID__)

#include <android/asset_manager.h>
#include <jni.h>

#include "quoll/datareader.h"
#include "quoll/mat.h"
#include "quoll/net.h"

namespace quoll {

// Reads an open asset from where it stands; the caller closes it.
class DataReaderFromAndroidAsset : public DataReader {
public:
    explicit DataReaderFromAndroidAsset(AAsset* asset);
    size_t read(void* buf, size_t size) const override;
    size_t remaining() const override;

private:
    AAsset* asset_;
};

// As Net's functions of a path, for the asset `name`. Weights are copied, so the asset is closed
// again. 0, or a negative code: also when there is no such asset.
int load_param(Net* net, AAssetManager* assets, const char* name);
int load_param_bin(Net* net, AAssetManager* assets, const char* name);
int load_model(Net* net, AAssetManager* assets, const char* name);

#if QUOLL_PIXEL
// An android.graphics.Bitmap of ARGB_8888 (or ALPHA_8, taken as grey) as a float Mat of 0 to 255
// with the channels of `type_to` (Mat::PIXEL_RGB, ...); empty, with a message in the log, for
// others.
Mat mat_from_android_bitmap(JNIEnv* env, jobject bitmap, int type_to, Allocator* allocator = 0);
// Writes a Mat whose channels are those of `type_from` to a bitmap of the same width and height. 0,
// or a negative code.
int mat_to_android_bitmap(const Mat& mat, JNIEnv* env, jobject bitmap, int type_from);
#endif

}  // namespace quoll

#endif

#endif
