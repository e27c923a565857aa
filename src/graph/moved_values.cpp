// Passes that look across layers that only change shapes and the order of axes.
#include <map>

#include "graph/passes.h"

#include "layer/nn/deconvolution.h"
#include "layer/nn/innerproduct.h"
#include "layer/nn/pooling.h"
#include "layer/tensor/concat.h"
#include "layer/tensor/expanddims.h"
#include "layer/tensor/flatten.h"
#include "layer/tensor/permute.h"
#include "layer/tensor/reshape.h"
#include "layer/tensor/squeeze.h"
#include "layer/tensor/tensorshape.h"
#include "layer/vision/interp.h"
#include "layer/vision/resize.h"

namespace quoll {

namespace {

// Whether its output has all values of its only input, no others, and each once.
bool reorders(const LayerGraph& graph, int index) {
    if (index < 0 || graph.layer(index)->bottoms.size() != 1) return false;
    return graph.is<Reshape>(index) || graph.is<Permute>(index) || graph.is<Flatten>(index) ||
           graph.is<Squeeze>(index) || graph.is<ExpandDims>(index);
}

// The same, but it may also turn items into an axis or an axis into items.
bool moves_values(const LayerGraph& graph, int index) {
    return reorders(graph, index) || graph.is<BatchAxis>(index);
}

bool takes_channels(const LayerGraph& graph, int index) {
    return convolution_fields(graph, index) || graph.is<Deconvolution>(index) ||
           graph.is<Pooling>(index);
}

// Whether its output has the channels of its input.
bool keeps_channels(const LayerGraph& graph, int index, int blob) {
    const Layer& layer = *graph.layer(index);
    if (graph.is<Concat>(index)) return true;
    if (graph.is<Resize>(index) || graph.is<Interp>(index)) return layer.bottoms[0] == blob;
    return (reorders(graph, index) && !graph.is<Permute>(index)) ||
           (keeps_shape(layer) && layer.support_packing);
}

// Whether all readers of the blob take channels, directly or behind shapes, activations and the
// like.
bool feeds_channels(const LayerGraph& graph, int blob, int depth) {
    enum { kDeepest = 8 };
    if (depth > kDeepest || graph.kept(blob)) return false;
    for (int reader : graph.readers(blob)) {
        const Layer& layer = *graph.layer(reader);
        if (takes_channels(graph, reader) && layer.bottoms[0] == blob) continue;
        if (!keeps_channels(graph, reader, blob) ||
            !feeds_channels(graph, layer.tops[0], depth + 1))
            return false;
    }
    return true;
}

// The size of a blob that a layer reads, if it follows from those of the Input layers; else a size
// with 0 axes.
Shape size_of(const LayerGraph& graph, int blob) {
    std::map<int, Shape> known;
    for (int i = 0; i <= graph.producer(blob); i++) {
        const Layer* layer = graph.layer(i);
        std::vector<Shape> in, out;
        bool all = layer != nullptr;
        for (int bottom : layer ? layer->bottoms : std::vector<int>()) {
            in.push_back(known[bottom]);
            all = all && in.back().dims > 0;
        }
        if (!all || layer->infer_shapes(in, out) != kOk || out.size() != layer->tops.size())
            continue;
        for (size_t k = 0; k < out.size(); k++) known[layer->tops[k]] = out[k];
    }
    return known[blob];
}

bool turns_matrix(const LayerGraph& graph, int index) {
    const auto* s = graph.as<Permute>(index);
    return s && s->order_type == 1;
}

// A product of rows in f32: its weights, or null.
const InnerProduct* product_of_rows(const LayerGraph& graph, int index) {
    const auto* s = graph.as<InnerProduct>(index);
    return s && s->int8_scale_term == 0 && s->bottoms.size() == 1 ? s : nullptr;
}

// The same product of columns.
std::unique_ptr<Layer> pixel_convolution(const InnerProduct& s, const LayerMaker& make) {
    std::unique_ptr<Layer> with(make("Convolution1D"));
    Convolution* conv = as<Convolution>(with.get());
    if (!conv) return nullptr;  // left out of this build
    conv->num_output = s.num_output;
    conv->kernel_w = conv->stride_w = conv->dilation_w = 1;
    conv->bias_term = s.bias_term;
    conv->weight_data_size = s.weight_data_size;
    conv->activation_type = s.activation_type;
    conv->activation_params = s.activation_params;
    conv->weight_data = s.weight_by_outputs();
    conv->bias_data = s.bias_data;
    if (conv->weight_data.empty()) return nullptr;
    return with;
}

}  // namespace

int turn_fewer(LayerGraph& graph, int index, const LayerMaker& make) {
    const int next = graph.only_reader(index);
    const bool behind = turns_matrix(graph, next), before = turns_matrix(graph, index);
    const InnerProduct* s = product_of_rows(graph, behind ? index : next);
    if (behind == before || !s) return 0;
    const int in = s->num_input(), blob = graph.layer(index)->bottoms[0];
    if (behind ? s->num_output <= in : s->num_output >= in) return 0;
    const Shape size = size_of(graph, blob);
    if (size.dims != 2 || size.size(behind ? 1 : 0) != in) return 0;
    std::unique_ptr<Layer> conv = pixel_convolution(*s, make), permute(make("Permute"));
    Permute* turn = as<Permute>(permute.get());
    if (!conv || !turn) return 0;
    turn->order_type = 1;
    graph.change(graph.layer(index)->tops[0]);  // not kept: it has one reader
    const std::vector<int> between = graph.layer(index)->tops;
    graph.replace(
        next, behind ? std::move(conv) : std::move(permute), between,
        behind ? "Permute behind InnerProduct before it" : "Permute before InnerProduct behind it");
    graph.replace(index, behind ? std::move(permute) : std::move(conv), {blob},
                  "InnerProduct of columns as Convolution1D");
    return 1;
}

int fuse_moved_activation(LayerGraph& graph, int index, const LayerMaker&) {
    FusionTarget w;
    int next = graph.only_reader(index);
    if (!moves_values(graph, next) || !fusion_target(graph, index, &w) || !w.activates) return 0;
    std::vector<int> changed;
    int last = index;
    for (; moves_values(graph, next); next = graph.only_reader(next)) {
        changed.push_back(graph.layer(last)->tops[0]);
        last = next;
    }
    if (next < 0 || graph.layer(next)->typeindex < 0) return 0;
    const Activation f = graph.layer(next)->as_activation();
    if (f.type == kActivationNone) return 0;
    const std::string what =
        graph.layer(next)->type + " into " + graph.layer(index)->type + " across other layers";
    QUOLL_RETURN_IF_ERROR(set_activation(w, f));
    for (int blob : changed) graph.change(blob);  // none is kept: each has one reader
    graph.absorb(last, next, false, what.c_str());
    return 1;
}

int mark_channels(LayerGraph& graph, int index, const LayerMaker&) {
    auto* permute = graph.as<Permute>(index);
    if (permute) permute->feeds_channels = feeds_channels(graph, permute->tops[0], 0);
    return 0;
}

}  // namespace quoll
