#include "layer/cpu/dwconv/dwconv_layer.h"

#include <limits.h>
#include <string.h>

#include <algorithm>

#include "layer/common/scratch.h"
#include "layer/cpu/cast/storage.h"
#include "layer/cpu/common/pairs.h"
#include "layer/cpu/dwconv/phase_planes.h"
#include "layer/cpu/dwconv/window_taps.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// Rows of a channel of some storage type as f32, and back, in memory that stays in cache: as many
// rows at a time as fit are widened, of which those that later windows reach move to the front when
// it is full, and narrowed.
class StoredRows {
public:
    StoredRows(const StorageKernels* storage, const ConvGeometry& g, int pack, float* memory)
        : storage_(storage),
          in_floats_((size_t)g.x.in * pack),
          out_floats_((size_t)g.x.out * pack),
          room_(in_rows(g, pack)),
          out_room_(out_rows(g, pack)),
          in_(memory),
          out_(memory ? memory + room_ * in_floats_ : nullptr) {}
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
    // Row `first` of the input, behind which those up to `last` lie, for a window that begins at
    // row `start`. No later window begins above that; its rows may: dilated taps of which those
    // above the input are left out.
    const float* in(int64_t start, int64_t first, int64_t last) {
        if (last >= ready_) fill(std::max<int64_t>(0, start), last);
        return in_ + (first - first_) * in_floats_;
    }
    // Room for the next row, or for two after an even number of them.
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
        return (int)std::max<int64_t>(2, std::min<int64_t>(g.y.out, fit) / 2 * 2);
    }
    // The rows from `keep` on stay, or come.
    void fill(int64_t keep, int64_t last) {
        if (keep >= ready_) {
            first_ = ready_ = keep;
        } else if (last >= first_ + room_) {
            const float* from = in_ + (keep - first_) * in_floats_;
            std::copy(from, from + (ready_ - keep) * in_floats_, in_);
            first_ = keep;
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

// Rows of outputs whose planes and sums stay in a first-level cache, at most `most`.
int planes_rows(const ConvGeometry& g, int pack, int most) {
    const PhasePlanes one(g, pack, 1), two(g, pack, 2);
    const size_t budget = (size_t)(24 << 10) / sizeof(float);
    const size_t more = two.floats() - one.floats() + one.row_floats();
    const size_t fixed = one.floats() + one.row_floats();
    if (fixed >= budget) return 1;
    return (int)std::min<size_t>(most, 1 + (budget - fixed) / more);
}

// What all pairs of rows share, but for the blobs.
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

double work_of(const ConvGeometry& g) {
    return (double)g.x.out * g.y.out * g.maxk() * g.num_output;
}

}  // namespace

ConvolutionDepthWiseCpu::ConvolutionDepthWiseCpu(int axes)
    : Convolution(axes, true), kernels_(nullptr), pack_(0), pair_(1), row_(nullptr), width_(1) {
    support_packing = true;
}

int ConvolutionDepthWiseCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(Convolution::create_pipeline(opt));
    pack_ = 0, pair_ = 1;
    if (dynamic_weight) return kOk;
    if (is_int8()) {
        weight_data.release();  // weight_data_int8 is what all algorithms take
        if (depthwise()) QUOLL_RETURN_IF_ERROR(int8_.create(*this, *this, opt));
        return int8_.created() ? (int)kOk : int8_groups_.create(*this, *this, opt);
    }
    kernels_ = &host_kernel_set();
    const bool narrow =
        opt.use_packing_layout && has_narrow_groups() && joined_groups(*this, opt) == 1;
    if (!depthwise() && !narrow) {
        QUOLL_RETURN_IF_ERROR(groups_.create(*this, *this, opt));
        support_fp16_storage = groups_.takes_f16();
        support_bf16_storage = opt.use_bf16_storage && !groups_.makes_f16();
        weight_data.release();
        return kOk;
    }
    width_ = narrow ? num_output / group : 1;
    // Half floats are in blocks of kF16Pack, or planar as the convolutions around have them.
    const bool planar = f16_kernels(opt) && axes < 3 && !narrow && num_output % kF16Pack != 0;
    const int pack = planar ? 1 : best_elempack(*kernels_, num_output, opt);
    if (axes == 3 && pack == 1) return kOk;
    pack_ = pack;
    if (f16_kernels(opt) && axes < 3 && !narrow && !planar) {
        kernels_ = f16_kernels(opt);
        pack_ = kF16Pack / 2, pair_ = 2;
    }
    activation_ = FusedActivation(*kernels_, Activation(activation_type, activation_params),
                                  opt.use_bf16_storage);
    row_ = narrow ? kernels_->dwconv->groups
                  : select_dwconv_row(*kernels_->dwconv, pack_, kernel_w, stride_w, dilation_w);
    support_fp16_storage = axes < 3;
    support_bf16_storage = axes < 3 && pair_ == 1;
    if (planar) QUOLL_RETURN_IF_ERROR(pack_planar_weights(opt));
    return repack_weights();
}

