// What kernels of tile units multiply: the part of their contracts that does not depend on the type
// of the values.
//
// A unit multiplies rows of 64 bytes of A by as many bytes of each of 16 columns of B. B is packed
// into panels, A is read through a list of places, one for each such step of k, so that the taps of
// a convolution's window are places in one copy of its input.
#ifndef QUOLL_LAYER_CPU_GEMM_TILE_OPERANDS_H
#define QUOLL_LAYER_CPU_GEMM_TILE_OPERANDS_H

#include <stddef.h>

namespace quoll {

enum {
    kUnitRowBytes = 64,
    kUnitRows = 16,     // rows of a tile at most
    kUnitColumns = 32,  // of a full panel; a narrow one has 16
    kUnitTiles = 2      // tiles of rows that a kernel takes at most
};

// Row m of tile i has for step s the bytes from a + i * a_tile + m * a_row + steps[s] on.
struct TileOperands {
    const char* a;
    ptrdiff_t a_row, a_tile;  // bytes, as the steps
    int tile_rows;
    const ptrdiff_t* steps;
    size_t num_steps;  // at least 1
    const char* b;     // a panel
    // What is fetched into the second-level cache meanwhile, a part of the next panel; or null.
    const char* next;
    size_t next_bytes;
};

}  // namespace quoll

#endif
