#include "layer/cpu/gemm/product_plan.h"

#include <limits.h>
#include <string.h>

#include <algorithm>

#include "layer/common/side_by_side.h"
#include "layer/cpu/gemm/gemm_panels.h"
#include "quoll/log.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// With fewer rows, reading B takes as long as all the rest, and tiles are mostly empty. A packed B
// of bf16 on tiles is half of what vectors read.
enum { kManyRows = 8, kManyRowsOfBf16 = 2 };
size_t many_rows(const SplitGemmKernels& split, double packings) {
    return split.products == 1 && !split.vector_macs && packings == 0 ? kManyRowsOfBf16 : kManyRows;
}

// The time to pack a value for vectors, in multiply-adds.
const double kPackedValue = 16;

TileShape shape_of(const GemmMatrix& g) {
    TileShape s = tile_shape(g.m, g.n, g.k, g.a_row, g.c_row);
    s.out_pack = g.c_pack;
    s.out_block = g.c_block;
    s.reduced_in = g.reduced_a, s.reduced_out = g.reduced_c;
    return s;
}

// Compares on one core, whatever the number of threads: see choose_conv_algorithm.
bool beats_vectors(const SplitGemmKernels& split, const GemmMatrix& g, double packings) {
    if (g.m < many_rows(split, packings) || g.k == 0 || g.a_k != 1 || g.m > INT_MAX ||
        g.n > INT_MAX)
        return false;
    if (split.terms > 1 && (g.reduced_a || g.reduced_c)) return false;
    const TileShape shape = shape_of(g);
    if (!SplitPlan::is_supported(shape)) return false;
    ConvShape conv = {};
    conv.x = shape.x, conv.y = shape.y;
    conv.in_channels = shape.in_channels, conv.out_channels = shape.out_channels;
    const CostTable& costs = host_costs();
    const double packed = packings * (double)g.n * (double)g.k;
    const double tiles = SplitPlan::cycles(split, shape) +
                         packed * (costs.pack_tile + costs.pack_tile_term * split.b_terms());
    double vectors = ConvPlan::cycles(*g.kernels, conv) + packed * costs.pack_vector;
    if (g.reduced_a) vectors += (double)g.m * (double)g.k;  // f32 copies: a cycle per value
    if (g.reduced_c) vectors += (double)g.m * (double)g.n;
    return tiles < vectors * costs.vector_margin;
}

}  // namespace

ProductPlan::ProductPlan(const SplitGemmKernels* split, const GemmMatrix& g, double packings,
                         int threads)
    : shape_(g), split_(split), threads_(threads) {
    if (kHasTileUnits && split && beats_vectors(*split, g, packings))
        plan_.reset(new SplitPlan(*split, shape_of(g), threads));
}

ProductPlan::ProductPlan(const ProductPlan& like, const GemmMatrix& g)
    : shape_(g), split_(like.split_), threads_(like.threads_) {
    if (like.on_tiles()) plan_.reset(new SplitPlan(*split_, shape_of(g), threads_));
}

bool ProductPlan::fits(const GemmMatrix& g, int threads) const {
    const GemmMatrix& s = shape_;
    return s.m == g.m && s.n == g.n && s.k == g.k && s.a_row == g.a_row && s.a_k == g.a_k &&
           s.c_row == g.c_row && s.c_pack == g.c_pack && s.c_block == g.c_block &&
           s.reduced_a == g.reduced_a && s.reduced_c == g.reduced_c && threads_ == threads;
}

size_t ProductPlan::packed_size() const {
    if (on_tiles())
        return split_packed_size(split_->b_terms(), shape_.n, split_steps(shape_.k)) / 2;
    return (gemm_packed_size(*shape_.kernels->gemm, shape_.n, shape_.k) + 15) / 16 * 16;
}

