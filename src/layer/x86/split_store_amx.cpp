#include "layer/x86/split_store.h"

namespace quoll {

extern const SplitStoreKernels QUOLL_TILE_NAME(split_store);
const SplitStoreKernels QUOLL_TILE_NAME(split_store) = kSplitStore;

}  // namespace quoll
