// The rows that kernels are selected by (kernel_set.h), for tests and benchmarks too.
#ifndef QUOLL_LAYER_CPU_KERNEL_ROWS_H
#define QUOLL_LAYER_CPU_KERNEL_ROWS_H

#include <stddef.h>

#include "layer/cpu/common/kernel_set.h"
#include "layer/cpu/gemm/gemm.h"
#include "runtime/cpu_detect.h"

namespace quoll {

// What a row is for: a member of KernelSet, a tile of the gemm family, or a part of a table.
enum class KernelSlot : unsigned char {
#define QUOLL_FAMILY(name, type) name,
#include "layer/cpu/common/families.inc"
#undef QUOLL_FAMILY
    split6,
    split3,
    split1,
    sliced,
    int8_units,
    recurrent_units,
    gemm_tile,
    half_gemm_tile,  // of half floats
    f16,
    f16_gemm_tile,     // of pairs of half floats; columns are half floats
    f16f32_gemm_tile,  // of KernelSet::f16f32
    // Of vectors of SVE, which take the place of the level's (gemm/wide_gemm.h).
    sve_gemm_tile,
    sve_f16_gemm_tile,
    sve_f16_gemm_planar,
    sve_int8_tile,  // of k-groups of four, of pairs of these
    sve_int8_finish,
    sve_dwconv_pair,
    sve_f16_dwconv_pair,
    gemm_planar,
    f16_gemm_planar,  // of half floats
    int8_tile,
    int8_neighbour_tile,  // of more rows, which lie beside each other
    int8_byte_tile,       // of Int8Kernels::bytes
    int8_windows_3x3,
    int8_windows_5x5,
    // Of weights in blocks: k is the bits of a weight; the rows of block_row are the digits.
    block_tile,
    block_dot,
    block_row,
    block_bytes,
    block_byte_eights,  // with eight values of a row side by side
    dwconv_pair,
    dwconv_planes,
    winograd_input,
    winograd_output,
    f16_dwconv_pair,  // of pairs of half floats
    f16_winograd_input,
    f16_winograd_output,
    narrow_bf16,  // of CastKernels::bf16
};

// A function of the type that the slot has in its table.
typedef void (*KernelPart)();

struct KernelRow {
    KernelSlot slot;
    const char* name;  // the symbol
    // A table of the slot's type, a tile, or a part of a table.
    const void* kernels;
    GemmTileKernel tile;
    KernelPart part;
    CpuFeatures features;  // all are needed
    CpuCore core;          // that it is tuned for; others take it too if they have no better
    const char* values;    // of A, B and the sums
    // The largest tile: rows of A by columns of B, and the values of k of a step. Of parts for
    // images: the outputs made at a time, and the stride; of int8 tiles: values that B has side by
    // side.
    int rows, columns, k;
    int alignment;     // bytes, of packed operands and sums; the contract is in the type's header
    int macs_a_cycle;  // multiply-accumulates of a core at best
};

struct KernelRows {
    const KernelRow* rows;
    size_t count;
    const KernelRow* begin() const { return rows; }
    const KernelRow* end() const { return rows + count; }
};

// The rows of kernel_rows.inc. In addition, the portable families have a table for every level in
// isa_list.inc, vector_kernels().
KernelRows kernel_rows();
const VectorKernels& vector_kernels(Isa isa);

// Floats in a vector of SVE as the thread that asks first has them; 0 on machines and in builds
// without. A process that changes the length (prctl) must do so before the library is first used,
// in all threads alike.
int sve_lanes();

// Calls f(name, kernels) for every row of a slot that these features run.
template <class Kernels, class F>
void for_kernel_rows(KernelSlot slot, const CpuFeatures& features, F f) {
    for (const KernelRow& row : kernel_rows())
        if (row.slot == slot && features.has_all(row.features))
            f(row, *static_cast<const Kernels*>(row.kernels));
}

}  // namespace quoll

#endif
