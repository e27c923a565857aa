// int8 products on tile units that multiply bytes and add int32 (AMX, SME): the sums alone.
// Weights, what becomes of sums and the rounding of activations are those of the other int8
// kernels, so that results are the same.
#ifndef QUOLL_LAYER_CPU_INT8_INT8_UNITS_H
#define QUOLL_LAYER_CPU_INT8_INT8_UNITS_H

#include <stdint.h>

#include "layer/cpu/gemm/tile_operands.h"

namespace quoll {

// sums[(i * tile_rows + m) * width + n] = init[n] + A B for row m of tile i, with the width of the
// panel, 32 or 16. A's bytes are unsigned, B is a panel as in int8.h of k-groups of four and two
// vectors of 16: `step_k_groups` rows of it for each step, which has four times as many bytes.
//
// Kernels of lists (Int8ListKernel): A's bytes are signed; B is columns of panels with pairs of
// k-groups (Int8Kernels::pairs), eight at a time, at b + b_columns[n / 8], and `width` is that of
// the columns that exist. step_k_groups is even, and as large as one wants.
struct Int8UnitTile : TileOperands {
    size_t step_k_groups;  // 16 at most
    const int32_t* init;   // of the panel's width, as the sums a multiple of 64 bytes
    int32_t* sums;
    // With lists, bytes: from a pair of k-groups of a column to its next, and of every eight
    // columns.
    ptrdiff_t b_pair, b_columns[kUnitColumns / 8];
};
typedef void (*Int8UnitKernel)(const Int8UnitTile& tile);

// As SplitListKernel (split_gemm.h): `count` times kUnitTiles tiles of rows, but `last` of the last
// one, by `width` columns, a multiple of 8.
typedef void (*Int8ListKernel)(const Int8UnitTile* list, size_t count, size_t last, size_t width);

// Sums of two tiles of a full panel that are finished while the next are made.
struct Int8Epilogue {
    int32_t* sums;  // a multiple of 64 bytes
    int rows;       // 0 where there are no sums
    void (*finish)(const Int8Epilogue&);
};
typedef void (*Int8ChainKernel)(const Int8UnitTile& tile, const Int8Epilogue& epilogue);

// Which of both a machine's units are, so that the other's code is left out.
#if defined(__aarch64__)
constexpr bool kInt8Lists = true;
#else
constexpr bool kInt8Lists = false;
#endif

struct Int8UnitKernels {
    const char* name;
    // Before the first tile in a thread, with the tile_rows and the bytes of a step of all that
    // follow, and after the last.
    void (*begin)(int tile_rows, int k_bytes);
    void (*end)();
    Int8UnitKernel sums[kUnitTiles][2];  // [tiles - 1][0: single-vector panel, 1: full]
    // As sums[1][1], but the sums stay in the units. Those of the call before, where `epilogue` has
    // rows, go to epilogue.sums and are finished. Then the caller says what becomes of the new
    // ones.
    Int8ChainKernel chain;
    void (*end_chain)(
        const Int8Epilogue& epilogue);  // the last sums of a chain, of which there are some
    // In place of all these, which are null then; or null.
    Int8ListKernel list;
    // With lists: as SplitGemmKernels::lanes, 0 where the kernel is of no use on it.
    int (*lanes)();
};

}  // namespace quoll

#endif
