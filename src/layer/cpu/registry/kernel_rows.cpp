#include "layer/cpu/registry/kernel_rows.h"

#include "layer/cpu/gemm/sliced_gemm.h"
#include "layer/cpu/gemm/split_gemm.h"
#include "layer/cpu/int8/int8.h"
#include "layer/cpu/int8/int8_units.h"

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
#define QUOLL_DWCONV_PAIR(name, isa, features, core, stride, macs) \
    extern "C" void name(const DwconvPair& pair);
#include QUOLL_KERNEL_ROWS
#undef QUOLL_KERNELS
#undef QUOLL_GEMM_TILE
#undef QUOLL_DWCONV_PAIR

namespace {

using F = CpuFeature;

// Those of a level and these.
template <typename... Features>
CpuFeatures needs(Isa isa, Features... features) {
    return CpuFeatures(isa_features(isa).bits | ((uint64_t(1) << int(features)) | ... | 0));
}

}  // namespace

KernelRows kernel_rows() {
    static const KernelRow rows[] = {
#define QUOLL_NEEDS(...) , __VA_ARGS__
#define QUOLL_KERNELS(slot, type, name, isa, features, core, values, rows, columns, k, alignment, \
                      macs)                                                                       \
    {KernelSlot::slot, #name,  &name, nullptr, nullptr, needs(Isa::isa features),                 \
     CpuCore::core,    values, rows,  columns, k,                                                 \
     alignment,        macs},
#define QUOLL_GEMM_TILE(slot, name, isa, features, core, values, rows, columns, macs) \
    {                                                                                 \
        KernelSlot::slot,                                                             \
        #name,                                                                        \
        nullptr,                                                                      \
        &name,                                                                        \
        nullptr,                                                                      \
        needs(Isa::isa features),                                                     \
        CpuCore::core,                                                                \
        values,                                                                       \
        rows,                                                                         \
        columns,                                                                      \
        1,                                                                            \
        4,                                                                            \
        macs},
#define QUOLL_DWCONV_PAIR(name, isa, features, core, stride, macs) \
    {                                                              \
        KernelSlot::dwconv_pair,                                   \
        #name,                                                     \
        nullptr,                                                   \
        nullptr,                                                   \
        &name,                                                     \
        needs(Isa::isa features),                                  \
        CpuCore::core,                                             \
        "f32 f32 f32",                                             \
        2,                                                         \
        kDwconvPairOutputs,                                        \
        stride,                                                    \
        4,                                                         \
        macs},
#include QUOLL_KERNEL_ROWS
#undef QUOLL_KERNELS
#undef QUOLL_GEMM_TILE
#undef QUOLL_DWCONV_PAIR
        {}};
    return {rows, sizeof(rows) / sizeof(rows[0]) - 1};
}

}  // namespace quoll
