#include "layer/arm/split_tile_offsets.h"

#include <stddef.h>

#include "layer/cpu/gemm/split_gemm.h"

namespace quoll {

#if !defined(__SIZEOF_POINTER__) || __SIZEOF_POINTER__ == 8
#define QUOLL_CHECK_OFFSET(field, offset)                                                    \
    static_assert(offsetof(TileOperands, field) == (offset), #offset " is not where " #field \
                                                                     " i"                    \
                                                                     "s")

QUOLL_CHECK_OFFSET(a, SPLIT_TILE_A);
QUOLL_CHECK_OFFSET(a_tile, SPLIT_TILE_A_TILE);
QUOLL_CHECK_OFFSET(tile_rows, SPLIT_TILE_ROWS);
QUOLL_CHECK_OFFSET(steps, SPLIT_TILE_STEPS);
QUOLL_CHECK_OFFSET(num_steps, SPLIT_TILE_NUM_STEPS);
QUOLL_CHECK_OFFSET(b, SPLIT_TILE_B);
QUOLL_CHECK_OFFSET(a_word, SPLIT_TILE_A_WORD);
// Its fields follow those of TileOperands.
static_assert(sizeof(TileOperands) == SPLIT_TILE_SUMS && sizeof(SplitTile) == SPLIT_TILE_SIZE &&
                  SPLIT_TILE_FULL_STEPS == SPLIT_TILE_SUMS + sizeof(float*) &&
                  SPLIT_TILE_LAST_PAIRS == SPLIT_TILE_FULL_STEPS + sizeof(size_t),
              "SplitTile's fields are not where SPLIT_TILE_SUMS and the like say");
#endif

}  // namespace quoll