// For planar half floats: 3x3 weights and the bias.
int ConvolutionDepthWiseCpu::pack_planar_weights(const Option& opt) {
    planar_weight_.release();
    if (kernel_w != 3 || kernel_h != 3 || activation_.pass) return kOk;
    Mat wide(kDwconvPlanarWeights, num_output, 4u, opt.workspace_allocator);
    if (!wide.empty()) {
        wide.fill(0.f);
        for (int q = 0; q < num_output; q++) {
            std::copy_n((const float*)weight_data + q * 9, 9, wide.row(q));
            wide.row(q)[9] = bias_term ? bias_data[q] : 0.f;
        }
        cast_float32_to_float16(wide, planar_weight_);
    }
    if (!planar_weight_.empty()) return kOk;
    fail("out of memory for %d weights", weight_data_size);
    return kOutOfMemory;
}

// Groups of 4 or 8 channels in and out that share registers. As matrix products they would leave
// most of one idle.
bool ConvolutionDepthWiseCpu::has_narrow_groups() const {
    const int width = num_output / group, lanes = kernels_->lanes;
    return kernels_->dwconv->groups && axes < 3 && (width == 4 || width == 8) && width < lanes &&
           num_output % lanes == 0 && weight_data_size == num_output * width * maxk() &&
           dilation_w == 1 && pad_value == 0.f && kernel_w > 1;
}

// Blocks of channels narrower than a register are repeated until they fill one.
int ConvolutionDepthWiseCpu::repack_weights() {
    const int maxk = this->maxk() * width_, repeats = few_channels() ? kernels_->lanes / pack_ : 1;
    const int pack = pack_ * pair_;
    const size_t width = (size_t)pack * repeats, blocks = (size_t)num_output / pack;
    if (width * maxk * blocks <= INT_MAX) packed_weight_.create((int)(width * maxk * blocks));
    packed_bias_.create((int)(width * blocks));
    if (packed_weight_.empty() || packed_bias_.empty()) {
        fail("out of memory for %d weights", weight_data_size);
        return kOutOfMemory;
    }
    for (size_t block = 0; block < blocks; block++) {
        for (size_t lane = 0; lane < width; lane++) {
            const size_t channel = block * pack + lane % pack;
            float* to = (float*)packed_weight_ + block * width * maxk + lane;
            const float* const from = (const float*)weight_data + channel * maxk;  // [width_][taps]
            for (int k = 0; k < maxk; k++)
                to[k * width] = from[(size_t)(k % width_) * this->maxk() + k / width_];
            packed_bias_[block * width + lane] = bias_term ? bias_data[channel] : 0.f;
        }
    }
    if (pair_ == 1) return kOk;
    for (Mat* floats : {&packed_weight_, &packed_bias_}) {
        Mat half;
        cast_float32_to_float16(*floats, half);
        if (half.empty()) return kOutOfMemory;
        *floats = half;
    }
    return kOk;
}

