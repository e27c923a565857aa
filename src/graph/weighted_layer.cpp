#include "graph/passes.h"
#include "layer/conv_reference.h"
#include "layer/flatten.h"
#include "layer/innerproduct.h"
#include "layer/pool_reference.h"

namespace quoll {

namespace {

WeightedLayer of_fields(ConvFields& s, int int8_scale_term) {
    WeightedLayer w = {};
    w.weight = &s.weight_data, w.bias = &s.bias_data, w.bias_term = &s.bias_term;
    w.activation_type = &s.activation_type, w.activation_params = &s.activation_params;
    w.num_output = s.num_output;
    w.axes = s.axes;
    // What is added comes after the bias.
    w.folds = !s.dynamic_weight && !s.add_input && int8_scale_term == 0 &&
              s.weight_data.dtype == DType::f32 && s.activation_type == kActivationNone;
    // Above 100 the result is rounded to int8 after the activation.
    w.activates = s.activation_type == kActivationNone && int8_scale_term <= 100;
    w.per_output = !s.add_input;
    return w;
}

// An inner product gives rows of num_output values for 2-D inputs; 1-D ones otherwise.
bool input_is_no_matrix(const LayerGraph& graph, int index) {
    const Layer& layer = *graph.layer(index);
    if (layer.bottoms.size() != 1) return false;
    const int before = graph.producer(layer.bottoms[0]);
    const ConvolutionFields* conv = convolution_fields(graph, before);
    if (conv) return conv->axes == 2 && !conv->add_input;  // a sum may have more axes
    if (const auto* s = graph.as<DeconvolutionOperator>(before)) return s->axes == 2;
    if (const auto* s = graph.as<PoolingOperator>(before)) return s->axes == 2;
    return graph.is<Flatten>(before);
}

}  // namespace

ConvolutionFields* convolution_fields(const LayerGraph& graph, int index) {
    return graph.as<ConvolutionOperator>(index);
}

bool weighted_layer(const LayerGraph& graph, int index, WeightedLayer* found) {
    if (auto* s = graph.as<DeconvolutionOperator>(index)) {
        *found = of_fields(*s, 0);
    } else if (auto* s = convolution_fields(graph, index)) {
        *found = of_fields(*s, s->int8_scale_term);
    } else if (auto* s = graph.as<InnerProduct>(index)) {
        WeightedLayer w = {};
        w.weight = &s->weight_data, w.bias = &s->bias_data, w.bias_term = &s->bias_term;
        w.activation_type = &s->activation_type, w.activation_params = &s->activation_params;
        w.num_output = s->num_output;
        w.folds = s->int8_scale_term == 0 && s->weight_data.dtype == DType::f32 &&
                  s->activation_type == kActivationNone;
        w.activates = s->activation_type == kActivationNone && s->int8_scale_term <= 100;
        w.per_output = input_is_no_matrix(graph, index);
        *found = w;
    } else {
        return false;
    }
    return true;
}

}  // namespace quoll
