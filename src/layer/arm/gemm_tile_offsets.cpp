#include "layer/arm/gemm_tile_offsets.h"

#include <stddef.h>

#include "layer/cpu/gemm/gemm.h"

namespace quoll {

// On every machine, so that a change of the struct does not wait for an ARM build.
#define QUOLL_CHECK_OFFSET(type, field, offset) \
    static_assert(offsetof(type, field) == (offset), #offset " is not where " #field " is")

QUOLL_CHECK_OFFSET(GemmTile, a, GEMM_TILE_A);
QUOLL_CHECK_OFFSET(GemmTile, a_row, GEMM_TILE_A_ROW);
QUOLL_CHECK_OFFSET(GemmTile, a_k, GEMM_TILE_A_K);
QUOLL_CHECK_OFFSET(GemmTile, blocks, GEMM_TILE_BLOCKS);
QUOLL_CHECK_OFFSET(GemmTile, num_blocks, GEMM_TILE_NUM_BLOCKS);
QUOLL_CHECK_OFFSET(GemmTile, block_k, GEMM_TILE_BLOCK_K);
QUOLL_CHECK_OFFSET(GemmTile, b, GEMM_TILE_B);
QUOLL_CHECK_OFFSET(GemmTile, init, GEMM_TILE_INIT);
QUOLL_CHECK_OFFSET(GemmTile, init_row, GEMM_TILE_INIT_ROW);
QUOLL_CHECK_OFFSET(GemmTile, init_vector, GEMM_TILE_INIT_VECTOR);
QUOLL_CHECK_OFFSET(GemmTile, c, GEMM_TILE_C);
QUOLL_CHECK_OFFSET(GemmTile, c_row, GEMM_TILE_C_ROW);
QUOLL_CHECK_OFFSET(GemmTile, c_vector, GEMM_TILE_C_VECTOR);
QUOLL_CHECK_OFFSET(GemmTile, low, GEMM_TILE_LOW);
QUOLL_CHECK_OFFSET(GemmTile, high, GEMM_TILE_HIGH);
QUOLL_CHECK_OFFSET(GemmTile, fetch.from, GEMM_TILE_FETCH_FROM);
QUOLL_CHECK_OFFSET(GemmTile, fetch.step, GEMM_TILE_FETCH_STEP);
QUOLL_CHECK_OFFSET(GemmTile, more, GEMM_TILE_MORE);
QUOLL_CHECK_OFFSET(GemmTile, a_tile, GEMM_TILE_A_TILE);
QUOLL_CHECK_OFFSET(GemmTile, init_tile, GEMM_TILE_INIT_TILE);
QUOLL_CHECK_OFFSET(GemmTile, c_tile, GEMM_TILE_C_TILE);
QUOLL_CHECK_OFFSET(GemmTile, block_step, GEMM_TILE_BLOCK_STEP);
QUOLL_CHECK_OFFSET(GemmBlock, a, GEMM_BLOCK_A);
QUOLL_CHECK_OFFSET(GemmBlock, k, GEMM_BLOCK_K);
static_assert(sizeof(GemmBlock) == GEMM_BLOCK_SIZE, "GEMM_BLOCK_SIZE is not that of GemmBlock");

}  // namespace quoll
