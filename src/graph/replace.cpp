// Replaces layers by others that do the same with less work, or that enable other passes.
#include "graph/passes.h"
#include "layer/nn/deconvolution.h"
#include "layer/nn/innerproduct.h"
#include "layer/nn/pooling.h"
#include "layer/tensor/concat.h"
#include "layer/tensor/reduction.h"

namespace quoll {

bool gives_channels(const LayerGraph& graph, int index) {
    // A residual block has no more steps.
    for (int steps = 0; steps < 16 && index >= 0 && graph.layer(index); steps++) {
        const Layer& layer = *graph.layer(index);
        if (layer.tops.size() != 1) return false;
        // Of these, 1x1 convolutions take and give single pixels in 1 axis; others take and give
        // channels only.
        if (const ConvolutionFields* s = convolution_fields(graph, index)) {
            if (s->axes != 2 || s->add_input) return false;
            if (s->maxk() > 1) return true;
        } else if (const auto* s = graph.as<Pooling>(index)) {
            return s->axes == 2 && !s->global_pooling;
        } else if (const auto* s = graph.as<Deconvolution>(index)) {
            return s->axes == 2;
        } else if (!keeps_shape(layer) && !graph.is<Concat>(index)) {
            return false;
        }
        if (layer.bottoms.size() != 1 && !graph.is<Concat>(index)) return false;
        index = graph.producer(layer.bottoms[0]);
    }
    return false;
}

namespace {

// Whether it reduces the axes of a channel, and nothing else, of a blob of 3 axes.
bool reduces_channels(const Reduction& s) {
    unsigned mask = 0;
    for (int i = 0; i < s.axes.w && !s.reduce_all; i++) {
        const int axis = ((const int*)s.axes.data)[i];
        if (axis < -3 || axis > 2) return false;
        mask |= 1u << (axis < 0 ? axis + 3 : axis);
    }
    return !s.reduce_all && mask == 6;  // h and w
}

bool is_plain_pixel_convolution(const ConvolutionFields& s) {
    return s.axes == 2 && !s.grouped && s.maxk() == 1 && s.stride_w == 1 && s.stride_h == 1 &&
           s.pad_left == 0 && s.pad_right == 0 && s.pad_top == 0 && s.pad_bottom == 0 &&
           !s.dynamic_weight && s.int8_scale_term == 0 && s.weight_data.dtype == DType::f32;
}

}  // namespace

int reduction_to_pooling(LayerGraph& graph, int index, const LayerMaker& make) {
    const auto* s = graph.as<Reduction>(index);
    const bool mean = s && s->operation == Reduction::kMean;
    if (!s || (!mean && s->operation != Reduction::kMax) || s->coeff != 1.f ||
        !reduces_channels(*s) || s->bottoms.size() != 1 ||
        !gives_channels(graph, graph.producer(s->bottoms[0])))
        return 0;
    std::unique_ptr<Layer> with(make("Pooling"));
    Pooling* made = as<Pooling>(with.get());
    if (!made) return 0;
    Pooling& pool = *made;
    pool.pooling_type = mean ? Pooling::PoolMethod_AVE : Pooling::PoolMethod_MAX;
    // Global pooling leaves one axis; pooling to one output per channel leaves three.
    pool.global_pooling = s->keepdims ? 0 : 1;
    pool.adaptive_pooling = s->keepdims ? 1 : 0;
    pool.kernel_h = 0;  // as a file without a window has it
    pool.out_w = pool.out_h = s->keepdims ? 1 : 0;
    graph.replace(index, std::move(with), s->bottoms, "Reduction to global Pooling");
    return 1;
}

int convolution_to_product(LayerGraph& graph, int index, const LayerMaker& make) {
    const auto* s = graph.as<Convolution>(index);
    if (!s || !is_plain_pixel_convolution(*s) || graph.layer(index)->bottoms.size() != 1) return 0;
    const int before = graph.producer(graph.layer(index)->bottoms[0]);
    const auto* pool = graph.as<Pooling>(before);
    FusionTarget w;
    const bool behind_product =
        graph.is<InnerProduct>(before) && fusion_target(graph, before, &w) && w.per_output;
    if (!behind_product && !(pool && pool->global_pooling)) return 0;
    std::unique_ptr<Layer> with(make("InnerProduct"));
    InnerProduct* made = as<InnerProduct>(with.get());
    if (!made) return 0;
    InnerProduct& product = *made;
    product.num_output = s->num_output;
    product.bias_term = s->bias_term;
    product.weight_data_size = s->weight_data_size;
    product.activation_type = s->activation_type;
    product.activation_params = s->activation_params;
    product.weight_data = s->weight_data;
    product.bias_data = s->bias_data;
    graph.replace(index, std::move(with), std::vector<int>(graph.layer(index)->bottoms),
                  "Convolution of one pixel to InnerProduct");
    return 1;
}

}  // namespace quoll
