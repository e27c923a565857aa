#include "layer/cpu/int8/int8_depthwise.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "layer/cpu/int8/int8_product.h"
#include "quoll/cpu.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// Values that are scaled at once: a multiple of every elempack and of the lanes.
enum { kRun = 16 };
// Sums that are scaled together, rather than with a call for each short row.
enum { kSums = 4096 };

size_t round_up(size_t x) { return (x + kRun - 1) / kRun * kRun; }

// Channels of a block: what divides them, or what the last one is completed to.
int block_channels(const KernelSet& kernels, int channels, const Option& opt) {
    int pack = best_elempack(kernels, channels, opt);
    if (pack > 1) return pack;
    while (pack < channels && pack < kernels.lanes) pack *= 2;
    return pack == 2 ? 4 : pack;
}

// Whether the sums of two neighbouring taps, beginning with an even one, fit into 16 bits.
bool pairs_fit(const ConvolutionFields& s) {
    const signed char* w = (const signed char*)s.weight_data_int8.data;
    const int maxk = s.maxk();
    for (int p = 0; p < s.num_output; p++, w += maxk)
        for (int k = 0; k + 1 < maxk; k += 2)
            if (std::abs((int)w[k]) + std::abs((int)w[k + 1]) > 255) return false;
    return true;
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
    int8_ = host_kernel_set().int8;
    const int pack = block_channels(*kernels_, s.num_output, opt), maxk = s.maxk();
    const bool fits = int8_sums_fit(s.weight_data_int8, s.num_output, s.int8_affine != 0);
    if (!fits || (pack == 1 && int8_->lanes > 1)) return kOk;
    joined_ = int8_->k_group;
    const int blocks = (s.num_output + pack - 1) / pack;
    const int groups = (s.kernel_h + joined_ - 1) / joined_;
    weight_.create(groups * s.kernel_w * pack, blocks);
    scale_.create(kRun, blocks);
    bias_.create(kRun, blocks);
    start_.create(blocks * pack);
    if (weight_.empty() || scale_.empty() || bias_.empty() || start_.empty()) {
        layer.fail("out of memory for %d weights", s.weight_data_size);
        return kOutOfMemory;
    }
    for (Mat* m : {&weight_, &scale_, &bias_, &start_}) m->fill(0.f);
    input_scale_ = s.bottom_blob_int8_scales[0];
    to_s8_ = s.int8_output();
    top_scale_ = to_s8_ ? s.top_blob_int8_scales[0] : 0.f;
    affine_ = s.int8_affine != 0, top_zero_ = s.top_zero_point;
    activation_ = FusedActivation(*kernels_, Activation(s.activation_type, s.activation_params));
    const Mat& scales = s.weight_data_int8_scales;
    const int element = 4 / joined_;  // bytes
    for (int p = 0; p < s.num_output; p++) {
        const signed char* from = (const signed char*)s.weight_data_int8.data + (size_t)p * maxk;
        char* const block = (char*)weight_.row(p / pack);
        int sum = 0;
        for (int k = 0; k < maxk; k++) {
            const int ky = k / s.kernel_w, kx = k % s.kernel_w;
            const size_t k_group_index = (size_t)(ky / joined_ * s.kernel_w + kx) * pack + p % pack;
            const int16_t wide = from[k];  // its first byte is the s8 value
            memcpy(block + 4 * k_group_index + ky % joined_ * element, &wide, element);
            sum += from[k];
        }
        ((int32_t*)start_.data)[p] = -sum * (int8_->offset + s.bottom_zero_point);
        const float scale =
            dequantize_scale(input_scale_, scales[(int64_t)p * scales.w / s.num_output]);
        for (int i = p % pack; i < kRun; i += pack) {
            scale_.row(p / pack)[i] = scale;
            bias_.row(p / pack)[i] = s.bias_data.empty() ? 0.f : s.bias_data[p];
        }
    }
    pack_ = pack;
    return create_rows(layer, s);
}

