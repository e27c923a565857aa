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
    const bool again = next_block_ >= 0 && next_block_ < block_count();
    if (again && bytes <= blocks_[next_block_].bytes) return next_block_++;
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

static bool same_but_size(const Dispatch& a, const Dispatch& b) {
    if (a.key < b.key || b.key < a.key || a.push.size() != b.push.size()) return false;
    if (a.narrowed != b.narrowed || a.choice >= 0 || b.choice >= 0) return false;
    for (size_t i = 0; i < a.bindings.size(); i++) {
        const Binding &x = a.bindings[i], &y = b.bindings[i];
        if (x.where != y.where || x.block != y.block || x.buffer != y.buffer ||
            x.offset != y.offset || x.written != y.written || x.pitch != y.pitch ||
            x.lane_first != y.lane_first || x.lane_last != y.lane_last || y.bytes > x.bytes)
            return false;
    }
    return true;
}

bool Program::end_again(size_t first, size_t end, size_t size, size_t sizes) {
    next_block_ = -1;
    const size_t again = dispatches.size() - (end - first);
    if (again < end) return false;
    for (size_t i = 0; i < end - first; i++) {
        Dispatch& d = dispatches[first + i];
        const Dispatch& other = dispatches[again + i];
        if (!same_but_size(d, other)) return false;
        const size_t words = d.push.size() + 3;
        for (size_t k = d.by_size.size(); k < sizes * words; k += words) {
            d.by_size.insert(d.by_size.end(), d.push.begin(), d.push.end());
            d.by_size.insert(d.by_size.end(), d.groups, d.groups + 3);
        }
        uint32_t* const to = d.by_size.data() + size * words;
        std::copy(other.push.begin(), other.push.end(), to);
        std::copy(other.groups, other.groups + 3, to + other.push.size());
    }
    dispatches.resize(again);
    return true;
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
    return make_pipelines(device, threads);
}

int Program::make_pipelines(const GpuDevice& device, int threads) {
    std::vector<PipelineKey> keys;
    for (const Dispatch& dispatch : dispatches) keys.push_back(dispatch.key);
    std::vector<VkPipeline> pipelines;
    QUOLL_RETURN_IF_ERROR(device.pipelines().get(keys, threads, &pipelines));
    for (size_t i = 0; i < dispatches.size(); i++) dispatches[i].pipeline = pipelines[i];
    return kOk;
}

static thread_local uint32_t forced_parts = 0;

void force_moved_parts(uint32_t most) { forced_parts = most; }

// Along the last axis that has groups: what shaders make of the number of groups along the axes
// before stays as it is.
static std::vector<Dispatch> split_dispatch(const Dispatch& whole, uint32_t parts, bool moved) {
    const int axis = whole.groups[2] > 1 ? 2 : whole.groups[1] > 1 ? 1 : 0;
    const uint32_t groups = whole.groups[axis], each = (groups + parts - 1) / parts;
    std::vector<Dispatch> made;
    for (uint32_t first = 0; first < groups; first += each) {
        made.push_back(whole);
        if (moved)
            made.back().key.first_group[axis] = first;
        else
            made.back().first[axis] = first, made.back().key.has_first_group = true;
        made.back().groups[axis] = std::min(each, groups - first);
        made.back().barrier_before = whole.barrier_before && first == 0;
    }
    return made;
}

int Program::divide(const GpuDevice& device, const std::vector<double>& seconds, double most) {
    const bool moved = forced_parts || !device.divides_dispatches();
    const uint32_t most_moved = forced_parts ? forced_parts : kMostMovedParts;
    const std::vector<Dispatch> whole = std::move(dispatches);
    double used = 0;
    submissions.clear(), dispatches.clear();
    for (size_t i = 0; i < whole.size(); i++) {
        const uint32_t* groups = whole[i].groups;
        const double wanted = std::min(seconds[i] / most, 65535.);
        const uint32_t axis = groups[2] > 1 ? groups[2] : groups[1] > 1 ? groups[1] : groups[0];
        uint32_t parts = std::min((uint32_t)wanted + (wanted > (uint32_t)wanted), axis);
        if (moved) parts = std::min(parts, most_moved);
        std::vector<Dispatch> made(1, whole[i]);
        if (parts > 1) made = split_dispatch(whole[i], parts, moved);
        for (const Dispatch& part : made) {
            const double takes = seconds[i] / (double)made.size();
            if (!dispatches.empty() && used + takes > most) {
                submissions.push_back(dispatches.size());
                used = 0;
            }
            dispatches.push_back(part);
            used += takes;
        }
    }
    return make_pipelines(device, 1);
}

}  // namespace quoll
