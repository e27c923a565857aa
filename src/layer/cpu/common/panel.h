// The width of the gemm family's panels, for the kernels of an ISA that read them.
#pragma once

#include "simd/vec.h"

namespace quoll {
namespace {

// Vectors of a full panel. Without SIMD four columns stand for a vector.
constexpr size_t kTileVectors = simd::kLanes == 1 ? 4 : 2;

}  // namespace
}  // namespace quoll
