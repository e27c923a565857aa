// What the library takes of the NDK's assets, with its declarations; test_android.cpp has files
// behind them.
#ifndef QUOLL_TESTS_ASSET_MANAGER_H
#define QUOLL_TESTS_ASSET_MANAGER_H

#include <stddef.h>
#include <sys/types.h>

struct AAssetManager;
struct AAsset;
enum { AASSET_MODE_UNKNOWN, AASSET_MODE_RANDOM, AASSET_MODE_STREAMING, AASSET_MODE_BUFFER };

extern "C" {
AAsset* AAssetManager_open(AAssetManager* manager, const char* name, int mode);
int AAsset_read(AAsset* asset, void* buf, size_t count);
off64_t AAsset_getRemainingLength64(AAsset* asset);
void AAsset_close(AAsset* asset);
}

#endif
