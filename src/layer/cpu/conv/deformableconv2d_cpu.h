// The fast implementation of DeformableConv2D.
#ifndef QUOLL_LAYER_CPU_CONV_DEFORMABLECONV2D_CPU_H
#define QUOLL_LAYER_CPU_CONV_DEFORMABLECONV2D_CPU_H

#include "layer/cpu/gemm/gemm_run.h"
#include "layer/nn/deformableconv2d.h"

namespace quoll {

// The taps of a block of points are gathered, channels innermost, and multiplied by weights packed
// for the gemm kernels; create_pipeline frees weight_data.
class DeformableConv2DCpu : public DeformableConv2D {
public:
    typedef DeformableConv2DCpu Class;
    bool is_a(const void* id) const override {
        return id == class_id<DeformableConv2DCpu>() || DeformableConv2D::is_a(id);
    }
    int create_pipeline(const Option& opt) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

private:
    void gather(const std::vector<Mat>& bottoms, const ConvGeometry& g, const Mat& pairs, int point,
                float* values) const;

    const KernelSet* kernels_ = nullptr;
    FusedActivation activation_;
    Mat panels_, bias_;
};

}  // namespace quoll

#endif
