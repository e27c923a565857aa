// Products of matrices on the kernels that are expected to be faster: the gemm kernels, or tile
// units (split_gemm.h) if the options and the machine have them.
#ifndef QUOLL_LAYER_CPU_GEMM_PRODUCT_PLAN_H
#define QUOLL_LAYER_CPU_GEMM_PRODUCT_PLAN_H

#include <memory>

#include "layer/cpu/gemm/split_plan.h"
#include "quoll/layer.h"

namespace quoll {

// A plan for products of one shape. The constructor looks at the sizes and steps of a GemmMatrix,
// run() at the pointers and the activation; b there is what pack() made.
class ProductPlan {
public:
    // split: the kernels for tile units that may be used, or null. packings: how often a B is
    // packed for each product.
    ProductPlan(const SplitGemmKernels* split, const GemmMatrix& g, double packings, int threads);
    // A plan for the kernels that `like` runs on.
    ProductPlan(const ProductPlan& like, const GemmMatrix& g);
    bool fits(const GemmMatrix& g, int threads) const;
    bool on_tiles() const { return kHasTileUnits && plan_; }
    // Floats of a packed B, a multiple of 16; and of run()'s workspace, 0 on vectors. Both must be
    // aligned to 64 bytes.
    size_t packed_size() const;
    size_t workspace() const { return on_tiles() ? plan_->workspace() : 0; }
    // Packs B; value (k, n) is at b[k * k_step + n * n_step], where one of the steps is 1. On tile
    // units values from 3.39e38 on count as infinite.
    void pack(const float* b, size_t k_step, size_t n_step, int threads, float* packed) const {
        pack_values(b, false, k_step, n_step, threads, packed);
    }
    // The same of bf16 values, where it knows them.
    bool packs_bf16() const { return on_tiles() && split_->bf16_packing(); }
    void pack_bf16(const uint16_t* b, size_t k_step, size_t n_step, int threads,
                   float* packed) const {
        pack_values(b, true, k_step, n_step, threads, packed);
    }
    // For tile units: packs only the columns [32 panel, 32 panel + 32); b points to the first of
    // them.
    void pack_panel(const void* b, size_t k_step, size_t n_step, size_t panel, float* packed,
                    bool bf16 = false) const;
    void run(const GemmMatrix& g, float* workspace) const;

private:
    void pack_values(const void* b, bool bf16, size_t k_step, size_t n_step, int threads,
                     float* packed) const;
    void run_unpacked(const GemmMatrix& g) const;

    const GemmMatrix shape_;
    const SplitGemmKernels* const split_;
    const int threads_;
    std::unique_ptr<const SplitPlan> plan_;  // null: on vectors
};

// The bias of n columns for either kind of kernel, zeros if `bias` is null. Empty if memory runs
// out.
Mat product_bias(const KernelSet& kernels, const float* bias, size_t n,
                 Allocator* allocator = nullptr);
// Room for so many floats, aligned; empty when memory runs out, but not for 0.
int product_memory(size_t floats, int count, Allocator* allocator, Mat* memory);

}  // namespace quoll

#endif
