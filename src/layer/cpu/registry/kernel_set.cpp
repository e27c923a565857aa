#include "layer/cpu/common/kernel_set.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "layer/common/elempack.h"
#include "layer/cpu/cast/cast.h"
#include "layer/cpu/common/few_kernels.h"
#include "layer/cpu/dwconv/dwconv.h"
#include "layer/cpu/gemm/gemm.h"
#include "layer/cpu/gemm/half_gemm.h"
#include "layer/cpu/gemm/planar_product.h"
#include "layer/cpu/gemm/wide_gemm.h"
#include "layer/cpu/half/f16_kernels.h"
#include "layer/cpu/int8/int8.h"
#include "layer/cpu/int8/int8_units.h"
#include "layer/cpu/pool/pool.h"
#include "layer/cpu/registry/kernel_rows.h"
#include "layer/cpu/winograd/winograd.h"
#include "runtime/parts.h"

namespace quoll {

#define QUOLL_ISA(isa, lanes) extern const VectorKernels kernel_set_##isa;
#include "isa_list.inc"
#undef QUOLL_ISA

namespace {

const VectorKernels* const kLevels[] = {
#define QUOLL_ISA(isa, lanes) &kernel_set_##isa,
#include "isa_list.inc"
#undef QUOLL_ISA
};

// What a row is better than: a lower level, and one that is tuned for another core.
int rank(const KernelRow& row, CpuCore core) {
    const int tuned = row.core == core ? 2 : row.core == CpuCore::any ? 1 : 0;
    return 3 * (int)best_isa(row.features) + tuned;
}

struct Machine {
    CpuFeatures features;
    CpuCore core;
};

// The best row of a slot for a machine, with so many rows, columns and k of a tile if that counts.
const KernelRow* best_row(KernelSlot slot, const Machine& machine, int rows = 0, int columns = 0,
                          int k = 1) {
    const KernelRow* best = nullptr;
    for (const KernelRow& row : kernel_rows()) {
        if (row.slot != slot || !machine.features.has_all(row.features) ||
            (rows && (row.rows != rows || row.columns != columns || row.k != k)))
            continue;
        if (!best || rank(row, machine.core) >= rank(*best, machine.core)) best = &row;
    }
    return best;
}

// A row's table, unless the level's own is of a higher level.
template <class Kernels>
void take(const Kernels** table, KernelSlot slot, Isa level, const Machine& machine) {
    const KernelRow* row = best_row(slot, machine);
    if (row && best_isa(row->features) >= level) *table = static_cast<const Kernels*>(row->kernels);
}

struct Selected {
    Machine machine;
    KernelSet set;
    GemmKernels gemm, half_gemm, f16_gemm, f16f32_gemm, sve_gemm, f16_panels;  // with tiles of rows
    DwconvKernels dwconv, f16_dwconv;                                          // with parts of rows
    WinogradKernels winograd, f16_winograd;
    PoolKernels f16_pool;
    UnaryKernels f16_unary;
    Int8Kernels int8, int8_pairs, int8_bytes, int8_s16;  // with tiles of rows
    CastKernels cast;
    KernelSet half, f16, f16_packing, f16f32;
    const Selected* next;
};
std::atomic<const Selected*> g_selected{nullptr};

// Tiles by hand, if there are such of full panels; then no tile has more rows than these. False if
// there are none. values: columns of a row that a column is.
bool take_tiles(KernelSlot slot, const Machine& machine, GemmKernels* gemm, int values = 1) {
    int most = 0;
    const int full = gemm->lanes * gemm->vectors;
    for (int width = gemm->step; width <= full; width += gemm->step)
        for (int rows = 1; rows <= kGemmMaxRows; rows++) {
            const KernelRow* row = best_row(slot, machine, rows, width * values);
            if (!row) continue;
            gemm->tile[width / gemm->step - 1][rows - 1] = row->tile;
            if (width == full) most = rows;
        }
    if (!most) return false;
    gemm->max_rows = most;
    gemm->blocks = true;
    for (GemmTileKernel(&tiles)[kGemmMaxRows] : gemm->tile)
        std::fill(tiles + most, tiles + kGemmMaxRows, nullptr);
    return true;
}

// Products of planar blobs by hand; all widths or none.
void take_planar(KernelSlot slot, int pixels, const Machine& machine, GemmKernels* gemm) {
    for (int width = 1; width <= kPlanarWidths; width++) {
        const KernelRow* row = best_row(slot, machine, pixels, width * kPlanarColumns);
        if (row) gemm->planar[width - 1] = (GemmPlanarKernel)row->part;
    }
}

bool has_wide_vectors(const Machine& machine, int lanes) {
    return machine.features.has(CpuFeature::sve) && sve_lanes() > lanes;
}
// For depthwise layers, where SVE takes three loads for one of NEON.
bool has_widest_vectors(const Machine& machine, int lanes) {
    return has_wide_vectors(machine, 2 * lanes);
}

// Pairs of rows by hand. False if there are none.
bool take_pairs_of_rows(KernelSlot slot, const Machine& machine, DwconvKernels* dwconv) {
    bool found = false;
    for (int stride = 1; stride <= 2; stride++) {
        const KernelRow* row = best_row(slot, machine, 2, kDwconvPairOutputs, stride);
        if (!row) continue;
        dwconv->pair[0][stride - 1] = (DwconvPairKernel)row->part;
        found = true;
    }
    return found;
}

// And sums of planes.
bool take_depthwise(const Machine& machine, int lanes, DwconvKernels* dwconv) {
    bool found = take_pairs_of_rows(KernelSlot::dwconv_pair, machine, dwconv);
    if (has_widest_vectors(machine, lanes))
        found = take_pairs_of_rows(KernelSlot::sve_dwconv_pair, machine, dwconv) || found;
    if (const KernelRow* row = best_row(KernelSlot::dwconv_planes, machine)) {
        dwconv->planes = (DwconvPlanesKernel)row->part;
        found = true;
    }
    return found;
}

// Winograd's transforms by hand. False if there are none.
bool take_transforms(KernelSlot input_slot, KernelSlot output_slot, const Machine& machine,
                     WinogradKernels* winograd) {
    const KernelRow* input = best_row(input_slot, machine);
    const KernelRow* output = best_row(output_slot, machine);
    if (input) winograd->input = (WinogradInput)input->part;
    if (output) winograd->output = (WinogradOutput)output->part;
    return input || output;
}

#if !defined(QUOLL_NO_INT8)
// Tiles of int8 products by hand for panels of so many values of k side by side, if there are such
// of full panels. A single-vector one that is not there stays as it is. False if there are none.
bool take_int8_tiles(KernelSlot slot, const Machine& machine, int k, Int8Kernels* int8) {
    int most = 0;
    for (int rows = 1; rows <= kGemmMaxRows; rows++) {
        const KernelRow* full = best_row(slot, machine, rows, int8->lanes * int8->vectors, k);
        const KernelRow* single = best_row(slot, machine, rows, int8->lanes, k);
        if (full) int8->tile[rows - 1] = (Int8TileKernel)full->part, most = rows;
        if (single) int8->tile_single[rows - 1] = (Int8TileKernel)single->part;
    }
    if (!most) return false;
    int8->max_rows = most;
    int8->stores_bytes = false;
    for (Int8TileKernel* tiles : {int8->tile, int8->tile_single})
        std::fill(tiles + most, tiles + kGemmMaxRows, nullptr);
    return true;
}

// The tile of more rows, which lie beside each other, where those of the machine's core know such.
void take_neighbour_tile(const Machine& machine, Int8Kernels* int8) {
    const int columns = int8->lanes * int8->vectors, k = int8->k_group;
    const KernelRow* own = best_row(KernelSlot::int8_tile, machine, int8->max_rows, columns, k);
    const KernelRow* row = best_row(KernelSlot::int8_neighbour_tile, machine);
    if (!row || own->core != CpuCore::any || row->columns != columns || row->k != k) return;
    int8->tile[row->rows - 1] = (Int8TileKernel)row->part;
    int8->neighbour_rows = row->rows;
}

// Tiles of bytes beside those of values of 16 bits. False if there are none.
bool take_byte_tiles(const Machine& machine, const Int8Kernels& int8, Int8Kernels* bytes) {
    if (int8.k_group != 2 || !int8.bytes_f32[0]) return false;
    *bytes = int8;
    bytes->k_group = 4;
    bytes->least_weight = -127;
    bytes->k_groups = nullptr, bytes->windows = nullptr;  // of 16-bit values
    std::copy_n(int8.bytes_f32, 4, bytes->input_f32);
    std::copy_n(int8.bytes_s8, 4, bytes->input_s8);
    bytes->small_is_faster = true;
    return take_int8_tiles(KernelSlot::int8_byte_tile, machine, 4, bytes);
}

// Tiles of 16-bit values beside those of bytes. False if there are none.
bool take_s16_tiles(const Int8Kernels& int8, const Int8Kernels& level, Int8Kernels* s16) {
    if (int8.k_group != 4 || level.k_group != 2 || !int8.s16_tile[0]) return false;
    *s16 = level;
    s16->max_rows = int8.max_rows;
    s16->stores_bytes = false;
    std::copy_n(int8.s16_tile, (int)kGemmMaxRows, s16->tile);
    std::fill_n(s16->tile_single, (int)kGemmMaxRows, nullptr);
    return true;
}

// Depthwise rows by hand. False if there are none.
bool take_window_rows(const Machine& machine, Int8Kernels* int8) {
    bool found = false;
    const KernelSlot slots[] = {KernelSlot::int8_windows_3x3, KernelSlot::int8_windows_5x5};
    for (int size = 0; size < 2; size++) {
        for (int stride = 1; stride <= 2; stride++) {
            const KernelRow* row = best_row(slots[size], machine, 1, 4, stride);
            if (row) int8->window_rows[size][stride - 1] = (Int8WindowRowsKernel)row->part;
            found = found || row;
        }
    }
    return found;
}

// Products with weights in blocks by hand. False if there are none.
bool take_block_kernels(const Machine& machine, Int8Kernels* int8) {
    const int lanes = int8->lanes;
    bool found = false;
    const auto take_part = [&](KernelSlot slot, int rows, int columns, int form,
                               BlockTileKernel* kernel) {
        const KernelRow* row = best_row(slot, machine, rows, columns, form ? 8 : 4);
        if (row) *kernel = (BlockTileKernel)row->part;
        found = found || row;
    };
    for (int form = 0; form < 2; form++) {
        for (int i = 0; i < kBlockRows; i++) {
            take_part(KernelSlot::block_tile, i + 1, lanes, form, &int8->block_tile[i][form]);
            take_part(KernelSlot::block_dot, i + 1, lanes, form, &int8->block_dot[i][form]);
        }
        for (int i = 0; i < 2; i++)
            take_part(KernelSlot::block_row, i + 2, 2 * lanes, form, &int8->block_row[i][form]);
        take_part(KernelSlot::block_bytes, int8->byte_rows, lanes, form, &int8->block_bytes[form]);
    }
    if (best_row(KernelSlot::block_byte_eights, machine, int8->byte_rows, lanes, 4)) {
        int8->bytes_beside = 8;
        for (int form = 0; form < 2; form++)
            take_part(KernelSlot::block_byte_eights, int8->byte_rows, lanes, form,
                      &int8->block_bytes[form]);
    }
    return found;
}

// Full panels as wide as vectors of SVE make them; single ones stay. k: as of take_int8_tiles.
void take_int8_sve(const Machine& machine, int k, Int8Kernels* int8) {
    // Panels of longer ones have more columns than their drivers take.
    if (!has_wide_vectors(machine, int8->lanes) || 2 * sve_lanes() > 4 * kGemmMaxRows) return;
    Int8Kernels wide = *int8;
    wide.vectors = 2 * sve_lanes() / wide.lanes;
    if (!take_int8_tiles(KernelSlot::sve_int8_tile, machine, k, &wide)) return;
    wide.small_is_faster = false;
    const KernelRow* finish = best_row(KernelSlot::sve_int8_finish, machine);
    // It knows vectors of two and of four times the level's length, and none between.
    if (finish && (sve_lanes() == 2 * wide.lanes || sve_lanes() == 4 * wide.lanes))
        wide.finish_s8 = (Int8StoreKernel)finish->part;
    *int8 = wide;
}

// The int8 family by hand.
void take_int8(const Machine& machine, Selected* s) {
    s->int8 = *s->set.int8;
    const bool blocks = take_block_kernels(machine, &s->int8);
    s->int8_pairs = s->int8;
    if (take_int8_tiles(KernelSlot::int8_tile, machine, 8, &s->int8_pairs)) {
        s->int8_pairs.pairs = true;
        s->set.int8_pairs = &s->int8_pairs;
        take_int8_sve(machine, 8, &s->int8_pairs);
        s->int8_pairs.neighbour_rows = s->int8_pairs.max_rows;
        // Units with lists know full panels alone.
        if (kInt8Lists && s->set.int8_units)
            std::fill_n(s->int8_pairs.tile_single, (int)kGemmMaxRows, nullptr);
    }
    const bool bytes = take_byte_tiles(machine, s->int8, &s->int8_bytes);
    if (bytes) {
        take_int8_sve(machine, 4, &s->int8_bytes);
        s->int8.bytes = &s->int8_bytes;
    }
    const Int8Kernels* const level = vector_kernels(s->set.isa).int8;
    const bool s16 = level && take_s16_tiles(s->int8, *level, &s->int8_s16);
    if (s16) s->int8.s16 = &s->int8_s16;
    const bool tiles = take_int8_tiles(KernelSlot::int8_tile, machine, s->int8.k_group, &s->int8);
    if (tiles) take_neighbour_tile(machine, &s->int8);
    if (take_window_rows(machine, &s->int8) || tiles || bytes || s16 || blocks)
        s->set.int8 = &s->int8;
}
#endif

// The kernels of `gemm` that do not multiply.
GemmKernels without_tiles(const GemmKernels& gemm) {
    GemmKernels none = gemm;
    none.row_times_panels = nullptr;
    none.narrow = nullptr;
    std::fill_n(none.planar, kPlanarWidths, nullptr);
    for (auto& tiles : none.tile) std::fill_n(tiles, kGemmMaxRows, nullptr);
    return none;
}

GemmKernels f16_gemm(const GemmKernels& gemm, const F16Kernels& f16) {
    GemmKernels pairs = without_tiles(gemm);
    pairs.halves = 4;
    pairs.init_4 = f16.gemm_init;
    pairs.init_1 = pairs.init_8 = pairs.init_16 = nullptr;
    return pairs;
}

DwconvKernels f16_dwconv(const F16Kernels& f16) {
    DwconvKernels pairs = {};
#define QUOLL_DWCONV_ROW(name, kernel, stride) pairs.name[0] = f16.dwconv_##name;
#include "layer/cpu/dwconv/kernels.inc"
#undef QUOLL_DWCONV_ROW
    std::copy_n(f16.dwconv_planar, 2, pairs.planar);
    return pairs;
}

WinogradKernels f16_winograd(const WinogradKernels& winograd, const F16Kernels& f16) {
    WinogradKernels pairs = winograd;
    pairs.input = f16.winograd_input, pairs.output = f16.winograd_output;
    pairs.tile_input = f16.winograd_tile_input, pairs.tile_output = f16.winograd_tile_output;
    pairs.strided_input = f16.winograd_strided_input;
    pairs.strided_output = f16.winograd_strided_output;
    return pairs;
}

PoolKernels f16_pool(const F16Kernels& f16) {
    PoolKernels pairs = {};
#define QUOLL_POOL(name, operation, columns, stride) pairs.name[0] = f16.pool_##name;
#include "layer/cpu/pool/kernels.inc"
#undef QUOLL_POOL
    return pairs;
}

// Products of blobs of half floats by vectors of SVE, and what packs their weights.
void take_f16_sve(const Machine& machine, Selected* s) {
    GemmKernels wide = wide_gemm(s->f16_gemm, sve_lanes());
    if (!take_tiles(KernelSlot::sve_f16_gemm_tile, machine, &wide, 2)) return;
    take_planar(KernelSlot::sve_f16_gemm_planar, (int)planar_half_pixels(wide), machine, &wide);
    s->f16_gemm = wide;
    s->f16_panels = wide_half_gemm(s->half_gemm, wide);
    s->f16_packing = s->half;
    s->f16_packing.gemm = &s->f16_panels;
    s->f16.half = &s->f16_packing;
}

// What takes blobs of half floats; of families that this build has.
void take_f16(const Machine& machine, Selected* s) {
    const KernelRow* row = best_row(KernelSlot::f16, machine);
    if (!row || !s->set.half || s->set.lanes != 4) return;
    const F16Kernels& f16 = *static_cast<const F16Kernels*>(row->kernels);
    s->f16_gemm = f16_gemm(s->gemm, f16);
    if (!take_tiles(KernelSlot::f16_gemm_tile, machine, &s->f16_gemm, 2)) return;
    take_planar(KernelSlot::f16_gemm_planar, kPlanarHalfPixels, machine, &s->f16_gemm);
    s->f16 = s->set;
    s->f16.f16 = &s->f16;
    s->f16.gemm = &s->f16_gemm;
    if (has_wide_vectors(machine, s->gemm.lanes)) take_f16_sve(machine, s);
    if (s->set.unary) {
        s->f16_unary = *s->set.unary;
        s->f16_unary.relu = f16.relu;
        s->f16.unary = &s->f16_unary;
    }
    s->f16_dwconv = f16_dwconv(f16);
    take_pairs_of_rows(KernelSlot::f16_dwconv_pair, machine, &s->f16_dwconv);
    if (has_widest_vectors(machine, s->set.lanes))
        take_pairs_of_rows(KernelSlot::sve_f16_dwconv_pair, machine, &s->f16_dwconv);
    if (s->set.dwconv) s->f16.dwconv = &s->f16_dwconv;
    if (s->set.winograd) s->f16_winograd = f16_winograd(*s->set.winograd, f16);
    take_transforms(KernelSlot::f16_winograd_input, KernelSlot::f16_winograd_output, machine,
                    &s->f16_winograd);
    if (s->set.winograd) s->f16.winograd = &s->f16_winograd;
    s->f16_pool = f16_pool(f16);
    if (s->set.pool) s->f16.pool = &s->f16_pool;
    s->set.narrow_f16_blocks = f16.narrow_blocks;
    s->set.f16 = &s->f16;
}

// Products of half floats with sums of fp32, of full panels alone. Longer vectors are faster with
// fp32, and so are cores that issue in order with tiles of their own.
void take_f16f32(const Machine& machine, Selected* s) {
    if (has_wide_vectors(machine, s->gemm.lanes) || machine.core == CpuCore::cortex_a55) return;
    s->f16f32_gemm = without_tiles(s->gemm);
    s->f16f32_gemm.step = s->gemm.lanes * s->gemm.vectors;
    if (!take_tiles(KernelSlot::f16f32_gemm_tile, machine, &s->f16f32_gemm)) return;
    s->f16f32 = s->set;
    s->f16f32.gemm = &s->f16f32_gemm;
    s->set.f16f32 = &s->f16f32;
}

Selected* select(const Machine& machine) {
    Selected* s = new Selected();
    s->machine = machine;
    static_cast<VectorKernels&>(s->set) = vector_kernels(best_isa(machine.features));
    const Isa level = s->set.isa;
#define QUOLL_FAMILY(name, type) take(&s->set.name, KernelSlot::name, level, machine);
#include "layer/cpu/common/families.inc"
#undef QUOLL_FAMILY
    take(&s->set.split6, KernelSlot::split6, level, machine);
    take(&s->set.split3, KernelSlot::split3, level, machine);
    take(&s->set.split1, KernelSlot::split1, level, machine);
    take(&s->set.sliced, KernelSlot::sliced, level, machine);
    take(&s->set.int8_units, KernelSlot::int8_units, level, machine);
    take(&s->set.recurrent_units, KernelSlot::recurrent_units, level, machine);
#if !defined(QUOLL_NO_INT8)
    if (s->set.int8) take_int8(machine, s);
#endif
    const KernelRow* const narrow =
        !kHasHalfStorage ? nullptr : best_row(KernelSlot::narrow_bf16, machine);
    if (narrow && s->set.cast) {
        s->cast = *s->set.cast;
        s->cast.bf16.narrow = (decltype(s->cast.bf16.narrow))narrow->part;
        s->set.cast = &s->cast;
    }
    if (s->set.dwconv) s->dwconv = *s->set.dwconv;
    if (s->set.dwconv && take_depthwise(machine, s->set.lanes, &s->dwconv))
        s->set.dwconv = &s->dwconv;
    if (s->set.winograd) s->winograd = *s->set.winograd;
    if (s->set.winograd && take_transforms(KernelSlot::winograd_input, KernelSlot::winograd_output,
                                           machine, &s->winograd))
        s->set.winograd = &s->winograd;
    if (!s->set.gemm) return s;
    s->gemm = *s->set.gemm;
    if (take_tiles(KernelSlot::gemm_tile, machine, &s->gemm)) {
        take_planar(KernelSlot::gemm_planar, (int)planar_pixels(s->gemm), machine, &s->gemm);
        s->set.gemm = &s->gemm;
    }
    if (has_wide_vectors(machine, s->gemm.lanes)) {
        s->sve_gemm = wide_gemm(s->gemm, sve_lanes());
        if (take_tiles(KernelSlot::sve_gemm_tile, machine, &s->sve_gemm))
            s->set.gemm = &s->sve_gemm;
    }
    if (!kHasHalfStorage) return s;
    s->half_gemm = half_gemm(s->gemm);
    if (take_tiles(KernelSlot::half_gemm_tile, machine, &s->half_gemm)) {
        s->half = s->set;
        s->half.gemm = &s->half_gemm;
        s->set.half = &s->half;
    }
    if (kHasF16F32) take_f16f32(machine, s);
    take_f16(machine, s);
    return s;
}

}  // namespace

const VectorKernels& vector_kernels(Isa isa) {
    const VectorKernels* best = kLevels[0];
    for (const VectorKernels* level : kLevels)
        if (level->isa <= isa) best = level;
    return *best;
}

const KernelSet& kernel_set(const CpuFeatures& features, CpuCore core) {
    const Selected* first = g_selected.load(std::memory_order_acquire);
    for (const Selected* s = first; s; s = s->next)
        if (s->machine.features.bits == features.bits && s->machine.core == core) return s->set;
    Selected* added = select({features, core});
    added->next = first;
    // Two threads may add the same: no harm.
    while (!g_selected.compare_exchange_weak(added->next, added)) {
    }
    return added->set;
}

int native_elempack() { return host_kernel_set().lanes; }

IsaList available_isas() {
    const Isa best = best_isa(host_cpu_features());
    IsaList list = {};
    for (const VectorKernels* level : kLevels)
        if (level->isa <= best) list.isas[list.count++] = level->isa;
    return list;
}

}  // namespace quoll
