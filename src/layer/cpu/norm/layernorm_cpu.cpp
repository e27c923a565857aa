#include "layer/cpu/norm/layernorm_cpu.h"

#include "layer/channels.h"
#include "layer/cpu/norm/norm.h"
#include "layer/cpu/packing.h"

namespace quoll {

LayerNormCpu::LayerNormCpu() : kernels_(nullptr) { support_packing = true; }

int LayerNormCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(LayerNorm::create_pipeline(opt));
    kernels_ = &host_kernel_set();
    return kOk;
}

int LayerNormCpu::forward_inplace(Mat& blob, const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, blob));
    if (blob.elempack > 1) {
        Mat planar;
        convert_packing(blob, planar, 1, opt);
        if (planar.empty()) return kOutOfMemory;
        blob = planar;
    }
    const size_t run = run_length(blob.logical_shape()), size = (size_t)blob.w * blob.h * blob.d;
    const float* gamma = affine ? (const float*)gamma_data : nullptr;
    const float* beta = affine ? (const float*)beta_data : nullptr;
    const int64_t each = size / run, runs = each * blob.c;
    const int threads = threads_for(opt, (double)size * blob.c * 2);
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < runs; i++) {
        float* values = (float*)blob.data + i / each * blob.cstep + i % each * run;
        kernels_->norm->normalize_row(values, run, eps, gamma, beta);
    }
    return kOk;
}

Layer* create_LayerNorm_fast_layer() { return new LayerNormCpu; }

}  // namespace quoll
