#include "layer/cpu/recurrent/unit_steps.h"

#if defined(__x86_64__)

#include <math.h>
#include <string.h>

#include <algorithm>

#include "layer/common/schema.h"
#include "layer/cpu/cast/cast.h"
#include "layer/cpu/common/kernel_set.h"
#include "layer/cpu/gemm/gemm_run.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// What a region of threads costs is about the time of half as many tiles of weights.
constexpr size_t kTilesOfThread = 256;

struct UnitCell {
    RecurrentKernel RecurrentKernels::*cell;
    RecurrentUnitKernel RecurrentUnitKernels::*kernel;
    int gates, order[kMostGates];
};
constexpr UnitCell kCells[] = {
    {&RecurrentKernels::lstm, &RecurrentUnitKernels::lstm, 4, {0, 1, 2, 3}},
    {&RecurrentKernels::onnx_lstm, &RecurrentUnitKernels::lstm, 4, {0, 2, 1, 3}},
    {&RecurrentKernels::gru, &RecurrentUnitKernels::gru, 3, {0, 1, 2}},
    {&RecurrentKernels::onnx_gru, &RecurrentUnitKernels::gru, 3, {1, 0, 2}},
    {&RecurrentKernels::rnn, &RecurrentUnitKernels::rnn, 1, {0}},
};

const UnitCell* cell_of(RecurrentKernel RecurrentKernels::*cell) {
    for (const UnitCell& c : kCells)
        if (c.cell == cell) return &c;
    return nullptr;
}

size_t steps_of_k(size_t n) { return (n + kCellK - 1) / kCellK; }

// Groups of units.
size_t groups_of(size_t n, int gates) {
    const size_t units = cell_group_tiles(gates) * kCellColumns;
    return (n + units - 1) / units;
}

// `rows` (one of each unit, n values) as tiles `tile`, of `tiles` a step of k, in groups of
// `units`.
void pack_rows(const uint16_t* rows, size_t n, size_t tile, size_t tiles, size_t units,
               uint16_t* to) {
    const size_t of_tile = kCellTileBytes / sizeof(uint16_t);
    for (size_t unit = 0; unit < n; unit++) {
        const size_t group = unit / units, in_group = unit % units;
        uint16_t* const column = to + group * steps_of_k(n) * tiles * of_tile +
                                 (tile + in_group / kCellColumns) * of_tile +
                                 in_group % kCellColumns * 2;
        for (size_t k = 0; k < n; k++)
            column[k / kCellK * tiles * of_tile + k % kCellColumns * (2 * kCellColumns) +
                   k % kCellK / kCellColumns] = rows[unit * n + k];
    }
}

bool is_finite_bf16(uint16_t x) { return (x & 0x7f80) != 0x7f80; }

}  // namespace

// Here, so that the layers are smaller.
UnitSteps::UnitSteps() {}
UnitSteps::~UnitSteps() {}

int UnitSteps::create(const Layer& layer, RecurrentKernel RecurrentKernels::*cell,
                      const float* weight, int n, const float* last_bias, const Option& opt) {
    kernel_ = nullptr;  // of an earlier pipeline
    const KernelSet& kernels = host_kernel_set();
    const UnitCell* const c = cell_of(cell);
    if (!opt.use_bf16_storage || !kernels.recurrent_units || !c || n % kCellColumns) return kOk;
    const size_t tiles = c->gates * cell_group_tiles(c->gates), values = (size_t)n * n;
    const size_t units = cell_group_tiles(c->gates) * kCellColumns;
    const size_t bytes = groups_of(n, c->gates) * steps_of_k(n) * tiles * kCellTileBytes;
    Mat narrow(n, n * c->gates, (size_t)2u, opt.workspace_allocator);
    weights_.create(kCellTileBytes / 4, (int)(bytes / kCellTileBytes), (size_t)4u);
    last_bias_.create(n);
    if (narrow.empty() || weights_.empty() || last_bias_.empty()) {
        layer.fail("out of memory for %d x %d weights", n * c->gates, n);
        return kOutOfMemory;
    }
    uint16_t* const rows = narrow;
    kernels.cast->bf16.narrow(weight, rows, values * c->gates);
    if (!std::all_of(rows, rows + values * c->gates, is_finite_bf16)) {
        weights_.release(), last_bias_.release();
        return kOk;
    }
    memset(weights_.data, 0, bytes);
    for (int i = 0; i < c->gates; i++)
        pack_rows(rows + c->order[i] * values, n, i, tiles, units, (uint16_t*)weights_.data);
    for (int i = 0; i < n; i++) last_bias_[i] = last_bias ? last_bias[i] : 0.f;
    kernel_ = kernels.recurrent_units->*c->kernel;
    n_ = n, gates_ = c->gates;
    std::copy_n(c->order, (int)kMostGates, order_);
    return kOk;
}

