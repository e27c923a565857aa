#ifndef QUOLL_LAYER_CPU_NORM_REDUCTION_CPU_H
#define QUOLL_LAYER_CPU_NORM_REDUCTION_CPU_H

#include "layer/cpu/common/kernel_set.h"
#include "layer/cpu/norm/norm.h"
#include "layer/tensor/reduction.h"

namespace quoll {

// Sums, means and extremes over the innermost axes, or over all axes, run on kernels; those over
// other contiguous axes run row by row. They keep the elempack if the outermost axis stays.
// Everything else runs on the reference. 16-bit blobs are widened piece by piece if the channels or
// the innermost axes are reduced, otherwise as a whole.
class ReductionCpu : public Reduction {
public:
    ReductionCpu();
    int create_pipeline(const Option& opt) override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;

private:
    int reduce_stored(const Mat& blob, Mat& top, const Option& opt) const;
    int reduce_runs(const Mat& blob, int first, NormReduce kernel, const Shape& shape, Mat& top,
                    const Option& opt) const;
    int reduce_rows(const Mat& blob, int first, int last, const Shape& shape, Mat& top,
                    const Option& opt) const;
    int reduce_whole(const Mat& blob, NormReduce kernel, const Shape& shape, Mat& top,
                     const Option& opt) const;

    const KernelSet* kernels_;
};

}  // namespace quoll

#endif
