#include "layer/cpu/conv/conv_runner.h"

#include <algorithm>

#include "layer/common/stored.h"
#include "layer/cpu/common/pairs.h"
#include "layer/cpu/gemm/planar_product.h"

namespace quoll {

// Not inline, since several layers have one.
ConvRunner::ConvRunner() = default;
ConvRunner::~ConvRunner() = default;

bool ConvRunner::winograd_candidate(const ConvolutionFields& s, const Option& opt) const {
    ConvShape shape = {};
    shape.x.kernel = kernel_w_;
    shape.x.stride = s.stride_w;
    shape.x.dilation = s.dilation_w;
    shape.y.kernel = kernel_h_;
    shape.y.stride = s.stride_h;
    shape.y.dilation = s.dilation_h;
    shape.z.kernel = kernel_d_;
    shape.in_channels = in_channels_ / pair_;
    shape.in_pack = in_pack_ / pair_;
    shape.out_pack = out_pack_ / pair_;
    shape = winograd_shape(shape);
    if (!kHasWinograd || !opt.use_winograd_convolution || !opt.use_winograd43_convolution ||
        group_ != 1 || s.axes < 2 || !WinogradPlan::is_supported(*kernels_, shape))
        return false;
    const NotFinite odd = count_not_finite(s.weight_data);
    return odd.nans + odd.infinite == 0;
}

bool ConvRunner::can_take_f16(const ConvolutionFields& s, const Option& opt) const {
    return f16_kernels(opt) && s.axes < 3 && in_channels_ % kF16Pack == 0 &&
           out_channels_ % kF16Pack == 0;
}

// For 1x1 convolutions whose channels are not whole blocks. With fewer pixels than a few tiles
// have, most would be computed twice.
bool ConvRunner::can_take_planar_f16(const Layer& layer, const ConvolutionFields& s,
                                     const Option& opt) const {
    const bool pads = s.pad_left || s.pad_right || s.pad_top || s.pad_bottom;
    if (!f16_kernels(opt) || !has_planar(*f16_kernels(opt)->gemm) || s.axes > 2 || group_ != 1 ||
        s.add_input || in_channels_ < 1 || s.maxk() * s.stride_w * s.stride_h != 1 || pads)
        return false;
    if (layer.bottom_shapes.empty()) return true;
    const Mat& in = layer.bottom_shapes[0];
    return in.dims == s.axes + 1 && in.w * (in.dims == 3 ? in.h : 1) >= 4 * kPlanarHalfPixels;
}

// Chooses elempacks and types, and the kernels for them.
void ConvRunner::choose_blobs(const Layer& layer, const ConvolutionFields& s, const Option& opt) {
    pair_ = 1, planar_ = narrows_ = false;
    const auto pack_of = [&](int channels) {
        const int pack = best_elempack(*packing_, channels, opt);
        // The channels that the last two joined groups have in common.
        const int both = kJoinsGroups ? channels / joined_ * overlap_ : 0;
        return both ? std::min(pack, best_elempack(*packing_, both, opt)) : pack;
    };
    in_pack_ = pack_of(in_channels_);
    out_pack_ = pack_of(out_channels_);
    // Planar outputs take the fewest moves from planar inputs, unless there are more input than
    // output channels.
    if (packing_->gemm->planar[0] && !planar_reads_blocks(*packing_->gemm, in_pack_) &&
        out_pack_ == 1 && in_channels_ <= out_channels_ && s.maxk() * s.stride_w * s.stride_h == 1)
        in_pack_ = 1;
    if (can_take_f16(s, opt)) {
        pair_ = 2;
        in_pack_ = out_pack_ = kF16Pack;
    } else if (can_take_planar_f16(layer, s, opt)) {
        pair_ = 2, planar_ = true;
        in_pack_ = out_pack_ = 1;
    } else {
        narrows_ = f16_kernels(opt) && s.axes < 3 && group_ == 1 && !s.add_input &&
                   out_channels_ % kF16Pack == 0 && out_pack_ == kF16Pack / 2;
    }
    if (pair_ == 1) return;
    kernels_ = f16_kernels(opt);
    packing_ = kernels_->half;
}

// If the algorithm does not depend on the input's size, or the layer's hints tell the size: chooses
// it and packs the weights for it. Otherwise the weights stay as they are.
int ConvRunner::pack_for_all_sizes(const Layer& layer, const ConvolutionFields& s) {
    algorithm_ = ConvAlgorithm::kNone;
    const bool hinted = layer.bottom_shapes.size() == (s.add_input ? 2u : 1u);
    ConvShape shape = {};
    if ((!candidates_.winograd && !candidates_.split && !candidates_.sliced) ||
        (hinted && layer.bottom_shapes[0].dims == 1)) {
        algorithm_ = ConvAlgorithm::kDirect;
    } else if (hinted && layer.bottom_shapes[0].dims == 3) {
        ConvGeometry g;
        QUOLL_RETURN_IF_ERROR(convolution_geometry(layer, s, shapes_of(layer.bottom_shapes), &g));
        shape = shape_of(g);
        if (!drops_taps(s, g)) algorithm_ = choose(shape);
    }
    if (algorithm_ == ConvAlgorithm::kNone) return kOk;
    const int status = pack_weights(algorithm_, shape, &weights_);
    raw_weights_.release();
    if (status != kOk) layer.fail("out of memory for %d weights", s.weight_data_size);
    return status;
}

int ConvRunner::create(const Layer& layer, const ConvolutionFields& s, const Option& opt) {
    weights_.release();
    for (Mat& packed : packed_) packed.release();
    live_.clear();
    const KernelSet& host = host_kernel_set();
    kernels_ = packing_ = opt.use_fp16_arithmetic && host.half ? host.half : &host;
    kernel_w_ = s.kernel_w;
    kernel_h_ = s.kernel_h;
    kernel_d_ = s.kernel_d;
    joined_ = joined_groups(s, opt);
    group_ = (s.group + joined_ - 1) / joined_;
    overlap_ = group_ * joined_ - s.group;
    out_channels_ = s.num_output / s.group * joined_;
    in_channels_ = s.weight_data_size / s.maxk() / s.num_output * joined_;
    choose_blobs(layer, s, opt);
    bf16_ = opt.use_bf16_storage;
    activation_ = FusedActivation(*kernels_, Activation(s.activation_type, s.activation_params),
                                  opt.use_bf16_storage);
    candidates_ = ConvCandidates();
    if (kCopiesToWholeBlocks)
        whole_blocks_ = pair_ == 1 && opt.use_packing_layout && kernels_->lanes > 1 &&
                        (in_pack_ != kernels_->lanes || out_pack_ != kernels_->lanes);
    candidates_.winograd = !planar() && winograd_candidate(s, opt);
    if (s.axes < 3 && pair_ == 1) {
        candidates_.split = split_kernels_for(opt);
        candidates_.sliced = sliced_kernels_for(opt);
    }
    raw_weights_ = s.weight_data;
    int status = kJoinsGroups && joined_ > 1 ? join_weights(layer, s) : (int)kOk;
    if (status == kOk) status = make_bias(layer, s);
    if constexpr (kSumsColumns)
        if (status == kOk) status = create_columns(layer, s, opt);
    if (status == kOk) status = pack_for_all_sizes(layer, s);
    if (status != kOk) kernels_ = nullptr;
    return status;
}

namespace {

ConvAxis conv_axis(const WindowAxis& axis) {
    return {axis.in, axis.out, axis.kernel, axis.stride, axis.dilation, axis.before};
}

}  // namespace

ConvShape ConvRunner::shape_of(const ConvGeometry& g) const {
    ConvShape shape = {};
    shape.x = conv_axis(g.x);
    shape.y = conv_axis(g.y);
    shape.z = conv_axis(g.z);
    shape.in_channels = in_channels_ / pair_;
    shape.out_channels = out_channels_ / pair_;
    shape.in_pack = in_pack_ / pair_;
    shape.out_pack = out_pack_ / pair_;
    return shape;
}

// An input of half floats as its kernels see it: each two of its values are a float.
ConvShape ConvRunner::shape_of_halves(ConvShape shape) {
    shape.in_channels /= 2, shape.in_pack /= 2, shape.in_step /= 2;
    return shape;
}

}  // namespace quoll
