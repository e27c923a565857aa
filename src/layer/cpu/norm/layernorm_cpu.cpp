#include "layer/cpu/norm/layernorm_cpu.h"

#include "layer/cpu/norm/norm.h"
#include "layer/cpu/norm/norm_rows.h"

namespace quoll {

LayerNormCpu::LayerNormCpu() : kernels_(&host_kernel_set()) {
    support_packing = support_fp16_storage = support_bf16_storage = true;
}

// Of a run of values.
auto LayerNormCpu::normalizer() const {
    const float* gamma = affine ? (const float*)gamma_data : nullptr;
    const float* beta = affine ? (const float*)beta_data : nullptr;
    return [gamma, beta, e = eps, norm = kernels_->norm](float* values, size_t run) {
        norm->normalize_row(values, run, e, gamma, beta);
    };
}

int LayerNormCpu::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    return for_each_run_of(*this, bottom, top, affine_size, opt, normalizer());
}

int LayerNormCpu::forward_inplace(Mat& blob, const Option& opt) const {
    return for_each_run_inplace(*this, blob, affine_size, opt, normalizer());
}

// Planar, as they are preset.
void LayerNormCpu::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>&, const Option&,
                                std::vector<BlobLayout>*) const {}

Layer* create_LayerNorm_fast_layer() { return new LayerNormCpu; }

}  // namespace quoll
