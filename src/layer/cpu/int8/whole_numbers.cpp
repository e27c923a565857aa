#include "layer/cpu/int8/whole_numbers.h"

#include <stdlib.h>

#include "layer/cpu/channel/channel.h"

namespace quoll {

bool sums_stay_exact(const Mat& weights, int outputs) {
    const int64_t most = (1 << 24) / 128;
    const signed char* w = weights;
    const int each = weights.w / outputs;
    for (int p = 0; p < outputs; p++) {
        int64_t sum = 0;
        for (int i = 0; i < each; i++) sum += abs(*w++);
        if (sum > most) return false;
    }
    return true;
}

Mat whole_weights(const Mat& weights) {
    Mat whole(weights.w);
    for (int i = 0; i < whole.w; i++) whole[i] = ((const signed char*)weights.data)[i];
    return whole;
}

int whole_input(const Mat& in, const Mat& scale, const Option& opt, Mat* whole) {
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    Mat rounded = in;
    if (in.dtype == DType::f32) quantize_to_int8(in, rounded, scale, temporary);
    if (rounded.empty()) return kOutOfMemory;
    cast_int8_to_float32(rounded, *whole, temporary);
    return whole->empty() ? (int)kOutOfMemory : (int)kOk;
}

int SumScaling::create(const Layer& layer, int outputs, float input_scale, const Mat& weight_scales,
                       const Mat& bias, const Activation& activation, const Mat& top_scale) {
    scale_.create(outputs);
    if (scale_.empty()) {
        layer.fail("out of memory for %d scales", outputs);
        return kOutOfMemory;
    }
    for (int p = 0; p < outputs; p++)
        scale_[p] =
            dequantize_scale(input_scale, weight_scales[(int64_t)p * weight_scales.w / outputs]);
    bias_ = bias;
    top_scale_ = top_scale;
    kernels_ = &host_kernel_set();
    activation_ = FusedActivation(*kernels_, activation);
    return kOk;
}

void SumScaling::scale(float* sums, size_t count, size_t period, size_t first) const {
    const float *scales = scale_, *biases = bias_.empty() ? nullptr : (const float*)bias_ + first;
    kernels_->channel->affine(sums, count, period, scales + first, biases);
    const float limits[] = {activation_.low, activation_.high};
    if (activation_.low != -INFINITY || activation_.high != INFINITY)
        kernels_->unary->clip(sums, sums, count, limits);
    activation_.finish(sums, count);
}

int SumScaling::finish(Mat& sums, bool rows, Mat& top, const Option& opt) const {
    const int pack = sums.elempack;
    // A 1-D blob is one row.
    const bool flat = rows || sums.dims == 1;
    const int blocks = flat ? sums.h : sums.c;
    const size_t count = flat ? (size_t)sums.w * pack : (size_t)sums.w * sums.h * pack;
    const size_t step = flat ? count : sums.cstep * pack;
    const int threads = threads_for(opt, (double)count * blocks);
#pragma omp parallel for num_threads(threads)
    for (int q = 0; q < blocks; q++)
        scale((float*)sums.data + q * step, count, flat ? count : (size_t)pack,
              flat ? 0 : (size_t)q * pack);
    if (int8_output())
        quantize_to_int8(sums, top, top_scale_, opt);
    else
        top = sums;
    return top.empty() ? (int)kOutOfMemory : (int)kOk;
}

WholeConvolution::WholeConvolution() : form_(nullptr) {}
WholeConvolution::~WholeConvolution() { delete form_; }

int WholeConvolution::create(const ConvolutionOperator& s, ConvolutionOperator* form,
                             const Option& opt) {
    delete form_;
    form_ = nullptr;
    if (!sums_stay_exact(s.weight_data_int8, s.num_output)) {
        delete form;
        return kOk;
    }
    form_ = form;
    form->type = s.type, form->name = s.name;
    static_cast<ConvolutionFields&>(*form) = s;
    form->int8_scale_term = 0;
    form->bias_term = 0;
    form->activation_type = kActivationNone;
    form->pad_value = int8_pad_value(s.pad_value);
    form->weight_data = whole_weights(s.weight_data_int8);
    form->weight_data_int8.release();
    if (form->weight_data.empty()) {
        s.fail("out of memory for %d weights", s.weight_data_size);
        return kOutOfMemory;
    }
    Option exact = opt;
    exact.use_winograd_convolution = false;  // its transforms round
    // Whole numbers up to 256 are bf16 values, and f32 holds the sums of their products.
    if (opt.use_fp32_split) exact.use_fp32_split = 1;
    exact.use_bf16_storage = false;
    QUOLL_RETURN_IF_ERROR(form->create_pipeline(exact));
    input_scale_ = s.bottom_blob_int8_scales;
    return scaling_.create(s, s.num_output, input_scale_[0], s.weight_data_int8_scales, s.bias_data,
                           Activation(s.activation_type, s.activation_params),
                           s.int8_output() ? s.top_blob_int8_scales : Mat());
}

int WholeConvolution::forward(const ConvolutionOperator& s, const Mat& bottom, Mat& top,
                              const Option& opt) const {
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(
        convolution_geometry(s, s, std::vector<Shape>(1, bottom.logical_shape()), &g));
    Mat whole, sums;
    QUOLL_RETURN_IF_ERROR(whole_input(bottom, input_scale_, opt, &whole));
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    QUOLL_RETURN_IF_ERROR(form_->forward(whole, sums, scaling_.int8_output() ? temporary : opt));
    return scaling_.finish(sums, false, top, opt);
}

}  // namespace quoll
