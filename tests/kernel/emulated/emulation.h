// Programs that link tests/kernel/emulated have kernels of tile units that are emulated, on
// machines with AVX-512, where the processor has none. They need a feature of their own, which such
// a program finds in every machine; no level of set_cpu_mask() allows it.
#ifndef QUOLL_TESTS_KERNEL_EMULATION_H
#define QUOLL_TESTS_KERNEL_EMULATION_H

#include "runtime/cpu_features.h"

namespace quoll {

constexpr CpuFeature kEmulation = CpuFeature(63);

// What the processor has.
inline void use_processor() {
#if defined(QUOLL_EMULATED_TILES)
    set_cpu_mask("amx");
#else
    set_cpu_mask(nullptr);
#endif
}

// While one lives layers are made for tile units, emulated where the machine has none.
struct Emulation {
    Emulation() { set_cpu_mask(nullptr); }
    ~Emulation() { use_processor(); }
};

}  // namespace quoll

#endif
