// Parts that a small library may lack, as constants: what they make impossible the compiler leaves out.
#ifndef QUOLL_RUNTIME_PARTS_H
#define QUOLL_RUNTIME_PARTS_H

namespace quoll {

// Back ends beside the host (Net::add_backend, GPUs).
#if defined(QUOLL_NO_BACKENDS)
constexpr bool kHasBackends = false;
#else
constexpr bool kHasBackends = true;
#endif

// Blobs of half floats between layers (Option::use_fp16_storage, use_bf16_storage). Weights, inputs
// and casts of them are there in any case.
#if defined(QUOLL_NO_HALF_STORAGE)
constexpr bool kHasHalfStorage = false;
#else
constexpr bool kHasHalfStorage = true;
#endif

}  // namespace quoll

#endif
