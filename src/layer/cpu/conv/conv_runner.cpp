#include "layer/cpu/conv/conv_runner.h"

#include <limits.h>
#include <string.h>

#include <algorithm>
#include <atomic>

#include "layer/common/side_by_side.h"
#include "layer/common/stored.h"
#include "layer/cpu/common/pairs.h"
#include "layer/cpu/gemm/planar_product.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

ConvAxis conv_axis(const WindowAxis& axis) {
    return {axis.in, axis.out, axis.kernel, axis.stride, axis.dilation, axis.before};
}

// `in` with its padding around it, for the cases that a plan does not take; afterwards the axes
// have none.
int pad_input(const Mat& in, float value, const Option& opt, ConvGeometry* g, Mat* padded) {
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    copy_make_border_3d(in, *padded, g->y.before, g->y.after, g->x.before, g->x.after, g->z.before,
                        g->z.after, BORDER_CONSTANT, value, temporary);
    if (padded->empty()) return kOutOfMemory;
    g->x.in = padded->w, g->y.in = padded->h, g->z.in = padded->d;
    for (WindowAxis* axis : {&g->x, &g->y, &g->z}) axis->before = axis->after = 0;
    return kOk;
}

bool has_padding(const ConvGeometry& g) {
    return g.x.before > 0 || g.x.after > 0 || g.y.before > 0 || g.y.after > 0 || g.z.before > 0 ||
           g.z.after > 0;
}

// False at compile time where the library is without these.
bool is_winograd(ConvAlgorithm a) { return kHasWinograd && a == ConvAlgorithm::kWinograd; }
bool is_split(ConvAlgorithm a) { return kHasTileUnits && a == ConvAlgorithm::kSplit; }
bool is_sliced(ConvAlgorithm a) { return kHasTileUnits && a == ConvAlgorithm::kSliced; }

}  // namespace

const char* algorithm_name(ConvAlgorithm algorithm) {
    static const char* const kNames[] = {"", "direct", "winograd", "split", "sliced"};
    return kNames[(int)algorithm];
}

// Other architectures' units have nothing to fill, and their libraries no room.
#if defined(__x86_64__) || defined(__i386__)
static constexpr bool kJoinsGroups = true;
#else
static constexpr bool kJoinsGroups = false;
#endif

int joined_groups(const ConvolutionFields& s, const Option& opt) {
    if (!kJoinsGroups) return 1;
    const SplitGemmKernels* const split = opt.use_bf16_storage ? split_kernels_for(opt) : nullptr;
    const int width = s.num_output / s.group;
    const bool square = s.weight_data_size == s.num_output * width * s.maxk();
    if (!split || split->vector_macs || f16_kernels(opt) || s.axes > 2 || s.add_input ||
        s.pad_value != 0.f || !square || (width != 4 && width != 8))
        return 1;
    return std::min<int>(s.group, kSplitK / width);
}

ConvRunner::ConvRunner()
    : kernels_(nullptr),
      packing_(nullptr),
      pair_(1),
      planar_(false),
      narrows_(false),
      candidates_(),
      bf16_(false),
      kernel_w_(1),
      kernel_h_(1),
      kernel_d_(1),
      joined_(1),
      overlap_(0),
      group_(1),
      in_channels_(0),
      out_channels_(0),
      in_pack_(1),
      out_pack_(1),
      algorithm_(ConvAlgorithm::kNone) {}

bool ConvRunner::winograd_candidate(const ConvolutionFields& s, const Option& opt) const {
    ConvShape shape = {};
    shape.x.kernel = kernel_w_;
    shape.x.stride = s.stride_w;
    shape.x.dilation = s.dilation_w;
    shape.y.kernel = kernel_h_;
    shape.y.stride = s.stride_h;
    shape.y.dilation = s.dilation_h;
    shape.z.kernel = kernel_d_;
    shape.in_channels = in_channels_ / pair_;
    shape.in_pack = in_pack_ / pair_;
    shape.out_pack = out_pack_ / pair_;
    if (!kHasWinograd || !opt.use_winograd_convolution || !opt.use_winograd43_convolution ||
        group_ != 1 || s.axes < 2 || !WinogradPlan::is_supported(*kernels_, shape))
        return false;
    const NotFinite odd = count_not_finite(s.weight_data);
    return odd.nans + odd.infinite == 0;
}

bool ConvRunner::can_take_f16(const ConvolutionFields& s, const Option& opt) const {
    return f16_kernels(opt) && s.axes < 3 && in_channels_ % kF16Pack == 0 &&
           out_channels_ % kF16Pack == 0;
}

// 1x1 convolutions of channels that are no blocks. Of fewer pixels than a few tiles have most would
// be computed twice.
bool ConvRunner::can_take_planar_f16(const Layer& layer, const ConvolutionFields& s,
                                     const Option& opt) const {
    const bool pads = s.pad_left || s.pad_right || s.pad_top || s.pad_bottom;
    if (!f16_kernels(opt) || !has_planar(*f16_kernels(opt)->gemm) || s.axes > 2 || group_ != 1 ||
        s.add_input || in_channels_ < 1 || s.maxk() * s.stride_w * s.stride_h != 1 || pads)
        return false;
    if (layer.bottom_shapes.empty()) return true;
    const Mat& in = layer.bottom_shapes[0];
    return in.dims == s.axes + 1 && in.w * (in.dims == 3 ? in.h : 1) >= 4 * kPlanarHalfPixels;
}

// The layer's first group in one of these: the last one ends where the layer does.
int ConvRunner::first_joined(int group) const {
    if (!kJoinsGroups) return group;
    return group * joined_ - (group + 1 == group_ ? overlap_ : 0);
}

