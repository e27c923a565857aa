#include "layer/cpu/gemm/half_gemm.h"

#include <stdint.h>

#include "quoll/mat.h"

namespace quoll {

namespace {

// A GemmPackPanel; value (k, n) is at src[k * row + n * column].
void pack(const float* src, size_t row, size_t column, size_t k, size_t count, size_t columns,
          float* panel) {
    uint16_t* to = (uint16_t*)panel;
    for (size_t i = 0; i < k; i++, to += columns) {
        for (size_t n = 0; n < count; n++) to[n] = float32_to_float16(src[i * row + n * column]);
        for (size_t n = count; n < columns; n++) to[n] = 0;
    }
}

void pack_row_major(const float* src, size_t ld, size_t k, size_t count, size_t columns,
                    float* panel) {
    pack(src, ld, 1, k, count, columns, panel);
}

void pack_column_major(const float* src, size_t ld, size_t k, size_t count, size_t columns,
                       float* panel) {
    pack(src, 1, ld, k, count, columns, panel);
}

}  // namespace

GemmKernels half_gemm(const GemmKernels& gemm) {
    GemmKernels half = gemm;
    half.vectors = 8;
    half.step = 2 * gemm.lanes;
    half.halves = 1;
    half.pack_row_major = &pack_row_major;
    half.pack_column_major = &pack_column_major;
    half.row_times_panels = nullptr;
    for (GemmPlanarKernel& planar : half.planar) planar = nullptr;
    for (auto& tiles : half.tile)
        for (GemmTileKernel& tile : tiles) tile = nullptr;
    return half;
}

}  // namespace quoll
