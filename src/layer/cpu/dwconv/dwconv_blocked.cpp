// Blocks of channels as wide as a register, a row or two of outputs at a time.
#include <algorithm>

#include "layer/cpu/common/pairs.h"
#include "layer/cpu/dwconv/dwconv_layer.h"
#include "layer/cpu/dwconv/stored_rows.h"
#include "layer/cpu/dwconv/window_taps.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// Common to all pairs of rows, except for the blobs.
DwconvPair pair_of(const ConvGeometry& g) {
    DwconvPair pair = {};
    pair.out_w = g.x.out;
    pair.before = g.x.before;
    pair.after = (int64_t)(g.x.out - 1) * g.x.stride + 3 - g.x.before > g.x.in;
    return pair;
}

// The input rows under rows y and y + 1 of the outputs. Returns the first one that there is.
size_t set_pair_rows(const ConvGeometry& g, int y, DwconvPair* pair) {
    const int64_t top = (int64_t)y * g.y.stride - g.y.before;
    const int64_t rows = g.y.stride + 3;
    pair->first = (int)std::min(rows, std::max<int64_t>(0, -top));
    pair->last = (int)std::min(rows, std::max<int64_t>(pair->first, g.y.in - top));
    return pair->first < pair->last ? (size_t)(top + pair->first) : 0;
}

// Common to all bands of a run.
struct BlockedRun {
    const ConvGeometry& g;
    const Mat &in, &channels;  // of the same type
    int pack, group;
    const StorageKernels* storage;  // null: blobs of f32
    DwconvRowKernel row_kernel;
    DwconvPairKernel pair_kernel;  // null: there is none for these windows
    const FusedActivation& activation;
    const float *weight, *bias;  // of all blocks
};

// Rows begin <= y < end of the outputs of block q.
class Band {
public:
    // memory: for StoredRows; null where blobs are f32.
    Band(const BlockedRun& run, const DwconvRow& frame, int q, int begin, int end, float* memory)
        : run_(run),
          in_row_((size_t)run.g.x.in * run.pack),
          out_row_((size_t)run.g.x.out * run.pack),
          in_at_(q * run.in.cstep * run.pack),
          end_(end),
          y_(begin),
          out_((float*)run.channels.data + out_at(q, begin)),
          stored_(run.storage, run.g, run.pack, memory),
          row_(frame) {
        row_.weight = run.weight + (size_t)q * run.g.maxk() * run.group * run.pack;
        row_.group = run.group;
        row_.bias = run.bias + (size_t)q * run.pack;
        if (!run.storage) return;
        const int64_t below = (int64_t)(end - 1) * run.g.y.stride - run.g.y.before;
        stored_.begin((const uint16_t*)run.in.data + in_at_,
                      std::min<int64_t>(run.g.y.in, below + run.g.y.extent()),
                      (uint16_t*)run.channels.data + out_at(q, begin));
    }
    void make() {
        if (run_.pair_kernel) make_pairs();
        for (; y_ < end_; y_++, out_ += out_row_) make_row();
        if (run_.storage) stored_.flush();
    }

private:
    size_t out_at(int q, int y) const { return q * run_.channels.cstep * run_.pack + y * out_row_; }
    float* next_out() const { return run_.storage ? stored_.out() : out_; }
    void make_pairs() {
        DwconvPair pair = pair_of(run_.g);
        pair.row_step = in_row_;
        pair.weight = row_.weight, pair.bias = row_.bias;
        pair.low = row_.low, pair.high = row_.high;
        for (; y_ + 2 <= end_; y_ += 2, out_ += 2 * out_row_) {
            const size_t at = in_at_ + set_pair_rows(run_.g, y_, &pair) * in_row_;
            pair.in = run_.storage ? (const void*)((const uint16_t*)run_.in.data + at)
                                   : (const float*)run_.in.data + at;
            pair.out = next_out();
            pair.second = pair.out + out_row_;
            run_.pair_kernel(pair);
            run_.activation.finish(pair.out, 2 * out_row_);
            for (int i = 0; run_.storage && i < 2; i++) stored_.finish_row();
        }
    }
    void make_row() {
        const WindowAxis& axis = run_.g.y;
        const int64_t start = taps_inside(axis, y_, &row_.ky_first, &row_.ky_last);
        const int64_t first = start + (int64_t)row_.ky_first * axis.dilation;
        const int64_t last = start + (int64_t)(row_.ky_last - 1) * axis.dilation;
        const float* const channel = (const float*)run_.in.data + in_at_;
        if (row_.ky_first == row_.ky_last)
            row_.in = channel;
        else
            row_.in = run_.storage ? stored_.in(start, first, last) : channel + first * in_row_;
        row_.out = next_out();
        run_.row_kernel(row_);
        run_.activation.finish(row_.out, out_row_);
        if (run_.storage) stored_.finish_row();
    }

