#include "quoll/android.h"

#if defined(__ANDROID__)

#include <android/bitmap.h>

#include "quoll/log.h"
#include "quoll/mat.h"
#include "quoll/net.h"
#include "quoll/status.h"

namespace quoll {

DataReaderFromAndroidAsset::DataReaderFromAndroidAsset(AAsset* asset) : asset_(asset) {}

size_t DataReaderFromAndroidAsset::read(void* buf, size_t size) const {
    // A compressed asset comes in pieces.
    size_t done = 0;
    while (done < size) {
        const int got = AAsset_read(asset_, (char*)buf + done, size - done);
        if (got <= 0) break;
        done += (size_t)got;
    }
    return done;
}

size_t DataReaderFromAndroidAsset::remaining() const {
    const off64_t left = AAsset_getRemainingLength64(asset_);
    return left < 0 ? (size_t)-1 : (size_t)left;
}

static int load_asset(Net* net, AAsset* asset, int (Net::*load)(const DataReader&)) {
    if (asset) return (net->*load)(DataReaderFromAndroidAsset(asset));
    QUOLL_LOGE("[android] expected an AAsset, got null");
    return kError;
}

static int load_asset(Net* net, AAssetManager* assets, const char* name, int mode,
                      int (Net::*load)(const DataReader&)) {
    if (!assets || !name) {
        QUOLL_LOGE("[android] expected an AAssetManager and a name, got null");
        return kError;
    }
    AAsset* asset = AAssetManager_open(assets, name, mode);
    if (!asset) {
        QUOLL_LOGE("[android] there is no asset '%s'", name);
        return kError;
    }
    const int status = load_asset(net, asset, load);
    AAsset_close(asset);
    return status;
}

int Net::load_param(AAsset* asset) { return load_asset(this, asset, &Net::load_param); }
int Net::load_param_bin(AAsset* asset) { return load_asset(this, asset, &Net::load_param_bin); }
int Net::load_model(AAsset* asset) { return load_asset(this, asset, &Net::load_model); }

int Net::load_param(AAssetManager* assets, const char* name) {
    return load_asset(this, assets, name, AASSET_MODE_BUFFER, &Net::load_param);
}

int Net::load_param_bin(AAssetManager* assets, const char* name) {
    return load_asset(this, assets, name, AASSET_MODE_BUFFER, &Net::load_param_bin);
}

int Net::load_model(AAssetManager* assets, const char* name) {
    return load_asset(this, assets, name, AASSET_MODE_STREAMING, &Net::load_model);
}

#if QUOLL_PIXEL

namespace {

// A bitmap whose pixels are locked; pixels() is null, after a message, when that was impossible.
class LockedBitmap {
public:
    LockedBitmap(JNIEnv* env, jobject bitmap) : env_(env), bitmap_(bitmap) {
        if (AndroidBitmap_getInfo(env, bitmap, &info) != ANDROID_BITMAP_RESULT_SUCCESS) {
            QUOLL_LOGE("[android] expected a Bitmap");
            return;
        }
        if (info.format == ANDROID_BITMAP_FORMAT_RGBA_8888) type = Mat::PIXEL_RGBA;
        if (info.format == ANDROID_BITMAP_FORMAT_A_8) type = Mat::PIXEL_GRAY;
        if (type == 0)
            QUOLL_LOGE("[android] bitmap: expected format ARGB_8888 or ALPHA_8, got %d",
                       (int)info.format);
        else if (AndroidBitmap_lockPixels(env, bitmap, &pixels_) != ANDROID_BITMAP_RESULT_SUCCESS)
            QUOLL_LOGE("[android] bitmap: cannot lock its pixels");
    }
    ~LockedBitmap() {
        if (pixels_) AndroidBitmap_unlockPixels(env_, bitmap_);
    }
    LockedBitmap(const LockedBitmap&) = delete;
    LockedBitmap& operator=(const LockedBitmap&) = delete;
    unsigned char* pixels() const { return (unsigned char*)pixels_; }

    AndroidBitmapInfo info;
    int type = 0;

private:
    JNIEnv* env_;
    jobject bitmap_;
    void* pixels_ = nullptr;
};

// What from_pixels and to_pixels call the conversion.
int conversion(int from, int to) {
    return from == to ? from : from | to << Mat::PIXEL_CONVERT_SHIFT;
}

}  // namespace

Mat Mat::from_android_bitmap(JNIEnv* env, jobject bitmap, int type_to, Allocator* allocator) {
    const LockedBitmap locked(env, bitmap);
    if (!locked.pixels()) return Mat();
    return from_pixels(locked.pixels(), conversion(locked.type, type_to), (int)locked.info.width,
                       (int)locked.info.height, (int)locked.info.stride, allocator);
}

Mat Mat::from_android_bitmap_resize(JNIEnv* env, jobject bitmap, int type_to, int target_width,
                                    int target_height, Allocator* allocator) {
    const LockedBitmap locked(env, bitmap);
    if (!locked.pixels()) return Mat();
    return from_pixels_resize(locked.pixels(), conversion(locked.type, type_to),
                              (int)locked.info.width, (int)locked.info.height,
                              (int)locked.info.stride, target_width, target_height, allocator);
}

Mat Mat::from_android_bitmap_roi(JNIEnv* env, jobject bitmap, int type_to, int roix, int roiy,
                                 int roiw, int roih, Allocator* allocator) {
    const LockedBitmap locked(env, bitmap);
    if (!locked.pixels()) return Mat();
    return from_pixels_roi(locked.pixels(), conversion(locked.type, type_to),
                           (int)locked.info.width, (int)locked.info.height, (int)locked.info.stride,
                           roix, roiy, roiw, roih, allocator);
}

Mat Mat::from_android_bitmap_roi_resize(JNIEnv* env, jobject bitmap, int type_to, int roix,
                                        int roiy, int roiw, int roih, int target_width,
                                        int target_height, Allocator* allocator) {
    const LockedBitmap locked(env, bitmap);
    if (!locked.pixels()) return Mat();
    return from_pixels_roi_resize(locked.pixels(), conversion(locked.type, type_to),
                                  (int)locked.info.width, (int)locked.info.height,
                                  (int)locked.info.stride, roix, roiy, roiw, roih, target_width,
                                  target_height, allocator);
}

int Mat::to_android_bitmap(JNIEnv* env, jobject bitmap, int type_from) const {
    if (empty()) {
        QUOLL_LOGE("[android] bitmap: the Mat is empty");
        return kError;
    }
    const LockedBitmap locked(env, bitmap);
    if (!locked.pixels()) return kError;
    to_pixels_resize(locked.pixels(), conversion(type_from, locked.type), (int)locked.info.width,
                     (int)locked.info.height, (int)locked.info.stride);
    return kOk;
}

#endif

}  // namespace quoll

#endif
