// Weights of depthwise layers as their kernels take them.
#include <limits.h>

#include <algorithm>

#include "layer/cpu/common/pairs.h"
#include "layer/cpu/dwconv/dwconv_layer.h"

namespace quoll {

int ConvolutionDepthWiseCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(Convolution::create_pipeline(opt));
    pack_ = 0, pair_ = 1;
    repeated_.reset();
    if (dynamic_weight) return kOk;
    if (is_int8()) {
        weight_data.release();  // weight_data_int8 is what all algorithms take
        if (depthwise()) QUOLL_RETURN_IF_ERROR(int8_.create(*this, *this, opt));
        return int8_.created() ? (int)kOk : int8_groups_.create(*this, *this, opt);
    }
    kernels_ = &host_kernel_set();
    const bool narrow =
        opt.use_packing_layout && has_narrow_groups() && joined_groups(*this, opt) == 1;
    if (!kFewKernels && has_several_windows()) return create_repeated(opt);
    if (!depthwise() && !narrow) {
        QUOLL_RETURN_IF_ERROR(groups_.create(*this, *this, opt));
        QUOLL_RETURN_IF_ERROR(tile_groups_.create(*this, *this, opt));
        support_fp16_storage = groups_.takes_f16();
        support_bf16_storage = kHasHalfStorage && opt.use_bf16_storage && !groups_.makes_f16();
        weight_data.release();
        return kOk;
    }
    width_ = narrow ? num_output / group : 1;
    // Half floats are in blocks of kF16Pack, or planar as the convolutions around have them.
    const bool planar = f16_kernels(opt) && axes < 3 && !narrow && num_output % kF16Pack != 0;
    const int pack = planar ? 1 : best_elempack(*kernels_, num_output, opt);
    if (axes == 3 && pack == 1) return kOk;
    pack_ = pack;
    if (f16_kernels(opt) && axes < 3 && !narrow && !planar) {
        kernels_ = f16_kernels(opt);
        pack_ = kF16Pack / 2, pair_ = 2;
    }
    activation_ = FusedActivation(*kernels_, Activation(activation_type, activation_params),
                                  opt.use_bf16_storage);
    row_ = narrow ? kernels_->dwconv->groups
                  : select_dwconv_row(*kernels_->dwconv, pack_, kernel_w, stride_w, dilation_w);
    support_fp16_storage = kHasHalfStorage && axes < 3;
    support_bf16_storage = kHasHalfStorage && axes < 3 && pair_ == 1;
    if (planar) QUOLL_RETURN_IF_ERROR(pack_planar_weights(opt));
    return repack_weights();
}

// Several windows per channel, which cost less one by one. As a matrix product a group leaves most
// of a register idle; but an input of large steps has many values to copy for few products, and
// enough windows fill registers. By measurement, in units of a copied value for each output pixel.
bool ConvolutionDepthWiseCpu::has_several_windows() const {
    if (axes == 3 || group == 1 || num_output <= group || weight_data_size != num_output * maxk())
        return false;
    const double windows = num_output / group, taps = maxk();
    const double one_by_one = (double)stride_w * stride_h + 1.3 * taps / kernels_->lanes;
    return windows * one_by_one < 12 + 1.2 * taps;
}

// One window per channel, of an input that has each channel several times.
int ConvolutionDepthWiseCpu::create_repeated(const Option& opt) {
    std::unique_ptr<ConvolutionDepthWiseCpu> layer(new ConvolutionDepthWiseCpu(axes));
    static_cast<ConvolutionFields&>(*layer) = *this;
    layer->type = type, layer->name = name;
    layer->group = num_output;
    QUOLL_RETURN_IF_ERROR(layer->create_pipeline(opt));
    support_fp16_storage = layer->support_fp16_storage;
    support_bf16_storage = layer->support_bf16_storage;
    weight_data.release();
    repeated_ = std::move(layer);
    return kOk;
}

// For planar half floats: 3x3 weights and the bias.
int ConvolutionDepthWiseCpu::pack_planar_weights(const Option& opt) {
    planar_weight_.release();
    if (kernel_w != 3 || kernel_h != 3 || activation_.pass) return kOk;
    Mat wide(kDwconvPlanarWeights, num_output, 4u, opt.workspace_allocator);
    if (!wide.empty()) {
        wide.fill(0.f);
        for (int q = 0; q < num_output; q++) {
            std::copy_n((const float*)weight_data + q * 9, 9, wide.row(q));
            wide.row(q)[9] = bias_term ? bias_data[q] : 0.f;
        }
        cast_float32_to_float16(wide, planar_weight_);
    }
    if (!planar_weight_.empty()) return kOk;
    fail("out of memory for %d weights", weight_data_size);
    return kOutOfMemory;
}

// Groups of 4 or 8 channels in and out that share registers. As matrix products they would leave
// most of one idle.
bool ConvolutionDepthWiseCpu::has_narrow_groups() const {
    const int width = num_output / group, lanes = kernels_->lanes;
    return kernels_->dwconv->groups && axes < 3 && (width == 4 || width == 8) && width < lanes &&
           num_output % lanes == 0 && weight_data_size == num_output * width * maxk() &&
           dilation_w == 1 && pad_value == 0.f && kernel_w > 1;
}

// Blocks of channels narrower than a register are repeated until they fill one.
int ConvolutionDepthWiseCpu::repack_weights() {
    const int maxk = this->maxk() * width_, repeats = few_channels() ? kernels_->lanes / pack_ : 1;
    const int pack = pack_ * pair_;
    const size_t width = (size_t)pack * repeats, blocks = (size_t)num_output / pack;
    if (width * maxk * blocks <= INT_MAX) packed_weight_.create((int)(width * maxk * blocks));
    packed_bias_.create((int)(width * blocks));
    if (packed_weight_.empty() || packed_bias_.empty()) {
        fail("out of memory for %d weights", weight_data_size);
        return kOutOfMemory;
    }
    for (size_t block = 0; block < blocks; block++) {
        for (size_t lane = 0; lane < width; lane++) {
            const size_t channel = block * pack + lane % pack;
            float* to = (float*)packed_weight_ + block * width * maxk + lane;
            const float* const from = (const float*)weight_data + channel * maxk;  // [width_][taps]
            for (int k = 0; k < maxk; k++)
                to[k * width] = from[(size_t)(k % width_) * this->maxk() + k / width_];
            packed_bias_[block * width + lane] = bias_term ? bias_data[channel] : 0.f;
        }
    }
    if (pair_ == 1) return kOk;
    for (Mat* floats : {&packed_weight_, &packed_bias_}) {
        Mat half;
        cast_float32_to_float16(*floats, half);
        if (half.empty()) return kOutOfMemory;
        *floats = half;
    }
    return kOk;
}

}  // namespace quoll
