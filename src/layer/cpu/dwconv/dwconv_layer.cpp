#include "layer/cpu/dwconv/dwconv_layer.h"

#include <algorithm>

#include "cpu.h"
#include "layer/cpu/cast/storage.h"
#include "layer/cpu/dwconv/window_taps.h"
#include "layer/scratch.h"

namespace quoll {

namespace {

// to[i] = from[i * stride]
void copy_every(const float* __restrict from, int stride, float* __restrict to, size_t count) {
    if (stride == 1) {
        std::copy_n(from, count, to);
    } else if (stride == 2) {  // a constant that compilers have shuffles for
        for (size_t i = 0; i < count; i++) to[i] = from[2 * i];
    } else {
        for (size_t i = 0; i < count; i++) to[i] = from[i * (size_t)stride];
    }
}

// Rows of one channel under the windows of a band of outputs, padded and split by column modulo
// stride, so that every tap reads neighbouring floats. One more row holds nothing but padding.
class PhaseRows {
public:
    PhaseRows(const ConvGeometry& g, int band_rows) : g_(g) {
        width_ = g.x.out + (size_t)(g.x.extent() - 1) / g.x.stride;
        const int64_t spanned = (int64_t)(band_rows - 1) * g.y.stride + g.y.extent();
        rows_ = (size_t)std::min<int64_t>(g.y.in, spanned);
    }
    // Of each thread: the rows, then a pointer a tap.
    size_t row_floats() const { return width_ * g_.x.stride; }
    size_t floats() const { return (rows_ + 1) * row_floats(); }
    size_t tap_bytes() const { return (size_t)g_.maxk() * sizeof(const float*); }
    // False for paddings so wide, or strides so long, that the copy would dwarf the data.
    bool sensible() const {
        return row_floats() <= 16 * ((size_t)g_.x.in + g_.x.out + 256) && floats() <= INT32_MAX &&
               tap_bytes() <= INT32_MAX;
    }
    // Copies the rows that outputs y0 <= y < y1 see, and remembers where.
    void load(const Mat& channel, int y0, int y1, float pad_value, float* to) {
        const int64_t low = (int64_t)y0 * g_.y.stride - g_.y.before;
        const int64_t high = (int64_t)(y1 - 1) * g_.y.stride - g_.y.before + g_.y.extent();
        first_ = (int)std::max<int64_t>(0, low);
        const int last = (int)std::min<int64_t>(g_.y.in, high);
        data_ = to;
        for (int y = first_; y < last; y++)
            copy_row(channel.row(y), pad_value, to + (y - first_) * row_floats());
        std::fill_n(to + rows_ * row_floats(), row_floats(), pad_value);
    }
    // The floats of input row y (-1: of the row of padding); those under tap kx of output 0 and its
    // neighbours begin at `column(kx)`.
    const float* row(int64_t y) const {
        return data_ + (y < 0 ? rows_ : (size_t)(y - first_)) * row_floats();
    }
    size_t column(int kx) const {
        const size_t column = (size_t)kx * g_.x.dilation;
        return column % g_.x.stride * width_ + column / g_.x.stride;
    }

private:
    void copy_row(const float* from, float pad_value, float* to) const {
        const int stride = g_.x.stride;
        for (int phase = 0; phase < stride; phase++, to += width_) {
            const int64_t start = (int64_t)phase - g_.x.before;  // column of to[0]
            const int64_t low = start >= 0 ? 0 : (-start + stride - 1) / stride;
            const int64_t high = start >= g_.x.in ? 0 : (g_.x.in - 1 - start) / stride + 1;
            const size_t begin = (size_t)std::min<int64_t>(low, (int64_t)width_);
            const size_t end = std::max(begin, (size_t)std::min<int64_t>(high, (int64_t)width_));
            std::fill(to, to + begin, pad_value);
            const float* first = from + (start + (int64_t)begin * stride);
            copy_every(begin < end ? first : from, stride, to + begin, end - begin);
            std::fill(to + end, to + width_, pad_value);
        }
    }

