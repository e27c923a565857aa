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

const KernelSet& host_kernel_set() { return kernel_set(best_isa(host_cpu_features())); }

IsaList available_isas() {
    const Isa best = best_isa(host_cpu_features());
    IsaList list = {};
    for (const KernelSet* set : kSets) {
        if (set->isa <= best) list.isas[list.count++] = set->isa;
    }
    return list;
}

}  // namespace quoll
