#include "gpu/program.h"

#include <algorithm>

#include "plan/memory_plan.h"
#include "quoll/status.h"

namespace quoll {

namespace {

size_t align_up(size_t bytes, size_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

bool lanes_disjoint(const Binding& a, const Binding& b) {
    if (a.block != b.block || a.pitch == 0 || a.pitch != b.pitch) return false;
    return a.lane_last <= b.lane_first || b.lane_last <= a.lane_first;
}

// Of two bindings of the arena, whose offsets are those in it.
bool overlap(const Binding& a, const Binding& b) {
    if (a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset) return false;
    return !lanes_disjoint(a, b);
}

// Does a dispatch touch what one since the last barrier has written, or write what one has read?
bool conflicts(const Dispatch& dispatch, const std::vector<Binding>& since) {
    for (const Binding& now : dispatch.bindings) {
        if (now.where != Binding::kBlock) continue;
        for (const Binding& before : since)
            if ((now.written || before.written) && overlap(now, before)) return true;
    }
    return false;
}

}  // namespace

int Program::add_block(size_t bytes) {
    blocks_.push_back({bytes, 0, -1, -1});
    return (int)blocks_.size() - 1;
}

size_t Program::add_upload(size_t bytes, size_t alignment) {
    const size_t offset = align_up(upload_bytes, alignment);
    upload_bytes = offset + bytes;
    return offset;
}

size_t Program::add_download(size_t bytes, size_t alignment) {
    const size_t offset = align_up(download_bytes, alignment);
    download_bytes = offset + bytes;
    return offset;
}

size_t Program::add_counters(size_t bytes, size_t alignment) {
    const size_t offset = align_up(counter_bytes, alignment);
    counter_bytes = offset + bytes;
    return offset;
}

size_t Program::add_faults(int step, size_t alignment) {
    const size_t offset = align_up(fault_bytes, alignment);
    fault_bytes = offset + kFaultBytes;
    faults.push_back({step, offset});
    return offset;
}

// A dispatch runs as early as what it depends on lets it: those of one level run at the same time.
void Program::order_by_level() {
    struct Access {
        Binding binding;
        int level;
    };
    std::vector<std::vector<Access>> accesses(blocks_.size());
    for (Dispatch& dispatch : dispatches) {
        for (const Binding& now : dispatch.bindings) {
            if (now.where != Binding::kBlock) continue;
            for (const Access& before : accesses[now.block])
                if ((now.written || before.binding.written) && !lanes_disjoint(now, before.binding))
                    dispatch.level = std::max(dispatch.level, before.level + 1);
        }
        for (const Binding& now : dispatch.bindings)
            if (now.where == Binding::kBlock) accesses[now.block].push_back({now, dispatch.level});
    }
    std::stable_sort(dispatches.begin(), dispatches.end(),
                     [](const Dispatch& a, const Dispatch& b) { return a.level < b.level; });
}

void Program::place_blocks(size_t alignment) {
    for (const Dispatch& dispatch : dispatches) {
        for (const Binding& binding : dispatch.bindings) {
            if (binding.where != Binding::kBlock) continue;
            Block& block = blocks_[binding.block];
            if (block.first < 0) block.first = dispatch.level;
            block.last = dispatch.level;
        }
    }
    std::vector<MemoryRequest> requests;
    for (const Block& block : blocks_)
        requests.push_back(
            {block.first < 0 ? 0 : block.bytes, std::max(block.first, 0), std::max(block.last, 0)});
    const MemoryPlan plan = plan_memory(requests, alignment);
    arena_bytes = plan.bytes;
    for (size_t i = 0; i < blocks_.size(); i++) blocks_[i].offset = plan.offsets[i];
    for (Dispatch& dispatch : dispatches)
        for (Binding& binding : dispatch.bindings)
            if (binding.where == Binding::kBlock) binding.offset += blocks_[binding.block].offset;
}

void Program::find_barriers() {
    std::vector<Binding> since;
    for (Dispatch& dispatch : dispatches) {
        dispatch.barrier_before = conflicts(dispatch, since);
        if (dispatch.barrier_before) since.clear();
        for (const Binding& binding : dispatch.bindings)
            if (binding.where == Binding::kBlock) since.push_back(binding);
    }
}

int Program::finish(const GpuDevice& device, int threads) {
    order_by_level();
    place_blocks(device.alignment());
    find_barriers();
    std::vector<PipelineKey> keys;
    for (const Dispatch& dispatch : dispatches) keys.push_back(dispatch.key);
    std::vector<VkPipeline> pipelines;
    QUOLL_RETURN_IF_ERROR(device.pipelines().get(keys, threads, &pipelines));
    for (size_t i = 0; i < dispatches.size(); i++) dispatches[i].pipeline = pipelines[i];
    return kOk;
}

void Program::divide(const std::vector<double>& seconds, double most) {
    double used = 0;
    submissions.clear();
    for (size_t i = 0; i < dispatches.size(); i++) {
        if (i > 0 && used + seconds[i] > most) {
            submissions.push_back(i);
            used = 0;
        }
        used += seconds[i];
    }
}

}  // namespace quoll
