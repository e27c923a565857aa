// Channels that do not fill registers in copies that do, for Winograd's algorithm: the last block
// of a copy ends with channels of zeros.
#ifndef QUOLL_LAYER_CPU_CONV_WHOLE_BLOCKS_H
#define QUOLL_LAYER_CPU_CONV_WHOLE_BLOCKS_H

#include "layer/cpu/gemm/conv_plan.h"
#include "quoll/mat.h"

namespace quoll {

// Other architectures' libraries have no room.
#if (defined(__x86_64__) || defined(__i386__)) && !defined(QUOLL_NO_WINOGRAD)
constexpr bool kCopiesToWholeBlocks = true;
#else
constexpr bool kCopiesToWholeBlocks = false;
#endif

// The shape of a convolution whose input and output are such copies; its steps are not set.
ConvShape with_whole_blocks(const KernelSet& kernels, const ConvShape& shape);
// Values that are copied for that: of the input, unless it is in whole blocks, and of the output.
double values_to_copy(const ConvShape& shape, const ConvShape& whole);

// A blob of `channels` channels of `elements` values, in blocks of `pack` channels whose first
// values are `step` floats apart.
struct ChannelBlocksOf {
    int channels, pack;
    size_t elements, step;
};

// to: a Mat of blocks of whole registers; both functions share its blocks among threads.
void copy_to_whole_blocks(const KernelSet& kernels, const float* from, const ChannelBlocksOf& blob,
                          Mat& to, int threads);
void copy_from_whole_blocks(const KernelSet& kernels, const Mat& from, float* to,
                            const ChannelBlocksOf& blob, int threads);

}  // namespace quoll

#endif
