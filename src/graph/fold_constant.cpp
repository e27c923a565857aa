// What is computed from constants alone is computed when the net is loaded: a file then holds what
// a large table follows from, and not the table.
#include "graph/passes.h"
#include "layer/common/registry.h"
#include "layer/common/schema.h"
#include "layer/control/loop.h"
#include "layer/control/memorydata.h"
#include "runtime/log_mute.h"

namespace quoll {

namespace {

class HasWeights : public WeightVisitor {
public:
    bool found = false;
    void operator()(bool present, const char*, Mat&, WeightSize, WeightKind, const char*) override {
        found = found || present;
    }
};

// The value of a blob that does not depend on the inputs; null if it is none.
const Mat* constant_of(const LayerGraph& graph, int blob) {
    const auto* constant = graph.as<MemoryData>(graph.producer(blob));
    if (!constant || !constant->bottoms.empty() || constant->value().empty()) return nullptr;
    const Mat& value = constant->value();
    const bool plain = value.elempack == 1 && value.n == 1;
    return plain && value.dtype != DType::f16 && value.dtype != DType::bf16 ? &value : nullptr;
}

// Layers that do the same whenever they run, on numbers that they are given.
bool is_function(Layer& layer) {
    if (layer.typeindex < 0 || as<LoopStart>(&layer) || as<LoopEnd>(&layer) ||
        layer.tops.size() != 1)
        return false;
    HasWeights weights;
    layer.visit_weights(weights);
    return !weights.found;
}

// Runs the reference form of `layer` on constants. What it refuses is left to the run, which says
// so.
bool value_of(Layer& layer, const std::vector<Mat>& inputs, size_t most, Mat* value) {
    const LogMute quiet;
    const std::unique_ptr<Layer> op(create_layer_reference(layer.typeindex));
    Option opt;
    opt.num_threads = 1;
    std::vector<Shape> shapes;
    if (!op || op->load_param(params_of(layer)) != kOk ||
        op->infer_shapes(shapes_of(inputs), shapes) != kOk || shapes.size() != 1 ||
        shapes[0].dims == 0 || shapes[0].total() > most || op->create_pipeline(opt) != kOk)
        return false;
    std::vector<Mat> tops(1);
    const bool made = op->forward(inputs, tops, opt) == kOk && tops.size() == 1 && tops[0].n == 1 &&
                      tops[0].elempack == 1 && !tops[0].empty() &&
                      tops[0].logical_shape().total() <= most;
    if (made) *value = tops[0].clone();
    op->destroy_pipeline(opt);
    return made && !value->empty();
}

}  // namespace

int fold_constant(LayerGraph& graph, int index, const LayerMaker& make) {
    Layer& layer = *graph.layer(index);
    if (layer.bottoms.empty() || !constant_of(graph, layer.bottoms[0]) || !is_function(layer))
        return 0;
    std::vector<Mat> inputs;
    for (int blob : layer.bottoms) {
        const Mat* value = constant_of(graph, blob);
        if (!value) return 0;
        inputs.push_back(*value);
    }
    Mat value;
    if (!value_of(layer, inputs, graph.constants_left(), &value)) return 0;
    graph.spend_constants(value.logical_shape().total());
    std::unique_ptr<Layer> with(make("MemoryData"));
    MemoryData* constant = as<MemoryData>(with.get());
    if (!constant) return 0;
    constant->set_value(value);
    graph.replace(index, std::move(with), {}, "constants folded");
    return 1;
}

int fold_dynamic_weight(LayerGraph& graph, int index, const LayerMaker&) {
    Convolution* conv = graph.as<Convolution>(index);
    if (!conv || !conv->dynamic_weight || conv->bottoms.size() != (conv->bias_term ? 3u : 2u))
        return 0;
    Mat values[2];
    for (int i = 0; i <= conv->bias_term; i++) {
        const Mat* value = constant_of(graph, conv->bottoms[(size_t)i + 1]);
        if (!value || value->dtype != DType::f32) return 0;
        values[i] = value->reshape((int)value->logical_shape().total());
        if (values[i].empty()) return kOutOfMemory;
    }
    // Its number of inputs is not known from a weight of four axes or fewer alone, if it has
    // groups.
    const Mat& weight = *constant_of(graph, conv->bottoms[1]);
    const Shape shape = weight.logical_shape();
    if (conv->axes == 3 || shape.dims != conv->axes + 2 ||
        (conv->bias_term && values[1].w != shape.size(0)))
        return 0;
    conv->kernel_w = shape.w, conv->kernel_h = conv->axes == 1 ? 1 : shape.h;
    conv->num_output = shape.size(0);
    conv->weight_data_size = values[0].w;
    conv->weight_data = values[0], conv->bias_data = values[1];
    conv->dynamic_weight = 0;
    while (conv->bottoms.size() > 1) graph.drop_input(index, 1);
    graph.count("constant weights into Convolution");
    return conv->check_inputs() == kOk ? 1 : (int)kError;
}

}  // namespace quoll