// Of a blob whose groups have so many bytes.
size_t ConvRunner::group_offset(int group, size_t bytes) const {
    if (!kJoinsGroups) return group * bytes;
    return group * bytes - (group + 1 == group_ ? bytes * overlap_ / joined_ : 0);
}

// From [group][output][input][tap] of the layer's groups to that of these.
int ConvRunner::join_weights(const ConvolutionFields& s) {
    const size_t taps = s.maxk(), outputs = out_channels_ / joined_;
    const size_t row = in_channels_ / joined_ * taps;
    const size_t floats = (size_t)group_ * out_channels_ * joined_ * row;
    Mat weights;
    if (floats <= INT_MAX) weights.create((int)floats);
    if (weights.empty()) return kOutOfMemory;
    weights.fill(0.f);
    float* to = weights;
    for (int g = 0; g < group_; g++) {
        const float* from = (const float*)s.weight_data + first_joined(g) * outputs * row;
        for (int i = 0; i < joined_; i++)
            for (size_t n = 0; n < outputs; n++, from += row, to += joined_ * row)
                std::copy_n(from, row, to + i * row);
    }
    raw_weights_ = weights;
    return kOk;
}

int ConvRunner::make_bias(const Layer& layer, const ConvolutionFields& s) {
    const size_t floats = std::max(gemm_bias_size(*packing_->gemm, out_channels_),
                                   SplitPlan::bias_size(out_channels_));
    bias_.create((int)floats, group_);
    zeros_.create((int)floats);
    if (bias_.empty() || zeros_.empty()) {
        layer.fail("out of memory for %zu floats of bias", floats);
        return kOutOfMemory;
    }
    bias_.fill(0.f);
    zeros_.fill(0.f);
    for (int g = 0; g < group_ && s.bias_term; g++) {
        const float* from =
            (const float*)s.bias_data + (size_t)first_joined(g) * (out_channels_ / joined_);
        if (pair_ == 2)
            kernels_->cast->f16.narrow(from, bias_.row<uint16_t>(g), out_channels_);
        else
            memcpy(bias_.row(g), from, out_channels_ * sizeof(float));
    }
    return kOk;
}

int ConvRunner::create(const Layer& layer, const ConvolutionFields& s, const Option& opt) {
    const KernelSet& host = host_kernel_set();
    const KernelSet& kernels = opt.use_fp16_arithmetic && host.half ? *host.half : host;
    kernels_ = nullptr;
    pair_ = 1, planar_ = narrows_ = false;
    algorithm_ = ConvAlgorithm::kNone;
    weights_.release();
    for (Mat& packed : packed_) packed.release();
    live_.clear();
    kernel_w_ = s.kernel_w;
    kernel_h_ = s.kernel_h;
    kernel_d_ = s.kernel_d;
    joined_ = joined_groups(s, opt);
    group_ = (s.group + joined_ - 1) / joined_;
    overlap_ = group_ * joined_ - s.group;
    out_channels_ = s.num_output / s.group * joined_;
    in_channels_ = s.weight_data_size / s.maxk() / s.num_output * joined_;
    const auto pack_of = [&](int channels) {
        const int pack = best_elempack(kernels, channels, opt);
        // What the last two groups share.
        const int both = kJoinsGroups ? channels / joined_ * overlap_ : 0;
        return both ? std::min(pack, best_elempack(kernels, both, opt)) : pack;
    };
    in_pack_ = pack_of(in_channels_);
    out_pack_ = pack_of(out_channels_);
    // Planar outputs are made of planar inputs with the fewest moves, unless these are the more.
    if (kernels.gemm->planar[0] && out_pack_ == 1 && in_channels_ <= out_channels_ &&
        s.maxk() * s.stride_w * s.stride_h == 1)
        in_pack_ = 1;
    raw_weights_ = s.weight_data;
    if (kJoinsGroups && joined_ > 1 && join_weights(s) != kOk) {
        layer.fail("out of memory for the weights of joined groups");
        return kOutOfMemory;
    }
    kernels_ = packing_ = &kernels;
    if (can_take_f16(s, opt)) {
        pair_ = 2;
        in_pack_ = out_pack_ = kF16Pack;
        kernels_ = f16_kernels(opt);
    } else if (can_take_planar_f16(layer, s, opt)) {
        pair_ = 2, planar_ = true;
        in_pack_ = out_pack_ = 1;
        kernels_ = f16_kernels(opt);
    } else {
        narrows_ = f16_kernels(opt) && s.axes < 3 && group_ == 1 && !s.add_input &&
                   out_channels_ % kF16Pack == 0 && out_pack_ == kF16Pack / 2;
    }
    if (pair_ == 2) packing_ = kernels_->half;
    activation_ = FusedActivation(*kernels_, Activation(s.activation_type, s.activation_params),
                                  opt.use_bf16_storage);
    const int made = make_bias(layer, s);
    if (made != kOk) kernels_ = nullptr;
    QUOLL_RETURN_IF_ERROR(made);

    candidates_ = ConvCandidates();
    candidates_.winograd = !planar_ && winograd_candidate(s, opt);
    if (s.axes < 3 && pair_ == 1) {
        candidates_.split = split_kernels_for(opt);
        candidates_.sliced = sliced_kernels_for(opt);
    }
    bf16_ = opt.use_bf16_storage;
    const bool hinted = layer.bottom_shapes.size() == (s.add_input ? 2u : 1u);
    ConvShape shape = {};
    if ((!candidates_.winograd && !candidates_.split && !candidates_.sliced) ||
        (hinted && layer.bottom_shapes[0].dims == 1)) {
        algorithm_ = ConvAlgorithm::kDirect;
    } else if (hinted && layer.bottom_shapes[0].dims == 3) {
        ConvGeometry g;
        QUOLL_RETURN_IF_ERROR(convolution_geometry(layer, s, shapes_of(layer.bottom_shapes), &g));
        shape = shape_of(g);
        if (!drops_taps(s, g)) algorithm_ = choose(shape);
    }
    if (algorithm_ == ConvAlgorithm::kNone) return kOk;
    const int status = pack_weights(algorithm_, shape, &weights_);
    raw_weights_.release();
    if (status == kOk) return kOk;
    kernels_ = nullptr;
    layer.fail("out of memory for %d weights", s.weight_data_size);
    return status;
}

