// From a region of a plan to the dispatches that compute it.
#ifndef QUOLL_LAYER_VULKAN_REGION_COMPILER_H
#define QUOLL_LAYER_VULKAN_REGION_COMPILER_H

#include <map>

#include "layer/vulkan/fusion.h"
#include "quoll/backend.h"

namespace quoll {

const size_t kNoOffset = (size_t)-1;

// Rows that a layer appends to those of an upload, in memory that the run brings: the upload's own
// memory if it has room and nobody else has appended to it. One entry for each of Program::given.
struct GivenCache {
    int past, all;          // values; past: -1 where it is empty
    uint32_t channel_step;  // scalars
};

class RegionCompiler {
public:
    // forms: those of the region's steps.
    RegionCompiler(Region region, std::vector<const VulkanLayer*> forms, Recorder& recorder);
    // 0, or a negative code after a message.
    int compile();
    // To be called after compile(): records again what depends on the size of a run, for size i of
    // n, in which the values have these shapes, none larger than the compiled ones. Returns false
    // if the compiled region cannot be used for that size.
    bool add_size(const std::vector<Shape>& shapes, size_t i, size_t n);
    // The offsets of uploads and downloads in the staging buffers, in the order of Region::values.
    // kNoOffset: it is in memory that a run brings.
    std::vector<size_t> upload_offsets() const { return offsets(uploads_, true); }
    std::vector<size_t> download_offsets() const { return offsets(downloads_, false); }
    const std::vector<GivenCache>& caches() const { return caches_; }

private:
    // Where a value is to be placed: within another value, which an operator joins from several.
    struct Place {
        int value = -1;      // -1: its own block
        uint32_t first = 0;  // scalars: channels, or rows of a matrix
    };
    void choose_layouts();
    Layout upload_layout(int value) const;
    void choose_planar();
    bool stays_staged(int value) const;
    void choose_places();
    void place_inputs(const RegionStep& step);
    void place_rows(const RegionStep& step);
    bool can_be_placed(int value, uint32_t first, int into) const;
    int record_step(int index);
    bool stores_for_host(int index) const;
    int record_for_host(int index, const Values& in);
    std::vector<int> outputs_of(int index) const;
    Fused fused_of(int index);
    void record_gate_of(const SqueezeExcite& block);
    int record_shuffle(int index);
    void make_output(int value);
    void download(int value);
    void find_caches();
    bool stays_alike(int value) const;
    void give_cache(int past, int all);
    std::vector<size_t> offsets(const std::map<int, size_t>& of, bool uploads) const;
    // The value in the given layout, copied if necessary.
    Value in_layout(int value, Layout layout);
    // The dispatches recorded for a step or an upload.
    struct Part {
        int step, upload;  // -1: the other of them
        size_t first;      // dispatch
        int first_block;
        size_t first_counter;
    };
    void begin_part(int step, int upload);
    bool depends(const Part& part, const std::vector<char>& changed) const;

    Region region_;  // in the sizes that are being recorded
    const std::vector<const VulkanLayer*> forms_;
    Recorder& recorder_;
    std::unique_ptr<const Fusions> fusions_;
    std::map<int, ChannelSums> sums_;  // by the value that they are of
    // By value of the region.
    std::vector<Shape> largest_;  // as it was compiled for
    std::vector<Layout> layouts_;
    std::vector<Place> places_;
    std::vector<int> makers_;  // steps, -1 for uploads
    Values values_;
    std::vector<Layouts> step_layouts_;          // that the inputs of a step are wanted in
    std::map<int, Value> relaid_;                // copies in the other layout
    std::map<int, size_t> uploads_, downloads_;  // by value
    std::vector<GivenCache> caches_;
    std::vector<Part> parts_;
    bool again_ = false;
};

}  // namespace quoll

#endif
