#include "graph/passes.h"
#include "layer/nn/convolution.h"
#include "layer/nn/deconvolution.h"
#include "layer/nn/pooling.h"
#include "layer/tensor/flatten.h"

namespace quoll {

// An inner product gives rows of num_output values for 2-D inputs; 1-D ones otherwise.
static bool input_is_no_matrix(const LayerGraph& graph, int index) {
    const Layer& layer = *graph.layer(index);
    if (layer.bottoms.size() != 1) return false;
    const int before = graph.producer(layer.bottoms[0]);
    if (const auto* s = graph.as<Convolution>(before))
        return s->axes == 2 && !s->add_input;  // a sum may have more axes
    if (const auto* s = graph.as<Deconvolution>(before)) return s->axes == 2;
    if (const auto* s = graph.as<Pooling>(before)) return s->axes == 2;
    return graph.is<Flatten>(before);
}

ConvolutionFields* convolution_fields(const LayerGraph& graph, int index) {
    return graph.as<Convolution>(index);
}

bool fusion_target(const LayerGraph& graph, int index, FusionTarget* found) {
    Layer* layer = graph.layer(index);
    if (layer->typeindex < 0 || !layer->fusion_target(found)) return false;
    if (found->axes == 0) found->per_output = input_is_no_matrix(graph, index);
    return true;
}

}  // namespace quoll
