// How a model runs here: which form of each layer, on which kernels, in which layout.
#ifndef QUOLL_TOOLS_INFO_EXEC_PLAN_H
#define QUOLL_TOOLS_INFO_EXEC_PLAN_H

#include <string>
#include <vector>

#include "common/run_options.h"
#include "graph/analysis.h"

namespace quoll {

struct LayerReport {
    std::string type, name;
    std::string backend;       // "cpu", "vulkan"; "folded" for a layer that the passes left nothing of
    std::string kernels, isa;  // family, with its algorithm; instruction set
    std::vector<std::string> inputs, outputs;  // "f32x8 (64,56,56)"
    std::vector<std::string> notes;            // why something is not the fastest way
};

typedef std::vector<LayerReport> ExecPlan;

// Bytes of blobs in light mode, with what Mats and alignment add (plan/segment_memory.h).
struct MemoryReport {
    size_t arena = 0;  // planned, of the segment that needs most
    size_t alive = 0;  // at the worst moment: no plan needs less
    size_t all = 0;    // of all blobs, each by itself
    size_t own = 0;    // outside the arena
    int segments = 0;
};

// Loads the model into a net with its options, runs it once on inputs of random numbers of the sizes given, and reads the plan
// of that. 0, or -1 after a message.
int make_exec_plan(const Model& model, const BlobSizes& sizes, Net* net, ExecPlan* plan,
                   MemoryReport* memory);
std::string exec_plan_table(const ExecPlan& plan);
std::string memory_table(const MemoryReport& memory);

}  // namespace quoll

#endif
