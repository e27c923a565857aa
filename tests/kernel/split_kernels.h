// What the tests of split products share.
#ifndef QUOLL_TESTS_KERNEL_SPLIT_KERNELS_H
#define QUOLL_TESTS_KERNEL_SPLIT_KERNELS_H

#include <gtest/gtest.h>

#include <vector>

#include "emulated/emulation.h"
#include "layer/cpu/gemm/split_gemm.h"
#include "layer/cpu/registry/kernel_rows.h"

namespace quoll {

inline constexpr KernelSlot kSlots[] = {KernelSlot::split6, KernelSlot::split3, KernelSlot::split1};

// Every table of kernels of split products that this machine runs.
inline std::vector<const SplitGemmKernels*> all_kernels() {
    const Emulation emulation;
    std::vector<const SplitGemmKernels*> all;
    for (KernelSlot slot : kSlots)
        for_kernel_rows<SplitGemmKernels>(
            slot, host_cpu_features(),
            [&](const KernelRow&, const SplitGemmKernels& kernels) { all.push_back(&kernels); });
    return all;
}

// Emulated units take seconds for what machines do in milliseconds: fewer cases of a kind then.
#ifdef QUOLL_EMULATED_CPU
inline constexpr bool kFewCases = true;
#else
inline constexpr bool kFewCases = false;
#endif

#define QUOLL_NEED_KERNELS() \
    if (all_kernels().empty()) GTEST_SKIP() << "neither AMX, AVX-512 to emulate it, nor SME"

}  // namespace quoll

#endif
