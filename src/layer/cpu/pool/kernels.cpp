// Compiled once per ISA.
#include "layer/cpu/common/isa_table.h"
#include "layer/cpu/pool/generic.h"
#include "layer/cpu/pool/keys.h"
#include "layer/cpu/pool/pool.h"

namespace quoll {

extern const PoolKernels QUOLL_ISA_TABLE(pool_kernels);
const PoolKernels QUOLL_ISA_TABLE(pool_kernels) = {
#define QUOLL_POOL(name, operation, columns, stride)       \
    {pool_windows_kernel<operation, 4, columns, stride>(), \
     pool_windows_kernel<operation, 8, columns, stride>(), \
     pool_windows_kernel<operation, 16, columns, stride>()},
#include "layer/cpu/pool/kernels.inc"
#undef QUOLL_POOL
    pool_planar_kernels<Max>(),
    pool_planar_kernels<Average>(),
    &pool_key_rows,
    &pool_key_across,
};

}  // namespace quoll