// By twos, since two tiles of units share a cache line of bf16 values.
int UnitSteps::parts(const Option& opt) const {
    const size_t most = std::max(1, opt.num_threads), groups = groups_of(n_, gates_);
    const size_t worth = std::max<size_t>(1, (size_t)weights_.h / kTilesOfThread);
    return (int)std::min({most, worth, (groups + 1) / 2});
}

void UnitSteps::share_step(const RecurrentUnitStep& step, size_t values, int parts) const {
    const size_t groups = groups_of(n_, gates_), pairs = (groups + 1) / 2;
    const RecurrentUnitKernels& kernels = *host_kernel_set().recurrent_units;
    run_tasks(parts, parts, [&](int64_t i, int) {
        RecurrentUnitStep part = step;
        part.state += i * values;
        part.first_group = 2 * partition_begin(pairs, parts, i);
        part.end_group = std::min(groups, 2 * partition_begin(pairs, parts, i + 1));
        kernels.begin(step.rows);
        kernel_(part);
        kernels.end();
    });
}

int UnitSteps::run_items(const RecurrentSteps& steps, int begin, int count, int first, int end,
                         const Option& opt) const {
    RecurrentUnitStep step = {};
    step.items = count;
    step.rows = count <= kPreciseItems ? 2 * count : count;
    step.n = n_, step.end_group = groups_of(n_, gates_);
    const size_t values = steps_of_k(n_) * step.rows * kCellK;
    const int parts = this->parts(opt);
    Mat states((int)values, parts, (size_t)2u, opt.workspace_allocator);
    if (states.empty()) return kOutOfMemory;
    step.state = (uint16_t*)states.data;
    memset(step.state, 0, values * parts * sizeof(uint16_t));
    step.weights = (const uint16_t*)weights_.data;
    for (int i = 0; i < gates_; i++) step.gate[i] = (size_t)order_[i] * n_;
    step.last_bias = last_bias_;
    step.cell = steps.cell ? steps.cell + (size_t)begin * n_ : nullptr;
    const float *x[kUnitItems], *before[kUnitItems];
    float* y[kUnitItems];
    step.x = x, step.before = before, step.y = y;
    for (int i = 0; i < count; i++) before[i] = steps.hidden + (size_t)(begin + i) * n_;
    const RecurrentUnitKernels& kernels = *host_kernel_set().recurrent_units;
    if (parts == 1) kernels.begin(step.rows);
    for (int s = first; s < end; s++) {
        for (int i = 0; i < count; i++) {
            x[i] = nullptr;
            if (s >= steps.lens[begin + i]) continue;
            x[i] = steps.input(begin + i, s), y[i] = steps.output(begin + i, s);
        }
        if (parts == 1)
            kernel_(step);
        else
            share_step(step, values, parts);
        for (int i = 0; i < count; i++)
            if (x[i]) before[i] = y[i];
    }
    if (parts == 1) kernels.end();
    for (int i = 0; i < count; i++)
        memmove(steps.hidden + (size_t)(begin + i) * n_, before[i], n_ * sizeof(float));
    return kOk;
}

int UnitSteps::run(const RecurrentSteps& steps, int first, int end, const Option& opt) const {
    for (int i = 0; i < steps.items; i += kUnitItems)
        QUOLL_RETURN_IF_ERROR(
            run_items(steps, i, std::min<int>(kUnitItems, steps.items - i), first, end, opt));
    return kOk;
}

}  // namespace quoll

#endif