void ConvRunner::pack_direct(const float* from, float* to) const {
    ConvShape shape = {};
    shape.x.kernel = kernel_w_, shape.y.kernel = kernel_h_, shape.z.kernel = kernel_d_;
    shape.in_channels = in_channels_, shape.out_channels = out_channels_;
    shape.in_pack = in_pack_, shape.out_pack = out_pack_;
    conv_pack_weights(*packing_->gemm, from, shape, to);
}

int ConvRunner::pack_winograd(Mat* weights) const {
    const GemmKernels& gemm = *packing_->gemm;
    const size_t scratch_floats = WinogradPlan::pack_scratch(gemm, in_channels_, kernel_d_);
    Mat scratch;
    if (scratch_floats <= INT_MAX) scratch.create((int)scratch_floats);
    if (scratch.empty()) return kOutOfMemory;
    WinogradPlan::pack(*packing_, raw_weights_, in_channels_, kernel_d_, out_channels_, kWinogradIn,
                       *weights, scratch);
    return kOk;
}

// Of the shape only what does not depend on the size of the input.
int ConvRunner::pack_weights(ConvAlgorithm algorithm, const ConvShape& shape, Mat* weights) const {
    const TileShape tiles = tile_shape(shape);
    const size_t values = (size_t)in_channels_ * kernel_w_ * kernel_h_ * kernel_d_;
    const size_t floats =
        is_winograd(algorithm) ? WinogradPlan::packed_size(*packing_->gemm, in_channels_, kernel_d_,
                                                           out_channels_, kWinogradIn)
        : is_split(algorithm)  ? SplitPlan::packed_size(*candidates_.split, tiles) / 2
        : is_sliced(algorithm) ? SlicedPlan::packed_size(tiles)
                               : gemm_packed_size(*packing_->gemm, out_channels_, values);
    weights->release();
    if (floats <= INT_MAX) weights->create((int)floats, group_);
    if (weights->empty()) return kOutOfMemory;
    if (is_winograd(algorithm)) return pack_winograd(weights);
    const float* from = raw_weights_;
    for (int g = 0; g < group_; g++, from += out_channels_ * values) {
        if (is_split(algorithm))
            SplitPlan::pack(*candidates_.split, from, tiles, (uint16_t*)weights->row(g));
        else if (is_sliced(algorithm))
            SlicedPlan::pack(*candidates_.sliced, from, tiles, weights->row(g));
        else
            pack_direct(from, weights->row(g));
    }
    return kOk;
}

bool ConvRunner::weights_support_slices(const TileShape& shape) const {
    const float* from = raw_weights_;
    const size_t values = (size_t)out_channels_ * in_channels_ * kernel_w_ * kernel_h_;
    for (int g = 0; g < group_; g++, from += values)
        if (!SlicedPlan::supports_weights(*candidates_.sliced, from, shape)) return false;
    return true;
}

namespace {

// Of the algorithm that vectors take.
double vector_cycles(const KernelSet& kernels, bool winograd, const ConvShape& s, bool bf16) {
    // What bench_conv takes is 1.3 times what the rule for Winograd expects, as it ignores how its
    // stages wait for memory.
    double cycles = kHasWinograd && winograd
                        ? WinogradPlan::cycles(kernels, s) * host_costs().winograd_wait
                        : ConvPlan::cycles(kernels, s);
    // They work on f32 copies of bf16 blobs, which cost about a cycle a value.
    if (bf16)
        cycles +=
            (double)s.x.in * s.y.in * s.in_channels + (double)s.x.out * s.y.out * s.out_channels;
    return cycles;
}

}  // namespace

ConvAlgorithm choose_conv_algorithm(const KernelSet& kernels, const ConvCandidates& candidates,
                                    const ConvShape& s, bool bf16) {
    const bool winograd =
        kHasWinograd && candidates.winograd && WinogradPlan::is_profitable(kernels, s);
    const TileShape shape = tile_shape(s);
    ConvAlgorithm best = winograd ? ConvAlgorithm::kWinograd : ConvAlgorithm::kDirect;
    // Tile units are held back more often than vectors are.
    double least = host_costs().vector_margin * vector_cycles(kernels, winograd, s, bf16);
    const auto consider = [&](ConvAlgorithm candidate, double cycles) {
        if (cycles >= least) return;
        best = candidate;
        least = cycles;
    };
    if (kHasTileUnits && candidates.split && SplitPlan::is_supported(shape))
        consider(ConvAlgorithm::kSplit, SplitPlan::cycles(*candidates.split, shape));
    if (kHasTileUnits && candidates.sliced && SlicedPlan::is_supported(shape))
        consider(ConvAlgorithm::kSliced, SlicedPlan::cycles(shape));
    return best;
}

ConvAlgorithm ConvRunner::choose(const ConvShape& shape) const {
    ConvCandidates candidates = candidates_;
    if (kHasTileUnits && candidates.split && candidates.split->products > 1 &&
        !SplitPlan::supports_weights(raw_weights_, raw_weights_.total()))
        candidates.split = nullptr;
    const ConvAlgorithm best = choose_conv_algorithm(*kernels_, candidates, shape, bf16_);
    if (!is_sliced(best) || weights_support_slices(tile_shape(shape))) return best;
    candidates.sliced = nullptr;
    return choose_conv_algorithm(*kernels_, candidates, shape, bf16_);
}

// ---------------------------------------------------------------- taps that read nothing