    const ConvGeometry g_;
    size_t width_;  // floats of a phase
    size_t rows_;
    int first_ = 0;
    float* data_ = nullptr;
};

// Rows of a channel of some storage type as f32, and back, in memory that stays in cache: as many
// rows at a time as fit are widened, of which a window's last ones move to the front for the next,
// and narrowed.
class StoredRows {
public:
    StoredRows(const StorageKernels* storage, const ConvGeometry& g, int pack, float* memory)
        : storage_(storage),
          in_floats_((size_t)g.x.in * pack),
          out_floats_((size_t)g.x.out * pack),
          room_(in_rows(g, pack)),
          out_room_(out_rows(g, pack)),
          in_(memory),
          out_(memory + room_ * in_floats_) {}
    static int memory(const ConvGeometry& g, int pack, int threads, const Option& opt, Mat* m) {
        m->create(std::max(g.x.in, g.x.out) * pack, in_rows(g, pack) + out_rows(g, pack), threads,
                  4u, opt.workspace_allocator);
        return m->empty() ? (int)kOutOfMemory : (int)kOk;
    }
    // A band of outputs that needs the input's rows before `end`, and begins at `out`.
    void begin(const uint16_t* channel, int64_t end, uint16_t* out) {
        channel_ = channel, end_ = end, first_ = ready_ = 0;
        top_ = out, waiting_ = 0;
    }
    // Row `first` of the input, behind which those up to `last` lie; no earlier row is wanted
    // again.
    const float* in(int64_t first, int64_t last) {
        if (last >= ready_) fill(first, last);
        return in_ + (first - first_) * in_floats_;
    }
    float* out() const { return out_ + waiting_ * out_floats_; }
    // The row at out() is done.
    void finish_row() {
        if (++waiting_ == out_room_) flush();
    }
    void flush() {
        storage_->narrow(out_, top_, waiting_ * out_floats_);
        top_ += waiting_ * out_floats_;
        waiting_ = 0;
    }

private:
    // Half of a small first-level cache for both.
    enum { kInBytes = 12 << 10, kOutBytes = 4 << 10 };
    static int in_rows(const ConvGeometry& g, int pack) {
        const int64_t fit = kInBytes / ((int64_t)g.x.in * pack * 4);
        return (int)std::min<int64_t>(g.y.in, std::max<int64_t>(fit, 2 * (int64_t)g.y.extent()));
    }
    static int out_rows(const ConvGeometry& g, int pack) {
        const int64_t fit = kOutBytes / ((int64_t)g.x.out * pack * 4);
        return (int)std::max<int64_t>(1, std::min<int64_t>(g.y.out, fit));
    }
    void fill(int64_t first, int64_t last) {
        if (first >= ready_) {
            first_ = ready_ = first;
        } else if (last >= first_ + room_) {
            const float* from = in_ + (first - first_) * in_floats_;
            std::copy(from, from + (ready_ - first) * in_floats_, in_);
            first_ = first;
        }
        const int64_t until = std::min(end_, first_ + room_);
        storage_->widen(channel_ + ready_ * in_floats_, in_ + (ready_ - first_) * in_floats_,
                        (until - ready_) * in_floats_);
        ready_ = until;
    }

    const StorageKernels* storage_;
    const size_t in_floats_, out_floats_;
    const int64_t room_, out_room_;
    float *const in_, *const out_;
    const uint16_t* channel_ = nullptr;
    int64_t end_ = 0, first_ = 0, ready_ = 0;  // rows first_ <= y < ready_ are there
    uint16_t* top_ = nullptr;
    int64_t waiting_ = 0;
};

double work_of(const ConvGeometry& g) {
    return (double)g.x.out * g.y.out * g.maxk() * g.num_output;
}

}  // namespace

ConvolutionDepthWiseCpu::ConvolutionDepthWiseCpu(int axes)
    : ConvolutionOperator(axes, true), kernels_(nullptr), pack_(0), row_(nullptr) {
    support_packing = true;
}

int ConvolutionDepthWiseCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(ConvolutionOperator::create_pipeline(opt));
    pack_ = 0;
    if (dynamic_weight) return kOk;
    if (int8_scale_term != 0) {
        weight_data.release();  // weight_data_int8 is what all forms take
        if (depthwise()) QUOLL_RETURN_IF_ERROR(int8_.create(*this, *this, opt));
        return int8_.created() ? (int)kOk : int8_groups_.create(*this, *this, opt);
    }
    if (!depthwise()) {
        QUOLL_RETURN_IF_ERROR(groups_.create(*this, *this, opt));
        weight_data.release();
        return kOk;
    }
    if (axes == 3) return kOk;
    kernels_ = &host_kernel_set();
    activation_ = FusedActivation(*kernels_, Activation(activation_type, activation_params));
    pack_ = best_elempack(*kernels_, num_output, opt);
    row_ = select_dwconv_row(*kernels_->dwconv, pack_, kernel_w, stride_w, dilation_w);
    support_fp16_storage = support_bf16_storage = pack_ > 1;
    return repack_weights();
}

