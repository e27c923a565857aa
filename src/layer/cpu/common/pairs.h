// Blobs of half floats for kernels with half-float arithmetic (KernelSet::f16), which see them as
// floats, each of which is a pair of neighbouring channels.
#ifndef QUOLL_LAYER_CPU_PAIRS_H
#define QUOLL_LAYER_CPU_PAIRS_H

#include "layer/cpu/common/packing.h"
#include "runtime/parts.h"

namespace quoll {

enum { kF16Pack = 8 };  // of such blobs; 4 pairs

// These kernels; null unless the options ask for half floats in memory and in sums.
inline const KernelSet* f16_kernels(const Option& opt) {
    if (!kHasHalfStorage) return nullptr;
    const bool asked = opt.use_fp16_storage && opt.use_fp16_arithmetic && opt.use_packing_layout;
    return asked ? host_kernel_set().f16 : nullptr;
}

// The same memory seen as a blob of pairs; `m` is f16 of elempack kF16Pack, or empty.
inline Mat as_pairs(const Mat& m) {
    Mat pairs = m;
    pairs.dtype = DType::f32;
    pairs.elempack = kF16Pack / 2;
    return pairs;
}

// `m` (f32, f16 or bf16) as f16 with this elempack, which must divide its outermost axis: `m`
// itself, or a copy in temporary memory. A negative code if memory runs out.
inline int as_f16(const Mat& m, int pack, const Option& opt, Mat* half) {
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    Mat wide = m;
    if (m.dtype == DType::bf16) cast_bfloat16_to_float32(m, wide, temporary);
    *half = wide;
    if (wide.dtype == DType::f32) cast_float32_to_float16(wide, *half, temporary);
    if (half->empty()) return kOutOfMemory;
    return with_elempack(*half, pack, opt, half);
}

}  // namespace quoll

#endif