namespace {

bool reads(const WindowAxis& axis, int tap) {
    const int64_t at = (int64_t)tap * axis.dilation - axis.before;  // of the first output
    const int64_t first = at < 0 ? (-at + axis.stride - 1) / axis.stride : 0;
    return first < axis.out && at + first * axis.stride < axis.in;
}

// The axis without the taps before the first and behind the last one that read the input, if it has
// such and no outputs beyond the rest; `first`: of the old taps.
WindowAxis live_axis(const WindowAxis& axis, int* first) {
    *first = 0;
    int begin = 0, end = axis.kernel;
    while (begin < end && !reads(axis, begin)) begin++;
    while (end > begin && !reads(axis, end - 1)) end--;
    WindowAxis live = axis;
    live.before -= begin * axis.dilation;
    live.after -= (axis.kernel - end) * axis.dilation;
    if (begin == end || live.before < 0 || live.after < 0) return axis;
    live.kernel = end - begin;
    if (live.kernel == 1) live.dilation = 1;
    *first = begin;
    return live;
}

}  // namespace

// Windows far wider than the input: those of segmentation heads (ASPP), 3x3 ones on one pixel.
bool ConvRunner::drops_taps(const ConvolutionFields& s, const ConvGeometry& g) const {
    int first;
    return s.axes == 2 && s.pad_value == 0.f && pair_ == 1 && !narrows_ && joined_ == 1 &&
           (live_axis(g.x, &first).kernel < g.x.kernel ||
            live_axis(g.y, &first).kernel < g.y.kernel);
}

// Fields, geometry and runner of the others.
int ConvRunner::live_taps(const Layer& layer, const ConvolutionFields& s, const ConvGeometry& g,
                          const Option& opt, ConvLiveTaps* live) const {
    int x0, y0;
    live->geometry = g;
    const WindowAxis& x = live->geometry.x = live_axis(g.x, &x0);
    const WindowAxis& y = live->geometry.y = live_axis(g.y, &y0);
    ConvolutionFields& f = live->fields = s;
    f.kernel_w = x.kernel, f.dilation_w = x.dilation;
    f.kernel_h = y.kernel, f.dilation_h = y.dilation;
    f.pad_left = x.before, f.pad_right = x.after, f.pad_top = y.before, f.pad_bottom = y.after;
    const int windows = s.weight_data_size / s.maxk(), at[] = {x0, x.kernel, y0, y.kernel};
    f.weight_data_size = windows * f.maxk();
    std::lock_guard<std::mutex> lock(lock_);
    for (const Live& other : live_)
        if (std::equal(at, at + 4, other.at)) live->runner = other.runner;
    if (live->runner) return kOk;
    f.weight_data = Mat(f.weight_data_size);  // planning may have an allocator of one run
    if (f.weight_data.empty()) return kOutOfMemory;
    float* to = f.weight_data;
    for (const float *w = raw_weights_, *end = w + windows * s.maxk(); w < end; w += s.maxk())
        for (int i = y0; i < y0 + y.kernel; i++, to += x.kernel)
            std::copy_n(w + i * s.kernel_w + x0, x.kernel, to);
    // Sizes that were told are those of all taps.
    Layer unhinted;
    unhinted.type = layer.type, unhinted.name = layer.name;
    const std::shared_ptr<ConvRunner> made = std::make_shared<ConvRunner>();
    Option same = opt;
    same.use_fp16_storage = false;  // one tap alone could be of planar half floats
    QUOLL_RETURN_IF_ERROR(made->create(unhinted, f, same));
    f.weight_data.release();
    live->runner = made;
    live_.push_back({{at[0], at[1], at[2], at[3]}, made});
    return kOk;
}

// ---------------------------------------------------------------- planning

int ConvRunner::weights_for(const ConvShape& shape, ConvRunPlan* plan) const {
    if (algorithm_ != ConvAlgorithm::kNone) {
        plan->weights = weights_;
        return kOk;
    }
    std::lock_guard<std::mutex> lock(lock_);
    Mat& packed = packed_[(int)plan->algorithm];
    if (packed.empty()) {
        Mat made;  // kept when it is whole: memory may end on the way
        QUOLL_RETURN_IF_ERROR(pack_weights(plan->algorithm, shape, &made));
        packed = made;
    }
    plan->weights = packed;
    return kOk;
}

// Whether bf16 inputs are multiplied as they are.
bool ConvRunner::multiplies_bf16(const ConvRunPlan& plan, const ConvolutionFields& s,
                                 const ConvGeometry& g) const {
    return is_split(plan.algorithm) && candidates_.split->terms == 1 && s.axes == 2 &&
           (s.pad_value == 0.f || !has_padding(g)) && ConvPlan::is_supported(shape_of(g));
}

DType ConvRunner::made_type(const ConvRunPlan& plan, const ConvolutionFields& s,
                            const ConvGeometry& g, DType dtype, const Option& opt) const {
    if (plan.live) {
        const ConvLiveTaps& live = *plan.live;
        return live.runner->made_type(live.plan, live.fields, live.geometry, dtype, opt);
    }
    if (makes_f16()) return DType::f16;
    // What a net is given is f32; results that will be stored as bf16 are rounded as they are made.
    const bool rounds = dtype == DType::f32 && opt.use_bf16_storage && !s.add_input;
    return rounds && multiplies_bf16(plan, s, g) ? DType::bf16 : dtype;
}

