// What the tests of the int8 kernels share.
#ifndef QUOLL_TESTS_KERNEL_INT8_KERNELS_H
#define QUOLL_TESTS_KERNEL_INT8_KERNELS_H

#include <gtest/gtest.h>

#include <random>

#include "layer/cpu/int8/int8.h"
#include "layer/cpu/registry/kernel_rows.h"

namespace quoll {

inline std::mt19937 g_rng(5);
inline int uniform(int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(g_rng);
}

// f(kernels) for all tables of int8 kernels that this machine runs.
template <class F>
void for_all(F f) {
    const auto check = [&](const Int8Kernels& kernels) {
        SCOPED_TRACE(kernels.name);
        if (!testing::Test::HasFatalFailure()) f(kernels);
    };
    for (Isa isa : available_isas()) check(*vector_kernels(isa).int8);
    for_kernel_rows<Int8Kernels>(
        KernelSlot::int8, host_cpu_features(),
        [&](const KernelRow&, const Int8Kernels& kernels) { check(kernels); });
    // With tiles by hand.
    for (Isa isa : available_isas()) {
        check(*kernel_set(isa).int8);
        if (kernel_set(isa).int8->bytes) check(*kernel_set(isa).int8->bytes);
        if (kernel_set(isa).int8->s16) check(*kernel_set(isa).int8->s16);
    }
    check(*host_kernel_set().int8);
    if (host_kernel_set().int8->bytes) check(*host_kernel_set().int8->bytes);
    if (host_kernel_set().int8_pairs) check(*host_kernel_set().int8_pairs);
}

}  // namespace quoll

#endif
