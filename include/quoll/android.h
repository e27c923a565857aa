// Assets of an Android application as a DataReader. Empty but on Android, where Net also loads
// assets by their names, and Mat takes and fills bitmaps.
#ifndef QUOLL_ANDROID_H
#define QUOLL_ANDROID_H

#if defined(__ANDROID__)

#include <android/asset_manager.h>

#include "quoll/datareader.h"

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

}  // namespace quoll

#endif

#endif