void ProductPlan::pack_values(const void* b, bool bf16, size_t k_step, size_t n_step, int threads,
                              float* packed) const {
    if (!on_tiles()) {
        const GemmKernels& kernels = *shape_.kernels->gemm;
        const size_t columns = panel_columns(kernels), n = shape_.n, k = shape_.k;
        const bool row_major = n_step == 1;
        const double work = kPackedValue * (double)n * (double)k;
        if (shared_work(work, threads) >= work) threads = 1;
        parallel_for((int64_t)panel_count(kernels, n), threads, [&](int64_t p) {
            const size_t n0 = p * columns;
            gemm_pack(kernels, (const float*)b + n0 * n_step, row_major ? k_step : n_step,
                      row_major, std::min(columns, n - n0), k,
                      packed + gemm_b_size(kernels, n0 * k));
        });
        return;
    }
    const int64_t panels = (int64_t)((shape_.n + kUnitColumns - 1) / kUnitColumns);
    parallel_for(panels, threads, [&](int64_t p) {
        const size_t before = p * kUnitColumns * n_step * (bf16 ? 2 : 4);
        pack_panel((const char*)b + before, k_step, n_step, (size_t)p, packed, bf16);
    });
}

void ProductPlan::pack_panel(const void* b, size_t k_step, size_t n_step, size_t panel,
                             float* packed, bool bf16) const {
    const size_t size = split_panel_size(split_->b_terms(), split_steps(shape_.k));
    const size_t columns = std::min<size_t>(kUnitColumns, shape_.n - panel * kUnitColumns);
    const SplitPackKernel kernel = bf16 ? split_->bf16_packing() : split_->pack;
    kernel({(const float*)b, k_step, n_step, shape_.k, columns, (uint16_t*)packed + panel * size});
}

void ProductPlan::run(const GemmMatrix& g, float* workspace) const {
    if (!on_tiles()) return gemm_matrix(g, threads_);
    if (!plan_->run(g.a, (const uint16_t*)g.b, g.bias, g.c, nullptr, 0, g.activation, workspace))
        run_unpacked(g);
}

// A, for kernels of two products, as floats in rows of k values.
static Mat joined_terms(const GemmMatrix& g) {
    Mat m;
    if (product_memory(g.m * g.k, 1, nullptr, &m) != kOk) return Mat();
    float* to = m;
    for (size_t i = 0; i < g.m; i++) {
        const uint16_t* const row = (const uint16_t*)(g.a + i * g.a_row);
        for (size_t k = 0; k < g.k; k++) {
            const uint16_t* const term = row + k / kSplitK * 2 * kSplitK + k % kSplitK;
            *to++ = bfloat16_to_float32(term[0]) + bfloat16_to_float32(term[kSplitK]);
        }
    }
    return m;
}

// Multiplies infinite and NaN values, which tile units do not take, on vectors.
void ProductPlan::run_unpacked(const GemmMatrix& g) const {
    Mat plain, packed, joined;
    if (product_memory(g.n * g.k, 1, nullptr, &plain) == kOk) {
        split_unpack(*split_, (const uint16_t*)g.b, nullptr, g.n, g.k, g.k, plain);
        packed = gemm_packed(*g.kernels->gemm, plain, g.k, false, g.n, g.k);
    }
    const bool in_terms = split_->products == 2;
    if (in_terms) joined = joined_terms(g);
    if (packed.empty() || (in_terms && joined.empty())) {
        QUOLL_LOGE("[ProductPlan] out of memory for a product of values that are not finite");
        return;
    }
    GemmMatrix vectors = g;
    vectors.b = packed;
    if (in_terms) vectors.a = joined, vectors.a_row = (ptrdiff_t)g.k;
    gemm_matrix(vectors, threads_);
}

Mat product_bias(const KernelSet& kernels, const float* bias, size_t n, Allocator* allocator) {
    const size_t floats = std::max(gemm_bias_size(*kernels.gemm, n), SplitPlan::bias_size(n));
    Mat m((int)floats, (size_t)4u, allocator);
    if (m.empty()) return m;
    m.fill(0.f);
    if (bias) std::copy_n(bias, n, (float*)m);
    return m;
}

int product_memory(size_t floats, int count, Allocator* allocator, Mat* memory) {
    // Rows of 16 floats, as the number of floats may exceed an int.
    if (floats == 0) return kOk;
    const size_t rows = (floats + 15) / 16;
    if (rows <= INT_MAX) memory->create(16, (int)rows, count, (size_t)4u, allocator);
    return memory->empty() ? (int)kOutOfMemory : (int)kOk;
}

}  // namespace quoll
