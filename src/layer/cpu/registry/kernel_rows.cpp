#include "layer/cpu/registry/kernel_rows.h"

#include <type_traits>

#include "layer/cpu/cast/cast.h"
#include "layer/cpu/dwconv/dwconv.h"
#include "layer/cpu/gemm/sliced_gemm.h"
#include "layer/cpu/gemm/split_gemm.h"
#include "layer/cpu/half/f16_kernels.h"
#include "layer/cpu/int8/int8.h"
#include "layer/cpu/int8/int8_units.h"
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

// Those of a level and these.
template <typename... Features>
CpuFeatures needs(Isa isa, Features... features) {
    return CpuFeatures(isa_features(isa).bits | ((uint64_t(1) << int(features)) | ... | 0));
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
    static const KernelRow rows[] = {
#define QUOLL_NEEDS(...) , __VA_ARGS__
#define QUOLL_KERNELS(slot, type, name, isa, features, core, values, rows, columns, k, alignment, \
                      macs)                                                                       \
    {KernelSlot::slot,                                                                            \
     #name,                                                                                       \
     &name,                                                                                       \
     nullptr,                                                                                     \
     nullptr,                                                                                     \
     needs(Isa::isa features),                                                                    \
     CpuCore::core,                                                                               \
     values,                                                                                      \
     rows,                                                                                        \
     columns,                                                                                     \
     k,                                                                                           \
     alignment,                                                                                   \
     macs},
#define QUOLL_GEMM_TILE(slot, name, isa, features, core, values, rows, columns, macs) \
    {KernelSlot::slot,                                                                \
     #name,                                                                           \
     nullptr,                                                                         \
     &name,                                                                           \
     nullptr,                                                                         \
     needs(Isa::isa features),                                                        \
     CpuCore::core,                                                                   \
     values,                                                                          \
     rows,                                                                            \
     columns,                                                                         \
     1,                                                                               \
     4,                                                                               \
     macs},
#define QUOLL_KERNEL_PART(slot, type, name, isa, features, core, values, rows, columns, stride, \
                          macs)                                                                 \
    {KernelSlot::slot,                                                                          \
     #name,                                                                                     \
     nullptr,                                                                                   \
     nullptr,                                                                                   \
     reinterpret_cast<KernelPart>(&name),                                                       \
     needs(Isa::isa features),                                                                  \
     CpuCore::core,                                                                             \
     values,                                                                                    \
     rows,                                                                                      \
     columns,                                                                                   \
     stride,                                                                                    \
     4,                                                                                         \
     macs},
#include QUOLL_KERNEL_ROWS
#undef QUOLL_KERNELS
#undef QUOLL_GEMM_TILE
#undef QUOLL_KERNEL_PART
        {}};
    return {rows, sizeof(rows) / sizeof(rows[0]) - 1};
}

}  // namespace quoll