int Int8Depthwise::create_rows(const Layer& layer, const ConvolutionFields& s) {
    rows_kernel_ = nullptr;
    const int size = s.kernel_w, step = s.stride_w;
    if (pack_ != 4 || s.kernel_h != size || (size != 3 && size != 5) || s.dilation_w != 1 ||
        s.dilation_h != 1 || step > 2 || s.stride_h > 2 || !pairs_fit(s))
        return kOk;
    const Int8WindowRowsKernel kernel = int8_->window_rows[size / 2 - 1][step - 1];
    if (!kernel) return kOk;
    const int maxk = s.maxk();
    rows_weight_.create(maxk * kRun, start_.w / pack_, (size_t)1u);
    if (rows_weight_.empty()) {
        layer.fail("out of memory for %d weights", s.weight_data_size);
        return kOutOfMemory;
    }
    memset(rows_weight_.data, 0, (size_t)rows_weight_.w * rows_weight_.h);
    const signed char* from = (const signed char*)s.weight_data_int8.data;
    for (int p = 0; p < s.num_output; p++)
        for (int k = 0; k < maxk; k++, from++)
            for (int i = p % pack_; i < kRun; i += pack_)
                rows_weight_.row<signed char>(p / pack_)[k * kRun + i] = *from;
    rows_kernel_ = kernel;
    return kOk;
}

// `count` sums of block q; there is room for whole runs.
void Int8Depthwise::finish(int q, int32_t* sums, size_t count, void* out) const {
    static const ptrdiff_t in_order[kRun] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    Int8Store store = {};
    const size_t width = (size_t)int8_->lanes;  // divides a run
    store.sums = sums;
    store.width = width;
    store.scale = scale_.row(q);
    store.bias = bias_.row(q);
    store.low = activation_.low, store.high = activation_.high;
    store.top_scale = top_scale_;
    store.affine = affine_, store.top_zero = top_zero_;
    store.c_row = (ptrdiff_t)width;
    store.columns = in_order;
    Int8StoreKernel kernel = to_s8_ ? int8_->finish_s8 : int8_->finish_f32;
    const size_t size = to_s8_ ? 1 : sizeof(float);
    store.used = width, store.run = width;
    if (activation_.pass && to_s8_) {
        store.c = sums;
        store.rows = (int)((count + width - 1) / width);
        int8_->finish_f32(store);
        activation_.finish((float*)sums, count);
        kernel = int8_->store_s8;
    }
    store.c = out;
    store.rows = (int)(count / width);
    kernel(store);
    const size_t done = count / width * width;
    if (done < count) {
        store.sums = sums + done;
        store.c = (char*)out + done * size;
        store.used = count - done, store.run = 1;
        store.rows = 1;
        kernel(store);
    }
    if (!to_s8_) activation_.finish((float*)out, count);
}

int Int8Depthwise::forward(const ConvolutionFields& s, const ConvGeometry& g, const Mat& bottom,
                           Mat& top, const Option& opt) const {
    if (s.num_output % pack_ != 0) return forward_completed(s, g, bottom, top, opt);
    Mat in, channels;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom, pack_, opt, &in));
    in = conv_channels(s, in);
    QUOLL_RETURN_IF_ERROR(
        create_conv_top(s, g, to_s8_ ? DType::s8 : DType::f32, pack_, opt, &top, &channels));
    return run(s, g, in, channels, opt);
}