int ConvolutionDepthWiseCpu::forward_reference(const Mat& bottom, Mat& top,
                                               const Option& opt) const {
    Mat wide, planar, made;
    QUOLL_RETURN_IF_ERROR(widened(bottom, opt, &wide));
    QUOLL_RETURN_IF_ERROR(with_elempack(wide, 1, opt, &planar));
    if (wide.dtype == bottom.dtype) return Convolution::forward(planar, top, opt);
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    QUOLL_RETURN_IF_ERROR(Convolution::forward(planar, made, temporary));
    if (bottom.dtype == DType::f16)
        cast_float32_to_float16(made, top, opt);
    else
        cast_float32_to_bfloat16(made, top, opt);
    return top.empty() ? (int)kOutOfMemory : (int)kOk;
}

// On the reference, for windows that the kernels do not suit; with the elempack that these make.
int ConvolutionDepthWiseCpu::forward_repacked(const Mat& bottom, int pack, Mat& top,
                                              const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(forward_reference(bottom, top, opt));
    const Mat planar = top;
    convert_packing(planar, top, pack, opt);
    return top.empty() ? (int)kOutOfMemory : (int)kOk;
}

int ConvolutionDepthWiseCpu::forward(const std::vector<Mat>& bottom_blobs,
                                     std::vector<Mat>& top_blobs, const Option& opt) const {
    if (bottom_blobs.size() == 1 && !dynamic_weight) {
        top_blobs.resize(1);
        return forward(bottom_blobs[0], top_blobs[0], opt);
    }
    std::vector<Mat> planar;
    QUOLL_RETURN_IF_ERROR(all_planar(bottom_blobs, opt, &planar));
    return Convolution::forward(planar, top_blobs, opt);
}

int ConvolutionDepthWiseCpu::make_plan(const std::vector<Shape>& bottoms, const Option& opt,
                                       ConvolutionPlan* p) const {
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(convolution_geometry(*this, *this, bottoms, &g));
    if (int8_groups_.created()) {
        p->int8 = int8_groups_.plan(*this, g, bottoms[0], opt);
        p->name = int8_groups_.kernels(p->int8.get());
        return kOk;
    }
    QUOLL_RETURN_IF_ERROR(
        is_flat_input(*this, bottoms[0])
            ? groups_.plan_flat(&p->f32)
            : groups_.plan(*this, *this, g, bottoms[0].dtype, false, opt, &p->f32));
    p->name = algorithm_name(p->f32.algorithm);
    return kOk;
}

int ConvolutionDepthWiseCpu::plan(const std::vector<Shape>& bottoms, const Option& opt,
                                  std::shared_ptr<const LayerPlan>* plan) const {
    plan->reset();
    if (bottoms.size() != 1 || !(groups_.created() || int8_groups_.created())) return kOk;
    const std::shared_ptr<ConvolutionPlan> made = std::make_shared<ConvolutionPlan>();
    QUOLL_RETURN_IF_ERROR(make_plan(bottoms, opt, made.get()));
    *plan = made;
    return kOk;
}

int ConvolutionDepthWiseCpu::forward_planned(const LayerPlan& plan, std::vector<Mat>& bottoms,
                                             std::vector<Mat>& tops, bool,
                                             const Option& opt) const {
    tops.resize(1);
    return forward_groups(static_cast<const ConvolutionPlan&>(plan), bottoms[0], tops[0], opt);
}

// Groups that are matrix products.
int ConvolutionDepthWiseCpu::forward_groups(const ConvolutionPlan& p, const Mat& bottom, Mat& top,
                                            const Option& opt) const {
    const ShapeList in(bottom);
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(convolution_geometry(*this, *this, *in, &g));
    if (int8_groups_.created()) {
        const int status = int8_groups_.forward(p.int8.get(), *this, g, bottom, Mat(), top, opt);
        return status == Int8Conv::kUnsuitable ? forward_reference(bottom, top, opt) : status;
    }
    if (!is_flat_input(*this, in[0]))
        return groups_.forward(p.f32, *this, g, bottom, Mat(), top, opt);
    return bottom.dtype == DType::bf16
               ? groups_.forward_widened(p.f32, *this, g, bottom, Mat(), top, opt)
               : groups_.forward_flat(p.f32, *this, bottom, top, opt);
}

