// Products with a matrix B that stays.
#ifndef QUOLL_LAYER_CPU_GEMM_CONSTANT_MATRIX_H
#define QUOLL_LAYER_CPU_GEMM_CONSTANT_MATRIX_H

#include <atomic>
#include <memory>
#include <mutex>

#include "layer/cpu/conv/fixed_plan.h"
#include "layer/cpu/gemm/product_plan.h"

namespace quoll {

// A large B that suits them is kept as digits alone (fixed_gemm.h): three bytes a value, which also
// a single row reads faster than four. Others are packed for vectors, and for tile units when a
// product first runs on these.
class ConstantMatrix {
public:
    // Value (k, n) at b[k * ld + n] (row-major) or b[n * ld + k]; bias: n floats, or null. Logs for
    // `layer` and returns a negative code.
    int create(const Layer& layer, const float* b, size_t ld, bool row_major, size_t n, size_t k,
               const float* bias, const Option& opt);
    bool created() const { return !weights_.empty(); }
    // g: A, C and the activation. From any thread.
    int multiply(GemmMatrix g, const Option& opt) const;
    // "vectors", "split" (bf16 parts on tile units) or "fixed" (digits on them), as the last
    // product ran; "" before one.
    const char* algorithm() const { return algorithm_; }

private:
    int pack(const float* b, size_t ld, bool row_major, const Option& opt);
    int pack_digits(const float* b, const Option& opt);
    int multiply_digits(GemmMatrix g, int threads, const Option& opt) const;
    int multiply_unpacked(GemmMatrix g, int threads, const Option& opt) const;
    int multiply_on_tiles(const ProductPlan& plan, GemmMatrix g, int threads,
                          const Option& opt) const;
    std::shared_ptr<const ProductPlan> plan_for(const GemmMatrix& g, int threads) const;
    std::shared_ptr<const FixedPlan> plan_for(const TileShape& shape, int threads) const;
    int tile_weights(const ProductPlan& plan, int threads, const Option& opt, Mat* weights) const;

    const KernelSet* kernels_ = nullptr;
    const SplitGemmKernels* split_ = nullptr;
    const FixedGemmKernels* fixed_ = nullptr;  // weights_ are digits; or null
    size_t n_ = 0, k_ = 0;
    Mat weights_, bias_;

    mutable std::atomic<const char*> algorithm_{""};
    mutable std::mutex lock_;
    mutable std::shared_ptr<const ProductPlan> plan_;  // of the last product
    mutable std::shared_ptr<const FixedPlan> fixed_plan_;
    mutable Mat tile_weights_;  // from the first product that runs on split_ on
};

}  // namespace quoll

#endif