int Int8Depthwise::forward_completed(const ConvolutionFields& s, const ConvGeometry& g,
                                     const Mat& bottom, Mat& top, const Option& opt) const {
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    const int all = (s.num_output + pack_ - 1) / pack_ * pack_;
    const DType dtype = to_s8_ ? DType::s8 : DType::f32;
    Mat in, planar(Shape(g.x.in, g.y.in, all, bottom.dtype), 1, temporary.blob_allocator), channels;
    Mat out(Shape(g.x.out, g.y.out, all, dtype), pack_, temporary.blob_allocator);
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom, 1, opt, &in));
    in = conv_channels(s, in);
    if (planar.empty() || out.empty()) return kOutOfMemory;
    copy_channels(in, &planar);
    QUOLL_RETURN_IF_ERROR(with_elempack(planar, pack_, opt, &in));
    const int status = run(s, g, in, out, opt);
    if (status != kOk) return status;
    QUOLL_RETURN_IF_ERROR(with_elempack(out, 1, opt, &planar));
    QUOLL_RETURN_IF_ERROR(create_conv_top(s, g, dtype, 1, opt, &top, &channels));
    copy_channels(planar, &channels);
    return kOk;
}

// Of one thread.
class Int8Depthwise::Work {
public:
    Work(const Int8Depthwise& own, const ConvGeometry& g, int pad, const Mat& in)
        : own_(own),
          g_(g),
          pad_(pad),
          in_(in),
          columns_((int64_t)(g.x.out - 1) * g.x.stride + g.x.extent()),
          row_((size_t)g.x.in * own.pack_),
          out_row_((size_t)g.x.out * own.pack_),
          groups_((g.y.kernel + own.joined_ - 1) / own.joined_) {
        rows_together_ = (int)std::max<size_t>(1, std::min<size_t>(g.y.out, kSums / out_row_));
    }
    // Bytes of its memory; a negative number if it would be more than the data deserve.
    int64_t bytes() const {
        if (columns_ > 16 * ((int64_t)g_.x.in + g_.x.out + 256)) return -1;
        const double bytes = 8. * round_up((size_t)groups_ * g_.x.kernel) +
                             4. * (sums() + (double)k_group_row() * groups_) +
                             (double)row_ * (g_.y.in + 1) + 64;
        return bytes > INT_MAX ? -1 : (int64_t)bytes / 64 * 64;
    }
    void begin(char* memory) {
        taps_ = (ptrdiff_t*)memory;
        sums_ = (int32_t*)(taps_ + round_up(groups_ * g_.x.kernel));
        k_groups_ = sums_ + sums();
        rows_ = (int8_t*)(k_groups_ + k_group_row() * groups_);
        for (int k = 0; k < groups_; k++)
            for (int x = 0; x < g_.x.kernel; x++)
                taps_[k * g_.x.kernel + x] =
                    (ptrdiff_t)(k * k_group_row()) + (ptrdiff_t)x * g_.x.dilation * own_.pack_;
        // Columns beside the input stay what they are; the row of padding is the last.
        const uint32_t mask = own_.joined_ == 4 ? 0xff : 0xffff, value = pad_ + own_.int8_->offset;
        const uint32_t k_group_bits =
            (value & mask) * (own_.joined_ == 4 ? 0x01010101u : 0x00010001u);
        std::fill_n(k_groups_, k_group_row() * groups_, (int32_t)k_group_bits);
        std::fill_n(rows_ + g_.y.in * row_, row_, (int8_t)pad_);
    }
    // Rows y0 <= y < y1 of block q.
    void run(int q, int y0, int y1, char* out, size_t out_size) {
        const size_t in_size = dtype_size(in_.dtype);
        channel_ = (const char*)in_.data + q * in_.cstep * own_.pack_ * in_size;
        ready_ = std::max<int64_t>(0, (int64_t)y0 * g_.y.stride - g_.y.before);
        Int8Windows t = {};
        t.k_groups = k_groups_;
        t.step = (size_t)g_.x.stride * own_.pack_;
        t.taps = taps_, t.num_taps = groups_ * g_.x.kernel;
        t.pack = own_.pack_;
        t.weight = own_.weight_.row<const int32_t>(q);
        t.init = (const int32_t*)own_.start_.data + (size_t)q * own_.pack_;
        t.count = g_.x.out;
        for (int y = y0; y < y1;) {
            const int end = std::min(y1, y + rows_together_);
            char* const to = out + (size_t)y * out_row_ * out_size;
            t.sums = sums_;
            for (; y < end; y++, t.sums += out_row_) {
                join(y);
                own_.int8_->windows(t);
            }
            own_.finish(q, sums_, (size_t)(t.sums - sums_), to);
        }
    }

private:
    size_t sums() const { return round_up(rows_together_ * out_row_); }
    size_t k_group_row() const { return round_up((size_t)columns_ * own_.pack_); }
    // The input's row y as s8; of what lies outside, padding.
    const int8_t* row(int64_t y) {
        if (y < 0 || y >= g_.y.in) return rows_ + g_.y.in * row_;
        if (in_.dtype == DType::s8) return (const int8_t*)channel_ + y * row_;
        for (; ready_ <= y; ready_++)
            own_.int8_->round_s8((const float*)channel_ + ready_ * row_, row_, own_.input_scale_,
                                 rows_ + ready_ * row_);
        return rows_ + y * row_;
    }
    // The k-groups under output row y.
    void join(int y) {
        const int64_t first = std::max(0, -g_.x.before), column = std::max(0, g_.x.before);
        const int64_t count = std::min<int64_t>(g_.x.in - first, columns_ - column);
        if (count <= 0) return;
        for (int k = 0; k < groups_; k++) {
            Int8Rows t = {};
            const int ky = k * own_.joined_;
            t.count = std::min(own_.joined_, g_.y.kernel - ky);
            for (int i = 0; i < t.count; i++)
                t.rows[i] = row((int64_t)y * g_.y.stride - g_.y.before +
                                (int64_t)(ky + i) * g_.y.dilation) +
                            first * own_.pack_;
            t.n = (size_t)count * own_.pack_;
            t.k_groups = k_groups_ + k * k_group_row() + column * own_.pack_;
            own_.int8_->k_groups(t);
        }
    }

