// Products of matrices on whichever is expected to be faster: the gemm kernels, or tile units
// (split_gemm.h) where the options and the machine have them.
#ifndef QUOLL_LAYER_CPU_GEMM_PRODUCT_PLAN_H
#define QUOLL_LAYER_CPU_GEMM_PRODUCT_PLAN_H

#include <atomic>
#include <memory>
#include <mutex>

#include "layer.h"
#include "layer/cpu/conv/split_plan.h"

namespace quoll {

// For products of one shape. Of a GemmMatrix it looks at the sizes and steps when it is made, and
// at the pointers and the activation in run(), where b is what pack() made.
class ProductPlan {
public:
    // split: the kernels for tile units that may be used, or null. packings: how often a B is
    // packed for each product.
    ProductPlan(const SplitGemmKernels* split, const GemmMatrix& g, double packings, int threads);
    // On the kernels that `like` runs on.
    ProductPlan(const ProductPlan& like, const GemmMatrix& g);
    bool suits(const GemmMatrix& g, int threads) const;
    bool on_tiles() const { return plan_ != nullptr; }
    // Floats of a packed B, a multiple of 16, and of run()'s workspace, 0 on vectors. Both must be
    // aligned to 64 bytes.
    size_t packed_size() const;
    size_t workspace() const { return plan_ ? plan_->workspace() : 0; }
    // Value (k, n) at b[k * k_step + n * n_step]; one of the steps is 1.
    void pack(const float* b, size_t k_step, size_t n_step, int threads, float* packed) const;
    // On tile units: only columns [32 panel, 32 panel + 32), the first of which b points to.
    void pack_panel(const float* b, size_t k_step, size_t n_step, size_t panel,
                    float* packed) const;
    void run(const GemmMatrix& g, float* workspace) const;

private:
    const GemmMatrix shape_;
    const SplitGemmKernels* const split_;
    const int threads_;
    std::unique_ptr<const SplitPlan> plan_;  // null: on vectors
};

// The bias of n columns for either, zeros where `bias` is null. Empty when memory runs out.
Mat product_bias(const KernelSet& kernels, const float* bias, size_t n,
                 Allocator* allocator = nullptr);
// Room for so many floats, aligned; empty when memory runs out, but not for 0.
int product_memory(size_t floats, int count, Allocator* allocator, Mat* memory);

// A B that stays, packed once for each kind of kernels that takes part.
class ConstantMatrix {
public:
    // Value (k, n) at b[k * ld + n] (row-major) or b[n * ld + k]; bias: n floats, or null. Logs for
    // `layer` and returns a negative code.
    int create(const Layer& layer, const float* b, size_t ld, bool row_major, size_t n, size_t k,
               const float* bias, const Option& opt);
    bool created() const { return !weights_.empty(); }
    // g: A, C and the activation. From any thread.
    int multiply(GemmMatrix g, const Option& opt) const;
    // "vectors" or "split" (bf16 parts on tile units), as the last product ran; "" before one.
    const char* algorithm() const { return algorithm_; }

private:
    int multiply_on_tiles(const ProductPlan& plan, GemmMatrix g, int threads,
                          const Option& opt) const;
    std::shared_ptr<const ProductPlan> plan_for(const GemmMatrix& g, int threads) const;
    int tile_weights(const ProductPlan& plan, int threads, const Option& opt, Mat* weights) const;

    const KernelSet* kernels_ = nullptr;
    const SplitGemmKernels* split_ = nullptr;
    size_t n_ = 0, k_ = 0;
    Mat weights_, bias_;

    mutable std::atomic<const char*> algorithm_{""};
    mutable std::mutex lock_;
    mutable std::shared_ptr<const ProductPlan> plan_;  // of the last product
    mutable Mat tile_weights_;  // from the first product that runs on tiles on
};

}  // namespace quoll

#endif