int ConvolutionDepthWiseCpu::forward(const Mat& bottom_blob, Mat& top_blob,
                                     const Option& opt) const {
    const ShapeList in(bottom_blob);
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(convolution_geometry(*this, *this, *in, &g));
    if (int8_groups_.created() || groups_.created()) {
        ConvolutionPlan p;
        QUOLL_RETURN_IF_ERROR(make_plan(*in, opt, &p));
        return forward_groups(p, bottom_blob, top_blob, opt);
    }
    const bool flat = is_flat_input(*this, in[0]);
    if (int8_.created() && !flat) {
        const int status = int8_.forward(*this, g, bottom_blob, top_blob, opt);
        return status == Int8Depthwise::kUnsuitable
                   ? forward_repacked(bottom_blob, int8_.out_pack(num_output), top_blob, opt)
                   : status;
    }
    if (pack_ == 0 || flat) return forward_reference(bottom_blob, top_blob, opt);
    const int status = forward_float(bottom_blob, g, top_blob, opt);
    return status == kUnsuitable ? forward_repacked(bottom_blob, pack_, top_blob, opt) : status;
}

void ConvolutionDepthWiseCpu::plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in,
                                           const Option& opt, std::vector<BlobLayout>* out) const {
    if (dynamic_weight || in.size() != 1) return;
    int& pack = (*out)[0].elempack;
    const bool flat = is_flat_input(*this, in[0].shape);
    ConvGeometry g;
    if (groups_.created() && plan && !flat &&
        convolution_geometry(*this, *this, {in[0].shape}, &g) == kOk) {
        const ConvRunPlan& p = static_cast<const ConvolutionPlan*>(plan)->f32;
        (*out)[0].shape.dtype = groups_.made_type(p, *this, g, in[0].shape.dtype, opt);
    }
    if (groups_.created()) pack = flat ? groups_.flat_out_pack() : groups_.out_pack();
    if (groups_.created() && groups_.takes_f16()) (*out)[0].shape.dtype = DType::f16;
    if (groups_.created()) return;
    if (int8_groups_.created())
        pack = int8_groups_.out_pack();
    else if (int8_.created() && !flat)
        pack = int8_.out_pack(num_output);
    else if (pack_ != 0 && !flat)
        pack = pack_ * pair_;
    if (pair_ == 2 && !flat) (*out)[0].shape.dtype = DType::f16;
}

int ConvolutionDepthWiseCpu::forward_float(const Mat& bottom, const ConvGeometry& g, Mat& top,
                                           const Option& opt) const {
    if (axes == 3) return forward_slices(bottom, g, top, opt);
    if (pair_ == 2) return forward_f16(bottom, g, top, opt);
    if (const DwconvPlanarKernel kernel = planar_kernel(g))
        return forward_planar(kernel, bottom, g, top, opt);
    return few_channels() ? forward_few_channels(bottom, g, top, opt)
                          : forward_blocked(bottom, g, top, opt);
}

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

// For planar half floats; or null.
DwconvPlanarKernel ConvolutionDepthWiseCpu::planar_kernel(const ConvGeometry& g) const {
    if (planar_weight_.empty()) return nullptr;
    const int stride = g.x.stride;
    const auto suits = [&](const WindowAxis& axis) {
        const int64_t over = (int64_t)(axis.out - 1) * stride + 3 - axis.before - axis.in;
        return axis.stride == stride && axis.dilation == 1 && axis.before <= 1 && over <= 1;
    };
    const bool wide = g.x.out >= kDwconvPlanarOutputs && (stride == 1 || g.x.in >= 2 * g.x.out);
    return stride <= 2 && pad_value == 0.f && wide && suits(g.x) && suits(g.y)
               ? host_kernel_set().f16->dwconv->planar[stride - 1]
               : nullptr;
}

