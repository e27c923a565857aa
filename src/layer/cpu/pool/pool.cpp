#include "layer/cpu/pool/pool.h"

namespace quoll {

PoolWindowsKernel select_pool_windows(const PoolKernels& kernels, bool max, int pack, int columns,
                                      int stride) {
    enum { Average, Max };
    PoolWindowsKernel found = nullptr;
    for (int i = 0; i < kPoolPacks; i++) {
        if (kPoolPack[i] != pack) continue;
            // Special forms follow the general one in the list.
#define QUOLL_POOL(name, operation, special_columns, special_stride)                        \
    if (max == (operation == Max) &&                                                        \
        (special_columns == 0 || (columns == special_columns && stride == special_stride))) \
        found = kernels.name[i];
#include "layer/cpu/pool/kernels.inc"
#undef QUOLL_POOL
    }
    return found;
}

}  // namespace quoll
