// The kernels for a set of instruction-set features: the portable families of the best vector level
// that was built, with what kernel_rows.inc adds to them. A new family is a folder and a line in
// families.inc, a hand kernel a row in kernel_rows.inc.
#ifndef QUOLL_LAYER_CPU_KERNEL_SET_H
#define QUOLL_LAYER_CPU_KERNEL_SET_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/cpu_detect.h"
#include "runtime/cpu_features.h"

namespace quoll {

#define QUOLL_FAMILY(name, type) struct type;
#include "layer/cpu/common/families.inc"
#undef QUOLL_FAMILY
struct SplitGemmKernels;
struct SlicedGemmKernels;
struct Int8UnitKernels;

// The tables that a vector level has all of; null for a family that no operator of this build
// takes.
struct VectorKernels {
    Isa isa;
    int lanes;  // floats in a register: the preferred elempack
#define QUOLL_FAMILY(name, type) const type* name;
#include "layer/cpu/common/families.inc"
#undef QUOLL_FAMILY
};

// And those of units that not every machine has: null without.
struct KernelSet : VectorKernels {
    const SplitGemmKernels *split6, *split3, *split1;  // split_gemm.h: of 6, 3 and 1 products
    const SlicedGemmKernels* sliced;
    const Int8UnitKernels* int8_units;
    const Int8Kernels* int8_pairs;  // of k-groups in pairs, faster than int8
    const KernelSet* half;          // the same with a gemm family of half floats (half_gemm.h)
    // For blobs of half floats, which are taken for floats (half/f16_kernels.h); its families are
    // those of gemm, dwconv, winograd, pool, unary and cast. Weights are packed by `half`.
    const KernelSet* f16;
    // Two blocks of 4 floats an element, of `count` elements each, as one of 8 half floats.
    void (*narrow_f16_blocks)(const float* lower, const float* upper, size_t count, uint16_t* to);

    // Those of so many products, of 6 where there are none of 3; null for a number that there is
    // not.
    const SplitGemmKernels* split(int products) const {
        return products == 6   ? split6
               : products == 3 ? (split3 ? split3 : split6)
               : products == 1 ? split1
                               : nullptr;
    }
};

// The kernels for a machine with these features and cores. Of several for one purpose those of the
// highest vector level are taken, of these such as are tuned for the core before such as are for
// any and for others, and then the last in kernel_rows.inc. The set stays where it is; the first
// call for a machine allocates it.
const KernelSet& kernel_set(const CpuFeatures& features, CpuCore core = host_cpu_core());

// For a machine with what the level needs and no more.
inline const KernelSet& kernel_set(Isa isa) { return kernel_set(isa_features(isa)); }

// For this machine as host_cpu_features() sees it now.
inline const KernelSet& host_kernel_set() { return kernel_set(host_cpu_features()); }

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
