// ConvRunner: blobs as the algorithms read and write them.
#include "layer/cpu/cast/storage.h"
#include "layer/cpu/common/pairs.h"
#include "layer/cpu/conv/conv_padding.h"
#include "layer/cpu/conv/conv_runner.h"
#include "layer/cpu/gemm/planar_product.h"
#include "runtime/thread_pool.h"

namespace quoll {

// `added` as it is read: of this type, f32 or bf16, with this elempack.
static int prepare_added(const ConvolutionFields& s, const Mat& added, DType dtype, int pack,
                         const Option& opt, Mat* m) {
    *m = added;
    if (added.empty()) return kOk;
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    if (dtype == DType::f32 && added.dtype == DType::bf16)
        cast_bfloat16_to_float32(added, *m, temporary);
    if (kHasF16F32 && added.dtype == DType::f16) cast_float16_to_float32(added, *m, temporary);
    if (dtype == DType::bf16 && added.dtype == DType::f32)
        cast_float32_to_bfloat16(added, *m, temporary);
    if (m->empty()) return kOutOfMemory;
    QUOLL_RETURN_IF_ERROR(with_elempack(*m, pack, opt, m));
    *m = conv_channels(s, *m);
    return kOk;
}

int ConvRunner::forward(const ConvRunPlan& plan, const ConvolutionFields& s,
                        const ConvGeometry& geometry, const Mat& bottom, const Mat& added, Mat& top,
                        const Option& opt) const {
    if (!kFewKernels && plan.live) {
        const ConvLiveTaps& live = *plan.live;
        return live.runner->forward(live.plan, live.fields, live.geometry, bottom, added, top, opt);
    }
    if constexpr (kSumsColumns)
        if (plan.columns) return forward_columns(plan, s, geometry, bottom, top, opt);
    if (takes_f16()) return forward_f16(plan, s, geometry, bottom, added, top, opt);
    Mat wide;
    Option temporary = opt;
    if (narrows()) temporary.blob_allocator = opt.workspace_allocator;
    QUOLL_RETURN_IF_ERROR(forward_f32(plan, s, geometry, bottom, added, narrows() ? wide : top,
                                      narrows() ? temporary : opt));
    return narrows() ? narrow(conv_channels(s, wide), s, geometry, top, opt) : (int)kOk;
}

// f32 or bf16, to f32 or bf16.
int ConvRunner::forward_f32(const ConvRunPlan& plan, const ConvolutionFields& s,
                            const ConvGeometry& geometry, const Mat& bottom, const Mat& added,
                            Mat& top, const Option& opt) const {
    ConvGeometry g = geometry;
    Mat in, out, add;
    const bool bf16_in = kHasHalfStorage && bottom.dtype == DType::bf16;
    const DType made = narrows() ? DType::f32 : made_type(plan, s, g, bottom.dtype, opt);
    const bool bf16 = made == DType::bf16 && multiplies_bf16(plan, s, g);
    if (bf16_in && !bf16) return forward_widened(plan, s, g, false, bottom, added, top, opt);
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom, in_pack_, opt, &in));
    if (takes_halves() && !plan.halves) QUOLL_RETURN_IF_ERROR(widened(in, opt, &in));
    in = conv_channels(s, in);
    QUOLL_RETURN_IF_ERROR(
        prepare_added(s, added, bf16_in ? DType::bf16 : DType::f32, out_pack_, opt, &add));
    if (in.n > 1) {
        if (top.dtype != made || top.elempack != out_pack_ ||
            (!add.empty() && add.nstep != top.nstep))
            return kOneByOne;
        out = top;
    } else if (!added.empty() && top.data == added.data && top.dtype == made &&
               top.elempack == out_pack_) {
        out = add;
    } else {
        QUOLL_RETURN_IF_ERROR(create_conv_top(s, g, made, out_pack_, opt, &top, &out));
    }
    if (must_pad(s, g, shape_of(g)))
        QUOLL_RETURN_IF_ERROR(pad_input(in, s.pad_value, opt, &g, &in));

    const Call call = call_of(g, in, out, opt);
    return run(plan, call, blobs_of(s, call, in, add, out), opt);
}

