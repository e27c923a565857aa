// Which blobs stay f32 where others are half floats.
#ifndef QUOLL_PLAN_PRECISE_BLOBS_H
#define QUOLL_PLAN_PRECISE_BLOBS_H

#include "layer/common/built_layers.h"
#include "plan/net_graph.h"

namespace quoll {

// Without these operators there are no norms and no spectra: the smallest libraries leave the
// passes out.
constexpr bool kHasPreciseBlobs = kIsBuilt<UnaryOp> || kIsBuilt<Log> || kIsBuilt<Power>;

// Half floats end at 6e-8. Powers of a spectrum, variances, and what is added to keep them from 0
// may be smaller: they become 0, whose logarithm and quotient are infinite. So the operands of
// logarithms, roots and divisions stay f32, back to the squares they are made of, and for
// logarithms back to the samples of the spectrum. To be called before layers create their
// pipelines, which then do without half-float arithmetic.
void find_precise_blobs(NetGraph* graph);
// To be called after that: built-in layers that make such blobs, or read one beside others, take
// f32.
void widen_inputs_of_precise_blobs(NetGraph* graph);

}  // namespace quoll

#endif