namespace {

// The input has to be padded first.
bool is_padded(const ConvolutionFields& s, const ConvGeometry& g, const ConvShape& shape) {
    return (s.pad_value != 0.f && has_padding(g)) || !ConvPlan::is_supported(shape);
}

void pad_axes(ConvGeometry* g) {
    for (WindowAxis* axis : {&g->x, &g->y, &g->z}) {
        axis->in += axis->before + axis->after;
        axis->before = axis->after = 0;
    }
}

// Of the input and the output.
const double kMostPlanned = 1 << 26;

// Values from one block of `pack` channels to the next of a new blob.
size_t block_step(int dims, int w, int h, int d, DType dtype, int pack) {
    return Mat::channel_step(dims, w, h, d, dtype_size(dtype) * pack) * pack;
}

}  // namespace

bool ConvRunner::fits(const ConvRunPlan& plan, const Call& call) const {
    const auto same_tiles = [&](const TileShape& planned, int threads) {
        TileShape tiles = tile_shape(call.shape);
        tiles.reduced_in = call.reduced_in, tiles.reduced_out = call.reduced_out;
        return planned == tiles && threads == call.threads;
    };
    if (is_split(plan.algorithm))
        return plan.split && same_tiles(plan.split->shape(), plan.split->threads());
    if (is_sliced(plan.algorithm))
        return plan.sliced && same_tiles(plan.sliced->shape(), plan.sliced->threads());
    if (plan.algorithm == ConvAlgorithm::kDirect)
        return plan.direct && plan.direct->shape() == call.shape;
    return true;
}

void ConvRunner::make_plan(const Call& call, ConvRunPlan* plan) const {
    TileShape tiles = tile_shape(call.shape);
    tiles.reduced_in = call.reduced_in, tiles.reduced_out = call.reduced_out;
    if (is_split(plan->algorithm))
        plan->split = std::make_shared<const SplitPlan>(*candidates_.split, tiles, call.threads);
    else if (is_sliced(plan->algorithm))
        plan->sliced = std::make_shared<const SlicedPlan>(*candidates_.sliced, tiles, call.threads);
    else if (plan->algorithm == ConvAlgorithm::kDirect)
        plan->direct = std::make_shared<const ConvPlan>(*kernels_, call.shape);
}

static int threads_of(const ConvGeometry& g, int in_channels, const Option& opt) {
    const double outputs = (double)g.x.out * g.y.out * g.z.out * g.num_output;
    return threads_for(opt, outputs * g.maxk() * in_channels);
}

void ConvRunner::set_threads(const ConvGeometry& g, const Option& opt, Call* call) const {
    const double outputs = (double)g.x.out * g.y.out * g.z.out * out_channels_;
    call->threads = threads_of(g, in_channels_, opt);
    // Joined groups that overlap write the same channels.
    if (!overlap_)
        call->group_threads =
            threads_side_by_side(group_, outputs * g.maxk() * in_channels_, call->threads);
    if (call->group_threads > 1) call->threads = 1;
}

int ConvRunner::plan(const Layer& layer, const ConvolutionFields& s, const ConvGeometry& geometry,
                     DType dtype, bool adds, const Option& opt, ConvRunPlan* plan) const {
    ConvGeometry g = geometry;
    if (planar_) return plan_flat(plan);
    if (algorithm_ == ConvAlgorithm::kNone && drops_taps(s, g)) {
        const auto live = std::make_shared<ConvLiveTaps>(ConvLiveTaps{{}, s, g, {}});
        QUOLL_RETURN_IF_ERROR(live_taps(layer, s, g, opt, live.get()));
        QUOLL_RETURN_IF_ERROR(
            live->runner->plan(layer, live->fields, live->geometry, dtype, adds, opt, &live->plan));
        plan->algorithm = live->plan.algorithm;
        plan->live = live;
        return kOk;
    }
    ConvShape shape = shape_of(g);
    plan->algorithm = algorithm_ == ConvAlgorithm::kNone ? choose(shape) : algorithm_;
    QUOLL_RETURN_IF_ERROR(weights_for(shape, plan));
    // As forward() will find its blobs.
    Call call = {};
    const bool stored = dtype == DType::bf16 || (opt.use_bf16_storage && !adds && !s.add_input);
    const bool bf16 = stored && multiplies_bf16(*plan, s, g);
    call.reduced_in = bf16 && dtype == DType::bf16;
    call.reduced_out = bf16;
    set_threads(g, opt, &call);
    int dims = s.axes + 1;
    if (is_padded(s, g, shape)) {
        pad_axes(&g);
        dims = std::max(dims, 3);
    }
    call.shape = shape_of(g);
    call.shape.in_step = block_step(dims, g.x.in, g.y.in, g.z.in,
                                    call.reduced_in ? DType::bf16 : DType::f32, shape.in_pack);
    call.shape.out_step = block_step(s.axes + 1, g.x.out, g.y.out, g.z.out,
                                     call.reduced_out ? DType::bf16 : DType::f32, shape.out_pack);
    // Lists as long as this are made when the blobs, which need more, could be.
    const double positions = (double)g.x.in * g.y.in * g.z.in + (double)g.x.out * g.y.out * g.z.out;
    if (positions < kMostPlanned) make_plan(call, plan);
    return kOk;
}

int ConvRunner::plan_flat(ConvRunPlan* plan) const {
    plan->algorithm = algorithm_ == ConvAlgorithm::kNone ? ConvAlgorithm::kDirect : algorithm_;
    ConvShape pixel = {};
    pixel.x = pixel.y = pixel.z = {1, 1, 1, 1, 1, 0};
    pixel.in_channels = in_channels_ / pair_, pixel.out_channels = out_channels_ / pair_;
    pixel.in_pack = in_pack_ / pair_, pixel.out_pack = out_pack_ / pair_;
    QUOLL_RETURN_IF_ERROR(weights_for(pixel, plan));
    const TileShape row = tile_shape(1, out_channels_, in_channels_, 0, 0);
    if (is_split(plan->algorithm))
        plan->split = std::make_shared<const SplitPlan>(*candidates_.split, row, 1);
    if (is_sliced(plan->algorithm))
        plan->sliced = std::make_shared<const SlicedPlan>(*candidates_.sliced, row, 1);
    return kOk;
}

