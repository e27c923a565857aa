#ifndef QUOLL_LAYER_CPU_BINARY_ELTWISE_CPU_H
#define QUOLL_LAYER_CPU_BINARY_ELTWISE_CPU_H

#include "layer/cpu/kernel_set.h"
#include "layer/cpu/pieces.h"
#include "layer/eltwise.h"

namespace quoll {

class EltwiseCpu : public Eltwise {
public:
    EltwiseCpu();
    int create_pipeline(const Option& opt) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

private:
    void run(const std::vector<Mat>& inputs, Mat& top, const Piece& piece) const;

    const KernelSet* kernels_ = nullptr;
};

}  // namespace quoll

#endif
