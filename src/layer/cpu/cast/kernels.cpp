// Compiled once per ISA: loops that the compiler vectorises.
#include "layer/cpu/cast/cast.h"
#include "layer/cpu/isa_table.h"
#include "scalar_private.h"

namespace quoll {

namespace {

template <class From, class To, To (*convert)(From)>
void convert_all(const From* __restrict x, To* __restrict y, size_t count) {
    for (size_t i = 0; i < count; i++) y[i] = convert(x[i]);
}

}  // namespace

extern const CastKernels QUOLL_ISA_TABLE(cast_kernels);
const CastKernels QUOLL_ISA_TABLE(cast_kernels) = {
    {&convert_all<uint16_t, float, float_from_half>,
     &convert_all<float, uint16_t, half_from_float>},
    {&convert_all<uint16_t, float, float_from_bfloat>,
     &convert_all<float, uint16_t, bfloat_from_float>},
};

}  // namespace quoll
