// Compiled once per ISA.
#include "layer/cpu/common/isa_table.h"
#include "layer/cpu/recurrent/generic.h"
#include "layer/cpu/recurrent/recurrent.h"

namespace quoll {

#if HWY_TARGET == HWY_AVX3
static const RecurrentKernels kRounded = {
#define QUOLL_RECURRENT(name, functor, gates) &recurrent_kernel<functor<RoundedMath>>,
#include "layer/cpu/recurrent/kernels.inc"
#undef QUOLL_RECURRENT
    nullptr};
static const RecurrentKernels* const kForBf16 = &kRounded;
#else
static const RecurrentKernels* const kForBf16 = nullptr;
#endif

extern const RecurrentKernels QUOLL_ISA_TABLE(recurrent_kernels);
const RecurrentKernels QUOLL_ISA_TABLE(recurrent_kernels) = {
#define QUOLL_RECURRENT(name, functor, gates) &recurrent_kernel<functor<ExactMath>>,
#include "layer/cpu/recurrent/kernels.inc"
#undef QUOLL_RECURRENT
    kForBf16};

}  // namespace quoll
