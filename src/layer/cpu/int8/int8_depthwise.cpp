#include "layer/cpu/int8/int8_depthwise.h"

#include <limits.h>
#include <string.h>

#include <algorithm>

#include "cpu.h"
#include "layer/cpu/dwconv/window_taps.h"
#include "layer/cpu/int8/int8_product.h"

namespace quoll {

namespace {

// Values that are scaled at once: a multiple of every elempack and of the lanes.
enum { kRun = 16 };

// Channels of a block: what divides them, or what the last one is completed to.
int block_channels(const KernelSet& kernels, int channels, const Option& opt) {
    int pack = best_elempack(kernels, channels, opt);
    if (pack > 1) return pack;
    while (pack < channels && pack < kernels.lanes) pack *= 2;
    return pack == 2 ? 4 : pack;
}

// The first channels of one planar blob over those of another; what is left of that is zero.
void copy_channels(const Mat& from, Mat* to) {
    for (int q = 0; q < to->c; q++) {
        const size_t bytes = (size_t)to->w * to->h * dtype_size(to->dtype);
        if (q < from.c)
            memcpy((void*)to->channel(q), (const void*)from.channel(q), bytes);
        else
            memset((void*)to->channel(q), 0, bytes);
    }
}

}  // namespace

int Int8Depthwise::create(const Layer& layer, const ConvolutionFields& s, const Option& opt) {
    pack_ = 0;
    kernels_ = &host_kernel_set();
    int8_ = &int8_kernels();
    const int pack = block_channels(*kernels_, s.num_output, opt), maxk = s.maxk();
    row_ = select_dwconv_row(*kernels_->dwconv, pack, s.kernel_w, s.stride_w, s.dilation_w);
    if (!row_ || (int64_t)maxk * 128 * (s.int8_affine ? 256 : 128) > 1 << 24) return kOk;
    const int blocks = (s.num_output + pack - 1) / pack;
    weight_.create(blocks * pack * maxk);
    scale_.create(kRun, blocks);
    bias_.create(kRun, blocks);
    start_.create(blocks * pack);
    if (weight_.empty() || scale_.empty() || bias_.empty() || start_.empty()) {
        layer.fail("out of memory for %d weights", s.weight_data_size);
        return kOutOfMemory;
    }
    for (Mat* m : {&weight_, &scale_, &bias_, &start_}) m->fill(0.f);
    input_scale_ = s.bottom_blob_int8_scales[0];
    narrow_ = s.int8_output();
    top_scale_ = narrow_ ? s.top_blob_int8_scales[0] : 0.f;
    affine_ = s.int8_affine != 0, top_zero_ = s.top_zero_point;
    activation_ = FusedActivation(*kernels_, Activation(s.activation_type, s.activation_params));
    const Mat& scales = s.weight_data_int8_scales;
    const signed char* from = s.weight_data_int8;
    for (int p = 0; p < s.num_output; p++) {
        const int q = p / pack;
        float* block = (float*)weight_ + (size_t)q * pack * maxk + p % pack;
        int sum = 0;
        for (int k = 0; k < maxk; k++) {
            sum += *from;
            block[(size_t)k * pack] = *from++;
        }
        start_[p] = (float)(-sum * s.bottom_zero_point);
        const float scale =
            dequantize_scale(input_scale_, scales[(int64_t)p * scales.w / s.num_output]);
        for (int i = p % pack; i < kRun; i += pack) {
            scale_.row(q)[i] = scale;
            bias_.row(q)[i] = s.bias_data.empty() ? 0.f : s.bias_data[p];
        }
    }
    pack_ = pack;
    return kOk;
}

// The `count` sums of a row of block q; there is room for whole runs.
void Int8Depthwise::finish_row(int q, float* sums, size_t count, void* out) const {
    static const ptrdiff_t in_order[kRun] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    Int8Store store = {};
    store.sums = sums;
    store.width = kRun;
    store.scale = scale_.row(q);
    store.bias = bias_.row(q);
    store.low = activation_.low, store.high = activation_.high;
    store.top_scale = top_scale_;
    store.affine = affine_, store.top_zero = top_zero_;
    store.c_row = kRun;
    store.columns = in_order;
    Int8StoreKernel kernel = narrow_ ? int8_->scale_s8 : int8_->scale_f32;
    const size_t size = narrow_ ? 1 : sizeof(float);
    if (activation_.pass) {
        store.c = sums;
        store.used = kRun, store.whole = true;
        store.rows = (int)((count + kRun - 1) / kRun);
        int8_->scale_f32(store);
        activation_.finish(sums, count);
        kernel = narrow_ ? int8_->store_s8 : int8_->store_f32;
    }
    store.c = out;
    store.used = kRun, store.whole = true;
    store.rows = (int)(count / kRun);
    kernel(store);
    const size_t done = count / kRun * kRun;
    if (done == count) return;
    store.sums = sums + done;
    store.c = (char*)out + done * size;
    store.used = count - done, store.whole = false;
    store.rows = 1;
    kernel(store);
}

int Int8Depthwise::forward(const ConvolutionFields& s, const ConvGeometry& g, const Mat& bottom,
                           Mat& top, const Option& opt) const {
    if (s.num_output % pack_ != 0) return forward_completed(s, g, bottom, top, opt);
    Mat in, channels;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom, pack_, opt, &in));
    QUOLL_RETURN_IF_ERROR(
        create_conv_top(s, g, narrow_ ? DType::s8 : DType::f32, pack_, opt, &top, &channels));
    return run(s, g, in, channels, opt);
}

