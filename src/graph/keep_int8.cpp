#include <algorithm>

#include "graph/passes.h"

namespace quoll {

namespace {

// The scale with which a layer rounds its input to int8; 0: it does not, or not alone.
float input_scale(const LayerGraph& graph, int index) {
    const ConvolutionFields* conv = convolution_fields(graph, index);
    const bool rounds = conv && conv->int8_scale_term != 0 && !conv->int8_affine &&
                        !conv->dynamic_weight && graph.layer(index)->bottoms.size() == 1;
    return rounds && conv->bottom_blob_int8_scales.w == 1 ? conv->bottom_blob_int8_scales[0] : 0.f;
}

}  // namespace

int keep_int8(LayerGraph& graph, int index, const LayerMaker&) {
    ConvolutionFields* conv = convolution_fields(graph, index);
    if (!conv || conv->int8_scale_term == 0 || conv->int8_affine || conv->int8_output() ||
        conv->dynamic_weight || graph.layer(index)->tops.size() != 1)
        return 0;
    const int blob = graph.layer(index)->tops[0];
    const std::vector<int>& readers = graph.readers(blob);
    if (graph.kept(blob) || readers.empty()) return 0;
    const float scale = input_scale(graph, readers[0]);
    const auto same = [&](int reader) { return input_scale(graph, reader) == scale; };
    if (scale == 0.f || !std::all_of(readers.begin(), readers.end(), same)) return 0;
    Mat scales(1);
    if (scales.empty()) return kOutOfMemory;
    scales[0] = scale;
    conv->top_blob_int8_scales = scales;
    conv->int8_scale_term += 100;
    graph.count("int8 kept between convolutions");
    return 1;
}

}  // namespace quoll
