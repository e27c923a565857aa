// What prepares a Model for shipping: the graph passes that Net runs at load, cutting out a part,
// removing what nothing needs, narrowing weights, writing down sizes of blobs.
#ifndef QUOLL_GRAPH_OPTIMIZE_H
#define QUOLL_GRAPH_OPTIMIZE_H

#include <string>
#include <vector>

#include "graph/analysis.h"

namespace quoll {

// A report of what was done, one line for each kind of change.
class OptimizeReport {
public:
    void count(const std::string& what, int times = 1);
    // "what (times)", in the order of their first occurrence.
    std::vector<std::string> lines() const;
    bool empty() const { return counts_.empty(); }

private:
    std::vector<std::pair<std::string, int>> counts_;
};

// All return 0, or a negative code after a message; the Model is then of no use.

// Keeps what is between two places, each the name of a layer or a blob, or "". start: the inputs of
// that layer (or that blob) become Input layers, with the sizes in `sizes` if they are known. end:
// the outputs of that layer (or that blob) become the model's only outputs. If a layer and a blob
// have the same name, the layer is meant.
int cut_model(Model* model, const std::string& start, const std::string& end,
              const BlobSizes& sizes, OptimizeReport* report);

// The same between blobs: `inputs` become Input layers, `outputs` the model's only outputs. An
// empty list stands for the model's own.
int cut_model(Model* model, const std::vector<std::string>& inputs,
              const std::vector<std::string>& outputs, const BlobSizes& sizes,
              OptimizeReport* report);

// Replaces by numbers the names of all layers, and of all blobs that are not an input, an output,
// or in `kept`.
void strip_names(Model* model, const std::vector<std::string>& kept);

// Removes layers that no output needs: those without outputs, constants that nobody reads, and what
// only they read. An Input that nothing reads stays, since callers give it, and so does a constant
// in `kept`.
int remove_dead_layers(Model* model, const std::vector<std::string>& kept, OptimizeReport* report);

// Runs the passes of run_passes. kept: blobs that must stay as they are. Where the passes give a
// blob several readers, a Split layer is added, as ncnn requires.
int run_graph_passes(Model* model, const std::vector<std::string>& kept, OptimizeReport* report);

// Stores tagged float weights as f32, f16 or bf16. int8 weights stay, and so do floats of layers
// that round them to int8, and weights that f16 cannot hold (beyond 65504).
int store_weights(Model* model, DType dtype, OptimizeReport* report);

// Writes the sizes of outputs as hints (parameter 30) where they are known and have at most 3 axes,
// as ncnn's hints do; removes other hints.
void write_shape_hints(Model* model, const BlobSizes& sizes);

}  // namespace quoll

#endif