int Int8Depthwise::forward_completed(const ConvolutionFields& s, const ConvGeometry& g,
                                     const Mat& bottom, Mat& top, const Option& opt) const {
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    const int all = (s.num_output + pack_ - 1) / pack_ * pack_;
    const DType dtype = narrow_ ? DType::s8 : DType::f32;
    Mat in, planar(Shape(g.x.in, g.y.in, all, bottom.dtype), 1, temporary.blob_allocator), channels;
    Mat out(Shape(g.x.out, g.y.out, all, dtype), pack_, temporary.blob_allocator);
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom, 1, opt, &in));
    if (planar.empty() || out.empty()) return kOutOfMemory;
    copy_channels(in, &planar);
    QUOLL_RETURN_IF_ERROR(with_elempack(planar, pack_, opt, &in));
    QUOLL_RETURN_IF_ERROR(run(s, g, in, out, opt));
    QUOLL_RETURN_IF_ERROR(with_elempack(out, 1, opt, &planar));
    QUOLL_RETURN_IF_ERROR(create_conv_top(s, g, dtype, 1, opt, &top, &channels));
    copy_channels(planar, &channels);
    return kOk;
}

int Int8Depthwise::run(const ConvolutionFields& s, const ConvGeometry& g, const Mat& in,
                       Mat& channels, const Option& opt) const {
    const DType dtype = narrow_ ? DType::s8 : DType::f32;
    const double work = (double)g.x.out * g.y.out * g.maxk() * g.num_output;
    const int threads = threads_for(opt, work);
    const size_t in_row = (size_t)g.x.in * pack_, out_row = (size_t)g.x.out * pack_;
    // Of each thread: a row of sums, then the rows of a channel block.
    const size_t out_room = (out_row + kRun - 1) / kRun * kRun, room = out_room + in_row * g.y.in;
    Mat memory;
    if (room <= INT_MAX) memory.create((int)room, threads, (size_t)4u, opt.workspace_allocator);
    if (memory.empty()) return kOutOfMemory;
    const DwconvRow frame = dwconv_row_frame(g, pack_, s.int8_padding());
    const Bands bands(channels.c, g.y.out, threads);
    const size_t in_size = dtype_size(in.dtype), out_size = dtype_size(dtype);
#pragma omp parallel for num_threads(threads)
    for (int task = 0; task < channels.c * bands.per_item; task++) {
        const int q = bands.item(task);
        const char* const from = (const char*)in.data + q * in.cstep * pack_ * in_size;
        char* const to = (char*)channels.data + q * channels.cstep * pack_ * out_size;
        float* const sums = memory.row(get_omp_thread_num());
        float* const rows = sums + out_room;
        int64_t ready = std::max<int64_t>(0, (int64_t)bands.begin(task) * g.y.stride - g.y.before);
        DwconvRow row = frame;
        row.weight = (const float*)weight_ + (size_t)q * g.maxk() * pack_;
        row.bias = (const float*)start_ + (size_t)q * pack_;
        row.out = sums;
        for (int y = bands.begin(task); y < bands.end(task); y++) {
            const int64_t start = taps_inside(g.y, y, &row.ky_first, &row.ky_last);
            const bool taps = row.ky_first < row.ky_last;
            const int64_t last = start + (int64_t)(row.ky_last - 1) * g.y.dilation;
            for (; taps && ready <= last; ready++) {
                const void* source = from + ready * in_row * in_size;
                if (in.dtype == DType::s8) {
                    int8_->widen((const int8_t*)source, in_row, rows + ready * in_row);
                } else {
                    int8_->whole((const float*)source, in_row, input_scale_, rows + ready * in_row);
                }
            }
            const int64_t first = start + (int64_t)row.ky_first * g.y.dilation;
            row.in = taps ? rows + first * in_row : nullptr;
            row_(row);
            finish_row(q, sums, out_row, to + (size_t)y * out_row * out_size);
        }
    }
    return kOk;
}

}  // namespace quoll
