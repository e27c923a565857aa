// Tiles for machines with cores that issue in order, maybe beside others: each thread takes that of
// the core it runs on. Both give the same bits, so that it does not matter when a thread that has
// moved finds out.
#include "layer/cpu/gemm/gemm.h"
#include "runtime/cpu_detect.h"
#include "runtime/midr.h"

#if defined(QUOLL_BUILT_a53_assembly)

namespace quoll {
namespace {

// Calls between two looks: one takes about as long as the smallest tile.
constexpr unsigned kCallsBetween = 64;

bool is_in_order(uint64_t id) {
#define QUOLL_CPU_CORE(core, vendor, family, model) \
    if (CpuCore::core == CpuCore::cortex_a53 && is_of_midr(id, family, model)) return true;
#include "runtime/cpu_cores.inc"
#undef QUOLL_CPU_CORE
    return false;
}

bool thread_runs_in_order() {
    static thread_local unsigned calls = 0;
    static thread_local bool in_order = false;
    if (calls++ % kCallsBetween == 0) in_order = is_in_order(read_midr());
    return in_order;
}

}  // namespace

#define QUOLL_TILE(shape)                                                   \
    extern "C" void quoll_gemm_f32_##shape##_neon(const GemmTile& tile);    \
    extern "C" void quoll_gemm_f32_##shape##_a53(const GemmTile& tile);     \
    extern "C" void quoll_gemm_f32_##shape##_by_core(const GemmTile& tile); \
    void quoll_gemm_f32_##shape##_by_core(const GemmTile& tile) {           \
        (thread_runs_in_order() ? quoll_gemm_f32_##shape##_a53              \
                                : quoll_gemm_f32_##shape##_neon)(tile);     \
    }
QUOLL_TILE(4x8)
QUOLL_TILE(5x8)
QUOLL_TILE(4x16)
QUOLL_TILE(5x16)

}  // namespace quoll

#endif
