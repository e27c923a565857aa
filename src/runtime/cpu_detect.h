// Asks the processor and the operating system. Tests of kernels on emulated units link a form of
// their own.
#ifndef QUOLL_CPU_DETECT_PRIVATE_H
#define QUOLL_CPU_DETECT_PRIVATE_H

#include "runtime/cpu_features.h"

namespace quoll {

// What cpu_features.h calls detected.
CpuFeatures detect_cpu_features();

// Micro-architectures that something is tuned for; `any` is every other one.
enum class CpuCore { any, golden_cove, zen, cortex_a55 };
const char* cpu_core_name(CpuCore core);

// The core that runs the first call; for processors with different cores see cpu_detect.cpp.
CpuCore host_cpu_core();

}  // namespace quoll

#endif
