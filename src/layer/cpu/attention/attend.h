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

// Heads of equal sizes; `per_group` neighbours share keys and values. Values of a query and of an
// output row follow each other (column 1); keys and values may lie either way (row or column 1).
// plan: for these sizes and options. stored: null, or the kernels of the 16-bit type that q, k, v
// and out then point to instead of floats; keys and values have column 1, and the plan has blocks.
// stored_mask: likewise of the masks, null where those are floats; only with `stored`.
int attend_fast(const KernelSet& kernels, const std::vector<AttentionHead>& heads, int per_group,
                const AttentionPlan& plan, const StorageKernels* stored,
                const StorageKernels* stored_mask, const Option& opt);

}  // namespace quoll

#endif
