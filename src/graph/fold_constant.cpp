// Computes at load what follows from constants alone: a file then holds what a large table is
// computed from, and not the table.
#include <limits.h>

#include <algorithm>
#include <utility>

#include "graph/passes.h"
#include "layer/common/schema.h"
#include "layer/control/loop.h"
#include "layer/control/memorydata.h"
#include "layer/control/output.h"
#include "layer/nn/deconvolution.h"
#include "quoll/allocator.h"
#include "runtime/log_mute.h"

namespace quoll {

namespace {

class HasWeights : public WeightVisitor {
public:
    bool found = false;
    void operator()(bool present, const char*, Mat&, WeightSize, WeightKind, Doc) override {
        found = found || present;
    }
};

// Refuses blocks larger than a constant may be: sizes may follow from values.
class LimitedAllocator : public Allocator {
public:
    explicit LimitedAllocator(size_t most) : most_(most) {}
    void* fastMalloc(size_t size) override { return size > most_ ? nullptr : fast_malloc(size); }
    void fastFree(void* ptr) override { fast_free(ptr); }

private:
    const size_t most_;
};

size_t bytes_of(const Mat& value) { return value.total() * value.elemsize; }

// Whether it is planar, and not a 16-bit form of f32 values.
bool is_plain(const Mat& value) {
    return !value.empty() && value.elempack == 1 && value.n == 1 && value.dtype != DType::f16 &&
           value.dtype != DType::bf16;
}

// The value of a blob that does not depend on the inputs; null if it does, or if the application
// wants to give or read it.
const Mat* constant_of(const LayerGraph& graph, int blob) {
    const auto* constant = graph.as<MemoryData>(graph.producer(blob));
    if (!constant || !constant->bottoms.empty() || graph.kept(blob)) return nullptr;
    return is_plain(constant->value()) ? &constant->value() : nullptr;
}

// Whether the layer does the same whenever it runs, on numbers that it is given, and nobody asks it
// for anything else (as an Output is asked for its axes).
bool is_function(Layer& layer) {
    if (layer.typeindex < 0 || layer.tops.size() != 1 || as<LoopStart>(&layer) ||
        as<LoopEnd>(&layer) || as<Output>(&layer))
        return false;
    HasWeights weights;
    layer.visit_weights(weights);
    return !weights.found;
}

// A single layer, in the form that would run, on one thread and planar blobs.
class Computation {
public:
    Computation(const Layer& layer, const ParamDict& params, const LayerMaker& make,
                const ConstantBudget& budget)
        : budget_(budget), allocator_(budget.bytes), op_(make(layer.type.c_str())) {
        opt_.num_threads = 1;
        opt_.use_packing_layout = false;
        opt_.blob_allocator = opt_.workspace_allocator = &allocator_;
        if (!op_) return;
        op_->type = layer.type, op_->name = layer.name;
        op_->bottoms = layer.bottoms, op_->tops = layer.tops;
        loaded_ = op_->load_param(params) == kOk;
    }

    // False, with the work that was done, if the layer refuses its inputs, is too expensive, or
    // fails: a run will then say why.
    bool run(const std::vector<Mat>& inputs, Mat* value, int64_t* work) {
        *work = 0;
        const std::vector<Shape> in = shapes_of(inputs);
        std::vector<Shape> out;
        if (!loaded_ || op_->infer_shapes(in, out) != kOk || out.size() != 1) return false;
        if (out[0].dims != 0) {
            const int64_t all = std::max(op_->macs(in, out), (int64_t)out[0].total());
            if (out[0].total() * dtype_size(out[0].dtype) > budget_.bytes || all > budget_.work)
                return false;
            *work = all;
        }
        return op_->create_pipeline(opt_) == kOk && compute(inputs, value, work);
    }

private:
    bool compute(const std::vector<Mat>& inputs, Mat* value, int64_t* work) {
        std::vector<Mat> tops(1);
        const int status = op_->forward(inputs, tops, opt_);
        op_->destroy_pipeline(opt_);
        if (status != kOk || tops.size() != 1 || !is_plain(tops[0]) ||
            bytes_of(tops[0]) > budget_.bytes)
            return false;
        *work = std::max<int64_t>(*work, (int64_t)tops[0].total());
        *value = tops[0].clone();
        return !value->empty();
    }

