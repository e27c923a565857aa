// What a region executes on a device, before and after its blocks have places in memory.
#ifndef QUOLL_GPU_PROGRAM_H
#define QUOLL_GPU_PROGRAM_H

#include <string>
#include <utility>
#include <vector>

#include "gpu/pipeline.h"

namespace quoll {

const size_t kFaultBytes = 16;
// The most parts of a dispatch that have a pipeline each.
const uint32_t kMostMovedParts = 16;

// A range of a buffer that a dispatch sees as one storage buffer.
struct Binding {
    // kGiven: a buffer that each run brings.
    enum Where { kBlock, kUpload, kDownload, kFixed, kCounters, kFaults, kGiven };
    Where where = kFixed;
    int block = -1;                    // kBlock: of the program; kGiven: of those buffers
    VkBuffer buffer = VK_NULL_HANDLE;  // kFixed: weights, constants
    size_t offset = 0, bytes = 0;
    bool written = false;
    // The channels of a block of channels-last pixels that are touched: [first, last) of each pixel
    // of `pitch` channels. pitch 0: everything may be.
    int pitch = 0, lane_first = 0, lane_last = 0;
};

// One of several forms that a dispatch may have, as in a TuningTable.
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
    // If the dispatch depends on the size of the run (Program::add_size): `push` and `groups` for
    // each size.
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

// For tests: in this thread all devices are taken for such that begin dispatches at group 0, and
// dispatches have at most `most` parts; 0: devices are taken as they are.
void force_moved_parts(uint32_t most);

class Program {
public:
    // A block of the arena, alive from the first level that touches it to the last one.
    int add_block(size_t bytes);
    // A block outside the arena: a buffer that each run brings (Replay::give).
    int add_given(size_t bytes);
    size_t block_bytes(int block) const { return blocks_[block].bytes; }
    // Reserves a place in a staging buffer; aligned to a multiple of the device's alignment.
    size_t add_upload(size_t bytes, size_t alignment);
    size_t add_download(size_t bytes, size_t alignment);
    // Reserves counters that are 0 when a replay is made, and that dispatches leave at 0.
    size_t add_counters(size_t bytes, size_t alignment);
    // Reserves words that a dispatch of a step may set: whether an index was wrong, which one, of
    // how many. They are 0 before and after each run.
    size_t add_faults(int step, size_t alignment);
    void add(const Dispatch& dispatch) { dispatches.push_back(dispatch); }
    // The same code on the same blocks may serve several sizes of a run. Dispatches [first, end)
    // have been recorded for the largest size; between these two functions they are recorded again
    // for another size. Blocks from first_block on are then reused, and counters from first_counter
    // on. False: more than pushed words and groups has changed.
    void begin_again(int first_block, size_t first_counter) {
        next_block_ = first_block;
        std::swap(counter_bytes, first_counter);
        all_counters_ = first_counter;
    }
    bool end_again(size_t first, size_t end, size_t size, size_t sizes);
    int block_count() const { return (int)blocks_.size(); }
    // Orders the dispatches by level, places the blocks, finds the barriers and makes the
    // pipelines.
    int finish(const GpuDevice& device, int threads);

    // To be called after finish(): divides the program into submissions of at most `most` seconds,
    // given the seconds of each dispatch. A dispatch that takes longer is divided itself, into
    // parts of at least one group; if the driver ignores at which group a dispatch begins, into at
    // most kMostMovedParts, whose code adds it.
    int divide(const GpuDevice& device, const std::vector<double>& seconds, double most);

    std::vector<Dispatch> dispatches;
    // To be run once before all others: they make constants of constants.
    std::vector<Dispatch> prepared;
    std::vector<size_t> submissions;  // the first dispatch of each but the first; ascending
    struct Fault {
        int step;
        size_t offset;  // bytes
    };
    std::vector<Fault> faults;
    std::vector<Choice> choices;
    std::vector<size_t> given;  // bytes of the buffers that a run brings
    size_t arena_bytes = 0, upload_bytes = 0, download_bytes = 0, counter_bytes = 0,
           fault_bytes = 0;

private:
    struct Block {
        size_t bytes, offset;
        int first, last;  // levels of the dispatches that touch it
        int given = -1;   // index of the buffer that a run brings; -1: in the arena
    };
    void order_by_level();
    void place_blocks(size_t alignment);
    void find_barriers();
    int make_pipelines(const GpuDevice& device, int threads);

    std::vector<Block> blocks_;
    int next_block_ = -1;  // that comes again; -1: none
    size_t all_counters_ = 0;
};

}  // namespace quoll

#endif
