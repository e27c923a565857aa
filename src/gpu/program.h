// What a region executes on a device, before and after places in memory are known.
#ifndef QUOLL_GPU_PROGRAM_H
#define QUOLL_GPU_PROGRAM_H

#include <string>
#include <vector>

#include "gpu/pipeline.h"

namespace quoll {

const size_t kFaultBytes = 16;
// Parts of a dispatch with a pipeline each.
const uint32_t kMostMovedParts = 16;

// A range of a buffer that a dispatch sees as one storage buffer.
struct Binding {
    enum Where { kBlock, kUpload, kDownload, kFixed, kCounters, kFaults };
    Where where = kFixed;
    int block = -1;                    // kBlock: of the program
    VkBuffer buffer = VK_NULL_HANDLE;  // kFixed: weights, constants
    size_t offset = 0, bytes = 0;
    bool written = false;
    // Channels of a block of channels-last pixels that are touched: [first, last) of each pixel of
    // `pitch` channels. pitch 0: everything may be.
    int pitch = 0, lane_first = 0, lane_last = 0;
};

// One form of several that a dispatch may have, as a TuningTable has it.
struct Choice {
    std::vector<uint32_t> key, form;
};

struct Dispatch {
    PipelineKey key;
    std::vector<Binding> bindings;
    std::vector<uint32_t> push;
    uint32_t groups[3];
    uint32_t first[3] = {0, 0, 0};  // group, of those that the shader counts
    int step;                       // that it is part of, for profiles
    int choice = -1;                // of Program::choices
    // The word of `push` that is 1 where the host narrows what it uploads to f16; -1: none.
    int narrowed = -1;
    // Where it depends on the size of the run (Program::add_size): `push` and `groups` for each.
    std::vector<uint32_t> by_size;
    const uint32_t* push_of(size_t size) const {
        return by_size.empty() ? push.data() : by_size.data() + size * (push.size() + 3);
    }
    const uint32_t* groups_of(size_t size) const {
        return by_size.empty() ? groups : push_of(size) + push.size();
    }
    // Set by Program::finish(). Dispatches of one level do not depend on each other.
    int level = 0;
    bool barrier_before = false;
    VkPipeline pipeline = VK_NULL_HANDLE;
};

// For tests: all devices are taken for such that begin dispatches at group 0, in this thread, which
// have `most` parts at most; 0: as they are.
void force_moved_parts(uint32_t most);

class Program {
public:
    // A block of the arena, alive from the first level that touches it to the last one.
    int add_block(size_t bytes);
    size_t block_bytes(int block) const { return blocks_[block].bytes; }
    // Places in the staging buffers; multiples of the device's alignment.
    size_t add_upload(size_t bytes, size_t alignment);
    size_t add_download(size_t bytes, size_t alignment);
    // Counters that are 0 when a replay is made, and that dispatches leave at 0.
    size_t add_counters(size_t bytes, size_t alignment);
    // Words that a dispatch of a step may set: whether an index was wrong, which, of how many. 0
    // before and after each run.
    size_t add_faults(int step, size_t alignment);
    void add(const Dispatch& dispatch) { dispatches.push_back(dispatch); }
    // The same code on the same blocks may serve for several sizes of a run: what has been recorded
    // for the largest, dispatches [first, end), is recorded once more for another between the two
    // functions. Blocks from first_block on come again. False: more than pushed words and groups
    // has changed.
    void begin_again(int first_block) { next_block_ = first_block; }
    bool end_again(size_t first, size_t end, size_t size, size_t sizes);
    int block_count() const { return (int)blocks_.size(); }
    // Orders the dispatches by level, places the blocks, finds the barriers and makes the
    // pipelines.
    int finish(const GpuDevice& device, int threads);

    // After finish(): into submissions of at most `most` seconds, given those of each dispatch. One
    // that takes longer is divided itself, one group at least; where the driver ignores at which
    // group a dispatch begins, into kMostMovedParts at most, whose code says so.
    int divide(const GpuDevice& device, const std::vector<double>& seconds, double most);

    std::vector<Dispatch> dispatches;
    std::vector<size_t> submissions;  // the first dispatch of each but the first; ascending
    struct Fault {
        int step;
        size_t offset;  // bytes
    };
    std::vector<Fault> faults;
    std::vector<Choice> choices;
    size_t arena_bytes = 0, upload_bytes = 0, download_bytes = 0, counter_bytes = 0,
           fault_bytes = 0;

private:
    struct Block {
        size_t bytes, offset;
        int first, last;  // levels of the dispatches that touch it
    };
    void order_by_level();
    void place_blocks(size_t alignment);
    void find_barriers();
    int make_pipelines(const GpuDevice& device, int threads);

    std::vector<Block> blocks_;
    int next_block_ = -1;  // that comes again; -1: none
};

}  // namespace quoll

#endif
