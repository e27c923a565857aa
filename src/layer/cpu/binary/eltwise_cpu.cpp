#include "layer/cpu/binary/eltwise_cpu.h"

#include "layer/cpu/binary/binary.h"
#include "layer/cpu/cast/storage.h"
#include "layer/cpu/common/packing.h"
#include "layer/cpu/unary/unary.h"
#include "runtime/thread_pool.h"

namespace quoll {

EltwiseCpu::EltwiseCpu() { support_packing = support_fp16_storage = support_bf16_storage = true; }

void EltwiseCpu::run(const std::vector<Mat>& inputs, Mat& top, const Chunk& chunk) const {
    const bool weighted = op_type == SUM && !coeffs.empty();
    const BinaryKernels& k = *kernels_->binary;
    const BinaryKernel f = (op_type == PROD ? k.mul : op_type == SUM ? k.add : k.max).vectors;
    const StorageKernels* storage = storage_kernels(*kernels_, top.dtype);
    if (storage && inputs.size() == 2 && op_type != MAX && !weighted) {
        const StoredBinary& stored = op_type == SUM ? storage->add : storage->mul;
        return stored.vectors(chunk.of<uint16_t>(inputs[0]), chunk.of<uint16_t>(inputs[1]),
                              chunk.of<uint16_t>(top), chunk.count);
    }
    float sum[Chunks::kChunk], wide[Chunks::kChunk], scaled[Chunks::kChunk];
    float* out = storage ? sum : chunk.of(top);
    const float* first = out;
    for (size_t i = 0; i < inputs.size(); i++) {
        const float* in = chunk.of(inputs[i]);
        if (storage) {
            float* to = i == 0 ? sum : wide;
            storage->widen(chunk.of<uint16_t>(inputs[i]), to, chunk.count);
            in = to;
        }
        if (weighted) {
            const float params[2] = {coeffs[i], 0.f};
            float* to = i == 0 ? out : scaled;
            kernels_->unary->linear(in, to, chunk.count, params);
            in = to;
        }
        if (i == 0)
            first = in;
        else
            f(i == 1 ? first : out, in, out, chunk.count);
    }
    if (inputs.size() == 1 && first != out) std::copy(first, first + chunk.count, out);
    if (storage) storage->narrow(sum, chunk.of<uint16_t>(top), chunk.count);
}

void EltwiseCpu::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in, const Option&,
                              std::vector<BlobLayout>* out) const {
    for (const BlobLayout& b : in) (*out)[0].elempack = std::max((*out)[0].elempack, b.elempack);
}

int EltwiseCpu::combine(const std::vector<Mat>& bottoms, bool inplace, Mat* top,
                        const Option& opt) const {
    std::vector<Shape> in = shapes_of(bottoms), out;
    QUOLL_RETURN_IF_ERROR(shape(*this, in, out));
    int pack = 1;
    for (const Mat& m : bottoms) pack = std::max(pack, m.elempack);
    std::vector<Mat> inputs(bottoms.size());
    bool no_gaps = true;
    for (size_t i = 0; i < bottoms.size(); i++) {
        QUOLL_RETURN_IF_ERROR(with_elempack(bottoms[i], pack, opt, &inputs[i]));
        no_gaps = no_gaps && gapless(inputs[i]);
    }
    Mat result = static_cast<Mat&&>(*top);
    if (inplace && bottoms[0].elempack == pack)
        result = bottoms[0];
    else
        result.create(out[0], pack, opt.blob_allocator);
    if (result.empty()) return kOutOfMemory;
    const Chunks chunks(result, no_gaps && gapless(result));
    const int threads = threads_for(opt, (double)result.total() * pack * inputs.size());
    parallel_for(chunks.count(), threads, [&](int64_t i) { run(inputs, result, chunks[i]); });
    *top = result;
    return kOk;
}

int EltwiseCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                        const Option& opt) const {
    tops.resize(1);
    return combine(bottoms, false, &tops[0], opt);
}

int EltwiseCpu::forward_inplace(std::vector<Mat>& blobs, const Option& opt) const {
    Mat top;
    QUOLL_RETURN_IF_ERROR(combine(blobs, true, &top, opt));
    blobs.assign(1, top);
    return kOk;
}

Layer* create_Eltwise_fast_layer() { return new EltwiseCpu; }

}  // namespace quoll
