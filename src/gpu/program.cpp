#include "gpu/program.h"

#include <algorithm>
#include <set>

#include "plan/memory_plan.h"
#include "quoll/status.h"

namespace quoll {

namespace {

// Where weights do not fit in the device's cache, products wait for each of their steps as long as
// the memory takes. The levels of networks leave most of its bandwidth idle, so that what the next
// ones multiply can be read meanwhile: bytes for each level, what there may be in the cache that
// has not been multiplied, and from how many bytes of weights on. Devices with so many processors
// have a cache of 32 MB and more.
const size_t kAheadBytes = 6 << 20, kMostAhead = 24 << 20, kManyWeights = 24 << 20;
const uint32_t kManyProcessors = 96;
const size_t kAheadGroup = 32 << 10;  // of read_ahead.comp
// Less is not worth a dispatch.
const size_t kFewWeights = 64 << 10;

// A weight, and the level that reads it first.
struct Ahead {
    Binding weight;
    int level;
};

thread_local int64_t forced_ahead = -1;

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

static std::vector<Ahead> list_weights(const std::vector<Dispatch>& dispatches) {
    std::vector<Ahead> all;
    std::set<std::pair<VkBuffer, size_t>> known;
    for (const Dispatch& dispatch : dispatches)
        for (const Binding& b : dispatch.bindings)
            if (b.where == Binding::kFixed && b.bytes >= kFewWeights &&
                known.insert({b.buffer, b.offset}).second)
                all.push_back({b, dispatch.level});
    return all;
}

// Weights lie in the order of their layers, with biases between them.
static bool join(const Binding& behind, Binding* part) {
    const size_t end = part->offset + part->bytes;
    if (part->buffer != behind.buffer || behind.offset < end || behind.offset - end > kFewWeights)
        return false;
    part->bytes = behind.offset + behind.bytes - part->offset;
    return true;
}

static Dispatch reader_of(const Binding& part, int block, int level) {
    Dispatch d = {};
    Binding nothing;
    nothing.where = Binding::kBlock, nothing.block = block;
    nothing.bytes = sizeof(uint32_t), nothing.written = true;
    d.key = {Shader::read_ahead, Storage::f32, 2, {}};
    d.bindings = {part, nothing};
    d.step = d.choice = d.narrowed = -1, d.level = level;
    return d;
}

// Adds, to each level, dispatches that read up to `bytes` of weights of the levels behind it.
void Program::read_ahead(size_t bytes) {
    const std::vector<Ahead> weights = list_weights(dispatches);
    const int levels = dispatches.empty() ? 0 : dispatches.back().level + 1;
    std::vector<Dispatch> made;
    std::vector<std::pair<int, size_t>> waiting;  // level and bytes of what was read
    size_t next = 0, done = 0;                    // the next weight, and what was read of it
    for (int level = 0; level + 1 < levels; level++) {
        size_t left = bytes, cached = 0;
        for (const auto& part : waiting) cached += part.first > level ? part.second : 0;
        while (next < weights.size() && left >= kFewWeights) {
            const Ahead& ahead = weights[next];
            const size_t rest = ahead.weight.bytes - done;
            if (ahead.level <= level || rest < kFewWeights) {
                next++, done = 0;
                continue;
            }
            if (cached >= kMostAhead) break;
            Binding part = ahead.weight;
            part.offset += done;
            part.bytes = std::min(rest, left / kAheadGroup * kAheadGroup);
            if (made.empty() || made.back().level != level || !join(part, &made.back().bindings[0]))
                made.push_back(reader_of(part, add_block(sizeof(uint32_t)), level));
            waiting.push_back({ahead.level, part.bytes});
            done += part.bytes, left -= part.bytes, cached += part.bytes;
        }
    }
    for (Dispatch& d : made) {
        d.push = {(uint32_t)(d.bindings[0].bytes / 4)};
        d.groups[0] = (uint32_t)((d.bindings[0].bytes + kAheadGroup - 1) / kAheadGroup);
        d.groups[1] = d.groups[2] = 1;
    }
    dispatches.insert(dispatches.end(), made.begin(), made.end());
    std::stable_sort(dispatches.begin(), dispatches.end(),
                     [](const Dispatch& a, const Dispatch& b) { return a.level < b.level; });
}

void force_read_ahead(int64_t bytes) { forced_ahead = bytes; }

// Bytes for each level; 0: none.
static size_t ahead_bytes(const GpuDevice& device, const std::vector<Dispatch>& dispatches) {
    if (forced_ahead >= 0) return (size_t)forced_ahead;
    if (device.features().processors < kManyProcessors || device.info().type() != 0) return 0;
    size_t bytes = 0;
    for (const Dispatch& dispatch : dispatches)
        if (!dispatch.by_size.empty()) return 0;
    for (const Ahead& ahead : list_weights(dispatches)) bytes += ahead.weight.bytes;
    return bytes >= kManyWeights ? kAheadBytes : 0;
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
    if (const size_t bytes = ahead_bytes(device, dispatches)) read_ahead(bytes);
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
