#include "layer/cpu/conv/conv_algorithm.h"

#include "layer/cpu/conv/whole_blocks.h"

namespace quoll {

const char* algorithm_name(ConvAlgorithm algorithm) {
    static const char* const kNames[] = {"", "direct", "winograd", "split", "sliced"};
    return kNames[(int)algorithm];
}

namespace {

// Of Winograd's algorithm with the copies of channels that are no whole blocks, which cost about a
// cycle per value.
double winograd_cycles(const KernelSet& kernels, const ConvShape& s) {
    const ConvShape whole = with_whole_blocks(kernels, s);
    return WinogradPlan::cycles(kernels, whole) + values_to_copy(s, whole);
}

// Copies of fewer channels than a register has are mostly zeros (112x112, 6 > 64 channels, AVX2:
// 0.84 times as fast).
bool is_winograd_profitable(const KernelSet& kernels, const ConvShape& s) {
    return (s.in_pack == kernels.lanes || s.in_channels > kernels.lanes) &&
           WinogradPlan::is_supported(kernels, with_whole_blocks(kernels, s)) &&
           winograd_cycles(kernels, s) <
               ConvPlan::cycles(kernels, s) * host_costs().winograd_margin;
}

// The cycles of the algorithm that vectors would take.
double vector_cycles(const KernelSet& kernels, bool winograd, const ConvShape& s, bool bf16) {
    // bench_conv measures 1.3 times what the rule for Winograd expects, since the rule ignores how
    // the stages wait for memory.
    double cycles = kHasWinograd && winograd
                        ? winograd_cycles(kernels, s) * host_costs().winograd_wait
                        : ConvPlan::cycles(kernels, s);
    // These algorithms work on f32 copies of bf16 blobs, which cost about a cycle per value.
    if (bf16)
        cycles +=
            (double)s.x.in * s.y.in * s.in_channels + (double)s.x.out * s.y.out * s.out_channels;
    return cycles;
}

}  // namespace

ConvAlgorithm choose_conv_algorithm(const KernelSet& kernels, const ConvCandidates& candidates,
                                    const ConvShape& s, bool bf16) {
    const bool winograd = kHasWinograd && candidates.winograd && is_winograd_profitable(kernels, s);
    const TileShape shape = tile_shape(s);
    ConvAlgorithm best = winograd ? ConvAlgorithm::kWinograd : ConvAlgorithm::kDirect;
    // Tile units run below their speed more often than vectors do.
    double least = host_costs().vector_margin * vector_cycles(kernels, winograd, s, bf16);
    const auto consider = [&](ConvAlgorithm candidate, double cycles) {
        if (cycles >= least) return;
        best = candidate;
        least = cycles;
    };
    if (kHasTileUnits && candidates.split && SplitPlan::is_supported(shape))
        consider(ConvAlgorithm::kSplit, SplitPlan::cycles(*candidates.split, shape));
    if (kHasTileUnits && candidates.sliced && SlicedPlan::is_supported(shape))
        consider(ConvAlgorithm::kSliced, SlicedPlan::cycles(shape));
    return best;
}

}  // namespace quoll
