#include "layer/cpu/gemm/constant_matrix.h"

#include <algorithm>

namespace quoll {

namespace {

// With fewer values, which are in the second-level cache, the product of a single row is faster on
// vectors.
enum { kLeastDigits = 1 << 16, kLeastDigitsK = 256 };

bool fit_slices(size_t n, size_t k) {
    return k >= kLeastDigitsK && n * k >= kLeastDigits &&
           SlicedPlan::is_supported(tile_shape(1, n, k, (ptrdiff_t)k, (ptrdiff_t)n));
}

// Makes [columns][rows] from [rows][columns].
void transpose(const float* from, size_t ld, size_t rows, size_t columns, float* to) {
    enum { kBlock = 16 };  // a line of the cache each way
    for (size_t r0 = 0; r0 < rows; r0 += kBlock)
        for (size_t c = 0; c < columns; c++)
            for (size_t r = r0; r < std::min<size_t>(rows, r0 + kBlock); r++)
                to[c * rows + r] = from[r * ld + c];
}

}  // namespace

int ConstantMatrix::create(const Layer& layer, const float* b, size_t ld, bool row_major, size_t n,
                           size_t k, const float* bias, const Option& opt) {
    kernels_ = &host_kernel_set();
    split_ = split_kernels_for(opt);
    sliced_ = nullptr;
    n_ = n, k_ = k;
    split_weights_.release();
    weights_.release();
    bias_ = product_bias(*kernels_, bias, n);
    if (!bias_.empty() && pack(b, ld, row_major, opt) == kOk) return kOk;
    weights_.release();
    layer.fail("out of memory for a matrix of %zu x %zu", n, k);
    return kOutOfMemory;
}

int ConstantMatrix::pack(const float* b, size_t ld, bool row_major, const Option& opt) {
    if (sliced_kernels_for(opt) && fit_slices(n_, k_)) {
        Mat columns;
        if (row_major || ld != k_) {
            QUOLL_RETURN_IF_ERROR(product_memory(n_ * k_, 1, opt.workspace_allocator, &columns));
            if (row_major) transpose(b, ld, k_, n_, columns);
            for (size_t n = 0; n < n_ && !row_major; n++)
                std::copy_n(b + n * ld, k_, (float*)columns + n * k_);
        }
        QUOLL_RETURN_IF_ERROR(pack_slices(columns.empty() ? b : (float*)columns, opt));
        if (sliced_) return kOk;
    }
    weights_ = gemm_packed(*kernels_->gemm, b, ld, row_major, n_, k_);
    return weights_.empty() ? (int)kOutOfMemory : (int)kOk;
}

// b: [n][k]. Leaves sliced_ null where b does not suit.
int ConstantMatrix::pack_slices(const float* b, const Option& opt) {
    const SlicedGemmKernels* kernels = sliced_kernels_for(opt);
    const TileShape shape = tile_shape(1, n_, k_, (ptrdiff_t)k_, (ptrdiff_t)n_);
    QUOLL_RETURN_IF_ERROR(product_memory(SlicedPlan::packed_size(shape), 1, nullptr, &weights_));
    const int threads = threads_for(opt, (double)n_ * (double)k_);
    if (SlicedPlan::pack(*kernels, b, shape, weights_, threads)) sliced_ = kernels;
    return kOk;
}

// ---------------------------------------------------------------- planning

int ConstantMatrix::threads_of(const GemmMatrix& g, const Option& opt) const {
    return threads_for(opt, (double)g.m * (double)n_ * (double)k_);
}

// The shape of a product of this many rows on slices.
TileShape ConstantMatrix::shape_of(const GemmMatrix& g, size_t rows) const {
    TileShape s = tile_shape(rows, n_, k_, g.a_k == 1 ? g.a_row : (ptrdiff_t)k_, g.c_row);
    s.out_pack = g.c_pack;
    s.out_block = g.c_block;
    return s;
}

// The largest number of rows that a plan takes at a time.
size_t ConstantMatrix::most_rows(const GemmMatrix& g) const {
    size_t most = std::min<size_t>(g.m, 1 << 24);
    while (most > 1 && !SlicedPlan::is_supported(shape_of(g, most))) most = (most + 1) / 2;
    return most;
}

int ConstantMatrix::plan(GemmMatrix g, const Option& opt, MatrixPlan* plan) const {
    const int threads = threads_of(g, opt);
    *plan = MatrixPlan();
    if (kHasTileUnits && sliced_) {
        plan->algorithm = "sliced";
        plan->sliced =
            std::make_shared<const SlicedPlan>(*sliced_, shape_of(g, most_rows(g)), threads);
        return kOk;
    }
    plan->algorithm = "vectors";
    if (!kHasTileUnits || !split_ || g.m < 2) return kOk;
    g.kernels = kernels_;
    g.n = n_, g.k = k_;
    std::shared_ptr<const ProductPlan> split =
        std::make_shared<const ProductPlan>(split_, g, 0, threads);
    if (!split->on_tiles()) return kOk;
    plan->algorithm = "split";
    plan->split = split;
    return split_weights(*split, opt, &plan->split_weights);
}

int ConstantMatrix::split_weights(const ProductPlan& plan, const Option& opt, Mat* weights) const {
    std::lock_guard<std::mutex> lock(lock_);
    if (split_weights_.empty()) {
        Mat plain, packed;
        QUOLL_RETURN_IF_ERROR(product_memory(n_ * k_, 1, opt.workspace_allocator, &plain));
        QUOLL_RETURN_IF_ERROR(product_memory(plan.packed_size(), 1, nullptr, &packed));
        gemm_unpack(*kernels_->gemm, weights_, n_, k_, plain);
        plan.pack(plain, 1, k_, threads_for(opt, (double)n_ * (double)k_), packed);
        split_weights_ = packed;
    }
    *weights = split_weights_;
    return kOk;
}

// ---------------------------------------------------------------- multiplying

int ConstantMatrix::multiply_slices(const SlicedPlan* planned, const GemmMatrix& g,
                                    const Option& opt) const {
    const int threads = threads_of(g, opt);
    const size_t most = most_rows(g);
    for (size_t i = 0; i < g.m; i += most) {
        const size_t rows = std::min(most, g.m - i);
        const TileShape shape = shape_of(g, rows);
        std::unique_ptr<const SlicedPlan> other;
        const SlicedPlan* plan = planned;
        if (!plan || !(plan->shape() == shape) || plan->threads() != threads) {
            other.reset(new SlicedPlan(*sliced_, shape, threads));
            plan = other.get();
        }
        const float* a = g.a + (ptrdiff_t)i * g.a_row;
        Mat transposed, workspace;
        if (g.a_k != 1) {  // a_row is 1
            QUOLL_RETURN_IF_ERROR(
                product_memory(rows * k_, 1, opt.workspace_allocator, &transposed));
            transpose(a, g.a_k, k_, rows, transposed);
            a = transposed;
        }
        QUOLL_RETURN_IF_ERROR(
            product_memory(plan->workspace(), 1, opt.workspace_allocator, &workspace));
        if (!plan->run(a, weights_, bias_, g.c + (ptrdiff_t)i * g.c_row, nullptr, 0, g.activation,
                       workspace))
            return multiply_unpacked(g, opt);
    }
    return kOk;
}

// Multiplies values that are not finite, on vectors.
int ConstantMatrix::multiply_unpacked(GemmMatrix g, const Option& opt) const {
    Mat plain;
    QUOLL_RETURN_IF_ERROR(product_memory(n_ * k_, 1, opt.workspace_allocator, &plain));
    SlicedPlan::unpack(weights_, tile_shape(1, n_, k_, (ptrdiff_t)k_, (ptrdiff_t)n_), plain);
    const Mat packed =
        gemm_packed(*kernels_->gemm, plain, k_, false, n_, k_, opt.workspace_allocator);
    if (packed.empty()) return kOutOfMemory;
    g.b = packed;
    gemm_matrix(g, threads_of(g, opt));
    return kOk;
}

int ConstantMatrix::multiply(const MatrixPlan& plan, GemmMatrix g, const Option& opt) const {
    g.kernels = kernels_;
    g.n = n_, g.k = k_;
    g.b = weights_, g.bias = bias_;
    if (kHasTileUnits && sliced_) return multiply_slices(plan.sliced.get(), g, opt);
    if (!kHasTileUnits || !plan.split) {
        if (g.reduced_a || g.reduced_c) return kError;  // see plan()
        gemm_matrix(g, threads_of(g, opt));
        return kOk;
    }
    if (!plan.split->fits(g, threads_of(g, opt))) return multiply(g, opt);
    Mat workspace;
    QUOLL_RETURN_IF_ERROR(
        product_memory(plan.split->workspace(), 1, opt.workspace_allocator, &workspace));
    g.b = plan.split_weights;
    plan.split->run(g, workspace);
    return kOk;
}

int ConstantMatrix::multiply(const GemmMatrix& g, const Option& opt) const {
    MatrixPlan planned;
    {
        std::lock_guard<std::mutex> lock(lock_);
        planned = last_;
    }
    GemmMatrix whole = g;
    whole.n = n_, whole.k = k_;
    if (!planned.split || !planned.split->fits(whole, threads_of(g, opt))) {
        QUOLL_RETURN_IF_ERROR(plan(g, opt, &planned));
        std::lock_guard<std::mutex> lock(lock_);
        last_ = planned;
    }
    return multiply(planned, g, opt);
}

}  // namespace quoll
