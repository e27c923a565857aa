#include "layer/arm/block_tile_offsets.h"

#include <stddef.h>

#include "layer/cpu/int8/int8.h"

namespace quoll {

#if !defined(__SIZEOF_POINTER__) || __SIZEOF_POINTER__ == 8
#define QUOLL_CHECK_OFFSET(field, offset) \
    static_assert(offsetof(BlockTile, field) == (offset), #offset " is not where " #field " is")

QUOLL_CHECK_OFFSET(a, BLOCK_TILE_A);
QUOLL_CHECK_OFFSET(a_row, BLOCK_TILE_A_ROW);
QUOLL_CHECK_OFFSET(digits, BLOCK_TILE_DIGITS);
QUOLL_CHECK_OFFSET(bytes, BLOCK_TILE_BYTES);
QUOLL_CHECK_OFFSET(b, BLOCK_TILE_B);
QUOLL_CHECK_OFFSET(scale, BLOCK_TILE_SCALE);
QUOLL_CHECK_OFFSET(offset, BLOCK_TILE_OFFSET);
QUOLL_CHECK_OFFSET(half_scale, BLOCK_TILE_HALF_SCALE);
QUOLL_CHECK_OFFSET(a_sum, BLOCK_TILE_A_SUM);
QUOLL_CHECK_OFFSET(a_sum_row, BLOCK_TILE_A_SUM_ROW);
QUOLL_CHECK_OFFSET(k, BLOCK_TILE_K);
QUOLL_CHECK_OFFSET(block, BLOCK_TILE_BLOCK);
QUOLL_CHECK_OFFSET(out, BLOCK_TILE_OUT);
QUOLL_CHECK_OFFSET(out_row, BLOCK_TILE_OUT_ROW);

static_assert(offsetof(BlockDigits, digits) == 0 && offsetof(BlockDigits, blocks) == 8 &&
                  sizeof(BlockDigits) == 16 && offsetof(BlockDigits::Block, unit) == 0 &&
                  sizeof(BlockDigits::Block) == BLOCK_DIGITS_BLOCK_SIZE,
              "BlockDigits is not what the assembly reads");
static_assert(offsetof(ByteRows, values) == 0 && offsetof(ByteRows, blocks) == 8 &&
                  offsetof(ByteRows::Block, unit) == 0 &&
                  sizeof(ByteRows::Block) == BYTE_ROWS_BLOCK_SIZE,
              "ByteRows is not what the assembly reads");
#endif

}  // namespace quoll
