#include "layer/cpu/dwconv/tile_groups.h"

#if defined(__x86_64__) || defined(__i386__)

#include <limits.h>
#include <string.h>

#include <algorithm>

#include "layer/common/scratch.h"
#include "layer/cpu/common/packing.h"
#include "layer/cpu/conv/conv_layer.h"
#include "layer/cpu/gemm/tile_store.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

enum {
    kWidth = 16,  // channels of a group, which are a block of the blobs
    kPixelBytes = kWidth * sizeof(uint16_t),
    kCallRows = kSplitTapTiles * kUnitRows,
    // Of the input that is laid out at a time: with weights and sums it stays in the first-level
    // cache.
    kBandBytes = 24 << 10
};

}  // namespace

// Steps share a row of taps equally: with a shorter last one, filled up with zeros, infinite values
// beside the window would make NaN of its sums.
int TileGroups::make_steps() const {
    int steps = (tap_row_bytes() + kUnitRowBytes - 1) / kUnitRowBytes;
    while (tap_row_bytes() % (4 * steps)) steps++;
    return tap_row_bytes() / steps;
}

// A group's weights from [output][input][tap].
void TileGroups::pack_taps(const float* from, uint16_t* to) const {
    const int taps = kernel_w_ * kernel_h_;
    for (int y = 0; y < kernel_h_; y++) {
        for (int i = 0; i < kernel_w_ * kWidth * kWidth; i++, to++) {
            const int k = i / (kWidth * 2) * 2 + i % 2, n = i / 2 % kWidth;
            const int tap = y * kernel_w_ + k / kWidth;
            *to = float32_to_bfloat16(from[(n * kWidth + k % kWidth) * taps + tap]);
        }
    }
}

int TileGroups::create(const Layer& layer, const ConvolutionFields& s, const Option& opt) {
    kernels_ = nullptr;
    if (!kHasTileUnits || !opt.use_bf16_storage || !opt.use_packing_layout) return kOk;
    const SplitGemmKernels* const kernels = split_kernels_for(opt);
    if (!kernels || !kernels->taps || s.axes != 2 || s.add_input || s.pad_value != 0.f ||
        s.dilation_w != 1 || s.num_output != s.group * kWidth ||
        s.weight_data_size != s.num_output * kWidth * s.maxk())
        return kOk;
    kernel_w_ = s.kernel_w, kernel_h_ = s.kernel_h;
    step_bytes_ = make_steps();
    const int values = kWidth * kWidth * s.maxk();  // of a group
    weights_.create(values / 2, s.group);
    bias_.create(kWidth, s.group);
    if (weights_.empty() || bias_.empty()) {
        layer.fail("out of memory for %d weights", s.weight_data_size);
        return kOutOfMemory;
    }
    for (int i = 0; i < s.group; i++)
        pack_taps((const float*)s.weight_data + (size_t)i * values, (uint16_t*)weights_.row(i));
    bias_.fill(0.f);
    if (s.bias_term) std::copy_n((const float*)s.bias_data, s.num_output, (float*)bias_);
    activation_ =
        FusedActivation(host_kernel_set(), Activation(s.activation_type, s.activation_params),
                        opt.use_bf16_storage);
    kernels_ = kernels;
    return kOk;
}

// Rows of the output that are computed from one copy of their input. With strides of one the rows
// of that copy are taken as one, of which the last positions of each row belong to no output.
struct TileGroups::Band {
    Scratch<int32_t> places;    // of the tiles' rows in the output, values; negative: no output
    Scratch<ptrdiff_t> starts;  // of the tiles in the copy, bytes
    int rows = 0;

    void make(const ConvGeometry& g, int pitch, int rows) {
        this->rows = rows;
        if (g.x.stride == 1 && g.y.stride == 1) {
            for (int i = 0; i < rows * pitch; i += kUnitRows)
                add_tile(i, [&](int m) { return place(g, (i + m) / pitch, (i + m) % pitch); });
        } else {
            for (int y = 0; y < rows; y++)
                for (int x = 0; x < g.x.out; x += kUnitRows)
                    add_tile((ptrdiff_t)y * g.y.stride * pitch + (ptrdiff_t)x * g.x.stride,
                             [&](int m) { return place(g, y, x + m); });
        }
        while (starts->size() % kSplitTapTiles)
            add_tile(starts->back() / kPixelBytes, [](int) { return -1; });
    }

private:
    int32_t place(const ConvGeometry& g, int y, int x) const {
        return y < rows && x < g.x.out ? (y * g.x.out + x) * kWidth : -1;
    }
    template <class Place>
    void add_tile(ptrdiff_t start, const Place& place) {
        starts->push_back(start * kPixelBytes);
        for (int m = 0; m < kUnitRows; m++) places->push_back(place(m));
    }
};

