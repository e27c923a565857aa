// Which blobs stay f32 where others are half floats.
#ifndef QUOLL_PLAN_PRECISE_BLOBS_H
#define QUOLL_PLAN_PRECISE_BLOBS_H

#include "layer/common/built_layers.h"
#include "plan/net_graph.h"

namespace quoll {

// Without these there are no norms and no spectra: the smallest libraries need no passes for them.
constexpr bool kHasPreciseBlobs = kIsBuilt<UnaryOp> || kIsBuilt<Log> || kIsBuilt<Power>;

// Half floats end at 6e-8: powers of a spectrum, variances, and what is added to keep them from 0,
// are 0 as such, whose logarithm and quotient are infinite. What logarithms, roots and divisors are
// made of stays f32, back to the squares in it, that of logarithms to the samples of the spectrum.
// To be called before layers get their pipelines, which then do without half-float arithmetic.
void find_precise_blobs(NetGraph* graph);
// Behind that: built-in layers that make such blobs, or read one beside others, take f32.
void widen_inputs_of_precise_blobs(NetGraph* graph);

}  // namespace quoll

#endif