ConvShape ConvRunner::shape_of(const ConvGeometry& g) const {
    ConvShape shape = {};
    shape.x = conv_axis(g.x);
    shape.y = conv_axis(g.y);
    shape.z = conv_axis(g.z);
    shape.in_channels = in_channels_ / pair_;
    shape.out_channels = out_channels_ / pair_;
    shape.in_pack = in_pack_ / pair_;
    shape.out_pack = out_pack_ / pair_;
    return shape;
}

// `added` as it is read: f32 or bf16, with this elempack.
static int prepare_added(const ConvolutionFields& s, const Mat& added, DType dtype, int pack,
                         const Option& opt, Mat* m) {
    *m = added;
    if (added.empty()) return kOk;
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    if (dtype == DType::f32 && added.dtype == DType::bf16)
        cast_bfloat16_to_float32(added, *m, temporary);
    if (dtype == DType::bf16 && added.dtype == DType::f32)
        cast_float32_to_bfloat16(added, *m, temporary);
    if (m->empty()) return kOutOfMemory;
    QUOLL_RETURN_IF_ERROR(with_elempack(*m, pack, opt, m));
    *m = conv_channels(s, *m);
    return kOk;
}

int ConvRunner::forward(const ConvRunPlan& plan, const ConvolutionFields& s,
                        const ConvGeometry& geometry, const Mat& bottom, const Mat& added, Mat& top,
                        const Option& opt) const {
    if (plan.live) {
        const ConvLiveTaps& live = *plan.live;
        return live.runner->forward(live.plan, live.fields, live.geometry, bottom, added, top, opt);
    }
    if (takes_f16()) return forward_f16(plan, s, geometry, bottom, added, top, opt);
    Mat wide;
    Option temporary = opt;
    if (narrows_) temporary.blob_allocator = opt.workspace_allocator;
    QUOLL_RETURN_IF_ERROR(forward_f32(plan, s, geometry, bottom, added, narrows_ ? wide : top,
                                      narrows_ ? temporary : opt));
    return narrows_ ? narrow(conv_channels(s, wide), s, geometry, top, opt) : (int)kOk;
}

// f32 or bf16, to f32 or bf16.
int ConvRunner::forward_f32(const ConvRunPlan& plan, const ConvolutionFields& s,
                            const ConvGeometry& geometry, const Mat& bottom, const Mat& added,
                            Mat& top, const Option& opt) const {
    ConvGeometry g = geometry;
    Mat in, out, add;
    const bool bf16_in = bottom.dtype == DType::bf16;
    const DType made = narrows_ ? DType::f32 : made_type(plan, s, g, bottom.dtype, opt);
    const bool bf16 = made == DType::bf16 && multiplies_bf16(plan, s, g);
    if (bf16_in && !bf16) return forward_widened(plan, s, g, bottom, added, top, opt);
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom, in_pack_, opt, &in));
    in = conv_channels(s, in);
    QUOLL_RETURN_IF_ERROR(prepare_added(s, added, bottom.dtype, out_pack_, opt, &add));
    if (!added.empty() && top.data == added.data && top.dtype == bottom.dtype &&
        top.elempack == out_pack_)
        out = add;
    else
        QUOLL_RETURN_IF_ERROR(create_conv_top(s, g, made, out_pack_, opt, &top, &out));
    if (is_padded(s, g, shape_of(g)))
        QUOLL_RETURN_IF_ERROR(pad_input(in, s.pad_value, opt, &g, &in));

    Call call = {shape_of(g), bf16_in, bf16, 1};
    set_threads(g, opt, &call);
    call.shape.in_step = in.cstep * in_pack_;
    call.shape.out_step = out.cstep * out_pack_;
    const size_t size = dtype_size(made), out_blocks = out_channels_ / out_pack_;
    Blobs blobs;
    blobs.in = in.data, blobs.added = add.data, blobs.out = out.data;
    blobs.added_step = add.cstep * out_pack_;
    blobs.in_group = in_channels_ / in_pack_ * call.shape.in_step * dtype_size(in.dtype);
    blobs.added_group = out_blocks * blobs.added_step * size;
    blobs.out_group = out_blocks * call.shape.out_step * size;
    if (!s.add_input || !add.empty()) blobs.activation = activation_;
    return run(plan, call, blobs, opt);
}

// The f32 output as f16.
int ConvRunner::narrow(const Mat& wide, const ConvolutionFields& s, const ConvGeometry& g, Mat& top,
                       const Option& opt) const {
    Mat out;
    QUOLL_RETURN_IF_ERROR(create_conv_top(s, g, DType::f16, kF16Pack, opt, &top, &out));
    const size_t elements = (size_t)out.w * out.h * out.d;
    const int threads = threads_for(opt, (double)elements * out_channels_);
    run_tasks(out.c, threads, [&](int64_t q, int) {
        host_kernel_set().narrow_f16_blocks(wide.channel(2 * (int)q), wide.channel(2 * (int)q + 1),
                                            elements,
                                            (uint16_t*)out.data + q * out.cstep * kF16Pack);
    });
    return kOk;
}