ConvRunner::Call ConvRunner::call_of(const ConvGeometry& g, const Mat& in, const Mat& out,
                                     const Option& opt) const {
    Call call = {shape_of(g), in.dtype == DType::bf16, out.dtype == DType::bf16, 1};
    call.items = in.n;
    set_threads(g, opt, &call);
    call.shape.in_step = in.cstep * in_pack_;
    call.shape.out_step = out.cstep * out_pack_;
    if (takes_halves() && in.dtype == DType::f16) call.shape = shape_of_halves(call.shape);
    if (in.n == 1) return call;
    call.in_item = in.nstep * in_pack_;
    call.out_item = out.nstep * out_pack_;
    return call;
}

ConvRunner::Blobs ConvRunner::blobs_of(const ConvolutionFields& s, const Call& call, const Mat& in,
                                       const Mat& added, const Mat& out) const {
    const size_t size = dtype_size(out.dtype), out_blocks = out_channels_ / out_pack_;
    Blobs blobs;
    blobs.in = in.data, blobs.added = added.data, blobs.out = out.data;
    blobs.added_step = added.cstep * out_pack_;
    blobs.in_group = in_channels_ / in_pack_ * call.shape.in_step * dtype_size(in.dtype);
    blobs.added_group = out_blocks * blobs.added_step * size;
    blobs.out_group = out_blocks * call.shape.out_step * size;
    if (!s.add_input || !added.empty()) blobs.activation = activation_;
    return blobs;
}

// The f32 output as f16.
int ConvRunner::narrow(const Mat& wide, const ConvolutionFields& s, const ConvGeometry& g, Mat& top,
                       const Option& opt) const {
    Mat out;
    QUOLL_RETURN_IF_ERROR(create_conv_top(s, g, DType::f16, kF16Pack, opt, &top, &out));
    const size_t elements = (size_t)out.w * out.h * out.d;
    const int threads = threads_for(opt, (double)elements * out_channels_);
    run_tasks(out.c, threads, [&](int64_t q, int) {
        host_kernel_set().narrow_f16_blocks(wide.channel(2 * (int)q), wide.channel(2 * (int)q + 1),
                                            elements,
                                            (uint16_t*)out.data + q * out.cstep * kF16Pack);
    });
    return kOk;
}

int ConvRunner::forward_f16(const ConvRunPlan& plan, const ConvolutionFields& s,
                            const ConvGeometry& geometry, const Mat& bottom, const Mat& added,
                            Mat& top, const Option& opt) const {
    if (planar()) return forward_planar(plan, s, geometry, bottom, top, opt);
    ConvGeometry g = geometry;
    Mat in, out, add;
    QUOLL_RETURN_IF_ERROR(as_f16(bottom, kF16Pack, opt, &in));
    in = conv_channels(s, in);
    if (!added.empty()) QUOLL_RETURN_IF_ERROR(as_f16(added, kF16Pack, opt, &add));
    if (!added.empty()) add = conv_channels(s, add);
    if (!added.empty() && top.data == added.data && added.data == add.data)
        out = add;
    else
        QUOLL_RETURN_IF_ERROR(create_conv_top(s, g, DType::f16, kF16Pack, opt, &top, &out));
    if (must_pad(s, g, shape_of(g)))
        QUOLL_RETURN_IF_ERROR(pad_input(in, s.pad_value, opt, &g, &in));
    in = as_pairs(in), out = as_pairs(out), add = as_pairs(add);
    Call call = {shape_of(g), false, false, 1};
    set_threads(g, opt, &call);
    call.shape.in_step = in.cstep * in.elempack;
    call.shape.out_step = out.cstep * out.elempack;
    Blobs blobs;
    blobs.in = in.data, blobs.added = add.data, blobs.out = out.data;
    blobs.added_step = add.cstep * add.elempack;
    const size_t out_blocks = out_channels_ / kF16Pack;
    blobs.in_group = in_channels_ / kF16Pack * call.shape.in_step * sizeof(float);
    blobs.added_group = out_blocks * blobs.added_step * sizeof(float);
    blobs.out_group = out_blocks * call.shape.out_step * sizeof(float);
    if (!s.add_input || !add.empty()) blobs.activation = activation_;
    return run(plan, call, blobs, opt);
}