    const Int8Depthwise& own_;
    const ConvGeometry& g_;
    const int pad_;
    const Mat& in_;
    const int64_t columns_;  // under a row of windows
    const size_t row_, out_row_;
    const int groups_;  // of kernel rows
    int rows_together_;
    ptrdiff_t* taps_ = nullptr;
    int32_t *sums_ = nullptr, *k_groups_ = nullptr;
    int8_t* rows_ = nullptr;  // of a channel block that is f32; behind them one of padding
    const char* channel_ = nullptr;
    int64_t ready_ = 0;  // rows up to this one are rounded
};

// As Work, for rows_kernel_: of a band of output rows the input rows lie one after another, those
// of padding among them.
class Int8Depthwise::RowsWork {
public:
    RowsWork(const Int8Depthwise& own, const ConvGeometry& g, int pad, const Mat& in)
        : own_(own),
          g_(g),
          pad_(pad),
          in_(in),
          columns_((int64_t)(g.x.out + 3) / 4 * 4 * g.x.stride + g.x.kernel - 1),
          row_((size_t)columns_ * own.pack_),
          out_row_((size_t)g.x.out * own.pack_) {
        rows_together_ = (int)std::max<size_t>(1, std::min<size_t>(g.y.out, kSums / out_row_));
    }
    int64_t bytes() const {
        if (columns_ > 16 * ((int64_t)g_.x.in + g_.x.out + 256)) return -1;
        const double bytes = 4. * sums() + (double)row_ * in_rows(rows_together_) + 64;
        return bytes > INT_MAX ? -1 : (int64_t)bytes / 64 * 64;
    }
    void begin(char* memory) {
        sums_ = (int32_t*)memory;
        rows_ = (int8_t*)(sums_ + sums());
        memset(rows_, pad_, row_ * in_rows(rows_together_));
    }
    void run(int q, int y0, int y1, char* out, size_t out_size) {
        Int8WindowRows t = {};
        t.in = rows_, t.in_row = (ptrdiff_t)row_, t.in_step = (ptrdiff_t)row_ * g_.y.stride;
        t.weight = own_.rows_weight_.row<const int8_t>(q);
        t.init = (const int32_t*)own_.start_.data + (size_t)q * own_.pack_;
        t.sums = sums_;
        t.width = g_.x.out;
        for (int y = y0; y < y1; y += t.rows) {
            t.rows = std::min(y1 - y, rows_together_);
            fill(q, (int64_t)y * g_.y.stride - g_.y.before, in_rows(t.rows));
            own_.rows_kernel_(t);
            own_.finish(q, sums_, t.rows * out_row_, out + (size_t)y * out_row_ * out_size);
        }
    }

private:
    // The kernel writes up to 12 values more.
    size_t sums() const { return round_up(rows_together_ * out_row_ + 12); }
    int in_rows(int rows) const { return (rows - 1) * g_.y.stride + g_.y.kernel; }
    // Input rows from y on of block q.
    void fill(int q, int64_t y, int rows) {
        const size_t in_size = dtype_size(in_.dtype), in_row = (size_t)g_.x.in * own_.pack_;
        const char* const block = (const char*)in_.data + q * in_.cstep * own_.pack_ * in_size;
        const int64_t first = std::max(0, -g_.x.before), column = std::max(0, g_.x.before);
        const int64_t pixels = std::min<int64_t>(g_.x.in - first, columns_ - column);
        int8_t* to = rows_;
        for (int i = 0; i < rows; i++, y++, to += row_) {
            if (y < 0 || y >= g_.y.in) {
                memset(to, pad_, row_);
                continue;
            }
            if (pixels <= 0) continue;
            const char* const from = block + (y * in_row + first * own_.pack_) * in_size;
            const size_t count = (size_t)pixels * own_.pack_;
            int8_t* const begin = to + column * own_.pack_;
            if (in_.dtype == DType::s8)
                memcpy(begin, from, count);
            else
                own_.int8_->round_s8((const float*)from, count, own_.input_scale_, begin);
        }
    }

