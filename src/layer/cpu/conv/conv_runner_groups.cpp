// ConvRunner: the groups of one call, by the algorithm of a plan.
#include <limits.h>

#include <atomic>

#include "layer/cpu/conv/conv_runner.h"
#include "runtime/thread_pool.h"

namespace quoll {

int ConvRunner::run(const ConvRunPlan& plan, const Call& call, const Blobs& blobs,
                    const Option& opt) const {
    // A blob may be part of a larger one.
    ConvRunPlan other;
    const ConvRunPlan* p = &plan;
    if (!fits(plan, call)) {
        other.algorithm = plan.algorithm, other.weights = plan.weights;
        if (takes_halves()) other.halves = plan.halves;
        make_plan(call, &other);
        p = &other;
    }
    if (is_split(p->algorithm)) return run_split(*p, call, blobs, opt);
    if (is_sliced(p->algorithm)) return run_sliced(*p, call, blobs, opt);
    if (is_winograd(p->algorithm)) return run_winograd(*p, call, blobs, opt);
    return run_direct(*p, call, blobs);
}

// Calls run(group, team) for all groups, one after the other or side by side; the last one
// afterwards if it writes channels of the one before. Returns the first error.
template <class Run>
int ConvRunner::run_groups(const Call& call, const Run& run) const {
    std::atomic<int> status(kOk);
    const auto run_group = [&](int64_t i, int team) {
        if (status != kOk) return;
        const int result = run((int)i, team);
        if (result != kOk) status = result;
    };
    run_tasks_in_teams(groups_apart(), call.groups, call.threads, run_group);
    if (groups_apart() < group_) run_group(group_ - 1, 0);
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

// Memory for the weights of a group; empty if memory runs out.
Mat ConvRunner::group_memory(const Option& opt) const {
    Mat memory;
    const size_t values = (size_t)out_channels_ * in_channels_ * kernel_w_ * kernel_h_;
    if (values <= INT_MAX) memory.create((int)values, (size_t)4u, opt.workspace_allocator);
    return memory;
}

// Runs a group whose values tile units do not take, on vectors.
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

// Workspace with a row for each of the runs that a plan has at a time; empty if memory runs out.
template <class Plan>
Mat workspace_of(const Plan& plan, int runs, const Option& opt) {
    Mat workspace;
    if (plan.workspace() <= INT_MAX)
        workspace.create((int)plan.workspace(), runs, 4u, opt.workspace_allocator);
    return workspace;
}

}  // namespace

// Runs on copies of what is not in whole blocks.
int ConvRunner::run_whole_blocks(const ConvRunPlan& run, const Call& call, const Blobs& b,
                                 const Option& opt) const {
    const ConvShape& s = call.shape;
    Call whole = call;
    whole.shape = winograd_shape(s);
    Blobs blobs = b;
    const ChannelBlocksOf in_blob = {s.in_channels, s.in_pack, (size_t)s.x.in * s.y.in * s.z.in,
                                     s.in_step};
    const ChannelBlocksOf out_blob = {s.out_channels, s.out_pack,
                                      (size_t)s.x.out * s.y.out * s.z.out, s.out_step};
    const int lanes = kernels_->lanes;
    Mat in, out;
    if (in_blob.elements > INT_MAX || out_blob.elements > INT_MAX) return kOutOfMemory;
    if (s.in_pack != lanes) {
        in.create((int)in_blob.elements, 1, whole.shape.in_channels / lanes, 4u * lanes, lanes,
                  opt.workspace_allocator);
        if (in.empty()) return kOutOfMemory;
        copy_to_whole_blocks(*kernels_, (const float*)b.in, in_blob, in, call.threads);
        blobs.in = in.data;
        whole.shape.in_step = in.cstep * lanes;
    }
    if (s.out_pack != lanes) {
        out.create((int)out_blob.elements, 1, whole.shape.out_channels / lanes, 4u * lanes, lanes,
                   opt.workspace_allocator);
        if (out.empty()) return kOutOfMemory;
        blobs.out = out.data;
        whole.shape.out_step = out.cstep * lanes;
        if (b.added) {
            ChannelBlocksOf added = out_blob;
            added.step = b.added_step;
            copy_to_whole_blocks(*kernels_, (const float*)b.added, added, out, call.threads);
            blobs.added = out.data, blobs.added_step = whole.shape.out_step;
        }
    }
    QUOLL_RETURN_IF_ERROR(run_winograd(run, whole, blobs, opt));
    if (!out.empty()) copy_from_whole_blocks(*kernels_, out, (float*)b.out, out_blob, call.threads);
    return kOk;
}

int ConvRunner::run_winograd(const ConvRunPlan& run, const Call& call, const Blobs& b,
                             const Option& opt) const {
    const int lanes = kernels_->lanes;
    if (whole_blocks() && (call.shape.in_pack != lanes || call.shape.out_pack != lanes))
        return run_whole_blocks(run, call, b, opt);
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
    Mat workspace = workspace_of(plan, call.groups, opt);
    if (workspace.empty()) return kOutOfMemory;
    return run_groups(call, [&](int i, int team) -> int {
        const char* added = (const char*)b.added;
        if (added) added += group_offset(i, b.added_group);
        const uint16_t* weights = (const uint16_t*)run.weights.row(i);
        if (plan.run((const char*)b.in + group_offset(i, b.in_group), weights, bias_.row(i),
                     (char*)b.out + group_offset(i, b.out_group), added, (ptrdiff_t)b.added_step,
                     b.activation, workspace.row(team)))
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
    Mat workspace = workspace_of(plan, call.groups, opt);
    if (workspace.empty()) return kOutOfMemory;
    return run_groups(call, [&](int i, int team) -> int {
        const char* added = (const char*)b.added;
        if (added) added += group_offset(i, b.added_group);
        if (plan.run((const float*)((const char*)b.in + group_offset(i, b.in_group)),
                     run.weights.row(i), bias_.row(i),
                     (float*)((char*)b.out + group_offset(i, b.out_group)), (const float*)added,
                     (ptrdiff_t)b.added_step, b.activation, workspace.row(team)))
            return kOk;
        Mat plain = group_memory(opt);
        if (plain.empty()) return kOutOfMemory;
        SlicedPlan::unpack(run.weights.row(i), plan.shape(), plain);
        return run_unpacked(plain, i, call, b, opt);
    });
}

}  // namespace quoll
