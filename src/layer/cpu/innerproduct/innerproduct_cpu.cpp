#include "layer/cpu/innerproduct/innerproduct_cpu.h"

#include "layer/scratch.h"

namespace quoll {

InnerProductCpu::InnerProductCpu() { support_packing = true; }

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
    const int k = num_input();
    QUOLL_RETURN_IF_ERROR(matrix_.create(*this, weight_data, k, false, num_output, k,
                                         bias_term ? (const float*)bias_data : nullptr, opt));
    activation_ = FusedActivation(host_kernel_set(), activation);
    weight_data.release();
    return kOk;
}

int InnerProductCpu::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    Mat rows;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom_blob, 1, opt, &rows));
    if (!matrix_.created() && !int8_.created()) return InnerProduct::forward(rows, top_blob, opt);
    const ShapeList in(rows);
    ShapeList tops;
    QUOLL_RETURN_IF_ERROR(infer_shapes(*in, *tops));
    if (tops[0].dims == 1) rows = rows.reshape(num_input(), 1, opt.workspace_allocator);
    top_blob.create(tops[0], 1, opt.blob_allocator);
    if (rows.empty() || top_blob.empty()) return kOutOfMemory;
    if (int8_.created())
        return int8_affine == 2 ? int8_.forward_ranged(rows, top_blob, opt)
                                : int8_.forward(rows, top_blob, opt);
    GemmMatrix product = {};
    product.a = rows;
    product.a_row = num_input();
    product.a_k = 1;
    product.m = rows.h;
    product.c = top_blob;
    product.c_row = num_output;
    product.c_pack = num_output;
    product.activation = activation_;
    return matrix_.multiply(product, opt);
}

Layer* create_InnerProduct_fast_layer() { return new InnerProductCpu; }

}  // namespace quoll
