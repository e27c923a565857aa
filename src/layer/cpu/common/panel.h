// The width of the gemm family's panels, for the kernels of an ISA that read them.
#pragma once

#include "simd/vec.h"

namespace quoll {
namespace {

// The vectors of a full panel. Without SIMD, four columns stand for a vector. With 32 short
// registers, a tile of 6 x 4 vectors needs fewer loads than one of 14 x 2.
constexpr size_t kTileVectors =
    simd::kLanes == 1 || (simd::kLanes == 4 && QUOLL_ISA_REGISTERS >= 32) ? 4 : 2;

}  // namespace
}  // namespace quoll