    const BlockedRun& run_;
    const size_t in_row_, out_row_, in_at_;
    const int end_;
    int y_;
    float* out_;  // of row y_, where blobs are f32
    StoredRows stored_;
    DwconvRow row_;
};

}  // namespace

// For two rows of outputs at a time; or null.
DwconvPairKernel ConvolutionDepthWiseCpu::pair_kernel(const ConvGeometry& g, DType dtype) const {
    const int64_t stride = g.x.stride;
    const int64_t over = (g.x.out - 1) * stride + 3 - g.x.before - g.x.in;
    const bool suits = width_ == 1 && g.x.kernel == 3 && g.y.kernel == 3 && g.x.dilation == 1 &&
                       g.y.dilation == 1 && stride <= 2 && g.y.stride == stride &&
                       (g.x.before == 0 || g.x.before == 1) && over <= 1 &&
                       g.x.out >= kDwconvPairOutputs && pack_ == kernels_->lanes &&
                       pad_value == 0.f && dtype != DType::f16;
    return suits ? kernels_->dwconv->pair[dtype == DType::bf16][stride - 1] : nullptr;
}

int ConvolutionDepthWiseCpu::forward_f16(const Mat& bottom, const ConvGeometry& g, Mat& top,
                                         const Option& opt) const {
    Mat in, channels;
    QUOLL_RETURN_IF_ERROR(as_f16(bottom, kF16Pack, opt, &in));
    in = conv_channels(*this, in);
    QUOLL_RETURN_IF_ERROR(create_conv_top(*this, g, DType::f16, kF16Pack, opt, &top, &channels));
    return run_blocked(as_pairs(in), g, as_pairs(channels), opt);
}

int ConvolutionDepthWiseCpu::forward_blocked(const Mat& bottom, const ConvGeometry& g, Mat& top,
                                             const Option& opt) const {
    Mat in, channels;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom, pack_, opt, &in));
    in = conv_channels(*this, in);
    QUOLL_RETURN_IF_ERROR(create_conv_top(*this, g, bottom.dtype, pack_, opt, &top, &channels));
    return run_blocked(in, g, channels, opt);
}

int ConvolutionDepthWiseCpu::run_blocked(const Mat& in, const ConvGeometry& g, const Mat& channels,
                                         const Option& opt) const {
    const BlockedRun run = {g,
                            in,
                            channels,
                            pack_,
                            width_,
                            storage_kernels(*kernels_, in.dtype),
                            row_,
                            pair_kernel(g, in.dtype),
                            activation_,
                            (const float*)packed_weight_,
                            (const float*)packed_bias_};
    DwconvRow frame = dwconv_row_frame(g, pack_, pad_value);
    frame.low = activation_.low, frame.high = activation_.high;
    const int threads = threads_for(opt, work_of(g) * width_);
    const Bands bands(channels.c, g.y.out, threads);
    Mat memory;
    if (run.storage) QUOLL_RETURN_IF_ERROR(StoredRows::memory(g, pack_, threads, opt, &memory));
    run_tasks(bands.count(), threads, [&](int64_t task, int thread) {
        float* own = run.storage ? (float*)memory.channel(thread) : nullptr;
        Band(run, frame, bands.item(task), bands.begin(task), bands.end(task), own).make();
    });
    return kOk;
}

}  // namespace quoll
