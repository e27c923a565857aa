// Which algorithm a convolution runs on.
#ifndef QUOLL_LAYER_CPU_CONV_CONV_ALGORITHM_H
#define QUOLL_LAYER_CPU_CONV_CONV_ALGORITHM_H

#include "layer/cpu/gemm/sliced_plan.h"
#include "layer/cpu/gemm/split_plan.h"
#include "layer/cpu/winograd/winograd_plan.h"

namespace quoll {

enum class ConvAlgorithm { kNone, kDirect, kWinograd, kSplit, kSliced };
const char* algorithm_name(ConvAlgorithm algorithm);  // "direct", ...; "" of kNone
// False at compile time if the library does not have these algorithms.
inline bool is_winograd(ConvAlgorithm a) { return kHasWinograd && a == ConvAlgorithm::kWinograd; }
inline bool is_split(ConvAlgorithm a) { return kHasTileUnits && a == ConvAlgorithm::kSplit; }
inline bool is_sliced(ConvAlgorithm a) { return kHasTileUnits && a == ConvAlgorithm::kSliced; }

// What a convolution may run on besides the gemm kernels; the kernels for tile units may be null.
struct ConvCandidates {
    bool winograd;
    const SplitGemmKernels* split;
    const SlicedGemmKernels* sliced;
};
// The algorithm that is expected to be the fastest on one core, whatever the number of threads:
// algorithms round differently, and answers must not depend on that number. bf16: whether blobs are
// bf16.
ConvAlgorithm choose_conv_algorithm(const KernelSet& kernels, const ConvCandidates& candidates,
                                    const ConvShape& shape, bool bf16);

}  // namespace quoll

#endif
