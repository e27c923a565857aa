#include <algorithm>

#include "graph/passes.h"
#include "layer/nn/innerproduct.h"
#include "layer/quantize/affine.h"
#include "layer/tensor/concat.h"

namespace quoll {

namespace {

// The scale with which a layer rounds its input `blob` to int8; 0: it does not, or not alone.
float input_scale(const LayerGraph& graph, int index, int blob) {
    const std::vector<int>& in = graph.layer(index)->bottoms;
    if (in[0] != blob || std::count(in.begin(), in.end(), blob) != 1) return 0.f;
    if (const auto* s = graph.as<InnerProduct>(index))
        return s->int8_scale_term != 0 && !s->int8_affine ? s->bottom_blob_int8_scales[0] : 0.f;
    const ConvolutionFields* conv = convolution_fields(graph, index);
    const bool rounds =
        conv && conv->int8_scale_term != 0 && !conv->int8_affine && !conv->dynamic_weight;
    return rounds ? conv->bottom_blob_int8_scales[0] : 0.f;
}

// The layer's output could be rounded by it.
bool gives_int8(const LayerGraph& graph, int index) {
    const ConvolutionFields* conv = convolution_fields(graph, index);
    return conv && conv->int8_scale_term != 0 && !conv->int8_affine && !conv->int8_output() &&
           !conv->dynamic_weight && graph.layer(index)->tops.size() == 1;
}

// All outputs of the layer are values of its inputs, or 0: they may be rounded before it as well as
// behind it.
bool takes_rounded(const LayerGraph& graph, int index) {
    const Layer* layer = graph.layer(index);
    if (!layer || (layer->bottoms.size() != 1 && !graph.is<Concat>(index))) return false;
    return has_trait(*layer, kMovesValues) || has_trait(*layer, kChoosesValues);
}

// The blobs that must be s8 if one is: with what makes and reads them.
class Region {
public:
    explicit Region(const LayerGraph& graph) : graph_(graph) {}
    // False if the blobs around `blob` must stay f32.
    bool grow(int blob) {
        blobs_.assign(1, blob);
        for (size_t i = 0; i < blobs_.size(); i++)
            if (!take(blobs_[i])) return false;
        return scale_ != 0.f;
    }
    // Of the layers that round what they read.
    float scale() const { return scale_; }
    const std::vector<int>& makers() const { return makers_; }

private:
    bool take(int blob) {
        const int maker = graph_.producer(blob);
        const std::vector<int>& readers = graph_.readers(blob);
        if (graph_.kept(blob) || readers.empty() || maker < 0) return false;
        if (gives_int8(graph_, maker)) {
            makers_.push_back(maker);
        } else if (takes_rounded(graph_, maker)) {
            add(graph_.layer(maker)->bottoms);
            add(graph_.layer(maker)->tops);
        } else {
            return false;
        }
        for (int reader : readers) {
            if (takes_rounded(graph_, reader)) {
                add(graph_.layer(reader)->tops);
                continue;
            }
            const float scale = input_scale(graph_, reader, blob);
            if (scale == 0.f || (scale_ != 0.f && scale != scale_)) return false;
            scale_ = scale;
        }
        return true;
    }
    void add(const std::vector<int>& blobs) {
        for (int blob : blobs)
            if (std::find(blobs_.begin(), blobs_.end(), blob) == blobs_.end())
                blobs_.push_back(blob);
    }

    const LayerGraph& graph_;
    std::vector<int> blobs_, makers_;
    float scale_ = 0.f;
};

// The convolution's output becomes int8.
int round_output(ConvolutionFields* conv, float scale) {
    Mat scales(1);
    if (scales.empty()) return kOutOfMemory;
    scales[0] = scale;
    conv->top_blob_int8_scales = scales;
    conv->int8_scale_term += 100;
    return 1;
}

const char kReport[] = "int8 kept between layers";

// AffineQuantize into the convolution that makes what it alone reads.
int keep_affine(LayerGraph& graph, int index, ConvolutionFields* conv) {
    const int next = graph.only_reader(index);
    const auto* rounds = graph.as<AffineQuantize>(next);
    if (!rounds || conv->int8_output()) return 0;
    conv->top_zero_point = rounds->zero_point;
    const float scale = 1.f / rounds->scale;
    graph.absorb(index, next, false, kReport);
    return round_output(conv, scale);
}

}  // namespace

int keep_int8(LayerGraph& graph, int index, const LayerMaker&) {
    ConvolutionFields* own = convolution_fields(graph, index);
    if (own && own->int8_affine) return keep_affine(graph, index, own);
    if (!gives_int8(graph, index)) return 0;
    Region region(graph);
    if (!region.grow(graph.layer(index)->tops[0])) return 0;
    for (int maker : region.makers()) {
        const int status = round_output(convolution_fields(graph, maker), region.scale());
        if (status < 0) return status;
        graph.count(kReport);
    }
    return 1;
}

}  // namespace quoll
