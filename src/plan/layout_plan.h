// How the blobs of a step are laid out in memory, and what is converted before and after its layer.
#ifndef QUOLL_PLAN_LAYOUT_PLAN_H
#define QUOLL_PLAN_LAYOUT_PLAN_H

#include <vector>

#include "quoll/layer.h"

namespace quoll {

struct SegmentMemory;

// Decided when a segment is compiled. dims 0: an input that is absent, or an output about which
// nothing is known.
struct StepLayout {
    bool known = false;               // else the executor converts by what it finds
    std::vector<BlobLayout> arrives;  // inputs, as the steps before leave them
    std::vector<BlobLayout> inputs;   // as the layer gets them: widened, narrowed, unpacked
    std::vector<BlobLayout> makes;    // outputs, as the layer makes them
    std::vector<BlobLayout> outputs;  // as the next steps find them
    int batch = 1;                    // items that the layer runs for one by one
    // The input over which the output of a batch is made if nobody else needs it; -1: none.
    int overwritten = -1;
    // Of the segment that the step belongs to, where an observer sees the layout; null: none.
    const SegmentMemory* memory = nullptr;
};

bool lies_as(const Mat& m, const BlobLayout& layout);
bool same_layout(const BlobLayout& a, const BlobLayout& b);
BlobLayout layout_of(const Mat& m);

// Plans the step's inputs as the layer gets them. `arrives` and `batch` have to be set.
void plan_inputs(const Layer& layer, StepLayout* step);
// Plans the outputs as the layer makes them and as they are stored. The sizes are those of all
// items, f32 for floats; stored: the dtype in which floats are kept, f32 if none. Inputs have to be
// planned before.
void plan_outputs(const Layer& layer, const LayerPlan* plan, const std::vector<Shape>& shapes,
                  DType stored, const Option& opt, StepLayout* step);
// StepLayout::overwritten of a layer that runs for one item after the other.
int overwritten_by_batch(const Layer& layer, const StepLayout& step);

}  // namespace quoll

#endif
