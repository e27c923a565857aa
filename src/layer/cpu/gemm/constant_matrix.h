// Products with a constant matrix B.
#ifndef QUOLL_LAYER_CPU_GEMM_CONSTANT_MATRIX_H
#define QUOLL_LAYER_CPU_GEMM_CONSTANT_MATRIX_H

#include <memory>
#include <mutex>

#include "layer/cpu/gemm/product_plan.h"
#include "layer/cpu/gemm/sliced_plan.h"

namespace quoll {

// How products of one size run.
struct MatrixPlan {
    const char* algorithm = "";                // "vectors", "split" or "sliced"
    std::shared_ptr<const SlicedPlan> sliced;  // slices on tile units
    std::shared_ptr<const ProductPlan> split;  // bf16 parts on them
    Mat split_weights;
};

// A large B that suits int8 slices is kept as these alone (sliced_gemm.h): they take three bytes
// per value, which even a single row reads faster than four. Other matrices are packed for vectors,
// and also for tile units once a product is planned on these.
class ConstantMatrix {
public:
    // Value (k, n) at b[k * ld + n] (row-major) or b[n * ld + k]; bias: n floats, or null. Logs for
    // `layer` and returns a negative code.
    int create(const Layer& layer, const float* b, size_t ld, bool row_major, size_t n, size_t k,
               const float* bias, const Option& opt);
    bool created() const { return !weights_.empty(); }
    // g: the number of rows and the steps of A and C, which may be bf16. If the chosen kernels take
    // bf16, plan->split is set; else the product wants f32. May be called by any thread, as may
    // multiply().
    int plan(GemmMatrix g, const Option& opt, MatrixPlan* plan) const;
    // g: A, C and the activation. The plan must be for the same number of rows.
    int multiply(const MatrixPlan& plan, GemmMatrix g, const Option& opt) const;
    // The same, planned here: the last plan is reused for products like the last one, such as the
    // steps of a sequence.
    int multiply(const GemmMatrix& g, const Option& opt) const;

private:
    int pack(const float* b, size_t ld, bool row_major, const Option& opt);
    int pack_slices(const float* b, const Option& opt);
    int threads_of(const GemmMatrix& g, const Option& opt) const;
    TileShape shape_of(const GemmMatrix& g, size_t rows) const;
    size_t most_rows(const GemmMatrix& g) const;
    int multiply_slices(const SlicedPlan* planned, const GemmMatrix& g, const Option& opt) const;
    int multiply_unpacked(GemmMatrix g, const Option& opt) const;
    int split_weights(const ProductPlan& plan, const Option& opt, Mat* weights) const;

    const KernelSet* kernels_ = nullptr;
    const SplitGemmKernels* split_ = nullptr;
    const SlicedGemmKernels* sliced_ = nullptr;  // weights_ are slices; or null
    size_t n_ = 0, k_ = 0;
    Mat weights_, bias_;

    mutable std::mutex lock_;    // of what follows, which planning alone looks at
    mutable Mat split_weights_;  // from the first product that is planned on split_ on
    mutable MatrixPlan last_;    // of multiply() without a plan
};

}  // namespace quoll

#endif