// One run: what its threads share.
class TileGroups::Call {
public:
    Call(const TileGroups& layer, const ConvGeometry& g, const Mat& in, const Mat& out)
        : layer_(layer), g_(g), in_(in), out_(out) {
        pitch_ = (g.x.out - 1) * g.x.stride + g.x.kernel;
        row_bytes_ = (size_t)pitch_ * kPixelBytes;
        const int most = (int)(kBandBytes / row_bytes_);
        const int fitting = (most - g.y.extent()) / g.y.stride + 1;
        const int rows = std::min(g.y.out, std::max(1, fitting));
        bands_ = (g.y.out + rows - 1) / rows;
        whole_.make(g, pitch_, rows);
        last_.make(g, pitch_, g.y.out - (bands_ - 1) * rows);
    }
    int64_t tasks() const { return (int64_t)g_.group * bands_; }
    // Of a thread: tiles read behind the last row, too.
    size_t workspace() const {
        return rows_of(whole_.rows) * row_bytes_ +
               ((size_t)kUnitRows * g_.x.stride + g_.x.kernel) * kPixelBytes;
    }
    void run(int64_t task, char* copy) const {
        const int group = (int)(task / bands_), first = (int)(task % bands_) * whole_.rows;
        const Band& band = first + whole_.rows >= g_.y.out ? last_ : whole_;
        lay_out(group, first, band.rows, copy);
        SplitTaps taps = {};
        taps.a_row = g_.x.stride * kPixelBytes;
        taps.a_tap_row = (ptrdiff_t)(g_.y.dilation * row_bytes_);
        taps.steps = layer_.tap_row_bytes() / layer_.step_bytes_;
        taps.step_bytes = layer_.step_bytes_;
        taps.tap_rows = g_.y.kernel;
        taps.b = (const char*)layer_.weights_.row(group);
        alignas(64) float sums[kCallRows * kWidth];
        taps.sums = sums;
        SplitStore store = store_of(group, first);
        for (size_t tile = 0; tile < (*band.starts).size(); tile += kSplitTapTiles) {
            for (int i = 0; i < kSplitTapTiles; i++) taps.a[i] = copy + band.starts[tile + i];
            layer_.kernels_->taps->run(taps);
            store.rows = (*band.places).data() + tile * kUnitRows;
            finish_tile_sums(*layer_.kernels_->to_c, store, layer_.activation_, sums, kCallRows);
        }
    }

private:
    // Of the input, for so many of the output.
    int rows_of(int rows) const { return (rows - 1) * g_.y.stride + g_.y.extent(); }
    // Copies what rows from `first` on read of a group, with zeros around the input.
    void lay_out(int group, int first, int rows, char* to) const {
        const int left = std::min(std::max(g_.x.before, 0), pitch_);
        const int skipped = std::max(-g_.x.before, 0);
        const int inside = std::max(0, std::min(g_.x.in - skipped, pitch_ - left));
        const char* const channel = (const char*)in_.channel(group).data;
        const int64_t top = g_.y.position(first, 0);
        for (int i = 0; i < rows_of(rows); i++, to += row_bytes_) {
            if (!g_.y.holds(top + i)) {
                memset(to, 0, row_bytes_);
                continue;
            }
            const char* const from = channel + ((top + i) * g_.x.in + skipped) * kPixelBytes;
            memset(to, 0, (size_t)left * kPixelBytes);
            memcpy(to + left * kPixelBytes, from, (size_t)inside * kPixelBytes);
            memset(to + (left + inside) * kPixelBytes, 0,
                   (size_t)(pitch_ - left - inside) * kPixelBytes);
        }
    }
    SplitStore store_of(int group, int first) const {
        SplitStore store = {};
        store.width = store.columns = store.group = kWidth;
        store.bias = layer_.bias_.row(group);
        store.c = (char*)out_.channel(group).data + (size_t)first * g_.x.out * kPixelBytes;
        store.bf16 = true;
        store.low = layer_.activation_.low, store.high = layer_.activation_.high;
        store.slope = 1.f;
        return store;
    }

    const TileGroups& layer_;
    const ConvGeometry& g_;
    const Mat &in_, &out_;
    int pitch_, bands_;
    size_t row_bytes_;
    Band whole_, last_;
};

int TileGroups::forward(const ConvolutionFields& s, const ConvGeometry& g, const Mat& bottom,
                        Mat& top, const Option& opt) const {
    Mat in, out, copies;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom, kWidth, opt, &in));
    in = conv_channels(s, in);
    QUOLL_RETURN_IF_ERROR(create_conv_top(s, g, DType::bf16, kWidth, opt, &top, &out));
    const Call call(*this, g, in, out);
    const double macs = (double)g.x.out * g.y.out * g.maxk() * g.num_output * kWidth;
    const int threads = threads_for(opt, macs);
    const size_t bytes = call.workspace();
    if (bytes > INT_MAX) return kOutOfMemory;
    copies.create((int)bytes, threads, (size_t)1u, opt.workspace_allocator);
    if (copies.empty()) return kOutOfMemory;
    run_region(call.tasks(), threads, [&](Claims& claims) {
        char* const copy = copies.row<char>(claims.thread());
        kernels_->taps->begin(step_bytes_);
        for (int64_t i, end; claims.next(&i, &end);)
            for (; i < end; i++) call.run(i, copy);
        kernels_->end();
    });
    return kOk;
}

}  // namespace quoll

#endif
