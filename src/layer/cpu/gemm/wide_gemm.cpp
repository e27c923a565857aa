#include "layer/cpu/gemm/wide_gemm.h"

#include <algorithm>

namespace quoll {

namespace {

enum { kMostColumns = 64, kLevelVectors = 4 };

bool is_wide(const GemmKernels& gemm) { return gemm.step > gemm.lanes && gemm.halves == 2; }

}  // namespace

GemmKernels wide_gemm(const GemmKernels& gemm, int lanes) {
    GemmKernels wide = gemm;
    wide.step = lanes;
    wide.vectors = std::min<int>(4 * lanes, kMostColumns) / gemm.lanes;
    wide.row_times_panels = nullptr;
    std::fill_n(wide.planar, kPlanarWidths, nullptr);
    for (auto& tiles : wide.tile) std::fill_n(tiles, kGemmMaxRows, nullptr);
    return wide;
}

GemmKernels wide_half_gemm(const GemmKernels& half, const GemmKernels& wide) {
    GemmKernels panels = half;
    panels.step = 2 * wide.step;
    panels.vectors = 2 * wide.vectors;
    for (auto& tiles : panels.tile) std::fill_n(tiles, kGemmMaxRows, nullptr);
    return panels;
}

GemmKernels level_gemm(const GemmKernels& gemm) {
    GemmKernels level = gemm;
    if (is_wide(gemm)) level.step = gemm.lanes, level.vectors = kLevelVectors;
    return level;
}

}  // namespace quoll
