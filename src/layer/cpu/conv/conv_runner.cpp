#include "layer/cpu/conv/conv_runner.h"

#include <limits.h>
#include <string.h>

namespace quoll {

namespace {

ConvAxis conv_axis(const WindowAxis& axis) {
    return {axis.in, axis.out, axis.kernel, axis.stride, axis.dilation, axis.before};
}

// `in` with its padding around it, for the cases that a plan does not take; afterwards the axes
// have none.
int pad_input(const Mat& in, float value, const Option& opt, ConvGeometry* g, Mat* padded) {
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    copy_make_border(in, *padded, g->y.before, g->y.after, g->x.before, g->x.after, BORDER_CONSTANT,
                     value, temporary);
    if (padded->empty()) return kOutOfMemory;
    g->x.in = padded->w, g->y.in = padded->h;
    g->x.before = g->x.after = g->y.before = g->y.after = 0;
    return kOk;
}

bool has_padding(const ConvGeometry& g) {
    return g.x.before > 0 || g.x.after > 0 || g.y.before > 0 || g.y.after > 0;
}

}  // namespace

ConvRunner::ConvRunner()
    : kernels_(nullptr),
      group_(1),
      in_channels_(0),
      out_channels_(0),
      in_pack_(1),
      out_pack_(1),
      weight_floats_(0),
      bias_floats_(0) {}

int ConvRunner::create(const Layer& layer, const ConvolutionFields& s, const Option& opt) {
    kernels_ = nullptr;
    plan_.reset();
    weights_.release();
    const KernelSet& kernels = host_kernel_set();
    const GemmKernels& gemm = *kernels.gemm;
    const int maxk = s.kernel_w * s.kernel_h;
    group_ = s.group;
    out_channels_ = s.num_output / group_;
    in_channels_ = s.weight_data_size / maxk / s.num_output;
    in_pack_ = best_elempack(kernels, in_channels_, opt);
    out_pack_ = best_elempack(kernels, out_channels_, opt);
    const size_t k = (size_t)in_channels_ * maxk;
    weight_floats_ = gemm_packed_size(gemm, out_channels_, k);
    bias_floats_ = gemm_bias_size(gemm, out_channels_);
    if (weight_floats_ <= INT_MAX) weights_.create((int)weight_floats_, group_);
    bias_.create((int)bias_floats_, group_);
    if (weights_.empty() || bias_.empty()) {
        layer.fail("out of memory for %d weights", s.weight_data_size);
        return kOutOfMemory;
    }
    const std::vector<int> order =
        conv_weight_order(in_channels_, in_pack_, s.kernel_w, s.kernel_h);
    const float* weights = s.weight_data;
    memset(bias_.data, 0, bias_.total() * bias_.elemsize);
    for (int g = 0; g < group_; g++) {
        gemm_pack_ordered(gemm, weights + (size_t)g * out_channels_ * k, k, order.data(),
                          out_channels_, k, weights_.row(g));
        if (s.bias_term)
            memcpy(bias_.row(g), (const float*)s.bias_data + (size_t)g * out_channels_,
                   out_channels_ * sizeof(float));
    }
    activation_ = FusedActivation(kernels, Activation(s.activation_type, s.activation_params));
    kernels_ = &kernels;
    return kOk;
}

std::shared_ptr<const ConvPlan> ConvRunner::plan_for(const ConvShape& shape) const {
    std::lock_guard<std::mutex> lock(plan_lock_);
    if (!plan_ || !(plan_->shape() == shape))
        plan_ = std::make_shared<const ConvPlan>(*kernels_, shape);
    return plan_;
}

int ConvRunner::forward(const ConvolutionFields& s, const ConvGeometry& geometry, const Mat& bottom,
                        Mat& top, const Option& opt) const {
    ConvGeometry g = geometry;
    Mat in = bottom;
    if (in.elempack != in_pack_) QUOLL_RETURN_IF_ERROR(with_elempack(bottom, in_pack_, opt, &in));
    top.create(Shape(g.x.out, g.y.out, g.num_output), out_pack_, opt.blob_allocator);
    if (top.empty()) return kOutOfMemory;

    const bool odd_value = s.pad_value != 0.f && has_padding(g);
    if (odd_value || !ConvPlan::takes(conv_axis(g.x), conv_axis(g.y), in_channels_ / in_pack_))
        QUOLL_RETURN_IF_ERROR(pad_input(in, s.pad_value, opt, &g, &in));

    ConvShape shape;
    shape.x = conv_axis(g.x);
    shape.y = conv_axis(g.y);
    shape.in_channels = in_channels_;
    shape.out_channels = out_channels_;
    shape.in_pack = in_pack_;
    shape.out_pack = out_pack_;
    shape.in_step = in.cstep * in_pack_;
    shape.out_step = top.cstep * out_pack_;
    const double work = (double)g.x.out * g.y.out * g.maxk() * in_channels_ * g.num_output;
    return forward_groups(*plan_for(shape), in, top, threads_for(opt, work));
}

int ConvRunner::forward_groups(const ConvPlan& plan, const Mat& in, Mat& top, int threads) const {
    for (int i = 0; i < group_; i++) {
        const Mat group_in = in.channel(i * (in_channels_ / in_pack_));
        Mat group_out = top.channel(i * (out_channels_ / out_pack_));
        plan.run(group_in, weights_.row(i), bias_.row(i), group_out, nullptr, 0, activation_,
                 threads);
    }
    return kOk;
}

int ConvRunner::forward_flat(const Mat& bottom, Mat& top, const Option& opt) const {
    // Channels of a 1-D blob follow each other whatever its elempack; with a 1x1 kernel that is the
    // order of the weights.
    top.create(Shape(out_channels_ * group_), out_pack_, opt.blob_allocator);
    if (top.empty()) return kOutOfMemory;
    for (int i = 0; i < group_; i++) {
        GemmMatrix g = {};
        g.kernels = kernels_;
        g.a = (const float*)bottom.data + (size_t)i * in_channels_;
        g.a_k = 1;
        g.m = 1;
        g.n = out_channels_;
        g.k = in_channels_;
        g.b = weights_.row(i);
        g.bias = bias_.row(i);
        g.c = (float*)top.data + (size_t)i * out_channels_;
        g.c_pack = out_channels_;
        g.activation = activation_;
        gemm_matrix(g, threads_for(opt, (double)in_channels_ * out_channels_));
    }
    return kOk;
}

}  // namespace quoll