int ConvolutionDepthWiseCpu::forward_planar(DwconvPlanarKernel kernel, const Mat& bottom,
                                            const ConvGeometry& g, Mat& top,
                                            const Option& opt) const {
    Mat in, channels;
    QUOLL_RETURN_IF_ERROR(as_f16(bottom, 1, opt, &in));
    in = conv_channels(*this, in);
    QUOLL_RETURN_IF_ERROR(create_conv_top(*this, g, DType::f16, 1, opt, &top, &channels));
    const int threads = threads_for(opt, work_of(g));
    const Bands bands(num_output, g.y.out, threads);
    run_tasks(bands.count(), threads, [&](int64_t task, int) {
        const int q = bands.item(task);
        DwconvPlanar run = {};
        run.in = (const uint16_t*)in.data + q * in.cstep;
        run.in_w = g.x.in, run.in_h = g.y.in;
        run.before_x = g.x.before, run.before_y = g.y.before;
        run.weight = planar_weight_.row<const uint16_t>(q);
        run.out_w = g.x.out;
        run.y_first = bands.begin(task), run.y_last = bands.end(task);
        run.out = (uint16_t*)channels.data + q * channels.cstep + (size_t)run.y_first * g.x.out;
        run.low = activation_.low, run.high = activation_.high;
        kernel(run);
    });
    return kOk;
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
    const StorageKernels* storage = storage_kernels(*kernels_, in.dtype);
    Mat memory;
    DwconvRow frame = dwconv_row_frame(g, pack_, pad_value);
    frame.low = activation_.low, frame.high = activation_.high;
    const int threads = threads_for(opt, work_of(g) * width_);
    const Bands bands(channels.c, g.y.out, threads);
    if (storage) QUOLL_RETURN_IF_ERROR(StoredRows::memory(g, pack_, threads, opt, &memory));
    const DwconvPairKernel pair_kernel = this->pair_kernel(g, in.dtype);
    const size_t in_row = (size_t)g.x.in * pack_, out_row = (size_t)g.x.out * pack_;
    run_tasks(bands.count(), threads, [&](int64_t task, int thread) {
        const int q = bands.item(task);
        const size_t in_at = q * in.cstep * pack_;
        const size_t out_at = q * channels.cstep * pack_ + bands.begin(task) * out_row;
        const float* const channel = (const float*)in.data + in_at;
        float* out = (float*)channels.data + out_at;
        float* own = storage ? (float*)memory.channel(thread) : nullptr;
        StoredRows rows(storage, g, pack_, own);
        if (storage) {
            const int64_t below = (int64_t)(bands.end(task) - 1) * g.y.stride - g.y.before;
            rows.begin((const uint16_t*)in.data + in_at,
                       std::min<int64_t>(g.y.in, below + g.y.extent()),
                       (uint16_t*)channels.data + out_at);
        }
        DwconvRow row = frame;
        row.weight = (const float*)packed_weight_ + (size_t)q * g.maxk() * width_ * pack_;
        row.group = width_;
        row.bias = (const float*)packed_bias_ + (size_t)q * pack_;
        DwconvPair pair = pair_of(g);
        pair.row_step = in_row;
        pair.weight = row.weight, pair.bias = row.bias;
        pair.low = row.low, pair.high = row.high;
        int y = bands.begin(task);
        const int end = bands.end(task);
        for (; pair_kernel && y + 2 <= end; y += 2, out += 2 * out_row) {
            const size_t at = in_at + set_pair_rows(g, y, &pair) * in_row;
            pair.in =
                storage ? (const void*)((const uint16_t*)in.data + at) : (const float*)in.data + at;
            pair.out = storage ? rows.out() : out;
            pair.second = pair.out + out_row;
            pair_kernel(pair);
            activation_.finish(pair.out, 2 * out_row);
            for (int i = 0; storage && i < 2; i++) rows.finish_row();
        }
        for (; y < end; y++, out += out_row) {
            const int64_t start = taps_inside(g.y, y, &row.ky_first, &row.ky_last);
            const int64_t y_in = start + (int64_t)row.ky_first * g.y.dilation;
            const int64_t y_last = start + (int64_t)(row.ky_last - 1) * g.y.dilation;
            if (row.ky_first == row.ky_last)
                row.in = channel;
            else
                row.in = storage ? rows.in(start, y_in, y_last) : channel + y_in * g.x.in * pack_;
            row.out = storage ? rows.out() : out;
            row_(row);
            activation_.finish(row.out, out_row);
            if (storage) rows.finish_row();
        }
        if (storage) rows.flush();
    });
    return kOk;
}

