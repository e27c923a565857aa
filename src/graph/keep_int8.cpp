#include <algorithm>

#include "graph/passes.h"
#include "layer/activation/relu.h"
#include "layer/nn/innerproduct.h"
#include "layer/quantize/affine.h"
#include "layer/tensor/concat.h"
#include "layer/tensor/crop.h"
#include "layer/tensor/padding.h"

namespace quoll {

namespace {

// The scale with which a layer rounds its input `blob` to int8; 0 if it does not, or if the blob
// has other uses there.
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

// Whether the layer could round its output itself.
bool gives_int8(const LayerGraph& graph, int index, bool affine) {
    const ConvolutionFields* conv = convolution_fields(graph, index);
    return conv && conv->int8_scale_term != 0 && conv->int8_affine == affine &&
           !conv->int8_output() && !conv->dynamic_weight && graph.layer(index)->tops.size() == 1;
}

// Whether all outputs of the layer are values of its inputs (or, without zero points, 0): then
// rounding may come before or behind it.
bool takes_rounded(const LayerGraph& graph, int index, bool affine) {
    const Layer* layer = graph.layer(index);
    if (!layer || (layer->bottoms.size() != 1 && !graph.is<Concat>(index))) return false;
    if (affine && (graph.is<Padding>(index) || graph.is<ReLU>(index) || graph.is<Crop>(index)))
        return false;
    return has_trait(*layer, kMovesValues) || has_trait(*layer, kChoosesValues);
}

// The blobs that must be s8 together, with the layers that make and read them.
class Region {
public:
    // affine: they are rounded by AffineQuantize, else by the layers that read them.
    Region(const LayerGraph& graph, bool affine) : graph_(graph), affine_(affine) {}
    // False if the blobs around `blob` must stay f32.
    bool grow(int blob) {
        blobs_.assign(1, blob);
        for (size_t i = 0; i < blobs_.size(); i++)
            if (!take(blobs_[i])) return false;
        return scale_ != 0.f;
    }
    // The scale of the layers that round what they read.
    float scale() const { return scale_; }
    int zero_point() const { return zero_point_; }
    const std::vector<int>& makers() const { return makers_; }
    const std::vector<int>& quantizers() const { return quantizers_; }
    const std::vector<int>& blobs() const { return blobs_; }

private:
    bool take(int blob) {
        const int maker = graph_.producer(blob);
        const std::vector<int>& readers = graph_.readers(blob);
        if (graph_.kept(blob) || readers.empty() || maker < 0) return false;
        if (gives_int8(graph_, maker, affine_)) {
            makers_.push_back(maker);
        } else if (takes_rounded(graph_, maker, affine_)) {
            add(graph_.layer(maker)->bottoms);
            add(graph_.layer(maker)->tops);
        } else {
            return false;
        }
        for (int reader : readers) {
            if (takes_rounded(graph_, reader, affine_))
                add(graph_.layer(reader)->tops);
            else if (!rounded_by(reader, blob))
                return false;
        }
        return true;
    }
    // Whether the reader rounds it, with the same scale and zero point as all others.
    bool rounded_by(int reader, int blob) {
        float scale = 0.f;
        int zero_point = 0;
        if (affine_) {
            const auto* quantizer = graph_.as<AffineQuantize>(reader);
            if (!quantizer || graph_.kept(quantizer->tops[0])) return false;
            scale = 1.f / quantizer->scale, zero_point = quantizer->zero_point;
            quantizers_.push_back(reader);
        } else {
            scale = input_scale(graph_, reader, blob);
        }
        const bool first = scale_ == 0.f;
        if (scale == 0.f || (!first && (scale != scale_ || zero_point != zero_point_)))
            return false;
        scale_ = scale, zero_point_ = zero_point;
        return true;
    }
    void add(const std::vector<int>& blobs) {
        for (int blob : blobs)
            if (std::find(blobs_.begin(), blobs_.end(), blob) == blobs_.end())
                blobs_.push_back(blob);
    }

    const LayerGraph& graph_;
    const bool affine_;
    std::vector<int> blobs_, makers_, quantizers_;
    float scale_ = 0.f;
    int zero_point_ = 0;
};

// Makes the convolution's output int8.
int round_output(ConvolutionFields* conv, float scale) {
    Mat scales(1);
    if (scales.empty()) return kOutOfMemory;
    scales[0] = scale;
    conv->top_blob_int8_scales = scales;
    conv->int8_scale_term += 100;
    return 1;
}

const char kReport[] = "int8 kept between layers";

// Fuses AffineQuantize into the convolution whose output it alone reads.
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

int fuse_int8_relu(LayerGraph& graph, int index, const LayerMaker&) {
    ConvolutionFields* const conv = convolution_fields(graph, index);
    const auto* relu = conv ? graph.as<AffineBinary>(graph.only_reader(index)) : nullptr;
    if (!relu || conv->int8_affine != 1 || !conv->int8_output() ||
        conv->activation_type != kActivationNone || relu->bottoms.size() != 1 ||
        relu->activation_type != kActivationReLU)
        return 0;
    const bool same = relu->a_scale == relu->top_scale &&
                      relu->a_zero_point == relu->top_zero_point &&
                      conv->top_zero_point == relu->a_zero_point &&
                      conv->top_blob_int8_scales[0] == 1.f / relu->a_scale;
    if (!same) return 0;
    conv->activation_type = kActivationReLU;
    graph.absorb(index, graph.only_reader(index), false, "ReLU of int8 into the convolution");
    return 1;
}

int keep_int8(LayerGraph& graph, int index, const LayerMaker&) {
    ConvolutionFields* own = convolution_fields(graph, index);
    const bool affine = own && own->int8_affine == 1;
    if (affine && graph.is<AffineQuantize>(graph.only_reader(index)))
        return keep_affine(graph, index, own);
    if (!gives_int8(graph, index, affine)) return 0;
    Region region(graph, affine);
    if (!region.grow(graph.layer(index)->tops[0])) return 0;
    for (int maker : region.makers()) {
        ConvolutionFields* conv = convolution_fields(graph, maker);
        if (affine) conv->top_zero_point = region.zero_point();
        const int status = round_output(conv, region.scale());
        if (status < 0) return status;
        graph.count(kReport);
    }
    for (int quantizer : region.quantizers()) graph.bypass(quantizer, kReport);
    for (int blob : region.blobs()) graph.change(blob);
    return 1;
}

}  // namespace quoll