int ConvRunner::forward_f16(const ConvRunPlan& plan, const ConvolutionFields& s,
                            const ConvGeometry& geometry, const Mat& bottom, const Mat& added,
                            Mat& top, const Option& opt) const {
    if (planar_) return forward_planar(plan, s, geometry, bottom, top, opt);
    ConvGeometry g = geometry;
    Mat in, out, add;
    QUOLL_RETURN_IF_ERROR(as_f16(bottom, kF16Pack, opt, &in));
    in = conv_channels(s, in);
    if (!added.empty()) QUOLL_RETURN_IF_ERROR(as_f16(added, kF16Pack, opt, &add));
    if (!added.empty()) add = conv_channels(s, add);
    if (!added.empty() && top.data == added.data && added.data == add.data)
        out = add;
    else
        QUOLL_RETURN_IF_ERROR(create_conv_top(s, g, DType::f16, kF16Pack, opt, &top, &out));
    if (is_padded(s, g, shape_of(g)))
        QUOLL_RETURN_IF_ERROR(pad_input(in, s.pad_value, opt, &g, &in));
    in = as_pairs(in), out = as_pairs(out), add = as_pairs(add);
    Call call = {shape_of(g), false, false, 1};
    set_threads(g, opt, &call);
    call.shape.in_step = in.cstep * in.elempack;
    call.shape.out_step = out.cstep * out.elempack;
    Blobs blobs;
    blobs.in = in.data, blobs.added = add.data, blobs.out = out.data;
    blobs.added_step = add.cstep * add.elempack;
    const size_t out_blocks = out_channels_ / kF16Pack;
    blobs.in_group = in_channels_ / kF16Pack * call.shape.in_step * sizeof(float);
    blobs.added_group = out_blocks * blobs.added_step * sizeof(float);
    blobs.out_group = out_blocks * call.shape.out_step * sizeof(float);
    if (!s.add_input || !add.empty()) blobs.activation = activation_;
    return run(plan, call, blobs, opt);
}

int ConvRunner::forward_planar(const ConvRunPlan& plan, const ConvolutionFields& s,
                               const ConvGeometry& g, const Mat& bottom, Mat& top,
                               const Option& opt) const {
    Mat in, out;
    QUOLL_RETURN_IF_ERROR(as_f16(bottom, 1, opt, &in));
    in = conv_channels(s, in);
    QUOLL_RETURN_IF_ERROR(create_conv_top(s, g, DType::f16, 1, opt, &top, &out));
    const PlanarProduct product = {kernels_->gemm,
                                   packing_->gemm,
                                   (size_t)out.w * out.h * out.d,
                                   (size_t)in_channels_,
                                   (size_t)out_channels_,
                                   in.cstep,
                                   out.cstep};
    run_planar(product, in.data, plan.weights.data, bias_.data, out.data, activation_,
               threads_of(g, in_channels_, opt));
    return kOk;
}

int ConvRunner::run(const ConvRunPlan& plan, const Call& call, const Blobs& blobs,
                    const Option& opt) const {
    // A blob may lie within a larger one.
    ConvRunPlan other;
    const ConvRunPlan* p = &plan;
    if (!fits(plan, call)) {
        other.algorithm = plan.algorithm, other.weights = plan.weights;
        make_plan(call, &other);
        p = &other;
    }
    if (is_split(p->algorithm)) return run_split(*p, call, blobs, opt);
    if (is_sliced(p->algorithm)) return run_sliced(*p, call, blobs, opt);
    if (is_winograd(p->algorithm)) return run_winograd(*p, call, blobs, opt);
    return run_direct(*p, call, blobs);
}

// A bf16 blob by way of f32.
int ConvRunner::forward_widened(const ConvRunPlan& plan, const ConvolutionFields& s,
                                const ConvGeometry& g, const Mat& bottom, const Mat& added,
                                Mat& top, const Option& opt) const {
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    temporary.use_bf16_storage = false;
    Mat wide, result;
    cast_bfloat16_to_float32(bottom, wide, temporary);
    if (wide.empty()) return kOutOfMemory;
    QUOLL_RETURN_IF_ERROR(is_flat_input(s, wide.logical_shape())
                              ? forward_flat(plan, s, wide, result, temporary)
                              : forward(plan, s, g, wide, added, result, temporary));
    cast_float32_to_bfloat16(result, top, opt);
    return top.empty() ? (int)kOutOfMemory : (int)kOk;
}

// run(group, thread) for all groups, one after the other or side by side. The first error.
template <class Run>
int ConvRunner::run_groups(const Call& call, const Run& run) const {
    std::atomic<int> status(kOk);
    run_tasks(group_, call.group_threads, [&](int64_t i, int thread) {
        if (status != kOk) return;
        const int result = run((int)i, thread);
        if (result != kOk) status = result;
    });
    return status;
}

int ConvRunner::run_direct(const ConvRunPlan& plan, const Call& call, const Blobs& b) const {
    return run_groups(call, [&](int i, int) {
        run_group(*plan.direct, i, plan.weights.row(i), b, call.threads);
        return (int)kOk;
    });
}

void ConvRunner::run_group(const ConvPlan& plan, int i, const float* weights, const Blobs& b,
                           int threads) const {
    const float* added = (const float*)b.added;
    if (added) added += group_offset(i, b.added_group) / sizeof(float);
    plan.run((const float*)((const char*)b.in + group_offset(i, b.in_group)), weights, bias_.row(i),
             (float*)((char*)b.out + group_offset(i, b.out_group)), added, b.added_step,
             b.activation, threads);
}

// For the weights of a group; empty when memory runs out.
Mat ConvRunner::group_memory(const Option& opt) const {
    Mat memory;
    const size_t values = (size_t)out_channels_ * in_channels_ * kernel_w_ * kernel_h_;
    if (values <= INT_MAX) memory.create((int)values, (size_t)4u, opt.workspace_allocator);
    return memory;
}

// A group whose values tile units do not take, on vectors.
int ConvRunner::run_unpacked(const Mat& weights, int group, const Call& call, const Blobs& b,
                             const Option& opt) const {
    Mat packed;
    const size_t k = (size_t)in_channels_ * kernel_w_ * kernel_h_;
    const size_t floats = gemm_packed_size(*kernels_->gemm, out_channels_, k);
    if (floats <= INT_MAX) packed.create((int)floats, (size_t)4u, opt.workspace_allocator);
    if (packed.empty()) return kOutOfMemory;
    pack_direct(weights, packed);
    run_group(ConvPlan(*kernels_, call.shape), group, packed, b, call.threads);
    return kOk;
}

