// The fast implementation of layer/common/attention.h, for all heads of a layer.
#ifndef QUOLL_LAYER_CPU_ATTENTION_ATTEND_H
#define QUOLL_LAYER_CPU_ATTENTION_ATTEND_H

#include <memory>
#include <vector>

#include "layer/common/attention.h"
#include "layer/cpu/cast/cast.h"
#include "layer/cpu/common/kernel_set.h"

namespace quoll {

// What heads with bf16 storage ask for.
struct AttentionRounding {
    // The softmax's results are rounded to bf16 if the product that reads the outputs rounds them,
    // too.
    bool sums = false;
    bool exact_values = false;  // the values are those of a bf16 blob
};

// How heads of one size run: on tile units or vectors, in which blocks of queries.
struct AttentionPlan : public LayerPlan {
    // like: the sizes and steps of any head. count: of heads, of which `per_group` neighbours share
    // keys and values.
    AttentionPlan(const KernelSet& kernels, const AttentionHead& like, int count, int per_group,
                  AttentionRounding rounding, const Option& opt);
    ~AttentionPlan() override;
    // "queries" (one at a time), "split" or "vectors"
    const char* algorithm() const override;

    struct Blocks;
    int block;
    std::unique_ptr<const Blocks> blocks;  // null: query by query
};

// Kernels of the 16-bit types that blobs have in place of floats; null: they are floats.
struct StoredTypes {
    const StorageKernels* queries = nullptr;  // and outputs
    const StorageKernels* keys = nullptr;     // and values, which then have column 1
    const StorageKernels* mask = nullptr;
};

// Heads of equal sizes; `per_group` neighbours share keys and values. Values of a query and of an
// output row follow each other (column 1); keys and values may lie either way (row or column 1).
// plan: for these sizes and options; it has blocks if anything is stored in 16 bits.
int attend_fast(const KernelSet& kernels, const std::vector<AttentionHead>& heads, int per_group,
                const AttentionPlan& plan, const StoredTypes& stored, const Option& opt);

}  // namespace quoll

#endif
