#ifndef QUOLL_LAYER_CPU_BINARY_ELTWISE_CPU_H
#define QUOLL_LAYER_CPU_BINARY_ELTWISE_CPU_H

#include "layer/cpu/common/chunks.h"
#include "layer/cpu/common/kernel_set.h"
#include "layer/elementwise/eltwise.h"

namespace quoll {

class EltwiseCpu : public Eltwise {
public:
    EltwiseCpu();
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    int forward_inplace(std::vector<Mat>& blobs, const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;
    unsigned traits() const override {
        return Eltwise::traits() | kCreatesOutput | kOverwritesInput;
    }

private:
    // Computes the result, over input 0 if `inplace`.
    int combine(const std::vector<Mat>& bottoms, bool inplace, Mat* top, const Option& opt) const;
    void run(const std::vector<Mat>& inputs, Mat& top, const Chunk& chunk) const;

    const KernelSet* kernels_ = &host_kernel_set();
};

}  // namespace quoll

#endif
