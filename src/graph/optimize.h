// What is done to a Model before it is shipped: the graph passes that Net runs at load, a part cut
// out, what nothing needs removed, weights narrowed, sizes of blobs written down.
#ifndef QUOLL_GRAPH_OPTIMIZE_H
#define QUOLL_GRAPH_OPTIMIZE_H

#include <string>
#include <vector>

#include "graph/analysis.h"

namespace quoll {

// What was done, one line for each kind of change.
class OptimizeReport {
public:
    void count(const std::string& what, int times = 1);
    // "what (times)", in the order of their first appearance.
    std::vector<std::string> lines() const;
    bool empty() const { return counts_.empty(); }

private:
    std::vector<std::pair<std::string, int>> counts_;
};

// All return 0, or a negative code after a message; the Model is then of no use.

// Keeps what lies between two places, each the name of a layer or of a blob, or "". start: the
// inputs of that layer (or that blob) become Input layers, with the sizes in `sizes` if they are
// known. end: the outputs of that layer (or that blob) are all that the model gives. A layer's name
// goes before a blob's.
int cut_model(Model* model, const std::string& start, const std::string& end,
              const BlobSizes& sizes, OptimizeReport* report);

// The same between blobs: `inputs` become Input layers, `outputs` are all that the model gives. An
// empty list stands for the model's own.
int cut_model(Model* model, const std::vector<std::string>& inputs,
              const std::vector<std::string>& outputs, const BlobSizes& sizes,
              OptimizeReport* report);

// Numbers instead of the names of all layers, and of the blobs that are neither input nor output
// nor in `kept`.
void strip_names(Model* model, const std::vector<std::string>& kept);

// Removes layers that no output needs: those without outputs, constants that nobody reads, and what
// only they read. An Input that nothing reads stays: callers give it. So does a constant in `kept`.
int remove_dead_layers(Model* model, const std::vector<std::string>& kept, OptimizeReport* report);

// The passes of run_passes. kept: blobs that must stay as they are. Blobs that get several readers
// are given to them by a Split layer, as ncnn wants it.
int run_graph_passes(Model* model, const std::vector<std::string>& kept, OptimizeReport* report);

// Tagged float weights become f32, f16 or bf16; int8 ones, and floats of layers that round them to
// int8, stay. So do weights that f16 cannot hold (beyond 65504).
int store_weights(Model* model, DType dtype, OptimizeReport* report);

// Writes the sizes of outputs as hints (parameter 30) where they are known and have at most 3 axes,
// which is what ncnn's hints hold; removes others.
void write_shape_hints(Model* model, const BlobSizes& sizes);

}  // namespace quoll

#endif