int ConvolutionDepthWiseCpu::repack_weights() {
    packed_weight_.create(weight_data_size);
    packed_bias_.create(num_output);
    if (packed_weight_.empty() || packed_bias_.empty()) {
        fail("out of memory for %d weights", weight_data_size);
        return kOutOfMemory;
    }
    const int maxk = kernel_w * kernel_h;
    const float* from = weight_data;
    float* to = packed_weight_;
    for (int p = 0; p < num_output; p++) {
        float* block = to + (size_t)(p / pack_) * pack_ * maxk + p % pack_;
        for (int k = 0; k < maxk; k++) block[(size_t)k * pack_] = *from++;
        packed_bias_[p] = bias_term ? bias_data[p] : 0.f;
    }
    return kOk;
}

int ConvolutionDepthWiseCpu::forward_reference(const Mat& bottom, Mat& top,
                                               const Option& opt) const {
    Mat planar;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom, 1, opt, &planar));
    return ConvolutionOperator::forward(planar, top, opt);
}

int ConvolutionDepthWiseCpu::forward(const std::vector<Mat>& bottom_blobs,
                                     std::vector<Mat>& top_blobs, const Option& opt) const {
    if (bottom_blobs.size() == 1 && !dynamic_weight) {
        top_blobs.resize(1);
        return forward(bottom_blobs[0], top_blobs[0], opt);
    }
    std::vector<Mat> planar;
    QUOLL_RETURN_IF_ERROR(all_planar(bottom_blobs, opt, &planar));
    return ConvolutionOperator::forward(planar, top_blobs, opt);
}

int ConvolutionDepthWiseCpu::forward(const Mat& bottom_blob, Mat& top_blob,
                                     const Option& opt) const {
    const ShapeList in(bottom_blob);
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(convolution_geometry(*this, *this, *in, &g));
    if (int8_groups_.created()) {
        const int status = int8_groups_.forward(*this, g, bottom_blob, Mat(), top_blob, opt);
        if (status != Int8Conv::kUnsuitable) return status;
    }
    const bool flat = is_flat_input(*this, in[0]);
    if (int8_.created() && !flat) {
        const int status = int8_.forward(*this, g, bottom_blob, top_blob, opt);
        return status == Int8Depthwise::kUnsuitable ? forward_reference(bottom_blob, top_blob, opt)
                                                    : status;
    }
    if (groups_.created())
        return flat ? groups_.forward_flat(*this, bottom_blob, top_blob, opt)
                    : groups_.forward(*this, g, bottom_blob, Mat(), top_blob, opt);
    if (pack_ == 0 || flat) return forward_reference(bottom_blob, top_blob, opt);
    if (pack_ == 1) return forward_planar(bottom_blob, g, top_blob, opt);
    return forward_blocked(bottom_blob, g, top_blob, opt);
}

int ConvolutionDepthWiseCpu::forward_blocked(const Mat& bottom, const ConvGeometry& g, Mat& top,
                                             const Option& opt) const {
    const StorageKernels* storage = storage_kernels(*kernels_, bottom.dtype);
    Mat in, channels, memory;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom, pack_, opt, &in));
    in = conv_channels(*this, in);
    QUOLL_RETURN_IF_ERROR(create_conv_top(*this, g, bottom.dtype, pack_, opt, &top, &channels));
    DwconvRow frame = dwconv_row_frame(g, pack_, pad_value);
    frame.low = activation_.low, frame.high = activation_.high;
    const int threads = threads_for(opt, work_of(g));
    const Bands bands(channels.c, g.y.out, threads);
    if (storage) QUOLL_RETURN_IF_ERROR(StoredRows::memory(g, pack_, threads, opt, &memory));
