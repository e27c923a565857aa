// All kernel families of one instruction set. A new family is a folder and a line in families.inc.
#ifndef QUOLL_LAYER_CPU_KERNEL_SET_H
#define QUOLL_LAYER_CPU_KERNEL_SET_H

#include "cpu_features.h"

namespace quoll {

#define QUOLL_FAMILY(name, type) struct type;
#include "layer/cpu/families.inc"
#undef QUOLL_FAMILY

struct KernelSet {
    Isa isa;
    int lanes;  // floats in a register: the preferred elempack
#define QUOLL_FAMILY(name, type) const type* name;
#include "layer/cpu/families.inc"
#undef QUOLL_FAMILY
};

// The kernels of the best instruction set that was built and is not above `isa`. Whether the
// machine can run it is the caller's question: pass best_isa(host_cpu_features()).
const KernelSet& kernel_set(Isa isa);

// The kernels for this machine as host_cpu_features() sees it now.
const KernelSet& host_kernel_set();

struct IsaList {
    Isa isas[8];
    int count;
    const Isa* begin() const { return isas; }
    const Isa* end() const { return isas + count; }
};

// What was built and host_cpu_features() allows, ascending; scalar is always the first.
IsaList available_isas();

}  // namespace quoll

#endif
