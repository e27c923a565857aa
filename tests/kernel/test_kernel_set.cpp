// Which kernels a machine with given features gets, and what the rows say of them.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "layer/cpu/cast/cast.h"
#include "layer/cpu/common/cost_table.h"
#include "layer/cpu/dwconv/dwconv.h"
#include "layer/cpu/gemm/split_gemm.h"
#include "layer/cpu/int8/int8.h"
#include "layer/cpu/registry/kernel_rows.h"
#include "layer/cpu/winograd/winograd.h"

using namespace quoll;

namespace {

CpuFeatures all_features() { return CpuFeatures(((uint64_t)1 << (int)CpuFeature::count) - 1); }

CpuFeatures with(Isa isa, const std::set<CpuFeature>& more) {
    CpuFeatures features = isa_features(isa);
    for (CpuFeature f : more) features.bits |= (uint64_t)1 << (int)f;
    return features;
}

const KernelRow* find_row(const std::string& name) {
    for (const KernelRow& row : kernel_rows())
        if (row.name == name) return &row;
    return nullptr;
}

bool is_built(Isa isa) { return vector_kernels(isa).isa == isa; }

TEST(KernelRows, are_well_formed) {
    std::set<std::string> names;
    for (const KernelRow& row : kernel_rows()) {
        SCOPED_TRACE(row.name);
        EXPECT_TRUE(names.insert(row.name).second);
        EXPECT_EQ((row.kernels != nullptr) + (row.tile != nullptr) + (row.part != nullptr), 1);
        EXPECT_TRUE(all_features().has_all(row.features));
        EXPECT_TRUE(is_built(best_isa(row.features)));
        EXPECT_GE(row.alignment, 1);
        EXPECT_EQ(row.alignment & (row.alignment - 1), 0);
    }
}

TEST(KernelRows, agree_with_their_tables) {
    for (const KernelRow& row : kernel_rows()) {
        SCOPED_TRACE(row.name);
        if (row.slot == KernelSlot::int8) {
            const auto& k = *static_cast<const Int8Kernels*>(row.kernels);
            EXPECT_EQ(k.max_rows, row.rows);
            EXPECT_EQ(row.columns % k.lanes, 0);
            EXPECT_LE(row.columns, k.lanes * k.vectors);
            EXPECT_EQ(k.k_group, row.k);
        }
        const bool split = row.slot == KernelSlot::split6 || row.slot == KernelSlot::split3 ||
                           row.slot == KernelSlot::split1;
        if (split) {
            const auto& k = *static_cast<const SplitGemmKernels*>(row.kernels);
            EXPECT_EQ(k.products, row.slot == KernelSlot::split6   ? 6
                                  : row.slot == KernelSlot::split3 ? 3
                                                                   : 1);
            EXPECT_EQ(kUnitTiles * kUnitRows, row.rows);
            EXPECT_EQ(kUnitColumns, row.columns);
            EXPECT_EQ(kSplitK, row.k);
        }
        if (row.slot == KernelSlot::gemm_tile || row.slot == KernelSlot::sve_gemm_tile) {
            const GemmKernels& k = *vector_kernels(best_isa(row.features)).gemm;
            EXPECT_EQ(row.columns % k.lanes, 0);
            if (row.slot == KernelSlot::gemm_tile) {
                EXPECT_LE(row.columns, k.lanes * k.vectors);
            }
            EXPECT_LE(row.rows, kGemmMaxRows);
        }
    }
}

// A machine gets a row's kernels when it has all features of the row, and not when one is missing.
TEST(KernelSet, needs_all_features_of_a_row) {
    for (const KernelRow& row : kernel_rows()) {
        if (row.slot != KernelSlot::int8_units && row.slot != KernelSlot::sliced &&
            row.slot != KernelSlot::split1)
            continue;
        SCOPED_TRACE(row.name);
        const auto found = [&](const CpuFeatures& features) -> const void* {
            const KernelSet& set = kernel_set(features);
            return row.slot == KernelSlot::sliced       ? (const void*)set.sliced
                   : row.slot == KernelSlot::int8_units ? (const void*)set.int8_units
                                                        : (const void*)set.split1;
        };
        EXPECT_EQ(found(row.features), row.kernels);
        for (uint64_t bit = 1; bit; bit <<= 1) {
            if (!(row.features.bits & bit)) continue;
            const CpuFeatures fewer(row.features.bits & ~bit);
            // What it gets instead, if anything, is a row of which it has all features.
            const void* const instead = found(fewer);
            EXPECT_NE(instead, row.kernels) << bit;
            for (const KernelRow& other : kernel_rows())
                EXPECT_TRUE(!instead || other.kernels != instead || fewer.has_all(other.features));
        }
    }
}

TEST(KernelSet, is_that_of_the_level_without_more_features) {
    for (Isa isa : available_isas()) {
        const KernelSet& set = kernel_set(isa);
        EXPECT_EQ(set.isa, isa);
        EXPECT_STREQ(set.int8->name, vector_kernels(isa).int8->name);
        EXPECT_EQ(set.int8_pairs, nullptr);
        EXPECT_EQ(set.cast, vector_kernels(isa).cast);
        EXPECT_EQ(set.split6, nullptr);
        EXPECT_EQ(set.sliced, nullptr);
        EXPECT_EQ(&kernel_set(isa), &set) << "selected once";
    }
}

// Tiles by hand are those of the set that has their features, for 1 to max_rows rows.
TEST(KernelSet, has_the_tiles_of_rows) {
    for (const KernelRow& row : kernel_rows()) {
        if (!row.tile) continue;
        SCOPED_TRACE(row.name);
        const KernelSet& set = kernel_set(row.features, row.core);
        const bool half = row.slot == KernelSlot::half_gemm_tile;
        const bool sve_f16 = row.slot == KernelSlot::sve_f16_gemm_tile;
        const bool f16 = row.slot == KernelSlot::f16_gemm_tile || sve_f16;
        const bool f16f32 = row.slot == KernelSlot::f16f32_gemm_tile;
        if (f16f32 && !set.f16f32) {
            // Longer vectors of fp32 take their place, and tiles of cores that issue in order.
            EXPECT_TRUE(sve_lanes() > set.lanes || host_cpu_core() == CpuCore::cortex_a55);
            continue;
        }
        ASSERT_TRUE((!half || set.half) && (!f16 || set.f16));
        const GemmKernels& gemm = *(half     ? *set.half
                                    : f16    ? *set.f16
                                    : f16f32 ? *set.f16f32
                                             : set)
                                       .gemm;
        const int columns = f16 ? row.columns / 2 : row.columns;
        // On no longer vectors than the level's, where they would take more loads, they are not
        // chosen; nor are panels wider than what is made for them.
        if ((row.slot == KernelSlot::sve_gemm_tile || sve_f16) &&
            (sve_lanes() <= set.lanes || columns > gemm.lanes * gemm.vectors))
            continue;
        EXPECT_EQ(gemm.tile[columns / gemm.step - 1][row.rows - 1], row.tile);
        EXPECT_GE(gemm.max_rows, row.rows);
        for (int width = 1; width <= kGemmMaxWidths; width++)
            for (int rows = 1; rows <= kGemmMaxRows; rows++)
                EXPECT_EQ(gemm.tile[width - 1][rows - 1] != nullptr,
                          rows <= gemm.max_rows && rows >= (f16f32 ? 4 : 1) &&
                              width * gemm.step <= gemm.lanes * gemm.vectors);
    }
}

// A row's place among the kernels of weights in blocks; null: the row is of another slot.
static const BlockTileKernel* block_kernel(const Int8Kernels& int8, const KernelRow& row) {
    const int form = row.k / 8;
    switch (row.slot) {
        case KernelSlot::block_tile:
            return &int8.block_tile[row.rows - 1][form];
        case KernelSlot::block_dot:
            return &int8.block_dot[row.rows - 1][form];
        case KernelSlot::block_row:
            return &int8.block_row[row.rows - 2][form];
        case KernelSlot::block_bytes:
        case KernelSlot::block_byte_eights:
            return &int8.block_bytes[form];
        default:
            return nullptr;
    }
}

TEST(KernelSet, has_the_parts_of_rows) {
    for (const KernelRow& row : kernel_rows()) {
        if (!row.part) continue;
        const KernelSet& set = kernel_set(row.features, row.core);
        if (row.slot == KernelSlot::sve_int8_finish) continue;  // of sets with tiles of SVE
        const bool sve_int8 = row.slot == KernelSlot::sve_int8_tile;
        const bool sve_pair =
            row.slot == KernelSlot::sve_dwconv_pair || row.slot == KernelSlot::sve_f16_dwconv_pair;
        if ((row.slot == KernelSlot::sve_f16_gemm_planar || sve_int8) && sve_lanes() <= set.lanes)
            continue;
        if (sve_pair && sve_lanes() <= 2 * set.lanes) continue;
        if (row.slot == KernelSlot::int8_tile || sve_int8) {
            const bool bytes = sve_int8 && row.k == 4;
            ASSERT_TRUE(!bytes || set.int8->bytes) << row.name;
            const Int8Kernels& int8 = bytes        ? *set.int8->bytes
                                      : row.k == 8 ? *set.int8_pairs
                                                   : *set.int8;
            EXPECT_EQ(int8.k_group << int8.pairs, row.k) << row.name;
            EXPECT_GE(int8.max_rows, row.rows) << row.name;
            const auto& tiles = row.columns == int8.lanes ? int8.tile_single : int8.tile;
            EXPECT_EQ((KernelPart)tiles[row.rows - 1], row.part) << row.name;
            continue;
        }
        if (row.slot == KernelSlot::int8_neighbour_tile) {
            const Int8Kernels& int8 = *set.int8;
            ASSERT_GT(int8.neighbour_rows, 0) << row.name;
            EXPECT_EQ(int8.k_group, row.k) << row.name;
            EXPECT_GE(int8.neighbour_rows, row.rows) << row.name;
            EXPECT_EQ((KernelPart)int8.tile[row.rows - 1], row.part) << row.name;
            continue;
        }
        if (row.slot == KernelSlot::int8_byte_tile) {
            ASSERT_TRUE(set.int8->bytes) << row.name;
            const Int8Kernels& bytes = *set.int8->bytes;
            EXPECT_EQ(bytes.k_group, row.k) << row.name;
            EXPECT_GE(bytes.max_rows, row.rows) << row.name;
            const auto& tiles = row.columns == bytes.lanes ? bytes.tile_single : bytes.tile;
            EXPECT_EQ((KernelPart)tiles[row.rows - 1], row.part) << row.name;
            continue;
        }
        if (const BlockTileKernel* kernel = block_kernel(*set.int8, row)) {
            EXPECT_EQ((KernelPart)*kernel, row.part) << row.name;
            continue;
        }
        const auto& windows = set.int8->window_rows;
        const KernelPart part =
            row.slot == KernelSlot::int8_windows_3x3   ? (KernelPart)windows[0][row.k - 1]
            : row.slot == KernelSlot::int8_windows_5x5 ? (KernelPart)windows[1][row.k - 1]
            : row.slot == KernelSlot::f16_dwconv_pair || row.slot == KernelSlot::sve_f16_dwconv_pair
                ? (KernelPart)set.f16->dwconv->pair[0][row.k - 1]
            : row.slot == KernelSlot::f16_winograd_input  ? (KernelPart)set.f16->winograd->input
            : row.slot == KernelSlot::f16_winograd_output ? (KernelPart)set.f16->winograd->output
            : row.slot == KernelSlot::dwconv_pair || row.slot == KernelSlot::sve_dwconv_pair
                ? (KernelPart)set.dwconv->pair[0][row.k - 1]
            : row.slot == KernelSlot::winograd_input ? (KernelPart)set.winograd->input
            : row.slot == KernelSlot::narrow_bf16    ? (KernelPart)set.cast->bf16.narrow
            : row.slot == KernelSlot::dwconv_planes  ? (KernelPart)set.dwconv->planes
            : row.slot == KernelSlot::gemm_planar
                ? (KernelPart)set.gemm->planar[row.columns / kPlanarColumns - 1]
            : row.slot == KernelSlot::f16_gemm_planar
                ? (KernelPart)set.f16->gemm->planar[row.columns / kPlanarColumns - 1]
            : row.slot == KernelSlot::sve_f16_gemm_planar
                ? (KernelPart)set.f16->gemm->planar[row.columns / kPlanarColumns - 1]
                : (KernelPart)set.winograd->output;
        EXPECT_EQ(part, row.part) << row.name;
    }
}

// Features are a set: those of another level, or without what a level needs, change nothing.
TEST(KernelSet, features_are_a_set) {
    const KernelRow* avxvnni = find_row("int8_kernels_avxvnni");
    const KernelRow* avx512vnni = find_row("int8_kernels_avx512vnni");
    const KernelRow* bf16 = find_row("cast_kernels_avx512bf16");
    if (!avxvnni || !avx512vnni || !bf16) GTEST_SKIP() << "not built";
    using F = CpuFeature;
    // They come with tiles of 16-bit values, those of the level with the rows' own.
    const auto expect_vnni = [](const Int8Kernels& int8, const KernelRow& row, Isa level) {
        const Int8Kernels& of_row = *static_cast<const Int8Kernels*>(row.kernels);
        EXPECT_STREQ(int8.name, of_row.name);
        EXPECT_EQ(int8.tile[0], of_row.tile[0]);
        ASSERT_TRUE(int8.s16);
        EXPECT_EQ(int8.s16->tile[0], of_row.s16_tile[0]);
        EXPECT_EQ(int8.s16->input_s8[0], vector_kernels(level).int8->input_s8[0]);
    };
    expect_vnni(*kernel_set(with(Isa::avx2, {F::avx_vnni})).int8, *avxvnni, Isa::avx2);
    EXPECT_EQ(kernel_set(with(Isa::sse4, {F::avx_vnni})).int8, vector_kernels(Isa::sse4).int8);
    EXPECT_EQ(kernel_set(with(Isa::avx512, {F::avx_vnni})).int8, vector_kernels(Isa::avx512).int8);
    expect_vnni(*kernel_set(with(Isa::avx512, {F::avx512_vnni})).int8, *avx512vnni, Isa::avx512);
    expect_vnni(*kernel_set(with(Isa::avx512, {F::avx_vnni, F::avx512_vnni})).int8, *avx512vnni,
                Isa::avx512);
    EXPECT_EQ(kernel_set(with(Isa::avx512, {F::avx512_bf16})).cast, bf16->kernels);
    EXPECT_EQ(kernel_set(with(Isa::avx512, {F::avx512_bf16})).int8,
              vector_kernels(Isa::avx512).int8);
    EXPECT_EQ(kernel_set(with(Isa::avx2, {F::avx512_bf16})).cast, vector_kernels(Isa::avx2).cast);
}

// Rows that are tuned for a core serve others that have no better.
TEST(KernelSet, of_other_cores) {
    for (const KernelRow& row : kernel_rows()) {
        if (row.slot != KernelSlot::split6 && row.slot != KernelSlot::int8) continue;
        SCOPED_TRACE(row.name);
        for (CpuCore core : {CpuCore::any, CpuCore::golden_cove}) {
            const KernelSet& set = kernel_set(row.features, core);
            if (row.slot == KernelSlot::int8) {
                // The same, apart from tiles by hand.
                EXPECT_STREQ(set.int8->name, static_cast<const Int8Kernels*>(row.kernels)->name);
            } else {
                EXPECT_EQ(set.split6, row.kernels);
            }
        }
    }
}

TEST(CostTable, is_sensible) {
    for (CpuCore core : {CpuCore::any, CpuCore::golden_cove}) {
        const CostTable& costs = cost_table(core);
        const double all[] = {
#define QUOLL_COST(name, golden_cove, what) costs.name,
#define QUOLL_COSTS(name, count, golden_cove, what) costs.name[0], costs.name[count - 1],
#include "layer/cpu/common/cost_table.inc"
#undef QUOLL_COST
#undef QUOLL_COSTS
        };
        for (double cost : all) EXPECT_GT(cost, 0);
        for (size_t i = 1; i < std::size(costs.tile_rows); i++)
            EXPECT_GT(costs.tile_rows[i], costs.tile_rows[i - 1]);
    }
    // The documented fallback.
    EXPECT_EQ(&cost_table(CpuCore::any), &cost_table(CpuCore::golden_cove));
}

}  // namespace
