#include "layer/cpu/norm/lrn_cpu.h"

#include <algorithm>

#include "cpu.h"
#include "layer/channels.h"
#include "layer/cpu/norm/norm.h"
#include "layer/cpu/packing.h"

namespace quoll {

LRNCpu::LRNCpu() : kernels_(nullptr) { support_packing = true; }

int LRNCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(LRN::create_pipeline(opt));
    kernels_ = &host_kernel_set();
    return kOk;
}

int LRNCpu::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, bottom_blob));
    const int pack = bottom_blob.elempack;
    const bool usual = region_type == 0 && bottom_blob.dims == 3;
    Mat in;
    QUOLL_RETURN_IF_ERROR(with_elempack(
        bottom_blob, usual && (pack == 4 || pack == 8 || pack == 16) ? pack : 1, opt, &in));
    if (!usual) return LRN::forward(in, top_blob, opt);

    const size_t pixels = (size_t)in.w * in.h;
    const int half = std::min(local_size / 2, in.c * in.elempack);
    const int threads = threads_for(opt, (double)pixels * in.c * in.elempack * 4);
    top_blob.create(in.logical_shape(), in.elempack, opt.blob_allocator);
    const size_t scratch = in.elempack > 1 ? lrn_scratch(in.c, in.elempack, half) : 1;
    if (scratch > INT32_MAX) return kOutOfMemory;
    Mat squares((int)scratch, threads, 4u, opt.workspace_allocator);
    if (top_blob.empty() || squares.empty()) return kOutOfMemory;

    LrnAcross whole = {};
    whole.step = in.cstep * in.elempack;
    whole.blocks = in.c, whole.pack = in.elempack, whole.half = half;
    whole.scale = alpha / local_size, whole.bias = bias, whole.beta = beta;
#pragma omp parallel for num_threads(threads)
    for (int t = 0; t < threads; t++) {
        // Whole registers of planar pixels.
        const size_t begin = pixels * t / threads / 16 * 16;
        const size_t end = t + 1 < threads ? pixels * (t + 1) / threads / 16 * 16 : pixels;
        LrnAcross part = whole;
        part.in = (const float*)in + begin * in.elempack;
        part.out = (float*)top_blob + begin * in.elempack;
        part.pixels = end - begin;
        part.scratch = squares.row(t);
        kernels_->norm->lrn_across(part);
    }
    return kOk;
}

Layer* create_LRN_fast_layer() { return new LRNCpu; }

}  // namespace quoll
