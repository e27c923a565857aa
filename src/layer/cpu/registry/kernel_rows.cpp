#include "layer/cpu/registry/kernel_rows.h"

#include <stdint.h>

#include <algorithm>
#include <type_traits>

#include "layer/cpu/cast/cast.h"
#include "layer/cpu/dwconv/dwconv.h"
#include "layer/cpu/gemm/sliced_gemm.h"
#include "layer/cpu/gemm/split_gemm.h"
#include "layer/cpu/half/f16_kernels.h"
#include "layer/cpu/int8/int8.h"
#include "layer/cpu/int8/int8_units.h"
#include "layer/cpu/recurrent/recurrent_units.h"
#include "layer/cpu/winograd/winograd.h"

// Tests have rows of their own besides.
#if !defined(QUOLL_KERNEL_ROWS)
#define QUOLL_KERNEL_ROWS "layer/cpu/registry/kernel_rows.inc"
#endif

namespace quoll {

#define QUOLL_KERNELS(slot, type, name, isa, features, core, values, rows, columns, k, alignment, \
                      macs)                                                                       \
    extern const type name;
#define QUOLL_GEMM_TILE(slot, name, isa, features, core, values, rows, columns, macs) \
    extern "C" void name(const GemmTile& tile);
#define QUOLL_KERNEL_PART(slot, type, name, isa, features, core, values, rows, columns, stride, \
                          macs)                                                                 \
    extern "C" std::remove_pointer_t<type> name;
#include QUOLL_KERNEL_ROWS
#undef QUOLL_KERNELS
#undef QUOLL_GEMM_TILE
#undef QUOLL_KERNEL_PART

namespace {

using F = CpuFeature;

// Times so many, counts of columns are those of vectors of SVE.
enum { kSveLanes = -1 };

// A row as a table without code that makes it, which would take twice the room.
struct RowSource {
    const void* kernels;
    KernelPart function;  // a tile or a part
    uint64_t features;    // beyond those of the level
    int16_t rows, columns, k, alignment, macs_a_cycle;
    KernelSlot slot;
    Isa isa;
    CpuCore core;
    bool is_tile;
#if !defined(QUOLL_FEW_KERNELS)
    char name[38], values[14];  // for tests and benchmarks
#endif
};

template <typename... Features>
constexpr uint64_t bits_of(Features... features) {
    return (uint64_t(0) | ... | (uint64_t(1) << int(features)));
}

#if defined(QUOLL_FEW_KERNELS)
#define QUOLL_ROW_TEXTS(name, values)
#else
#define QUOLL_ROW_TEXTS(name, values) #name, values
#endif
const RowSource kSources[] = {
#define QUOLL_NEEDS(...) __VA_ARGS__
#define QUOLL_KERNELS(slot, type, name, isa, features, core, values, rows, columns, k, alignment, \
                      macs)                                                                       \
    {&name,                                                                                       \
     nullptr,                                                                                     \
     bits_of(features),                                                                           \
     rows,                                                                                        \
     columns,                                                                                     \
     k,                                                                                           \
     alignment,                                                                                   \
     macs,                                                                                        \
     KernelSlot::slot,                                                                            \
     Isa::isa,                                                                                    \
     CpuCore::core,                                                                               \
     false,                                                                                       \
     QUOLL_ROW_TEXTS(name, values)},
#define QUOLL_GEMM_TILE(slot, name, isa, features, core, values, rows, columns, macs) \
    {nullptr,                                                                         \
     reinterpret_cast<KernelPart>(&name),                                             \
     bits_of(features),                                                               \
     rows,                                                                            \
     columns,                                                                         \
     1,                                                                               \
     4,                                                                               \
     macs,                                                                            \
     KernelSlot::slot,                                                                \
     Isa::isa,                                                                        \
     CpuCore::core,                                                                   \
     true,                                                                            \
     QUOLL_ROW_TEXTS(name, values)},
#define QUOLL_KERNEL_PART(slot, type, name, isa, features, core, values, rows, columns, stride, \
                          macs)                                                                 \
    {nullptr,                                                                                   \
     reinterpret_cast<KernelPart>(&name),                                                       \
     bits_of(features),                                                                         \
     rows,                                                                                      \
     columns,                                                                                   \
     stride,                                                                                    \
     4,                                                                                         \
     macs,                                                                                      \
     KernelSlot::slot,                                                                          \
     Isa::isa,                                                                                  \
     CpuCore::core,                                                                             \
     false,                                                                                     \
     QUOLL_ROW_TEXTS(name, values)},
#include QUOLL_KERNEL_ROWS
#undef QUOLL_KERNELS
#undef QUOLL_GEMM_TILE
#undef QUOLL_KERNEL_PART
    {}};
enum { kNumRows = sizeof(kSources) / sizeof(kSources[0]) - 1 };

int count_of(int n) { return n < 0 ? n / kSveLanes * (sve_lanes() ? sve_lanes() : 4) : n; }

KernelRow row_of(const RowSource& s) {
    KernelRow row = {};
    row.slot = s.slot, row.core = s.core;
#if defined(QUOLL_FEW_KERNELS)
    row.name = row.values = "";
#else
    row.name = s.name, row.values = s.values;
#endif
    row.kernels = s.kernels;
    if (s.is_tile)
        row.tile = reinterpret_cast<GemmTileKernel>(s.function);
    else
        row.part = s.function;
    row.features = CpuFeatures(isa_features(s.isa).bits | s.features);
    row.rows = count_of(s.rows), row.columns = count_of(s.columns), row.k = s.k;
    row.alignment = s.alignment, row.macs_a_cycle = count_of(s.macs_a_cycle);
    return row;
}

}  // namespace

#if defined(QUOLL_BUILT_sve_assembly)
extern "C" unsigned quoll_vector_bytes_sve();

int sve_lanes() {
    static const int lanes =
        detected_cpu_features().has(CpuFeature::sve) ? (int)quoll_vector_bytes_sve() / 4 : 0;
    return lanes;
}
#else
int sve_lanes() { return 0; }
#endif

KernelRows kernel_rows() {
    static KernelRow rows[kNumRows + 1];
    static const bool made = [] {
        std::transform(kSources, kSources + kNumRows, rows, row_of);
        return true;
    }();
    (void)made;
    return {rows, kNumRows};
}

}  // namespace quoll
