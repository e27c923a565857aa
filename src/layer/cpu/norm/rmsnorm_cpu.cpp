#include "layer/cpu/norm/norm.h"
#include "layer/cpu/norm/norm_rows.h"
#include "layer/norm/rmsnorm.h"

namespace quoll {

namespace {

// Any elempack; the result has elempack 1.
class RMSNormCpu : public RMSNorm {
    auto normalizer() const {
        const float* gamma = affine ? (const float*)gamma_data : nullptr;
        return [gamma, e = eps, norm = kernels_->norm](float* values, size_t run) {
            norm->rms_row(values, run, e, gamma);
        };
    }

public:
    RMSNormCpu() { support_packing = support_fp16_storage = support_bf16_storage = true; }
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override {
        return for_each_run_of(*this, bottom, top, affine_size, opt, normalizer());
    }
    int forward_inplace(Mat& blob, const Option& opt) const override {
        return for_each_run_inplace(*this, blob, affine_size, opt, normalizer());
    }
    // Planar, as they are preset.
    void plan_layouts(const LayerPlan*, const std::vector<BlobLayout>&, const Option&,
                      std::vector<BlobLayout>*) const override {}

private:
    const KernelSet* kernels_ = &host_kernel_set();
};

}  // namespace

Layer* create_RMSNorm_fast_layer() { return new RMSNormCpu; }

}  // namespace quoll
