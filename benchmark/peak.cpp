#include "peak.h"

#include <string.h>

#include <algorithm>
#include <chrono>

namespace quoll {

#if defined(__x86_64__)
namespace {

// Twelve chains of one instruction, enough to hide its latency, ten times; x stands for the number
// of the sum. Assembly: a compiler would need flags that not every machine can run.
#define QUOLL_CHAINS(line, rest)                                                             \
    line "0" rest line "1" rest line "2" rest line "3" rest line "4" rest line "5" rest line \
         "6" rest line "7" rest line "8" rest line "9" rest line "10" rest line "11" rest
#define QUOLL_VECTOR_LOOP(name, opcode, register)                                                  \
    void name(int64_t count) {                                                                     \
        int64_t loops = count / 12;                                                                \
        asm volatile(                                                                              \
            "vpxor %%xmm14, %%xmm14, %%xmm14\n vpxor %%xmm15, %%xmm15, %%xmm15\n"                  \
            "1:\n" QUOLL_CHAINS(opcode " %%" register "14, %%" register "15, %%" register,         \
                                "\n") "dec %0\n jnz 1b\n vzeroupper\n"                             \
            : "+r"(loops)::"xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
              "xmm9", "xmm10", "xmm11", "xmm14", "xmm15", "cc");                                   \
    }
QUOLL_VECTOR_LOOP(fma_avx2, "vfmadd231ps", "ymm")
QUOLL_VECTOR_LOOP(fma_avx512, "vfmadd231ps", "zmm")
QUOLL_VECTOR_LOOP(vnni_avx2, "%{vex%} vpdpbusd", "ymm")
QUOLL_VECTOR_LOOP(vnni_avx512, "vpdpbusd", "zmm")
QUOLL_VECTOR_LOOP(bf16_avx512, "vdpbf16ps", "zmm")

struct alignas(64) TileConfig {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
// Operands of a tile, without zeros, with which units may run at a higher clock than with real
// data.
struct alignas(64) TileValues {
    uint16_t values[512];
    TileValues() {
        for (int i = 0; i < 512; i++)
            values[i] = (uint16_t)(0x3e80 + i * 97 % 256 + (i * 61 % 7 > 3 ? 0x8000 : 0));
    }
};
#define QUOLL_TILE_LOOP(name, opcode)                                                    \
    void name(int64_t count) {                                                           \
        const TileConfig config;                                                         \
        const TileValues operand;                                                        \
        int64_t loops = count / 4, row = 64;                                             \
        asm volatile(                                                                    \
            "ldtilecfg %1\n tileloadd (%2,%3,1), %%tmm4\n tileloadd (%2,%3,1), %%tmm5\n" \
            "tileloadd (%2,%3,1), %%tmm6\n tileloadd (%2,%3,1), %%tmm7\n 1:\n" opcode    \
            " %%tmm6, %%tmm4, %%tmm0\n" opcode " %%tmm7, %%tmm4, %%tmm1\n" opcode        \
            " %%tmm6, %%tmm5, %%tmm2\n" opcode                                           \
            " %%tmm7, %%tmm5, %%tmm3\n"                                                  \
            "dec %0\n jnz 1b\n tilerelease\n"                                            \
            : "+r"(loops)                                                                \
            : "m"(config), "r"(operand.values), "r"(row), "m"(operand)                   \
            : "cc");                                                                     \
    }
QUOLL_TILE_LOOP(tile_bf16, "tdpbf16ps")
QUOLL_TILE_LOOP(tile_int8, "tdpbusd")

const PeakUnit kUnits[] = {
    {"vfmadd231ps ymm", CpuFeature::fma, fma_avx2, 16, 240000},
    {"vfmadd231ps zmm", CpuFeature::avx512f, fma_avx512, 32, 240000},
    {"vpdpbusd ymm", CpuFeature::avx_vnni, vnni_avx2, 64, 240000},
    {"vpdpbusd zmm", CpuFeature::avx512_vnni, vnni_avx512, 128, 240000},
    {"vdpbf16ps zmm", CpuFeature::avx512_bf16, bf16_avx512, 64, 240000},
    {"tdpbf16ps", CpuFeature::amx_bf16, tile_bf16, 16 * 16 * 32 * 2, 8000},
    {"tdpbusd", CpuFeature::amx_int8, tile_int8, 16 * 16 * 64 * 2, 8000},
};

}  // namespace

std::vector<PeakUnit> peak_units() {
    std::vector<PeakUnit> units;
    for (const PeakUnit& unit : kUnits)
        if (host_cpu_features().has(unit.feature)) units.push_back(unit);
    return units;
}
#else
std::vector<PeakUnit> peak_units() { return {}; }
#endif

namespace {

double now_ns() {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::nano>(time).count();
}

}  // namespace

double peak_time_ns(const PeakUnit& unit) {
    std::vector<double> times;
    const double begin = now_ns();
    // On a busy machine a single run may take longer than all that.
    for (double last = begin; last < begin + 52e6 || times.empty();) {
        unit.run(unit.count);
        const double end = now_ns();
        if (last > begin + 2e6) times.push_back((end - last) / (double)unit.count);
        last = end;
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

}  // namespace quoll
