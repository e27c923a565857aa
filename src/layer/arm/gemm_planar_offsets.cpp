#include "layer/arm/gemm_planar_offsets.h"

#include <stddef.h>

#include "layer/cpu/gemm/gemm.h"

namespace quoll {

// On every machine of 64 bits, so that a change of the struct does not wait for an ARM build.
#define QUOLL_CHECK_OFFSET(field, offset)                                            \
    static_assert(sizeof(void*) != 8 || offsetof(GemmPlanarTile, field) == (offset), \
                  #offset " is not where " #field " is")

QUOLL_CHECK_OFFSET(in, GEMM_PLANAR_IN);
QUOLL_CHECK_OFFSET(in_step, GEMM_PLANAR_IN_STEP);
QUOLL_CHECK_OFFSET(k, GEMM_PLANAR_K);
QUOLL_CHECK_OFFSET(b, GEMM_PLANAR_B);
QUOLL_CHECK_OFFSET(b_step, GEMM_PLANAR_B_STEP);
QUOLL_CHECK_OFFSET(bias, GEMM_PLANAR_BIAS);
QUOLL_CHECK_OFFSET(out, GEMM_PLANAR_OUT);
QUOLL_CHECK_OFFSET(out_step, GEMM_PLANAR_OUT_STEP);
QUOLL_CHECK_OFFSET(used, GEMM_PLANAR_USED);
QUOLL_CHECK_OFFSET(low, GEMM_PLANAR_LOW);
QUOLL_CHECK_OFFSET(high, GEMM_PLANAR_HIGH);

}  // namespace quoll
