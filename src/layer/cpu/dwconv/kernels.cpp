// Compiled once per ISA.
#include "layer/cpu/common/isa_table.h"
#include "layer/cpu/dwconv/dwconv.h"
#include "layer/cpu/dwconv/generic.h"
#include "runtime/parts.h"

namespace quoll {

extern const DwconvKernels QUOLL_ISA_TABLE(dwconv_kernels);
const DwconvKernels QUOLL_ISA_TABLE(dwconv_kernels) = {
#define QUOLL_DWCONV_ROW(name, kernel, stride)                                       \
    {dwconv_row_kernel<4, kernel, stride>(), dwconv_row_kernel<8, kernel, stride>(), \
     dwconv_row_kernel<16, kernel, stride>()},
#include "layer/cpu/dwconv/kernels.inc"
#undef QUOLL_DWCONV_ROW
    {{dwconv_pair_kernel<float, 1>(), dwconv_pair_kernel<float, 2>()},
     {kHasHalfStorage ? dwconv_pair_kernel<uint16_t, 1>() : nullptr,
      kHasHalfStorage ? dwconv_pair_kernel<uint16_t, 2>() : nullptr}},
    &dwconv_pack_rows,
    &dwconv_planes,
    &dwconv_rows,
    dwconv_group_kernel(),
    {},
};

}  // namespace quoll
