// Back ends: a back end runs steps of an execution plan on a device with memory of its own, instead
// of the layers' forward functions. Net::add_backend registers one.
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
    // The size, all batch items included. dtype: how the host stores the blob (f16 or bf16 if the
    // net stores floats so); the back end may store it differently.
    Shape shape;
    // The step that makes it, -1 if it comes from outside the region; and the last step that reads
    // it, the number of steps if it is downloaded.
    int made = -1, last_read = -1;
    bool is_downloaded = false;
    // The values of a MemoryData, for back ends that keep constants, else null. Their dtype may
    // differ from shape.dtype. Valid as long as the Net has its model.
    const Mat* constant = nullptr;
    // The application gives or takes it in the back end's memory: it is not copied to or from the
    // host.
    bool stays = false;
    // Of an upload: the axis along which it grows, by 1 for each step of Region::room, as the
    // caches of a decoder do. -1: its size stays.
    int grows = -1;
    // It has no values, such as the cache of a decoder's first run; only its shape is known.
    bool is_empty() const { return shape.total() == 0; }
    bool is_uploaded() const { return made < 0 && !constant && !is_empty(); }
    // `shape`, longer by `by` along the axis `grows`.
    Shape longer(int by) const;
};

struct RegionStep {
    const Layer* layer;
    std::vector<int> inputs, outputs;  // in Region::values
};

// Consecutive steps of a plan that one back end runs without the host in between: first it uploads
// what was made before, then it runs the steps, then it downloads what is read after them.
struct Region {
    std::vector<RegionStep> steps;
    std::vector<RegionValue> values;
    // If more than 0: the region will be needed again with all growing uploads longer by 1, 2, ...
    // up to `room`. A back end may compile it for all of these sizes at once.
    int room = 0;

    std::vector<Shape> shapes(const std::vector<int>& of) const;
};

// A compiled region: recorded once, replayed in each run. Immutable for its callers; several
// threads may run it at once.
class CompiledRegion {
public:
    virtual ~CompiledRegion();
    // uploads: the values to be uploaded, in the order of Region::values, planar (elempack 1), with
    // the shapes and dtypes given there. downloads: receives the downloaded values, likewise, in
    // memory of opt.blob_allocator. Returns 0, or a negative code after a message.
    virtual int run(const std::vector<Mat>& uploads, std::vector<Mat>* downloads,
                    const Option& opt) const = 0;
    // Whether record() is available.
    virtual bool records() const;
    // As run(), with values in the device's memory. The work is recorded into `commands`, and done
    // when these run.
    virtual int record(const std::vector<VkMat>& uploads, std::vector<VkMat>* downloads,
                       VkCompute& commands, const Option& opt) const;
    // By how much the growing uploads may be longer than Region::values say, all by the same: 0, or
    // Region::room.
    virtual int room() const;
    // Bytes of the block in the back end's memory that its values share.
    virtual size_t arena_bytes() const = 0;
};

// A back end belongs to one Net. All functions except prepare() and release() may be called by
// several threads at once.
class Backend {
public:
    virtual ~Backend();
    // The name in reports, e.g. "vulkan".
    virtual const char* name() const = 0;
    // Copies what it needs of the layer's parameters and weights. Called once for each layer, after
    // its weights were loaded and before create_pipeline, which may change and free them. Returns
    // 0, also for layers that it does not run, or a negative code after a message.
    virtual int prepare(const Layer& layer, const Option& opt) = 0;
    // Whether prepare() has copied all that running the layer needs, so that the host may free the
    // layer's weights.
    virtual bool holds(const Layer& layer) const;
    // Frees what prepare() has copied; called when the net is cleared. Regions that are compiled
    // already keep what they need.
    virtual void release() = 0;
    // Whether it can run a prepared layer on blobs of these sizes (as in RegionValue); an input may
    // be empty. Answers may differ from the CPU's by rounding only.
    virtual bool supports(const Layer& layer, const std::vector<Shape>& inputs,
                          const std::vector<Shape>& outputs) const = 0;
    // Whether compile() uses RegionValue::constant; otherwise constants are uploaded in each run.
    virtual bool keeps_constants() const;
    // Whether the region is worth its uploads and downloads; otherwise the CPU runs it.
    virtual bool is_profitable(const Region& region) const = 0;
    // Compiles a region. Null, after a message, if it cannot: out of device memory, device lost.
    virtual std::shared_ptr<const CompiledRegion> compile(const Region& region,
                                                          const Option& opt) const = 0;
};

}  // namespace quoll

#endif
