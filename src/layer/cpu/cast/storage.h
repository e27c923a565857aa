// The casts of a blob's storage type.
#ifndef QUOLL_LAYER_CPU_CAST_STORAGE_H
#define QUOLL_LAYER_CPU_CAST_STORAGE_H

#include "layer/cpu/cast/cast.h"
#include "layer/cpu/common/kernel_set.h"
#include "quoll/mat.h"
#include "quoll/option.h"
#include "quoll/status.h"
#include "runtime/parts.h"

namespace quoll {

// The kernels of f16 and bf16 between layers, null for other types.
inline const StorageKernels* storage_kernels(const KernelSet& kernels, DType dtype) {
    if (!kHasHalfStorage) return nullptr;
    return dtype == DType::f16    ? &kernels.cast->f16
           : dtype == DType::bf16 ? &kernels.cast->bf16
                                  : nullptr;
}

// `m` as f32: `m` itself, or a copy in temporary memory. A negative code if memory runs out.
inline int widened(const Mat& m, const Option& opt, Mat* wide) {
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    const Mat from = m;
    *wide = m;
    if (m.dtype == DType::f16) cast_float16_to_float32(from, *wide, temporary);
    if (m.dtype == DType::bf16) cast_bfloat16_to_float32(from, *wide, temporary);
    return wide->empty() ? (int)kOutOfMemory : (int)kOk;
}

}  // namespace quoll

#endif
