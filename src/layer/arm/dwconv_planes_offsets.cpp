#include "layer/arm/dwconv_planes_offsets.h"

#include <stddef.h>

#include "layer/cpu/dwconv/dwconv.h"

namespace quoll {

// On every machine of 64 bits, so that a change of the struct does not wait for an ARM build.
#define QUOLL_CHECK_OFFSET(field, offset)                                          \
    static_assert(sizeof(void*) != 8 || offsetof(DwconvPlanes, field) == (offset), \
                  #offset " is not where " #field " is")

QUOLL_CHECK_OFFSET(taps, DWCONV_PLANES_TAPS);
QUOLL_CHECK_OFFSET(weight, DWCONV_PLANES_WEIGHT);
QUOLL_CHECK_OFFSET(num_taps, DWCONV_PLANES_NUM_TAPS);
QUOLL_CHECK_OFFSET(bias, DWCONV_PLANES_BIAS);
QUOLL_CHECK_OFFSET(out, DWCONV_PLANES_OUT);
QUOLL_CHECK_OFFSET(count, DWCONV_PLANES_COUNT);
QUOLL_CHECK_OFFSET(low, DWCONV_PLANES_LOW);
QUOLL_CHECK_OFFSET(high, DWCONV_PLANES_HIGH);

}  // namespace quoll
