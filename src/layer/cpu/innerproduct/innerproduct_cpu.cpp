#include "layer/cpu/innerproduct/innerproduct_cpu.h"

#include <algorithm>

#include "layer/cpu/gemm/gemm_run.h"
#include "layer/scratch.h"

namespace quoll {

InnerProductCpu::InnerProductCpu() : kernels_(nullptr), split_(nullptr) { support_packing = true; }

int InnerProductCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(InnerProduct::create_pipeline(opt));
    const Activation activation(activation_type, activation_params);
    if (int8_scale_term != 0) {
        if (!int8_sums_fit(weight_data_int8, num_output, int8_affine != 0)) return kOk;
        const float input_scale = int8_affine == 2 ? 1.f : (float)bottom_blob_int8_scales[0];
        QUOLL_RETURN_IF_ERROR(int8_.create(*this, weight_data_int8, num_output, input_scale,
                                           weight_data_int8_scales, bias_data, activation,
                                           bottom_zero_point));
        weight_data.release();
        weight_data_int8.release();
        return kOk;
    }
    const KernelSet& kernels = host_kernel_set();
    const GemmKernels& gemm = *kernels.gemm;
    const size_t k = num_input();
    packed_weight_ = gemm_packed(gemm, weight_data, k, false, num_output, k);
    packed_bias_.create(
        (int)std::max(gemm_bias_size(gemm, num_output), SplitPlan::bias_size(num_output)));
    if (packed_weight_.empty() || packed_bias_.empty()) {
        fail("out of memory for %d weights", weight_data_size);
        return kOutOfMemory;
    }
    packed_bias_.fill(0.f);
    if (bias_term) std::copy_n((const float*)bias_data, num_output, (float*)packed_bias_);
    activation_ = FusedActivation(kernels, activation);
    kernels_ = &kernels;
    split_ = split_kernels_for(opt);
    split_weight_.release();
    weight_data.release();
    return kOk;
}

int InnerProductCpu::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    Mat rows;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom_blob, 1, opt, &rows));
    if (!kernels_ && !int8_.created()) return InnerProduct::forward(rows, top_blob, opt);
    const ShapeList in(rows);
    ShapeList tops;
    QUOLL_RETURN_IF_ERROR(infer_shapes(*in, *tops));
    if (tops[0].dims == 1) rows = rows.reshape(num_input(), 1, opt.workspace_allocator);
    top_blob.create(tops[0], 1, opt.blob_allocator);
    if (rows.empty() || top_blob.empty()) return kOutOfMemory;
    if (int8_.created())
        return int8_affine == 2 ? int8_.forward_ranged(rows, top_blob, opt)
                                : int8_.forward(rows, top_blob, opt);
    return prefers_split(rows.h, opt.num_threads) ? multiply_split(rows, top_blob, opt)
                                                  : multiply(rows, top_blob, opt);
}

int InnerProductCpu::multiply(const Mat& rows, Mat& top_blob, const Option& opt) const {
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
    return kOk;
}

// A few rows take no longer than reading the weights, which are larger when split.
bool InnerProductCpu::prefers_split(int rows, int threads) const {
    if (!split_ || rows < 8) return false;
    const int k = num_input();
    const TileShape shape = tile_shape(rows, num_output, k, k, num_output);
    ConvShape conv = {};
    conv.x = shape.x, conv.y = shape.y;
    conv.in_channels = k, conv.out_channels = num_output;
    return SplitPlan::takes(shape) &&
           SplitPlan::cycles(*split_, shape, threads) < ConvPlan::cycles(*kernels_, conv, threads);
}

int InnerProductCpu::split_weights(const Option& opt, Mat* weights) const {
    std::lock_guard<std::mutex> lock(lock_);
    const int k = num_input();
    const size_t size = SplitPlan::packed_size(*split_, k, 1, num_output);
    if (split_weight_.empty()) {
        Mat plain(k, num_output, 4u, opt.workspace_allocator), packed;
        // Rows of 16 floats, as the number of floats may exceed an int.
        packed.create(16, (int)(size / 32));
        if (plain.empty() || packed.empty()) return kOutOfMemory;
        gemm_unpack(*kernels_->gemm, packed_weight_, num_output, k, plain);
        SplitPlan::pack(*split_, plain, k, 1, num_output, (uint16_t*)packed.data);
        split_weight_ = packed;
    }
    *weights = split_weight_;
    return kOk;
}

int InnerProductCpu::multiply_split(const Mat& rows, Mat& top_blob, const Option& opt) const {
    Mat weights, workspace;
    QUOLL_RETURN_IF_ERROR(split_weights(opt, &weights));
    const int k = num_input();
    const SplitPlan plan(*split_, tile_shape(rows.h, num_output, k, k, num_output),
                         threads_for(opt, (double)rows.h * weight_data_size));
    workspace.create(16, (int)(plan.workspace() / 16), 4u, opt.workspace_allocator);
    if (workspace.empty()) return kOutOfMemory;
    plan.run(rows, (const uint16_t*)weights.data, packed_bias_, top_blob, nullptr, 0, activation_,
             workspace);
    return kOk;
}

Layer* create_InnerProduct_fast_layer() { return new InnerProductCpu; }

}  // namespace quoll