int ConvRunner::forward_planar(const ConvRunPlan& plan, const ConvolutionFields& s,
                               const ConvGeometry& g, const Mat& bottom, Mat& top,
                               const Option& opt) const {
    Mat in, out;
    QUOLL_RETURN_IF_ERROR(as_f16(bottom, 1, opt, &in));
    in = conv_channels(s, in);
    QUOLL_RETURN_IF_ERROR(create_conv_top(s, g, DType::f16, 1, opt, &top, &out));
    const PlanarProduct product = {kernels_->gemm,
                                   packing_->gemm,
                                   (size_t)out.w * out.h * out.d,
                                   (size_t)in_channels_,
                                   (size_t)out_channels_,
                                   in.cstep,
                                   out.cstep};
    run_planar(product, in.data, plan.weights.data, bias_.data, out.data, activation_,
               threads_of(g, opt));
    return kOk;
}

// A bf16 blob by way of f32.
int ConvRunner::forward_widened(const ConvRunPlan& plan, const ConvolutionFields& s,
                                const ConvGeometry& g, bool flat, const Mat& bottom,
                                const Mat& added, Mat& top, const Option& opt) const {
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    temporary.use_bf16_storage = false;
    Mat wide, result;
    cast_bfloat16_to_float32(bottom, wide, temporary);
    if (wide.empty()) return kOutOfMemory;
    QUOLL_RETURN_IF_ERROR(flat ? forward_flat(plan, s, wide, result, temporary)
                               : forward(plan, s, g, wide, added, result, temporary));
    cast_float32_to_bfloat16(result, top, opt);
    return top.empty() ? (int)kOutOfMemory : (int)kOk;
}

int ConvRunner::forward_flat(const ConvRunPlan& plan, const ConvolutionFields& s, const Mat& bottom,
                             Mat& top, const Option& opt) const {
    // Channels of a 1-D blob follow each other whatever its elempack; with a 1x1 kernel that is the
    // order of the weights.
    const DType dtype = takes_f16() ? DType::f16 : DType::f32;
    Mat in = bottom;
    if (takes_f16()) QUOLL_RETURN_IF_ERROR(as_f16(bottom, planar() ? 1 : kF16Pack, opt, &in));
    if (takes_halves()) QUOLL_RETURN_IF_ERROR(widened(bottom, opt, &in));
    top.create(Shape(s.num_output, dtype), out_pack_, opt.blob_allocator);
    if (top.empty()) return kOutOfMemory;
    if (planar()) {
        const PlanarProduct product = {
            kernels_->gemm, packing_->gemm, 1, (size_t)in_channels_, (size_t)out_channels_, 1, 1};
        run_planar(product, in.data, plan.weights.data, bias_.data, top.data, activation_, 1);
        return kOk;
    }
    const FusedActivation activation = s.add_input ? FusedActivation() : activation_;
    const int in_floats = in_channels_ / pair_, out_floats = out_channels_ / pair_;
    const Blobs blobs = {in.data,  nullptr,
                         top.data, in_channels_ * sizeof(float),
                         0,        out_channels_ * sizeof(float),
                         0,        activation};
    // A pixel, whose channel blocks follow each other.
    Call call = {{}, false, false, 1};
    ConvShape& pixel = call.shape;
    pixel.x = pixel.y = {1, 1, 1, 1, 1, 0};
    pixel.in_channels = in_channels_, pixel.out_channels = out_channels_;
    pixel.in_pack = in_pack_, pixel.out_pack = out_pack_;
    pixel.in_step = in_pack_, pixel.out_step = out_pack_;
    if (is_split(plan.algorithm)) return run_split(plan, call, blobs, opt);
    if (is_sliced(plan.algorithm)) return run_sliced(plan, call, blobs, opt);
    for (int i = 0; i < group_; i++) {
        GemmMatrix g = {};
        g.kernels = kernels_;
        g.a = (const float*)in.data + group_offset(i, in_floats);
        g.a_k = 1;
        g.m = 1;
        g.n = out_floats;
        g.k = in_floats;
        g.b = plan.weights.row(i);
        g.bias = bias_.row(i);
        g.c = (float*)top.data + group_offset(i, out_floats);
        g.c_pack = out_floats;
        g.activation = activation;
        gemm_matrix(g, threads_for(opt, (double)in_channels_ * out_channels_));
    }
    return kOk;
}

}  // namespace quoll
