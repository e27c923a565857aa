// Between f32 and the 16-bit types that blobs may be stored in.
#ifndef QUOLL_LAYER_CPU_CAST_CAST_H
#define QUOLL_LAYER_CPU_CAST_CAST_H

#include <stddef.h>
#include <stdint.h>

namespace quoll {

// One storage type; both round and treat NaN as scalar_private.h says.
struct StorageKernels {
    void (*widen)(const uint16_t* x, float* y, size_t count);
    void (*narrow)(const float* x, uint16_t* y, size_t count);
};

struct CastKernels {
    StorageKernels f16, bf16;
};

}  // namespace quoll

#endif
