// Tiles for machines with cores that issue in order, maybe beside others: each thread takes that of
// the core it runs on. Both give the same bits, so that it does not matter when a thread that has
// moved finds out.
#include "layer/cpu/gemm/gemm.h"
#include "layer/cpu/int8/int8.h"
#include "runtime/cpu_detect.h"
#include "runtime/midr.h"

#if defined(QUOLL_BUILT_a55_assembly)

namespace quoll {
namespace {

// Calls between two looks: one takes about as long as the smallest tile.
constexpr unsigned kCallsBetween = 64;

bool is_in_order(uint64_t id) {
#define QUOLL_CPU_CORE(core, vendor, family, model) \
    if (CpuCore::core == CpuCore::cortex_a55 && is_of_midr(id, family, model)) return true;
#include "runtime/cpu_cores.inc"
#undef QUOLL_CPU_CORE
    return false;
}

// Whether the calling thread runs on such a core.
[[gnu::noinline]] bool runs_in_order() {
    static thread_local struct {
        unsigned calls;
        bool in_order;
    } thread = {};
    if (thread.calls++ % kCallsBetween == 0) thread.in_order = is_in_order(read_midr());
    return thread.in_order;
}

// Runs one of two tiles. That for cores that issue in order takes blocks of four steps alone.
void run(const GemmTile& tile, GemmTileKernel all, GemmTileKernel in_order) {
    (runs_in_order() && tile.a_k == 1 && tile.block_k == 4 ? in_order : all)(tile);
}

}  // namespace

// Of a shape for all cores and for those that issue in order.
#define QUOLL_TILE(shape, all, in_order)                                        \
    extern "C" void quoll_gemm_##shape##_##all(const GemmTile& tile);           \
    extern "C" void quoll_gemm_##shape##_##in_order(const GemmTile& tile);      \
    extern "C" void quoll_gemm_##shape##_by_core(const GemmTile& tile);         \
    void quoll_gemm_##shape##_by_core(const GemmTile& tile) {                   \
        run(tile, quoll_gemm_##shape##_##all, quoll_gemm_##shape##_##in_order); \
    }
QUOLL_TILE(f32_4x16, neon, a55)
QUOLL_TILE(f32_5x16, neon, a55)
#if defined(QUOLL_BUILT_asimdhp_assembly)
QUOLL_TILE(f16f16_4x32, asimdhp, a55)
QUOLL_TILE(f16f16_5x32, asimdhp, a55)
#endif
#if defined(QUOLL_BUILT_asimddp_assembly) && !defined(QUOLL_NO_INT8)
// The one for cores that issue in order takes whole pairs of k-groups.
#define QUOLL_INT8_TILE(rows)                                                                \
    extern "C" void quoll_gemm_s8_##rows##x8_asimddp(const Int8Tile& tile);                  \
    extern "C" void quoll_gemm_s8_##rows##x8_a55(const Int8Tile& tile);                      \
    extern "C" void quoll_gemm_s8_##rows##x8_by_core(const Int8Tile& tile);                  \
    void quoll_gemm_s8_##rows##x8_by_core(const Int8Tile& tile) {                            \
        (runs_in_order() && tile.block_k % 2 == 0 ? quoll_gemm_s8_##rows##x8_a55             \
                                                  : quoll_gemm_s8_##rows##x8_asimddp)(tile); \
    }
QUOLL_INT8_TILE(7)
QUOLL_INT8_TILE(8)
#endif

}  // namespace quoll

#endif
