#include "layer/arm/dwconv_pair_offsets.h"

#include <stddef.h>

#include "layer/cpu/dwconv/dwconv.h"

namespace quoll {

// On every machine of 64 bits, so that a change of the struct does not wait for an ARM build.
#define QUOLL_CHECK_OFFSET(field, offset)                                        \
    static_assert(sizeof(void*) != 8 || offsetof(DwconvPair, field) == (offset), \
                  #offset " is not where " #field " is")

QUOLL_CHECK_OFFSET(in, DWCONV_PAIR_IN);
QUOLL_CHECK_OFFSET(row_step, DWCONV_PAIR_ROW_STEP);
QUOLL_CHECK_OFFSET(first, DWCONV_PAIR_FIRST);
QUOLL_CHECK_OFFSET(last, DWCONV_PAIR_LAST);
QUOLL_CHECK_OFFSET(weight, DWCONV_PAIR_WEIGHT);
QUOLL_CHECK_OFFSET(bias, DWCONV_PAIR_BIAS);
QUOLL_CHECK_OFFSET(out, DWCONV_PAIR_OUT);
QUOLL_CHECK_OFFSET(second, DWCONV_PAIR_SECOND);
QUOLL_CHECK_OFFSET(out_w, DWCONV_PAIR_OUT_W);
QUOLL_CHECK_OFFSET(before, DWCONV_PAIR_BEFORE);
QUOLL_CHECK_OFFSET(after, DWCONV_PAIR_AFTER);
QUOLL_CHECK_OFFSET(low, DWCONV_PAIR_LOW);
QUOLL_CHECK_OFFSET(high, DWCONV_PAIR_HIGH);

}  // namespace quoll
