// B: its panels, and packing into them.
#include <algorithm>

#include "layer/cpu/common/few_kernels.h"
#include "layer/cpu/gemm/gemm_panels.h"

namespace quoll {

size_t gemm_panel_width(const GemmKernels& kernels, size_t left) {
    const size_t step = kernels.step;
    size_t width = std::min((left + step - 1) / step * step, panel_columns(kernels));
    while (kFewKernels && width && !kernels.tile[width / step - 1][0]) width += step;
    return width;
}

size_t gemm_packed_size(const GemmKernels& kernels, size_t n, size_t k) {
    if (n == 0) return 0;
    const size_t last = panel_count(kernels, n) - 1;
    return gemm_b_size(kernels,
                       k * (last * panel_columns(kernels) + panel_width(kernels, n, last)));
}

size_t gemm_bias_size(const GemmKernels& kernels, size_t n) {
    return panel_count(kernels, n) * panel_columns(kernels);
}

void gemm_pack(const GemmKernels& kernels, const float* src, size_t ld, bool row_major, size_t n,
               size_t k, float* packed) {
    const size_t columns = panel_columns(kernels);
    const GemmPackPanel pack = row_major ? kernels.pack_row_major : kernels.pack_column_major;
    for (size_t p = 0; p * columns < n; p++) {
        const size_t n0 = p * columns;
        pack(src + (row_major ? n0 : n0 * ld), ld, k, std::min(columns, n - n0),
             panel_width(kernels, n, p), packed + gemm_b_size(kernels, n0 * k));
    }
}

void gemm_pack_ordered(const GemmKernels& kernels, const float* src, size_t ld, const int* order,
                       size_t n, size_t k, float* packed) {
    // Reorders part of a panel column by column, and then packs it as any column-major matrix.
    enum { kPart = 32, kMaxColumns = 128 };
    float part[kMaxColumns * kPart];
    const size_t columns = panel_columns(kernels);
    for (size_t n0 = 0; n0 < n; n0 += columns) {
        const size_t count = std::min(columns, n - n0);
        const size_t width = panel_width(kernels, n, n0 / columns);
        for (size_t k0 = 0; k0 < k; k0 += kPart) {
            const size_t rows = std::min<size_t>(kPart, k - k0);
            for (size_t j = 0; j < count; j++)
                for (size_t i = 0; i < rows; i++)
                    part[j * rows + i] = src[(n0 + j) * ld + order[k0 + i]];
            kernels.pack_column_major(part, rows, rows, count, width,
                                      packed + gemm_b_size(kernels, n0 * k + k0 * width));
        }
    }
}

Mat gemm_packed(const GemmKernels& kernels, const float* src, size_t ld, bool row_major, size_t n,
                size_t k, Allocator* allocator) {
    // The Mat has rows of one vector: a panel is a whole number of them, and its floats may exceed
    // an int.
    const size_t rows = gemm_packed_size(kernels, n, k) / kernels.lanes;
    Mat packed(kernels.lanes, (int)rows, (size_t)4u, allocator);
    if (!packed.empty()) gemm_pack(kernels, src, ld, row_major, n, k, packed);
    return packed;
}

Mat gemm_bias(const GemmKernels& kernels, const float* bias, size_t n, Allocator* allocator) {
    Mat padded((int)gemm_bias_size(kernels, n), (size_t)4u, allocator);
    if (padded.empty()) return padded;
    padded.fill(0.f);
    if (bias) std::copy_n(bias, n, (float*)padded);
    return padded;
}

void gemm_unpack(const GemmKernels& kernels, const float* packed, size_t n, size_t k, float* dst) {
    const size_t columns = panel_columns(kernels);
    for (size_t j = 0; j < n; j++, dst += k) {
        const size_t p = j / columns, width = panel_width(kernels, n, p);
        const float* from = packed + p * columns * k + j % columns;
        for (size_t i = 0; i < k; i++) dst[i] = from[i * width];
    }
}

}  // namespace quoll
