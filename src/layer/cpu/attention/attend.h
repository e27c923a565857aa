// The fast implementation of layer/common/attention.h, for all heads of a layer.
#ifndef QUOLL_LAYER_CPU_ATTENTION_ATTEND_H
#define QUOLL_LAYER_CPU_ATTENTION_ATTEND_H

#include <vector>

#include "layer/common/attention.h"
#include "layer/cpu/common/kernel_set.h"

namespace quoll {

// Heads of equal sizes; `per_group` neighbours share keys and values. Values of a query and of an
// output row follow each other (column 1); keys and values may lie either way (row or column 1).
int attend_fast(const KernelSet& kernels, const std::vector<AttentionHead>& heads, int per_group,
                const Option& opt);

}  // namespace quoll

#endif