#pragma omp parallel for num_threads(threads)
    for (int task = 0; task < channels.c * bands.per_item; task++) {
        const int q = bands.item(task);
        const size_t in_at = q * in.cstep * pack_, out_row = (size_t)g.x.out * pack_;
        const size_t out_at = q * channels.cstep * pack_ + bands.begin(task) * out_row;
        const float* const channel = (const float*)in.data + in_at;
        float* out = (float*)channels.data + out_at;
        float* own = storage ? (float*)memory.channel(get_omp_thread_num()) : nullptr;
        StoredRows rows(storage, g, pack_, own);
        if (storage) {
            const int64_t below = (int64_t)(bands.end(task) - 1) * g.y.stride - g.y.before;
            rows.begin((const uint16_t*)in.data + in_at,
                       std::min<int64_t>(g.y.in, below + g.y.extent()),
                       (uint16_t*)channels.data + out_at);
        }
        DwconvRow row = frame;
        row.weight = (const float*)packed_weight_ + (size_t)q * g.maxk() * pack_;
        row.bias = (const float*)packed_bias_ + (size_t)q * pack_;
        for (int y = bands.begin(task), end = bands.end(task); y < end; y++, out += out_row) {
            const int64_t start = taps_inside(g.y, y, &row.ky_first, &row.ky_last);
            const int64_t y_in = start + (int64_t)row.ky_first * g.y.dilation;
            const int64_t y_last = start + (int64_t)(row.ky_last - 1) * g.y.dilation;
            if (row.ky_first == row.ky_last)
                row.in = channel;
            else
                row.in = storage ? rows.in(y_in, y_last) : channel + y_in * g.x.in * pack_;
            row.out = storage ? rows.out() : out;
            row_(row);
            activation_.finish(row.out, out_row);
            if (storage) rows.finish_row();
        }
        if (storage) rows.flush();
    }
    return kOk;
}

int ConvolutionDepthWiseCpu::forward_planar(const Mat& bottom, const ConvGeometry& g, Mat& top,
                                            const Option& opt) const {
    const int threads = threads_for(opt, work_of(g));
    const Bands bands(g.num_output, g.y.out, threads);
    PhaseRows shared_rows(g, (g.y.out + bands.per_item - 1) / bands.per_item);
    if (!shared_rows.sensible()) return forward_reference(bottom, top, opt);
    Mat in, channels;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom, 1, opt, &in));
    in = conv_channels(*this, in);
    QUOLL_RETURN_IF_ERROR(create_conv_top(*this, g, DType::f32, 1, opt, &top, &channels));
    Mat floats((int)shared_rows.floats(), threads, 4u, opt.workspace_allocator);
    Mat pointers((int)shared_rows.tap_bytes(), threads, 1u, opt.workspace_allocator);
    Mat columns(kernel_w, sizeof(size_t), opt.workspace_allocator);
    if (floats.empty() || pointers.empty() || columns.empty()) return kOutOfMemory;
    size_t* const column = (size_t*)columns.data;
    for (int kx = 0; kx < kernel_w; kx++) column[kx] = shared_rows.column(kx);

#pragma omp parallel for num_threads(threads)
    for (int task = 0; task < g.num_output * bands.per_item; task++) {
        const int q = bands.item(task), thread = get_omp_thread_num();
        const float** taps = pointers.row<const float*>(thread);
        PhaseRows rows = shared_rows;
        rows.load(in.channel(q), bands.begin(task), bands.end(task), pad_value, floats.row(thread));
        Mat out = channels.channel(q);
        DwconvPlanarRow row = {
            taps, nullptr, 0, packed_bias_[q], nullptr, g.x.out, activation_.low, activation_.high};
        for (int y = bands.begin(task), end = bands.end(task); y < end; y++) {
            int first, last;
            const int64_t start = taps_inside(g.y, y, &first, &last);
            const bool padded = pad_value != 0.f;
            row.num_taps = 0;
            for (int ky = padded ? 0 : first; ky < (padded ? kernel_h : last); ky++) {
                const bool inside = ky >= first && ky < last;
                const float* from = rows.row(inside ? start + (int64_t)ky * g.y.dilation : -1);
                for (int kx = 0; kx < kernel_w; kx++) taps[row.num_taps++] = from + column[kx];
            }
            row.weight = (const float*)packed_weight_ + (size_t)q * g.maxk() +
                         (padded ? 0 : (size_t)first * kernel_w);
            row.out = out.row(y);
            kernels_->dwconv->planar(row);
            activation_.finish(row.out, (size_t)g.x.out);
        }
    }
    return kOk;
}

}  // namespace quoll