    const Int8Depthwise& own_;
    const ConvGeometry& g_;
    const int pad_;
    const Mat& in_;
    const int64_t columns_;  // pixels of a row that the kernel may read
    const size_t row_, out_row_;
    int rows_together_;
    int32_t* sums_ = nullptr;
    int8_t* rows_ = nullptr;
};

int Int8Depthwise::run(const ConvolutionFields& s, const ConvGeometry& g, const Mat& in,
                       Mat& channels, const Option& opt) const {
    return rows_kernel_ ? run_with<RowsWork>(s, g, in, channels, opt)
                        : run_with<Work>(s, g, in, channels, opt);
}

template <class W>
int Int8Depthwise::run_with(const ConvolutionFields& s, const ConvGeometry& g, const Mat& in,
                            Mat& channels, const Option& opt) const {
    const double work = (double)g.x.out * g.y.out * g.maxk() * g.num_output;
    const int threads = threads_for(opt, work);
    const W frame(*this, g, s.int8_padding(), in);
    const int64_t bytes = frame.bytes();
    if (bytes < 0) return kUnsuitable;
    Mat memory((int)bytes, threads, (size_t)1u, opt.workspace_allocator);
    if (memory.empty()) return kOutOfMemory;
    const size_t out_size = to_s8_ ? 1 : sizeof(float);
    const Bands bands(channels.c, g.y.out, threads);
    const int64_t tasks = bands.count();
    parallel_for(threads, threads, [&](int64_t thread) {
        W work_of_thread = frame;
        work_of_thread.begin((char*)memory.row<unsigned char>(thread));
        const int64_t end = tasks * (thread + 1) / threads;
        for (int64_t task = tasks * thread / threads; task < end; task++) {
            const int q = bands.item(task);
            work_of_thread.run(q, bands.begin(task), bands.end(task),
                               (char*)channels.data + q * channels.cstep * pack_ * out_size,
                               out_size);
        }
    });
    return kOk;
}

}  // namespace quoll
