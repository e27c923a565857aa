#include "layer/cpu/deconv/deconv_patches.h"

#if defined(__x86_64__) || defined(__i386__)

#include <string.h>

#include <algorithm>

#include "layer/cpu/conv/conv_layer.h"
#include "layer/cpu/gemm/split_plan.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// [output][input][tap] as [tap][output][input]; empty when memory runs out.
Mat weights_by_tap(const ConvFields& s) {
    const size_t taps = s.maxk(), inputs = s.weight_data_size / s.num_output / taps;
    Mat to(s.weight_data_size);
    if (to.empty()) return to;
    const float* from = s.weight_data;
    for (size_t i = 0; i < s.num_output * inputs; i++)
        for (size_t tap = 0; tap < taps; tap++)
            ((float*)to)[tap * s.num_output * inputs + i] = *from++;
    return to;
}

template <size_t bytes>
void copy_elements(const char* from, size_t from_step, char* to, size_t to_step, int count) {
    for (int i = 0; i < count; i++) memcpy(to + i * to_step, from + i * from_step, bytes);
}

typedef void (*CopyElements)(const char*, size_t, char*, size_t, int);
CopyElements copy_of(size_t bytes) {
    switch (bytes) {
        case 2:
            return copy_elements<2>;
        case 4:
            return copy_elements<4>;
        case 8:
            return copy_elements<8>;
        case 16:
            return copy_elements<16>;
        case 32:
            return copy_elements<32>;
        default:
            return copy_elements<64>;
    }
}

}  // namespace

int PatchDeconv::create(const Layer& layer, const Deconvolution& s, const Option& opt) {
    conv_.reset();
    const bool cut = s.pad_left || s.pad_right || s.pad_top || s.pad_bottom;
    const bool more = s.output_pad_right || s.output_pad_bottom || s.output_w || s.output_h;
    const bool apart = s.kernel_w == s.stride_w && s.kernel_h == s.stride_h && s.dilation_w == 1 &&
                       s.dilation_h == 1;
    if (s.axes != 2 || !opt.use_bf16_storage || !split_kernels_for(opt) || s.group != 1 || cut ||
        more || !apart)
        return kOk;
    kernel_w_ = s.kernel_w, kernel_h_ = s.kernel_h, outputs_ = s.num_output;
    pack_ = best_elempack(host_kernel_set(), outputs_, opt);
    std::unique_ptr<ConvolutionCpu> conv(new ConvolutionCpu(2));
    static_cast<ConvFields&>(*conv) = s;
    conv->type = layer.type, conv->name = layer.name;
    conv->num_output = s.maxk() * outputs_;
    conv->kernel_w = conv->kernel_h = conv->stride_w = conv->stride_h = 1;
    conv->weight_data = weights_by_tap(s);
    if (conv->weight_data.empty()) return kOutOfMemory;
    if (s.bias_term) {
        conv->bias_data = Mat(conv->num_output);
        if (conv->bias_data.empty()) return kOutOfMemory;
        for (int i = 0; i < conv->num_output; i++)
            conv->bias_data[i] = ((const float*)s.bias_data)[i % outputs_];
    }
    conv->bottom_shapes = layer.bottom_shapes;
    QUOLL_RETURN_IF_ERROR(conv->check_inputs());
    QUOLL_RETURN_IF_ERROR(conv->create_pipeline(opt));
    conv_ = std::move(conv);
    return kOk;
}

void PatchDeconv::plan_layout(const BlobLayout& in, const Option& opt, BlobLayout* top) const {
    std::vector<BlobLayout> out(1);
    std::vector<Shape> made;
    std::shared_ptr<const LayerPlan> plan;
    if (conv_->infer_shapes({in.shape}, made) != kOk || conv_->plan({in.shape}, opt, &plan) != kOk)
        return;
    out[0].shape = made[0];
    conv_->plan_layouts(plan.get(), {in}, opt, &out);
    top->elempack = pack_;
    top->shape.dtype = out[0].shape.dtype;
}

int PatchDeconv::forward(const Mat& bottom, Mat* top, const Option& opt) const {
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    Mat sums;
    QUOLL_RETURN_IF_ERROR(conv_->forward(bottom, sums, temporary));
    top->create(Shape(sums.w * kernel_w_, sums.h * kernel_h_, outputs_, sums.dtype), pack_,
                opt.blob_allocator);
    if (top->empty()) return kOutOfMemory;
    const size_t size = dtype_size(sums.dtype), bytes = size * pack_;
    const CopyElements copy = copy_of(bytes);
    const int taps = kernel_w_ * kernel_h_, blocks = outputs_ / pack_;
    const int threads = threads_for(opt, (double)sums.total() * sums.elempack);
    parallel_for((int64_t)blocks * sums.h, threads, [&](int64_t i) {
        const int q = (int)(i / sums.h), y = (int)(i % sums.h);
        for (int tap = 0; tap < taps; tap++) {
            const int channel = tap * outputs_ + q * pack_;
            const char* from = (const char*)sums.channel(channel / sums.elempack).row(y);
            char* to = (char*)top->channel(q).row(y * kernel_h_ + tap / kernel_w_);
            copy(from + channel % sums.elempack * size, sums.elemsize, to + tap % kernel_w_ * bytes,
                 kernel_w_ * bytes, sums.w);
        }
    });
    return kOk;
}

}  // namespace quoll

#endif
