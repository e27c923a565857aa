// ConvRunner: how it will run on inputs of one size.
#include <algorithm>

#include "layer/common/side_by_side.h"
#include "layer/cpu/conv/conv_padding.h"
#include "layer/cpu/conv/conv_runner.h"

namespace quoll {

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

// Whether bf16 inputs are multiplied as they are.
bool ConvRunner::multiplies_bf16(const ConvRunPlan& plan, const ConvolutionFields& s,
                                 const ConvGeometry& g) const {
    return is_split(plan.algorithm) && candidates_.split->terms == 1 && s.axes < 3 &&
           !must_pad(s, g, shape_of(g));
}

DType ConvRunner::made_type(const ConvRunPlan& plan, const ConvolutionFields& s,
                            const ConvGeometry& g, DType dtype, const Option& opt) const {
    if (!kFewKernels && plan.live) {
        const ConvLiveTaps& live = *plan.live;
        return live.runner->made_type(live.plan, live.fields, live.geometry, dtype, opt);
    }
    if (makes_f16()) return DType::f16;
    if (takes_halves() && dtype == DType::f16) return DType::f32;
    // What a net is given is f32; results that will be stored as bf16 are rounded as they are made.
    const bool rounds =
        kHasHalfStorage && dtype == DType::f32 && opt.use_bf16_storage && !s.add_input;
    return rounds && multiplies_bf16(plan, s, g) ? DType::bf16 : dtype;
}

TileShape ConvRunner::Call::tiles() const {
    TileShape tiles = tile_shape(shape);
    tiles.reduced_in = reduced_in, tiles.reduced_out = reduced_out;
    tiles.items = items;
    tiles.in_item = (ptrdiff_t)in_item, tiles.out_item = (ptrdiff_t)out_item;
    return tiles;
}

bool ConvRunner::fits(const ConvRunPlan& plan, const Call& call) const {
    const auto same_tiles = [&](const TileShape& planned, int threads) {
        return planned == call.tiles() && threads == call.threads;
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
    const TileShape tiles = call.tiles();
    if (is_split(plan->algorithm))
        plan->split = std::make_shared<const SplitPlan>(*candidates_.split, tiles, call.threads);
    else if (is_sliced(plan->algorithm))
        plan->sliced = std::make_shared<const SlicedPlan>(*candidates_.sliced, tiles, call.threads);
    else if (plan->algorithm == ConvAlgorithm::kDirect)
        plan->direct = std::make_shared<const ConvPlan>(
            takes_halves() && plan->halves ? *kernels_->f16f32 : *kernels_, call.shape);
}

double ConvRunner::macs(const ConvGeometry& g, int outputs) const {
    return (double)g.x.out * g.y.out * g.z.out * outputs * g.maxk() * in_channels_;
}

int ConvRunner::threads_of(const ConvGeometry& g, const Option& opt, int items) const {
    return threads_for(opt, items * macs(g, g.num_output));
}

void ConvRunner::set_threads(const ConvGeometry& g, const Option& opt, Call* call) const {
    call->threads = threads_of(g, opt, call->items);
    const SideBySide groups =
        side_by_side(groups_apart(), call->items * macs(g, out_channels_), call->threads);
    call->groups = groups.pieces, call->threads = groups.threads;
}

namespace {

// Of the input and the output.
const double kMostPlanned = 1 << 26;

// Values from one block of `pack` channels to the next of a new blob.
size_t block_step(int dims, int w, int h, int d, DType dtype, int pack) {
    return Mat::channel_step(dims, w, h, d, dtype_size(dtype) * pack) * pack;
}

// And from one item of a new batch to the next, which has so many values.
size_t item_step(size_t values, DType dtype) {
    return align_size(values * dtype_size(dtype), 16) / dtype_size(dtype);
}

}  // namespace

// As forward() will find its blobs.
ConvRunner::Call ConvRunner::planned_call(const ConvRunPlan& plan, const ConvolutionFields& s,
                                          ConvGeometry g, DType dtype, bool adds, int items,
                                          const Option& opt) const {
    Call call = {};
    call.items = items;
    const bool stored = kHasHalfStorage &&
                        (dtype == DType::bf16 || (opt.use_bf16_storage && !adds && !s.add_input));
    const bool bf16 = stored && multiplies_bf16(plan, s, g);
    call.reduced_in = bf16 && dtype == DType::bf16;
    call.reduced_out = bf16;
    set_threads(g, opt, &call);
    const bool halves = takes_halves() && plan.halves;
    const DType in = halves ? DType::f16 : call.reduced_in ? DType::bf16 : DType::f32;
    const DType out = call.reduced_out ? DType::bf16 : DType::f32;
    int dims = s.axes + 1;
    if (must_pad(s, g, shape_of(g))) {
        pad_axes(&g);
        dims = std::max(dims, 3);
    }
    call.shape = shape_of(g);
    call.shape.in_step = block_step(dims, g.x.in, g.y.in, g.z.in, in, call.shape.in_pack);
    call.shape.out_step =
        block_step(s.axes + 1, g.x.out, g.y.out, g.z.out, out, call.shape.out_pack);
    if (halves) call.shape = shape_of_halves(call.shape);
    if (items == 1) return call;
    call.in_item = item_step(call.shape.in_step * (g.num_input / in_pack_), in);
    call.out_item = item_step(call.shape.out_step * (g.num_output / out_pack_), out);
    return call;
}

// Whether a batch of what `plan` is for is one product; leaves it without the plan of an item.
bool ConvRunner::takes_items(const ConvolutionFields& s, const ConvGeometry& g,
                             ConvRunPlan* plan) const {
    const std::shared_ptr<const SplitPlan> item = std::move(plan->split);
    plan->split.reset();
    return item && s.axes == 2 && item->extends_to_batch() && multiplies_bf16(*plan, s, g);
}

int ConvRunner::plan_batch(const Layer& layer, const ConvolutionFields& s, const ConvGeometry& g,
                           DType dtype, bool adds, int items, const Option& opt,
                           ConvRunPlan* plan) const {
    QUOLL_RETURN_IF_ERROR(this->plan(layer, s, g, dtype, adds, opt, plan));
    if (!takes_items(s, g, plan)) return kOk;
    const Call call = planned_call(*plan, s, g, dtype, adds, items, opt);
    if (SplitPlan::is_supported(call.tiles())) make_plan(call, plan);
    return kOk;
}

int ConvRunner::plan_items(const Layer& layer, const ConvolutionFields& s, const ConvGeometry& g,
                           const Mat& in, const Mat& out, bool adds, const Option& opt,
                           ConvRunPlan* plan) const {
    QUOLL_RETURN_IF_ERROR(this->plan(layer, s, g, in.dtype, adds, opt, plan));
    if (!takes_items(s, g, plan)) return kOk;
    const Call call = call_of(g, in, out, opt);
    if (SplitPlan::is_supported(call.tiles())) make_plan(call, plan);
    return kOk;
}

int ConvRunner::plan(const Layer& layer, const ConvolutionFields& s, const ConvGeometry& g,
                     DType dtype, bool adds, const Option& opt, ConvRunPlan* plan) const {
    if (planar()) return plan_flat(plan);
    if constexpr (kSumsColumns) {
        if (columns_ && dtype == DType::bf16 && !adds)
            QUOLL_RETURN_IF_ERROR(plan_columns(layer, g, opt, plan));
        if (plan->columns) return kOk;
    }
    if (algorithm_ == ConvAlgorithm::kNone && drops_taps(s, g)) {
        const auto live = std::make_shared<ConvLiveTaps>(ConvLiveTaps{{}, s, g, {}});
        QUOLL_RETURN_IF_ERROR(live_taps(layer, s, g, opt, live.get()));
        QUOLL_RETURN_IF_ERROR(
            live->runner->plan(layer, live->fields, live->geometry, dtype, adds, opt, &live->plan));
        plan->algorithm = live->plan.algorithm;
        plan->live = live;
        return kOk;
    }
    const ConvShape shape = shape_of(g);
    if (takes_halves())
        plan->halves =
            dtype == DType::f16 && (adds || !s.add_input) && g.x.out * g.y.out >= kMinHalfPixels;
    plan->algorithm = algorithm_ == ConvAlgorithm::kNone ? choose(shape) : algorithm_;
    QUOLL_RETURN_IF_ERROR(weights_for(shape, plan));
    // Lists as long as this are made when the blobs, which need more, could be.
    const double positions = (double)g.x.in * g.y.in * g.z.in + (double)g.x.out * g.y.out * g.z.out;
    if (positions < kMostPlanned) make_plan(planned_call(*plan, s, g, dtype, adds, 1, opt), plan);
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

}  // namespace quoll
