#include "layer/arm/int8_window_rows_offsets.h"

#include <stddef.h>

#include "layer/cpu/int8/int8.h"

namespace quoll {

// On every machine, so that a change of the struct does not wait for an ARM build.
#define QUOLL_CHECK_OFFSET(field, offset)                      \
    static_assert(offsetof(Int8WindowRows, field) == (offset), \
                  #offset " is not where " #field " is")

QUOLL_CHECK_OFFSET(in, INT8_WINDOW_ROWS_IN);
QUOLL_CHECK_OFFSET(in_row, INT8_WINDOW_ROWS_IN_ROW);
QUOLL_CHECK_OFFSET(in_step, INT8_WINDOW_ROWS_IN_STEP);
QUOLL_CHECK_OFFSET(weight, INT8_WINDOW_ROWS_WEIGHT);
QUOLL_CHECK_OFFSET(init, INT8_WINDOW_ROWS_INIT);
QUOLL_CHECK_OFFSET(sums, INT8_WINDOW_ROWS_SUMS);
QUOLL_CHECK_OFFSET(width, INT8_WINDOW_ROWS_WIDTH);
QUOLL_CHECK_OFFSET(rows, INT8_WINDOW_ROWS_ROWS);

}  // namespace quoll
