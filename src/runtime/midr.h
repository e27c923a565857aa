// On which ARM core a thread runs.
#ifndef QUOLL_RUNTIME_MIDR_H
#define QUOLL_RUNTIME_MIDR_H

#include <stdint.h>

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace quoll {

// MIDR_EL1 of the core that runs the call: the kernel answers, which takes some hundred cycles. 0
// where it does not (HWCAP_CPUID of Linux, Documentation/arch/arm64/cpu-feature-registers.rst).
inline uint64_t read_midr() {
    uint64_t id = 0;
#if defined(__aarch64__) && defined(__linux__)
    constexpr unsigned long kHwcapCpuid = 1ul << 11;
    if (getauxval(AT_HWCAP) & kHwcapCpuid) __asm__ volatile("mrs %0, S3_0_C0_C0_0" : "=r"(id));
#endif
    return id;
}

inline bool is_of_midr(uint64_t id, int implementer, int part) {
    return int(id >> 24 & 255) == implementer && int(id >> 4 & 0xfff) == part;
}

}  // namespace quoll

#endif
