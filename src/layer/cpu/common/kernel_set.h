// The kernels for a set of instruction-set features: the portable families of the best vector level
// that was built, with what kernel_rows.inc adds to them. A new family is a folder and a line in
// families.inc, a hand kernel per row in kernel_rows.inc.
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
struct RecurrentUnitKernels;

// The tables that every vector level has; null for a family that no operator of this build uses.
struct VectorKernels {
    Isa isa;
    int lanes;  // floats in a register: the preferred elempack
#define QUOLL_FAMILY(name, type) const type* name;
#include "layer/cpu/common/families.inc"
#undef QUOLL_FAMILY
};

// And the tables of units that only some machines have; null without these.
struct KernelSet : VectorKernels {
    const SplitGemmKernels *split6, *split3, *split1;  // split_gemm.h: of 6, 3 and 1 products
    const SlicedGemmKernels* sliced;
    const Int8UnitKernels* int8_units;
    const RecurrentUnitKernels* recurrent_units;
    const Int8Kernels* int8_pairs;  // of k-groups in pairs, faster than int8
    const KernelSet* half;          // the same with a gemm family of half floats (half_gemm.h)
    // The kernels for blobs of half floats, which are treated as floats (half/f16_kernels.h): the
    // families gemm, dwconv, winograd, pool, unary and cast. Weights are packed by `half`.
    const KernelSet* f16;
    // Null unless it is faster: the gemm family for A and B of half floats and sums of fp32, which
    // have the bits of the family's own for the same values widened. A float of A is two half
    // floats, in blocks of two floats equally far apart, its rows are neighbours, no fewer than 4
    // in a tile; panels, all of them full, are those of `gemm` narrowed.
    const KernelSet* f16f32;
    // Joins two blocks with 4 floats per element, of `count` elements each, into one with 8 half
    // floats per element.
    void (*narrow_f16_blocks)(const float* lower, const float* upper, size_t count, uint16_t* to);

    // The kernels for this number of products, those of 6 if there are none of 3; null if there is
    // no such number.
    const SplitGemmKernels* split(int products) const {
        return products == 6   ? split6
               : products == 3 ? (split3 ? split3 : split6)
               : products == 1 ? split1
                               : nullptr;
    }
};

// The kernels for a machine with these features and cores. If several serve one purpose, those of
// the highest vector level are taken; of these, kernels tuned for the core come before those for
// any core, and those before kernels tuned for other cores; then the last one in kernel_rows.inc
// wins. The set is never freed; the first call for a machine allocates it.
const KernelSet& kernel_set(const CpuFeatures& features, CpuCore core = host_cpu_core());

// The set for a machine with just the features that the level needs.
inline const KernelSet& kernel_set(Isa isa) { return kernel_set(isa_features(isa)); }

// The set for this machine as host_cpu_features() describes it now.
inline const KernelSet& host_kernel_set() { return kernel_set(host_cpu_features()); }

struct IsaList {
    Isa isas[8];
    int count;
    const Isa* begin() const { return isas; }
    const Isa* end() const { return isas + count; }
};

// The levels that were built and that host_cpu_features() allows, ascending; scalar is always the
// first.
IsaList available_isas();

}  // namespace quoll

#endif
