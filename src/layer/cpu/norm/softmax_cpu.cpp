#include "layer/cpu/norm/softmax_cpu.h"

#include <algorithm>

#include "layer/common/channels.h"
#include "layer/cpu/common/packing.h"
#include "layer/cpu/norm/norm.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// A blob around one axis, in floats: `outer` times `count` values `step` apart, with `width`
// neighbours. The outer ones are `channels` blocks of `each`.
struct Lines {
    size_t channels, channel_step, each, each_step;
    size_t count, step, width;

    // axis counts from the outermost one; of a packed blob it is not that, or the only one.
    Lines(const Mat& m, int axis) : channels(1), channel_step(0), each(1), each_step(0), width(1) {
        const size_t pack = m.elempack;
        const int from_inside = m.dims - 1 - axis;  // 0: w, 1: h, 2: d or c, 3: c
        if (m.dims == 1) {
            count = m.w * pack, step = 1;
            return;
        }
        const size_t size[] = {(size_t)m.w, (size_t)m.h, (size_t)m.d};
        const int inner = m.dims == 2 ? 2 : m.dims - 1;  // axes that follow each other without gaps
        if (from_inside >= inner) {
            count = m.c, step = m.cstep;
            width = (size_t)m.w * m.h * m.d;
            return;
        }
        count = size[from_inside], width = pack;
        for (int i = 0; i < from_inside; i++) width *= size[i];
        step = width, each_step = count * width;
        for (int i = from_inside + 1; i < inner; i++) each *= size[i];
        channels = m.dims == 2 ? 1 : m.c, channel_step = m.cstep * pack;
    }
};

}  // namespace

SoftmaxCpu::SoftmaxCpu() : kernels_(&host_kernel_set()) { support_packing = true; }

void SoftmaxCpu::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in, const Option&,
                              std::vector<BlobLayout>* out) const {
    const int dims = in[0].shape.dims, along = axis < 0 ? axis + dims : axis;
    if (along != 0 || dims == 1) (*out)[0].elempack = in[0].elempack;
}

int SoftmaxCpu::forward_inplace(Mat& blob, const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, blob));
    const int along = axis < 0 ? axis + blob.dims : axis;
    if (along == 0 && blob.dims > 1 && blob.elempack > 1) {
        Mat planar;
        convert_packing(blob, planar, 1, opt);
        if (planar.empty()) return kOutOfMemory;
        blob = planar;
    }
    const Lines lines(blob, along);
    const NormKernels& norm = *kernels_->norm;
    const size_t outer = lines.channels * lines.each;
    // Few lines: cut their width.
    const double work = (double)outer * lines.count * lines.width * 8;
    const int threads = threads_for(opt, work);
    const size_t cuts = outer < (size_t)threads * 4 ? std::min<size_t>(threads, lines.width) : 1;
    parallel_for((int64_t)(outer * cuts), threads, [&](int64_t task) {
        const size_t line = task / cuts, cut = task % cuts;
        float* data = (float*)blob.data + line / lines.each * lines.channel_step +
                      line % lines.each * lines.each_step;
        const size_t begin = lines.width * cut / cuts, end = lines.width * (cut + 1) / cuts;
        if (lines.width == 1 && lines.step == 1)
            norm.softmax_row(data, lines.count, 1.f, nullptr, nullptr);
        else
            norm.softmax_columns(data + begin, lines.count, lines.step, end - begin);
    });
    return kOk;
}

Layer* create_Softmax_fast_layer() { return new SoftmaxCpu; }

}  // namespace quoll
