#include <algorithm>

#include "graph/passes.h"
#include "layer/innerproduct.h"
#include "layer/padding.h"
#include "layer/pool_reference.h"
#include "layer/relu.h"

namespace quoll {

namespace {

// The scale with which a layer rounds its input `blob` to int8; 0: it does not, or not alone.
float input_scale(const LayerGraph& graph, int index, int blob) {
    const std::vector<int>& in = graph.layer(index)->bottoms;
    if (in[0] != blob || std::count(in.begin(), in.end(), blob) != 1) return 0.f;
    if (const auto* s = graph.as<InnerProduct>(index, "InnerProduct"))
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

// No window is empty: for those f32 and s8 have other results.
bool windows_hold_values(const PoolingOperator& s) {
    if (s.global_pooling) return true;
    const auto holds = [](int kernel, int stride, int before, int after) {
        return before >= 0 && after >= 0 && before < kernel && stride + after <= kernel;
    };
    return s.pad_mode <= 1 && !s.adaptive_pooling &&
           holds(s.kernel_w, s.stride_w, s.pad_left, s.pad_right) &&
           holds(s.kernel_h, s.stride_h, s.pad_top, s.pad_bottom);
}

// All outputs of the layer are values of its inputs, or 0, whatever they are: they may be rounded
// before it as well as behind it.
bool moves_values(const LayerGraph& graph, int index) {
    if (graph.is(index, "Concat")) return true;
    if (!graph.layer(index) || graph.layer(index)->bottoms.size() != 1) return false;
    if (const auto* s = graph.as<PoolingOperator>(index, "Pooling"))
        return s->is_max() && windows_hold_values(*s);
    if (const auto* s = graph.as<ReLU>(index, "ReLU")) return s->slope == 0.f;
    if (const auto* s = graph.as<Padding>(index, "Padding"))
        return s->type != 0 || (s->value == 0.f && s->per_channel_pad_data_size == 0);
    for (const char* type : {"Slice", "ShuffleChannel", "Reshape", "Permute", "Flatten", "Squeeze",
                             "ExpandDims", "Crop", "PixelShuffle", "Reorg"})
        if (graph.is(index, type)) return true;
    return false;
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
        } else if (moves_values(graph_, maker)) {
            add(graph_.layer(maker)->bottoms);
            add(graph_.layer(maker)->tops);
        } else {
            return false;
        }
        for (int reader : readers) {
            if (moves_values(graph_, reader)) {
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

}  // namespace

int keep_int8(LayerGraph& graph, int index, const LayerMaker&) {
    if (!gives_int8(graph, index)) return 0;
    Region region(graph);
    if (!region.grow(graph.layer(index)->tops[0])) return 0;
    Mat scales(1);
    if (scales.empty()) return kOutOfMemory;
    scales[0] = region.scale();
    for (int maker : region.makers()) {
        ConvolutionFields* conv = convolution_fields(graph, maker);
        conv->top_blob_int8_scales = scales;
        conv->int8_scale_term += 100;
        graph.count("int8 kept between layers");
    }
    return 1;
}

}  // namespace quoll
