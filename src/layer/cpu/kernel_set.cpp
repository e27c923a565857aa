#include "layer/cpu/kernel_set.h"

namespace quoll {

#define QUOLL_ISA(isa, lanes) extern const KernelSet kernel_set_##isa;
#include "isa_list.inc"
#undef QUOLL_ISA

namespace {

const KernelSet* const kSets[] = {
#define QUOLL_ISA(isa, lanes) &kernel_set_##isa,
#include "isa_list.inc"
#undef QUOLL_ISA
};

}  // namespace

const KernelSet& kernel_set(Isa isa) {
    const KernelSet* best = kSets[0];
    for (const KernelSet* set : kSets) {
        if (set->isa <= isa) best = set;
    }
    return *best;
}

#if defined(QUOLL_AVX512BF16)
extern const CastKernels cast_kernels_avx512bf16;

static KernelSet with_bf16(KernelSet set) {
    set.cast = &cast_kernels_avx512bf16;
    return set;
}
#endif

const KernelSet& host_kernel_set() {
    const CpuFeatures& features = host_cpu_features();
    const KernelSet& set = kernel_set(best_isa(features));
#if defined(QUOLL_AVX512BF16)
    static const KernelSet bf16 = with_bf16(kernel_set(Isa::avx512));
    if (set.isa == Isa::avx512 && features.has(CpuFeature::avx512_bf16)) return bf16;
#endif
    return set;
}

IsaList available_isas() {
    const Isa best = best_isa(host_cpu_features());
    IsaList list = {};
    for (const KernelSet* set : kSets) {
        if (set->isa <= best) list.isas[list.count++] = set->isa;
    }
    return list;
}

}  // namespace quoll