namespace {

// A row for each of so many runs of a plan at a time; empty when memory runs out.
template <class Plan>
Mat workspace_of(const Plan& plan, int runs, const Option& opt) {
    Mat workspace;
    if (plan.workspace() <= INT_MAX)
        workspace.create((int)plan.workspace(), runs, 4u, opt.workspace_allocator);
    return workspace;
}

}  // namespace

int ConvRunner::run_winograd(const ConvRunPlan& run, const Call& call, const Blobs& b,
                             const Option& opt) const {
    const WinogradPlan plan(*kernels_, call.shape, kWinogradIn, call.threads);
    Mat workspace = workspace_of(plan, 1, opt);
    if (workspace.empty()) return kOutOfMemory;
    plan.run((const float*)b.in, run.weights, bias_, zeros_, (float*)b.out, (const float*)b.added,
             b.added_step, b.activation, workspace);
    return kOk;
}

int ConvRunner::run_split(const ConvRunPlan& run, const Call& call, const Blobs& b,
                          const Option& opt) const {
    const SplitPlan& plan = *run.split;
    Mat workspace = workspace_of(plan, call.group_threads, opt);
    if (workspace.empty()) return kOutOfMemory;
    return run_groups(call, [&](int i, int thread) -> int {
        const char* added = (const char*)b.added;
        if (added) added += group_offset(i, b.added_group);
        const uint16_t* weights = (const uint16_t*)run.weights.row(i);
        if (plan.run((const char*)b.in + group_offset(i, b.in_group), weights, bias_.row(i),
                     (char*)b.out + group_offset(i, b.out_group), added, (ptrdiff_t)b.added_step,
                     b.activation, workspace.row(thread)))
            return kOk;
        Mat plain = group_memory(opt);
        if (plain.empty()) return kOutOfMemory;
        SplitPlan::unpack(*candidates_.split, weights, plan.shape(), plain);
        return run_unpacked(plain, i, call, b, opt);
    });
}

int ConvRunner::run_sliced(const ConvRunPlan& run, const Call& call, const Blobs& b,
                           const Option& opt) const {
    const SlicedPlan& plan = *run.sliced;
    Mat workspace = workspace_of(plan, call.group_threads, opt);
    if (workspace.empty()) return kOutOfMemory;
    return run_groups(call, [&](int i, int thread) -> int {
        const char* added = (const char*)b.added;
        if (added) added += group_offset(i, b.added_group);
        if (plan.run((const float*)((const char*)b.in + group_offset(i, b.in_group)),
                     run.weights.row(i), bias_.row(i),
                     (float*)((char*)b.out + group_offset(i, b.out_group)), (const float*)added,
                     (ptrdiff_t)b.added_step, b.activation, workspace.row(thread)))
            return kOk;
        Mat plain = group_memory(opt);
        if (plain.empty()) return kOutOfMemory;
        SlicedPlan::unpack(run.weights.row(i), plan.shape(), plain);
        return run_unpacked(plain, i, call, b, opt);
    });
}

int ConvRunner::forward_flat(const ConvRunPlan& plan, const ConvolutionFields& s, const Mat& bottom,
                             Mat& top, const Option& opt) const {
    // Channels of a 1-D blob follow each other whatever its elempack; with a 1x1 kernel that is the
    // order of the weights.
    const DType dtype = takes_f16() ? DType::f16 : DType::f32;
    Mat in = bottom;
    if (takes_f16()) QUOLL_RETURN_IF_ERROR(as_f16(bottom, planar_ ? 1 : kF16Pack, opt, &in));
    top.create(Shape(s.num_output, dtype), out_pack_, opt.blob_allocator);
    if (top.empty()) return kOutOfMemory;
    if (planar_) {
        const PlanarProduct product = {
            kernels_->gemm, packing_->gemm, 1, (size_t)in_channels_, (size_t)out_channels_, 1, 1};
        run_planar(product, in.data, plan.weights.data, bias_.data, top.data, activation_, 1);
        return kOk;
    }
    const FusedActivation activation = s.add_input ? FusedActivation() : activation_;
    const int in_floats = in_channels_ / pair_, out_floats = out_channels_ / pair_;
    const Blobs blobs = {in.data,  nullptr,
                         top.data, in_channels_ * sizeof(float),
                         0,        out_channels_ * sizeof(float),
                         0,        activation};
    // A pixel, whose channel blocks follow each other.
    Call call = {{}, false, false, 1};
    ConvShape& pixel = call.shape;
    pixel.x = pixel.y = {1, 1, 1, 1, 1, 0};
    pixel.in_channels = in_channels_, pixel.out_channels = out_channels_;
    pixel.in_pack = in_pack_, pixel.out_pack = out_pack_;
    pixel.in_step = in_pack_, pixel.out_step = out_pack_;
    if (is_split(plan.algorithm)) return run_split(plan, call, blobs, opt);
    if (is_sliced(plan.algorithm)) return run_sliced(plan, call, blobs, opt);
    for (int i = 0; i < group_; i++) {
        GemmMatrix g = {};
        g.kernels = kernels_;
        g.a = (const float*)in.data + group_offset(i, in_floats);
        g.a_k = 1;
        g.m = 1;
        g.n = out_floats;
        g.k = in_floats;
        g.b = plan.weights.row(i);
        g.bias = bias_.row(i);
        g.c = (float*)top.data + group_offset(i, out_floats);
        g.c_pack = out_floats;
        g.activation = activation;
        gemm_matrix(g, threads_for(opt, (double)in_channels_ * out_channels_));
    }
    return kOk;
}

}  // namespace quoll
