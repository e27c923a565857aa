// The casts of a blob's storage type.
#ifndef QUOLL_LAYER_CPU_CAST_STORAGE_H
#define QUOLL_LAYER_CPU_CAST_STORAGE_H

#include "layer/cpu/cast/cast.h"
#include "layer/cpu/kernel_set.h"
#include "mat.h"

namespace quoll {

// The kernels of f16 and bf16, null for other types.
inline const StorageKernels* storage_kernels(const KernelSet& kernels, DType dtype) {
    return dtype == DType::f16    ? &kernels.cast->f16
           : dtype == DType::bf16 ? &kernels.cast->bf16
                                  : nullptr;
}

}  // namespace quoll

#endif