// Blocks narrower than a register: several outputs to a register, on planes of such blocks.
int ConvolutionDepthWiseCpu::forward_few_channels(const Mat& bottom, const ConvGeometry& g,
                                                  Mat& top, const Option& opt) const {
    const int threads = threads_for(opt, work_of(g));
    const int blocks = g.num_output / pack_, lanes = kernels_->lanes;
    const Bands bands(blocks, g.y.out, threads);
    const int rows = planes_rows(g, pack_, (g.y.out + bands.per_item - 1) / bands.per_item);
    const PhasePlanes planes(g, pack_, rows);
    if (!planes.sensible()) return kUnsuitable;
    const StorageKernels* storage = storage_kernels(*kernels_, bottom.dtype);
    Mat in, channels;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom, pack_, opt, &in));
    in = conv_channels(*this, in);
    QUOLL_RETURN_IF_ERROR(create_conv_top(*this, g, bottom.dtype, pack_, opt, &top, &channels));
    // Of each thread: planes, rows of another type as f32, sums.
    const size_t in_row = (size_t)g.x.in * pack_, out_row = (size_t)g.x.out * pack_;
    const int64_t under = (int64_t)(rows - 1) * g.y.stride + g.y.extent();
    const size_t wide_rows = (size_t)std::min<int64_t>(g.y.in, under);
    const size_t wides = storage ? std::max(wide_rows * in_row, rows * out_row) : 0;
    const size_t floats = planes.floats() + wides + planes.row_floats() * rows;
    if (floats > INT_MAX || (size_t)g.maxk() * sizeof(float*) > INT_MAX) return kUnsuitable;
    Mat memory((int)floats, threads, 4u, opt.workspace_allocator);
    Mat pointers(g.maxk() * (int)sizeof(float*), threads, 1u, opt.workspace_allocator);
    if (memory.empty() || pointers.empty()) return kOutOfMemory;
    for (int thread = 0; thread < threads; thread++)
        for (int k = 0; k < g.maxk(); k++)
            pointers.row<const float*>(thread)[k] =
                planes.tap(memory.row(thread), k / kernel_w, k % kernel_w);
    const DwconvKernels& kernels = *kernels_->dwconv;

    run_tasks(bands.count(), threads, [&](int64_t task, int thread) {
        const int q = bands.item(task);
        float* const data = memory.row(thread);
        float* const wide = data + planes.floats();
        DwconvPlanes run;
        run.out = wide + wides;
        run.taps = pointers.row<const float*>(thread), run.num_taps = g.maxk();
        run.weight = (const float*)packed_weight_ + (size_t)q * g.maxk() * lanes;
        run.bias = (const float*)packed_bias_ + (size_t)q * lanes;
        run.low = activation_.low, run.high = activation_.high;
        const size_t size = dtype_size(bottom.dtype);
        const char* const channel = (const char*)in.data + q * in.cstep * pack_ * size;
        char* const out = (char*)channels.data + q * channels.cstep * pack_ * size;
        for (int y = bands.begin(task), end = bands.end(task); y < end; y += rows) {
            const int count = std::min(rows, end - y);
            int first, last;
            planes.rows_under(y, y + count, &first, &last);
            const float* from = (const float*)channel + first * in_row;
            if (storage) {
                storage->widen((const uint16_t*)channel + first * in_row, wide,
                               (last - first) * in_row);
                from = wide;
            }
            planes.load(kernels.pack_rows, from, y, y + count, pad_value, data);
            run.count = (count - 1) * planes.row_floats() + out_row;
            kernels.planes(run);
            activation_.finish(run.out, run.count);
            float* to = storage ? wide : (float*)out + y * out_row;
            kernels.rows(run.out, planes.row_floats(), count, out_row, to);
            if (storage) storage->narrow(wide, (uint16_t*)out + y * out_row, count * out_row);
        }
    });
    return kOk;
}

