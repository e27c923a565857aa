// ConvRunner: weights and biases as the algorithms read them.
#include <limits.h>
#include <string.h>

#include <algorithm>

#include "layer/cpu/cast/cast.h"
#include "layer/cpu/common/pairs.h"
#include "layer/cpu/conv/conv_runner.h"

namespace quoll {

int joined_groups(const ConvolutionFields& s, const Option& opt) {
    if (!kJoinsGroups) return 1;
    const SplitGemmKernels* const split = opt.use_bf16_storage ? split_kernels_for(opt) : nullptr;
    const int width = s.num_output / s.group;
    const bool square = s.weight_data_size == s.num_output * width * s.maxk();
    if (!split || split->vector_macs || f16_kernels(opt) || s.axes > 2 || s.add_input ||
        s.pad_value != 0.f || !square || (width != 4 && width != 8))
        return 1;
    return std::min<int>(s.group, kSplitK / width);
}

// Reorders weights from [group][output][input][tap] of the layer's groups to that of the joined
// groups.
int ConvRunner::join_weights(const Layer& layer, const ConvolutionFields& s) {
    if (!kJoinsGroups) return kOk;  // nor does the library hold the message
    const size_t taps = s.maxk(), outputs = out_channels_ / joined_;
    const size_t row = in_channels_ / joined_ * taps;
    const size_t floats = (size_t)group_ * out_channels_ * joined_ * row;
    Mat weights;
    if (floats <= INT_MAX) weights.create((int)floats);
    if (weights.empty()) {
        layer.fail("out of memory for the weights of joined groups");
        return kOutOfMemory;
    }
    weights.fill(0.f);
    float* to = weights;
    for (int g = 0; g < group_; g++) {
        const float* from = (const float*)s.weight_data + first_joined(g) * outputs * row;
        for (int i = 0; i < joined_; i++)
            for (size_t n = 0; n < outputs; n++, from += row, to += joined_ * row)
                std::copy_n(from, row, to + i * row);
    }
    raw_weights_ = weights;
    return kOk;
}

int ConvRunner::make_bias(const Layer& layer, const ConvolutionFields& s) {
    const size_t floats = std::max(
        gemm_bias_size(*packing_->gemm,
                       whole_blocks() ? out_channels_ + kernels_->lanes - 1 : out_channels_),
        SplitPlan::bias_size(out_channels_));
    bias_.create((int)floats, group_);
    zeros_.create((int)floats);
    if (bias_.empty() || zeros_.empty()) {
        layer.fail("out of memory for %zu floats of bias", floats);
        return kOutOfMemory;
    }
    bias_.fill(0.f);
    zeros_.fill(0.f);
    for (int g = 0; g < group_ && s.bias_term; g++) {
        const float* from =
            (const float*)s.bias_data + (size_t)first_joined(g) * (out_channels_ / joined_);
        if (pair_ == 2)
            kernels_->cast->f16.narrow(from, bias_.row<uint16_t>(g), out_channels_);
        else
            memcpy(bias_.row(g), from, out_channels_ * sizeof(float));
    }
    return kOk;
}

void ConvRunner::pack_direct(const float* from, float* to) const {
    ConvShape shape = {};
    shape.x.kernel = kernel_w_, shape.y.kernel = kernel_h_, shape.z.kernel = kernel_d_;
    shape.in_channels = in_channels_, shape.out_channels = out_channels_;
    shape.in_pack = in_pack_, shape.out_pack = out_pack_;
    conv_pack_weights(*packing_->gemm, from, shape, to);
}

int ConvRunner::pack_winograd(const ConvShape& shape, Mat* weights) const {
    const GemmKernels& gemm = *packing_->gemm;
    const size_t scratch_floats = WinogradPlan::pack_scratch(gemm, shape.in_channels, kernel_d_);
    Mat scratch, raw = raw_weights_;
    if (scratch_floats <= INT_MAX) scratch.create((int)scratch_floats);
    if (scratch.empty()) return kOutOfMemory;
    if (whole_blocks()) QUOLL_RETURN_IF_ERROR(fill_weights(shape, &raw));
    WinogradPlan::pack(*packing_, raw, shape.in_channels, kernel_d_, shape.out_channels,
                       kWinogradIn, shape.x.stride, *weights, scratch);
    return kOk;
}

// The weights with zeros for the channels that `shape` has beyond the layer's.
int ConvRunner::fill_weights(const ConvShape& shape, Mat* weights) const {
    const size_t window = (size_t)kernel_w_ * kernel_h_ * kernel_d_;
    const size_t row = in_channels_ * window, whole = shape.in_channels * window;
    const size_t floats = whole * shape.out_channels;
    Mat filled;
    if (floats <= INT_MAX) filled.create((int)floats);
    if (filled.empty()) return kOutOfMemory;
    filled.fill(0.f);
    for (int n = 0; n < out_channels_; n++)
        memcpy((float*)filled + n * whole, (const float*)raw_weights_ + n * row,
               row * sizeof(float));
    *weights = filled;
    return kOk;
}

// Only what does not depend on the size of the input is used of the shape.
int ConvRunner::pack_weights(ConvAlgorithm algorithm, const ConvShape& shape, Mat* weights) const {
    const TileShape tiles = tile_shape(shape);
    ConvShape winograd = {};
    winograd.in_channels = in_channels_, winograd.out_channels = out_channels_;
    winograd = winograd_shape(winograd);
    winograd.x.stride = shape.x.stride;
    const size_t values = (size_t)in_channels_ * kernel_w_ * kernel_h_ * kernel_d_;
    const size_t floats =
        is_winograd(algorithm)
            ? WinogradPlan::packed_size(*packing_->gemm, winograd.in_channels, kernel_d_,
                                        winograd.out_channels, kWinogradIn)
        : is_split(algorithm)  ? SplitPlan::packed_size(*candidates_.split, tiles) / 2
        : is_sliced(algorithm) ? SlicedPlan::packed_size(tiles)
                               : gemm_packed_size(*packing_->gemm, out_channels_, values);
    weights->release();
    if (floats <= INT_MAX) weights->create((int)floats, group_);
    if (weights->empty()) return kOutOfMemory;
    if (is_winograd(algorithm)) return pack_winograd(winograd, weights);
    const float* from = raw_weights_;
    for (int g = 0; g < group_; g++, from += out_channels_ * values) {
        if (is_split(algorithm))
            SplitPlan::pack(*candidates_.split, from, tiles, (uint16_t*)weights->row(g));
        else if (is_sliced(algorithm))
            SlicedPlan::pack(*candidates_.sliced, from, tiles, weights->row(g));
        else
            pack_direct(from, weights->row(g));
    }
    return kOk;
}

bool ConvRunner::weights_support_slices(const TileShape& shape) const {
    const float* from = raw_weights_;
    const size_t values = (size_t)out_channels_ * in_channels_ * kernel_w_ * kernel_h_;
    for (int g = 0; g < group_; g++, from += values)
        if (!SlicedPlan::supports_weights(*candidates_.sliced, from, shape)) return false;
    return true;
}

namespace {

// Whether these floats are half floats, which are then written to `halves`.
bool narrow_all(const StorageKernels& f16, const float* from, size_t count, uint16_t* halves) {
    f16.narrow(from, halves, count);
    float wide[256];
    for (size_t i = 0, n; i < count; i += n) {
        n = std::min<size_t>(256, count - i);
        f16.widen(halves + i, wide, n);
        if (memcmp(wide, from + i, n * sizeof(float)) != 0) return false;
    }
    return true;
}

}  // namespace

void ConvRunner::take_halves(const Layer& layer, const ConvolutionFields& s, const Option& opt) {
    halves_ = false;
    // The layer's hints, if there are any.
    const Mat in = layer.bottom_shapes.empty() ? Mat() : layer.bottom_shapes[0];
    if (in.dims && (in.dims != 3 || in.w * in.h < kMinHalfPixels)) return;
    const bool plain = group_ == 1 && joined_ == 1 && s.axes == 2 &&
                       s.maxk() * s.stride_w * s.stride_h == 1 && !s.pad_left && !s.pad_right &&
                       !s.pad_top && !s.pad_bottom;
    // One algorithm, on vectors of fp32, and panels all of which are full.
    const bool direct = created() && kernels_ == &host_kernel_set() && kernels_->f16f32 &&
                        pair_ == 1 && !narrows_ && algorithm_ == ConvAlgorithm::kDirect &&
                        out_channels_ % kernels_->f16f32->gemm->step == 0;
    if (!plain || !direct || !opt.use_fp16_storage || in_pack_ != kernels_->lanes) return;
    Mat halves((int)(weights_.total() / 2), 1);
    // Without memory the layer stays as it is.
    if (halves.empty() ||
        !narrow_all(kernels_->cast->f16, weights_, weights_.total(), halves.row<uint16_t>(0)))
        return;
    weights_ = halves;
    halves_ = true;
}

// The weights for inputs that are not half floats: what these cannot hold, and what the user gives.
int ConvRunner::widen_weights(Mat* wide) const {
    std::lock_guard<std::mutex> lock(lock_);
    Mat& packed = packed_[(int)ConvAlgorithm::kDirect];
    if (packed.empty()) {
        Mat made((int)(2 * weights_.total()), 1);
        if (made.empty()) return kOutOfMemory;
        kernels_->cast->f16.widen(weights_.row<const uint16_t>(0), made, made.total());
        packed = made;
    }
    *wide = packed;
    return kOk;
}

int ConvRunner::weights_for(const ConvShape& shape, ConvRunPlan* plan) const {
    if (takes_halves() && !plan->halves) return widen_weights(&plan->weights);
    if (algorithm_ != ConvAlgorithm::kNone) {
        plan->weights = weights_;
        return kOk;
    }
    std::lock_guard<std::mutex> lock(lock_);
    Mat& packed = packed_[(int)plan->algorithm];
    if (packed.empty()) {
        Mat made;  // kept when it is whole: memory may end on the way
        QUOLL_RETURN_IF_ERROR(pack_weights(plan->algorithm, shape, &made));
        packed = made;
    }
    plan->weights = packed;
    return kOk;
}

}  // namespace quoll
