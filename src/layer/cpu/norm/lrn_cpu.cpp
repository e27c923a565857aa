#include "layer/cpu/norm/lrn_cpu.h"

#include <algorithm>

#include "layer/common/channels.h"
#include "layer/cpu/cast/storage.h"
#include "layer/cpu/common/packing.h"
#include "layer/cpu/norm/norm.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// Elements of each channel block that are floats at a time, of blobs of a storage type.
enum { kStoredPixels = 16 };

// The pixels of `part`, whose `in` and `out` are values of a storage type, by way of memory for
// two times kStoredPixels of all channels.
void lrn_stored(const NormKernels& norm, const StorageKernels& storage, const LrnAcross& part,
                float* memory) {
    const size_t pack = part.pack, step = kStoredPixels * pack, blocks = part.blocks;
    LrnAcross chunk = part;
    chunk.in = memory, chunk.out = memory + blocks * step, chunk.step = step;
    for (size_t first = 0; first < part.pixels; first += kStoredPixels) {
        chunk.pixels = std::min<size_t>(kStoredPixels, part.pixels - first);
        const size_t count = chunk.pixels * pack, at = first * pack;
        for (size_t q = 0; q < blocks; q++)
            storage.widen((const uint16_t*)part.in + q * part.step + at, memory + q * step, count);
        norm.lrn_across(chunk);
        for (size_t q = 0; q < blocks; q++)
            storage.narrow(chunk.out + q * step, (uint16_t*)part.out + q * part.step + at, count);
    }
}

}  // namespace

LRNCpu::LRNCpu() : kernels_(&host_kernel_set()) { support_packing = true; }

int LRNCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(LRN::create_pipeline(opt));
    support_fp16_storage = support_bf16_storage = has_kernel();
    return kOk;
}

void LRNCpu::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in, const Option&,
                          std::vector<BlobLayout>* out) const {
    const int pack = in[0].elempack;
    const bool blocked = pack == 4 || pack == 8 || pack == 16;
    if (!has_kernel() || in[0].shape.dims != 3)
        (*out)[0].shape.dtype = DType::f32;  // the reference runs
    else if (blocked)
        (*out)[0].elempack = pack;
}

int LRNCpu::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, bottom_blob));
    const int pack = bottom_blob.elempack;
    const bool usual = has_kernel() && bottom_blob.dims == 3;
    Mat in;
    QUOLL_RETURN_IF_ERROR(with_elempack(
        bottom_blob, usual && (pack == 4 || pack == 8 || pack == 16) ? pack : 1, opt, &in));
    if (!usual) {
        QUOLL_RETURN_IF_ERROR(widened(in, opt, &in));
        return LRN::forward(in, top_blob, opt);
    }

    const size_t pixels = (size_t)in.w * in.h;
    const int channels = in.c * in.elempack;
    const int before = std::min(local_size / 2, channels);
    const int after = std::min(local_size - 1 - local_size / 2, channels);
    const int threads = threads_for(opt, (double)pixels * channels * 4);
    top_blob.create_like(in, opt.blob_allocator);
    const StorageKernels* storage = storage_kernels(*kernels_, in.dtype);
    const size_t squares_size =
        in.elempack > 1 ? lrn_scratch(in.c, in.elempack, before + after) : 1;
    const size_t stored = (size_t)kStoredPixels * channels;
    const size_t scratch = squares_size + (storage ? 2 * stored : 0);
    if (scratch > INT32_MAX) return kOutOfMemory;
    Mat squares((int)scratch, threads, 4u, opt.workspace_allocator);
    if (top_blob.empty() || squares.empty()) return kOutOfMemory;

    LrnAcross whole = {};
    whole.step = in.cstep * in.elempack;
    whole.blocks = in.c, whole.pack = in.elempack;
    whole.before = before, whole.after = after;
    whole.scale = alpha / local_size, whole.bias = bias, whole.beta = beta;
    const int chunks = threads > 1 ? threads * 4 : 1;
    run_tasks(chunks, threads, [&](int64_t t, int thread) {
        // Whole registers of planar pixels.
        const size_t begin = pixels * t / chunks / 16 * 16;
        const size_t end = t + 1 < chunks ? pixels * (t + 1) / chunks / 16 * 16 : pixels;
        LrnAcross part = whole;
        const size_t at = begin * in.elempack * (in.elemsize / in.elempack);
        part.in = (const float*)((const char*)in.data + at);
        part.out = (float*)((char*)top_blob.data + at);
        part.pixels = end - begin;
        part.scratch = squares.row(thread);
        if (storage)
            lrn_stored(*kernels_->norm, *storage, part, part.scratch + squares_size);
        else
            kernels_->norm->lrn_across(part);
    });
    return kOk;
}

Layer* create_LRN_fast_layer() { return new LRNCpu; }

}  // namespace quoll
