// Compiled once per ISA.
#include "layer/cpu/common/isa_table.h"
#include "layer/cpu/winograd/generic.h"
#include "layer/cpu/winograd/strided_transforms.h"
#include "layer/cpu/winograd/tile_transforms.h"

namespace quoll {

namespace {
template <class Kernel>
constexpr Kernel tile_kernel(Kernel kernel) {
    return simd::kLanes == 4 && QUOLL_ISA_REGISTERS >= 32 ? kernel : nullptr;
}
}  // namespace

extern const WinogradKernels QUOLL_ISA_TABLE(winograd_kernels);
const WinogradKernels QUOLL_ISA_TABLE(winograd_kernels) = {
#define QUOLL_WINOGRAD_WEIGHTS(name) &name,
#define QUOLL_WINOGRAD_INPUT(name) &name,
#define QUOLL_WINOGRAD_OUTPUT(name) &name,
#include "layer/cpu/winograd/kernels.inc"
#undef QUOLL_WINOGRAD_WEIGHTS
#undef QUOLL_WINOGRAD_INPUT
#undef QUOLL_WINOGRAD_OUTPUT
    tile_kernel(&tile_input),    tile_kernel(&tile_output),    tile_kernel(&tile_weights),
    tile_kernel(&strided_input), tile_kernel(&strided_output), tile_kernel(&strided_weights),
};

}  // namespace quoll