// The rows of all slices under a window, one behind the other, as those of a window of one slice.
// Rows outside are made of the value of the padding, or left out with their weights if it is zero.
void ConvolutionDepthWiseCpu::gather_rows(const ConvGeometry& g, const float* channel, int y, int z,
                                          float* memory, DwconvRow* row) const {
    const size_t in_row = (size_t)g.x.in * pack_, weight_row = (size_t)kernel_w * pack_;
    const int all = kernel_d * kernel_h;
    int y_first, y_last, z_first, z_last;
    const int64_t y0 = taps_inside(g.y, y, &y_first, &y_last);
    const int64_t z0 = taps_inside(g.z, z, &z_first, &z_last);
    const bool whole = pad_value != 0.f || (y_last - y_first) * (z_last - z_first) == all;
    float *rows = memory, *weights = memory + all * in_row;
    int there = 0;
    for (int kz = whole ? 0 : z_first, ends = whole ? kernel_d : z_last; kz < ends; kz++) {
        for (int ky = whole ? 0 : y_first, end = whole ? kernel_h : y_last; ky < end; ky++) {
            const bool inside = kz >= z_first && kz < z_last && ky >= y_first && ky < y_last;
            const int64_t at =
                (z0 + (int64_t)kz * dilation_d) * g.y.in + y0 + (int64_t)ky * dilation_h;
            if (inside)
                memcpy(rows, channel + at * (int64_t)in_row, in_row * sizeof(float));
            else
                std::fill_n(rows, in_row, pad_value);
            if (!whole)
                memcpy(weights, row->weight + (kz * kernel_h + ky) * weight_row,
                       weight_row * sizeof(float));
            rows += in_row, weights += weight_row, there++;
        }
    }
    row->in = memory;
    if (!whole) row->weight = memory + all * in_row;
    row->kernel_h = row->ky_last = there;
}

// Windows of several slices.
int ConvolutionDepthWiseCpu::forward_slices(const Mat& bottom, const ConvGeometry& g, Mat& top,
                                            const Option& opt) const {
    const size_t in_row = (size_t)g.x.in * pack_, out_row = (size_t)g.x.out * pack_;
    const double rows = (double)kernel_d * kernel_h;
    if (rows * (in_row + (double)kernel_w * pack_) > INT_MAX) return kUnsuitable;
    const int threads = threads_for(opt, work_of(g) * g.z.out);
    Mat in, channels;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom, pack_, opt, &in));
    in = conv_channels(*this, in);
    QUOLL_RETURN_IF_ERROR(create_conv_top(*this, g, DType::f32, pack_, opt, &top, &channels));
    Mat memory((int)(rows * (in_row + (size_t)kernel_w * pack_)), threads, 4u,
               opt.workspace_allocator);
    if (memory.empty()) return kOutOfMemory;
    DwconvRow frame = dwconv_row_frame(g, pack_, pad_value);
    frame.low = activation_.low, frame.high = activation_.high;
    frame.row_step = in_row;
    const Bands bands(channels.c, g.z.out * g.y.out, threads);
    run_tasks(bands.count(), threads, [&](int64_t task, int thread) {
        const int q = bands.item(task);
        const float* const channel = (const float*)in.data + q * in.cstep * pack_;
        for (int i = bands.begin(task), end = bands.end(task); i < end; i++) {
            DwconvRow row = frame;
            row.weight = (const float*)packed_weight_ + (size_t)q * g.maxk() * pack_;
            row.bias = (const float*)packed_bias_ + (size_t)q * pack_;
            gather_rows(g, channel, i % g.y.out, i / g.y.out, memory.row(thread), &row);
            row.out = (float*)channels.data + q * channels.cstep * pack_ + i * out_row;
            row_(row);
            activation_.finish(row.out, out_row);
        }
    });
    return kOk;
}

}  // namespace quoll
