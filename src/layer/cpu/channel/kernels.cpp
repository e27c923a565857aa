// Compiled once per ISA.
#include "layer/cpu/channel/channel.h"
#include "layer/cpu/channel/generic.h"
#include "layer/cpu/common/isa_table.h"

namespace quoll {

extern const ChannelKernels QUOLL_ISA_TABLE(channel_kernels);
const ChannelKernels QUOLL_ISA_TABLE(channel_kernels) = {
#define QUOLL_CHANNEL(name, functor) &channel_kernel<functor>,
#include "layer/cpu/channel/kernels.inc"
#undef QUOLL_CHANNEL
};

}  // namespace quoll
