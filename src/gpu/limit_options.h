#ifndef QUOLL_GPU_LIMIT_OPTIONS_H
#define QUOLL_GPU_LIMIT_OPTIONS_H

#include "quoll/gpu.h"
#include "quoll/option.h"

namespace quoll {

// Turns off, for a whole net, options that its device cannot follow, and says so. Layers and
// shaders of the application then see the options that are in force.
void limit_options(const GpuInfo& info, Option* opt);

}  // namespace quoll

#endif
