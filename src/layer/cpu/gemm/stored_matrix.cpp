#include "layer/cpu/gemm/stored_matrix.h"

#include <algorithm>
#include <vector>

#include "layer/cpu/gemm/wide_gemm.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// Only for these processors the cast family may have row_times_bf16_pairs.
#if defined(__x86_64__) || defined(__i386__)
constexpr bool kMayHavePairs = true;
#else
constexpr bool kMayHavePairs = false;
#endif

// Rearranges rows of panels from (row, row + 1)[width] to [width](row, row + 1), or back.
template <class T>
void turn_pairs(const GemmKernels& gemm, T* panels, size_t n, size_t k, bool back) {
    const size_t columns = (size_t)gemm.lanes * gemm.vectors;
    std::vector<T> turned(2 * columns);
    for (size_t first = 0; first < n; first += columns) {
        const size_t width = gemm_panel_width(gemm, n - first);
        for (size_t i = 0; i < k; i += 2, panels += 2 * width) {
            for (size_t j = 0; j < 2 * width; j++) {
                const size_t apart = j % 2 * width + j / 2;
                turned[back ? apart : j] = panels[back ? j : apart];
            }
            std::copy_n(turned.data(), 2 * width, panels);
        }
    }
}

}  // namespace

void StoredMatrix::release() {
    panels_.release();
    bias_.release();
    matrix_.reset();
}

int StoredMatrix::create(const Layer& layer, const float* weight, int n, int k, const float* bias,
                         const Option& opt) {
    release();
    kernels_ = &host_kernel_set();
    n_ = n, k_ = k;
    const GemmKernels gemm = level_gemm(*kernels_->gemm);
    const Mat panels = gemm_packed(gemm, weight, k, false, n, k, opt.workspace_allocator);
    bias_.create(n);
    if (!panels.empty()) panels_.create(panels.w, panels.h, (size_t)2u);
    if (panels_.empty() || bias_.empty()) {
        release();
        layer.fail("out of memory for a matrix of %d x %d", n, k);
        return kOutOfMemory;
    }
    kernels_->cast->bf16.narrow(panels, (uint16_t*)panels_.data, gemm_packed_size(gemm, n, k));
    pairs_ = kMayHavePairs && kernels_->cast->row_times_bf16_pairs && k % 2 == 0;
    if (kMayHavePairs && pairs_) turn_pairs(gemm, (uint16_t*)panels_.data, n, k, false);
    for (int i = 0; i < n; i++) bias_[i] = bias ? bias[i] : 0.f;
    return kOk;
}

void StoredMatrix::multiply_row(const float* x, float* out, const FusedActivation& activation,
                                const Option& opt) const {
    const GemmKernels gemm = level_gemm(*kernels_->gemm);
    const size_t columns = (size_t)gemm.lanes * gemm.vectors;
    const size_t k = k_, n = n_, panels = (n + columns - 1) / columns;
    const int threads = threads_for(opt, (double)n * (double)k);
    const int partitions = (int)std::min<size_t>(threads, panels);
    const CastKernels& cast = *kernels_->cast;
    const auto times = kMayHavePairs && pairs_ ? cast.row_times_bf16_pairs : cast.row_times_bf16;
    run_tasks(partitions, threads, [&](int64_t t, int) {
        const size_t n0 = partition_begin(panels, partitions, t) * columns;
        const size_t n1 = std::min(n, n0 + partition_length(panels, partitions, t) * columns);
        times(x, k, (const uint16_t*)panels_.data + n0 * k, n1 - n0, (const float*)bias_ + n0,
              out + n0, activation.low, activation.high);
    });
    activation.finish(out, n);
}

int StoredMatrix::rows_matrix(const Layer& layer, const Option& opt,
                              std::shared_ptr<const ConstantMatrix>* matrix) const {
    std::lock_guard<std::mutex> lock(lock_);
    *matrix = matrix_;
    if (matrix_) return kOk;
    const size_t n = n_, k = k_;
    const GemmKernels gemm = level_gemm(*kernels_->gemm);
    const size_t size = gemm_packed_size(gemm, n, k);
    Mat panels, plain;
    QUOLL_RETURN_IF_ERROR(product_memory(size, 1, opt.workspace_allocator, &panels));
    QUOLL_RETURN_IF_ERROR(product_memory(n * k, 1, opt.workspace_allocator, &plain));
    kernels_->cast->bf16.widen((const uint16_t*)panels_.data, panels, size);
    if (kMayHavePairs && pairs_) turn_pairs(gemm, (float*)panels.data, n, k, true);
    gemm_unpack(gemm, panels, n, k, plain);
    const std::shared_ptr<ConstantMatrix> made = std::make_shared<ConstantMatrix>();
    QUOLL_RETURN_IF_ERROR(made->create(layer, plain, k, false, n, k, bias_, opt));
    *matrix = matrix_ = made;
    return kOk;
}

}  // namespace quoll
