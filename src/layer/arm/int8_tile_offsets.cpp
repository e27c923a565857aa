#include "layer/arm/int8_tile_offsets.h"

#include <stddef.h>

#include "layer/arm/gemm_tile_offsets.h"
#include "layer/cpu/int8/int8.h"

namespace quoll {

// On every machine, so that a change of the struct does not wait for an ARM build.
#define QUOLL_CHECK_OFFSET(field, offset) \
    static_assert(offsetof(Int8Tile, field) == (offset), #offset " is not where " #field " is")

QUOLL_CHECK_OFFSET(a, INT8_TILE_A);
QUOLL_CHECK_OFFSET(a_row, INT8_TILE_A_ROW);
QUOLL_CHECK_OFFSET(blocks, INT8_TILE_BLOCKS);
QUOLL_CHECK_OFFSET(num_blocks, INT8_TILE_NUM_BLOCKS);
QUOLL_CHECK_OFFSET(block_k, INT8_TILE_BLOCK_K);
QUOLL_CHECK_OFFSET(b, INT8_TILE_B);
QUOLL_CHECK_OFFSET(init, INT8_TILE_INIT);
QUOLL_CHECK_OFFSET(sums, INT8_TILE_SUMS);
QUOLL_CHECK_OFFSET(a_pair, INT8_TILE_A_PAIR);
QUOLL_CHECK_OFFSET(more, INT8_TILE_MORE);
QUOLL_CHECK_OFFSET(a_tile, INT8_TILE_A_TILE);
QUOLL_CHECK_OFFSET(small, INT8_TILE_SMALL);

}  // namespace quoll
