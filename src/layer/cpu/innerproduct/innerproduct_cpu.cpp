#include "layer/cpu/innerproduct/innerproduct_cpu.h"

#include "layer/cpu/gemm/gemm_run.h"

namespace quoll {

InnerProductCpu::InnerProductCpu() : kernels_(nullptr) { support_packing = true; }

int InnerProductCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(InnerProduct::create_pipeline(opt));
    const bool int8 = int8_scale_term != 0;
    const Activation activation(activation_type, activation_params);
    Mat weight = weight_data;
    if (int8) {
        if (!sums_stay_exact(weight_data_int8, num_output)) return kOk;
        weight = whole_weights(weight_data_int8);
        QUOLL_RETURN_IF_ERROR(int8_.create(*this, num_output, bottom_blob_int8_scales[0],
                                           weight_data_int8_scales, bias_data, activation, Mat()));
    }
    const KernelSet& kernels = host_kernel_set();
    const GemmKernels& gemm = *kernels.gemm;
    const size_t k = num_input();
    const bool with_bias = bias_term && !int8;
    if (!weight.empty()) packed_weight_ = gemm_packed(gemm, weight, k, false, num_output, k);
    packed_bias_ = gemm_bias(gemm, with_bias ? (const float*)bias_data : nullptr, num_output);
    if (packed_weight_.empty() || packed_bias_.empty()) {
        fail("out of memory for %d weights", weight_data_size);
        return kOutOfMemory;
    }
    if (!int8) activation_ = FusedActivation(kernels, activation);
    kernels_ = &kernels;
    weight_data.release();
    weight_data_int8.release();
    return kOk;
}

int InnerProductCpu::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    Mat rows;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom_blob, 1, opt, &rows));
    if (!kernels_) return InnerProduct::forward(rows, top_blob, opt);
    std::vector<Shape> tops;
    QUOLL_RETURN_IF_ERROR(infer_shapes(std::vector<Shape>(1, rows.logical_shape()), tops));
    if (int8_scale_term)
        QUOLL_RETURN_IF_ERROR(whole_input(rows, bottom_blob_int8_scales, opt, &rows));
    if (tops[0].dims == 1) rows = rows.reshape(num_input(), 1, opt.workspace_allocator);
    top_blob.create(tops[0], 1, opt.blob_allocator);
    if (rows.empty() || top_blob.empty()) return kOutOfMemory;

    GemmMatrix product = {};
    product.kernels = kernels_;
    product.a = rows;
    product.a_row = num_input();
    product.a_k = 1;
    product.m = rows.h, product.n = num_output, product.k = num_input();
    product.b = packed_weight_;
    product.bias = packed_bias_;
    product.c = top_blob;
    product.c_row = num_output;
    product.c_pack = num_output;
    product.activation = activation_;
    gemm_matrix(product, threads_for(opt, (double)rows.h * weight_data_size));
    return int8_scale_term ? int8_.finish(top_blob, true, top_blob, opt) : (int)kOk;
}

Layer* create_InnerProduct_fast_layer() { return new InnerProductCpu; }

}  // namespace quoll