    const ConstantBudget budget_;
    LimitedAllocator allocator_;  // before what has blobs of it
    Option opt_;
    const std::unique_ptr<Layer> op_;
    bool loaded_ = false;
};

// Removes a constant that nothing else reads any more, and what was computed for it.
void let_go(LayerGraph& graph, int blob) {
    const int index = graph.producer(blob);
    if (index < 0 || !graph.readers(blob).empty()) return;
    if (graph.replaced(index))
        graph.constants().bytes += bytes_of(graph.as<MemoryData>(index)->value());
    graph.as<MemoryData>(index)->release();
    graph.remove(index);
}

// Collects all inputs from `first` on; false if one is not a constant.
bool constants_of(const LayerGraph& graph, const Layer& layer, size_t first,
                  std::vector<Mat>* values) {
    for (size_t i = first; i < layer.bottoms.size(); i++) {
        const Mat* value = constant_of(graph, layer.bottoms[i]);
        if (!value) return false;
        values->push_back(*value);
    }
    return !values->empty();
}

// Marks blobs as changed: the graph would not follow if the application changed these constants.
void take(LayerGraph& graph, const std::vector<int>& blobs) {
    for (int blob : blobs) graph.change(blob);
    for (int blob : blobs) let_go(graph, blob);
}

// A kernel of three axes has both numbers of channels on one axis.
bool fits_as_weight(const ConvFields& s, bool transposed, const std::vector<Mat>& values) {
    const Shape weight = values[0].logical_shape();
    if (s.axes == 3 || weight.dims != s.axes + 2 || weight.total() > INT_MAX ||
        weight.size(0) % s.group != 0)
        return false;
    for (const Mat& value : values)
        if (value.dtype != DType::f32) return false;
    const int64_t inner = (int64_t)weight.size(1) * s.group;
    const int64_t outputs = transposed ? inner : weight.size(0);
    return outputs <= INT_MAX &&
           (!s.bias_term || (int64_t)values[1].logical_shape().total() == outputs);
}

ConvGeometry geometry_of_weight(const ConvFields& s, bool transposed, const Shape& weight) {
    ConvGeometry g;
    g.x = g.y = g.z = WindowAxis::none();
    g.x.kernel = weight.w;
    if (s.axes == 2) g.y.kernel = weight.h;
    g.group = s.group;
    g.num_input = weight.size(1) * s.group, g.num_output = weight.size(0);
    if (transposed) std::swap(g.num_input, g.num_output);
    return g;
}

}  // namespace

bool compute(Layer& layer, const LayerMaker& make, const std::vector<Mat>& inputs, Mat* value) {
    const LogMute quiet;
    int64_t work = 0;
    return Computation(layer, params_of(layer), make, ConstantBudget()).run(inputs, value, &work);
}

int fold_constant(LayerGraph& graph, int index, const LayerMaker& make) {
    Layer& layer = *graph.layer(index);
    std::vector<Mat> inputs;
    if (!constants_of(graph, layer, 0, &inputs) || !is_function(layer)) return 0;
    Mat value;
    int64_t work = 0;
    bool made;
    {
        const LogMute quiet;
        made = Computation(layer, params_of(layer), make, graph.constants())
                   .run(inputs, &value, &work);
    }
    graph.constants().work -= work;
    std::unique_ptr<Layer> with(made ? make("MemoryData") : nullptr);
    MemoryData* constant = as<MemoryData>(with.get());
    if (!constant) return 0;
    constant->set_value(value);
    graph.constants().bytes -= bytes_of(value);
    const std::vector<int> blobs = layer.bottoms;
    inputs.clear();
    graph.replace(index, std::move(with), {}, "constants folded");
    take(graph, blobs);
    return 1;
}

int fold_dynamic_weight(LayerGraph& graph, int index, const LayerMaker&) {
    Convolution* const conv = graph.as<Convolution>(index);
    Deconvolution* const deconv = graph.as<Deconvolution>(index);
    ConvFields* const s = conv ? (ConvFields*)conv : deconv;
    std::vector<Mat> values;
    if (!s || !s->dynamic_weight) return 0;
    Layer& layer = *graph.layer(index);
    if (layer.bottoms.size() != (s->bias_term ? 3u : 2u) ||
        !constants_of(graph, layer, 1, &values) || !fits_as_weight(*s, deconv != nullptr, values))
        return 0;
    const ConvGeometry g = geometry_of_weight(*s, deconv != nullptr, values[0].logical_shape());
    Mat weight;
    if (deconv && transpose_dynamic_weight(layer, g, values[0], Option(), &weight) != kOk)
        return kOutOfMemory;
    if (!deconv) weight = values[0].reshape((int)values[0].logical_shape().total());
    Mat bias = s->bias_term ? values[1].reshape(g.num_output) : Mat();
    if (weight.empty() || (s->bias_term && bias.empty())) return kOutOfMemory;
    s->kernel_w = g.x.kernel, s->kernel_h = g.y.kernel;
    s->num_output = g.num_output;
    s->weight_data_size = weight.w;
    s->weight_data = weight, s->bias_data = bias;
    s->dynamic_weight = 0;
    layer.one_blob_only = true;
    const std::vector<int> blobs(layer.bottoms.begin() + 1, layer.bottoms.end());
    while (layer.bottoms.size() > 1) graph.drop_input(index, 1);
    take(graph, blobs);
    graph.count(deconv ? "constant weights into Deconvolution"
                       : "constant weights into Convolution");
    return 1;
}

}  // namespace quoll
