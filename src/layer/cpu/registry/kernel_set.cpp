#include "layer/cpu/common/kernel_set.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "layer/common/elempack.h"
#include "layer/cpu/gemm/gemm.h"
#include "layer/cpu/registry/kernel_rows.h"

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

// The best row of a slot for a machine, with so many rows of a tile if that counts.
const KernelRow* best_row(KernelSlot slot, int rows, const Machine& machine) {
    const KernelRow* best = nullptr;
    for (const KernelRow& row : kernel_rows()) {
        if (row.slot != slot || !machine.features.has_all(row.features) ||
            (rows && row.rows != rows))
            continue;
        if (!best || rank(row, machine.core) >= rank(*best, machine.core)) best = &row;
    }
    return best;
}

// A row's table, unless the level's own is of a higher level.
template <class Kernels>
void take(const Kernels** table, KernelSlot slot, Isa level, const Machine& machine) {
    const KernelRow* row = best_row(slot, 0, machine);
    if (row && best_isa(row->features) >= level) *table = static_cast<const Kernels*>(row->kernels);
}

struct Selected {
    Machine machine;
    KernelSet set;
    GemmKernels gemm;  // with the tiles of rows
    const Selected* next;
};
std::atomic<const Selected*> g_selected{nullptr};

void take_tiles(Selected* s) {
    s->gemm = *s->set.gemm;
    int most = 0;
    for (int rows = 1; rows <= kGemmMaxRows; rows++) {
        const KernelRow* row = best_row(KernelSlot::gemm_tile, rows, s->machine);
        if (!row || row->columns != s->gemm.lanes * s->gemm.vectors) continue;
        s->gemm.tile[rows - 1] = row->tile;
        most = rows;
    }
    if (!most) return;
    s->gemm.max_rows = most;
    for (int rows = most; rows < kGemmMaxRows; rows++)
        s->gemm.tile[rows] = s->gemm.tile_single[rows] = nullptr;
    s->set.gemm = &s->gemm;
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
    take_tiles(s);
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
