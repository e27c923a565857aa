// What runs steps of execution plans elsewhere than in the layers' own forward functions: a device
// with memory of its own. Net::add_backend makes one known.
#ifndef QUOLL_BACKEND_H
#define QUOLL_BACKEND_H

#include <memory>
#include <string>
#include <vector>

#include "quoll/layer.h"

namespace quoll {

class VkCompute;
class VkMat;

// A blob that a region reads or makes.
struct RegionValue {
    int blob;
    // Of all items; dtype is what the blob is stored as on the host: f16 or bf16 where the net
    // stores floats so, whatever the back end keeps itself.
    Shape shape;
    // The step that makes it, -1 for those that come from outside, and the last one that reads it:
    // the number of steps for those that are downloaded.
    int made = -1, last_read = -1;
    bool is_downloaded = false;
    // The value of a MemoryData (its dtype may be another), for back ends that keep those; as long
    // as the Net has its model.
    const Mat* constant = nullptr;
    // The application gave it, or takes it, in the back end's memory: no copy to or from the host.
    bool stays = false;
    // Of an upload: the axis along which it is one longer with each of Region::room, as what a
    // decoder keeps of the tokens before; -1: its size stays.
    int grows = -1;
    // No values, such as the cache of a decoder's first run: known by its shape alone.
    bool is_empty() const { return shape.total() == 0; }
    bool is_uploaded() const { return made < 0 && !constant && !is_empty(); }
    // `shape`, so much longer along `grows`.
    Shape longer(int by) const;
};

struct RegionStep {
    const Layer* layer;
    std::vector<int> inputs, outputs;  // in Region::values
};

// Consecutive steps of a plan that one back end runs without the host in between: uploads of what
// was made before, the steps, downloads of what is read behind them.
struct Region {
    std::vector<RegionStep> steps;
    std::vector<RegionValue> values;
    // More than 0: it will come once more with all uploads that grow 1, 2, ... up to so much
    // longer. A back end may make it ready for all of these at once.
    int room = 0;

    std::vector<Shape> shapes(const std::vector<int>& of) const;
};

// A region made ready: recorded once, replayed with each run. Immutable for its callers; several
// threads may run it at once.
class CompiledRegion {
public:
    virtual ~CompiledRegion();
    // uploads: the values that are uploaded, in the order of Region::values, planar (elempack 1)
    // and of the shape and dtype there. downloads: gets those that are downloaded, likewise, in
    // memory of opt.blob_allocator. 0, or a negative code after a message.
    virtual int run(const std::vector<Mat>& uploads, std::vector<Mat>* downloads,
                    const Option& opt) const = 0;
    // Whether it has the following form of run().
    virtual bool records() const;
    // Values come and go in the device's memory, and all is done when `commands` runs.
    virtual int record(const std::vector<VkMat>& uploads, std::vector<VkMat>* downloads,
                       VkCompute& commands, const Option& opt) const;
    // How much longer than Region::values say the uploads that grow may be, all by the same: 0, or
    // Region::room.
    virtual int room() const;
    // Of the block that its values share in the back end's memory.
    virtual size_t arena_bytes() const = 0;
};

// One for a net. Its functions but prepare() and release() may be called in several threads at
// once.
class Backend {
public:
    virtual ~Backend();
    // As reports name it: "vulkan".
    virtual const char* name() const = 0;
    // Takes a copy of what it needs of the layer's parameters and weights. Once for each layer
    // after its weights were loaded, and before create_pipeline, which may change and free them. 0,
    // also for layers that it does not run; a negative code after a message.
    virtual int prepare(const Layer& layer, const Option& opt) = 0;
    // Whether prepare() took a copy of all that running the layer needs, so that its weights may
    // leave the host.
    virtual bool holds(const Layer& layer) const;
    // All that prepare() took, when the net is cleared. What was compiled before keeps what it
    // needs.
    virtual void release() = 0;
    // Whether it computes a layer that was prepared, for blobs of these sizes (as in RegionValue);
    // an input may be empty. Answers may differ from the CPU's by rounding only.
    virtual bool supports(const Layer& layer, const std::vector<Shape>& inputs,
                          const std::vector<Shape>& outputs) const = 0;
    // Whether compile() takes RegionValue::constant; else constants are uploaded with each run.
    virtual bool keeps_constants() const;
    // Whether the region is worth its uploads and downloads; else the CPU runs it.
    virtual bool is_profitable(const Region& region) const = 0;
    // Null, after a message, if it cannot: out of device memory, device lost.
    virtual std::shared_ptr<const CompiledRegion> compile(const Region& region,
                                                          const Option& opt) const = 0;
};

}  // namespace quoll

#endif
