#include "graph/analysis.h"

#include <algorithm>
#include <set>

#include "layer/control/input.h"
#include "quoll/log.h"

namespace quoll {

namespace {

std::unordered_map<std::string, int> producers_of(const Model& model) {
    std::unordered_map<std::string, int> producers;
    for (size_t i = 0; i < model.layers.size(); i++)
        for (const std::string& blob : model.layers[i].outputs) producers.emplace(blob, (int)i);
    return producers;
}

}  // namespace

std::vector<std::string> output_blobs(const Model& model) {
    std::set<std::string> read;
    for (const ModelLayer& layer : model.layers)
        read.insert(layer.inputs.begin(), layer.inputs.end());
    std::vector<std::string> outputs;
    for (const ModelLayer& layer : model.layers)
        for (const std::string& blob : layer.outputs)
            if (!read.count(blob)) outputs.push_back(blob);
    return outputs;
}

std::vector<std::string> input_blobs(const Model& model) {
    std::vector<std::string> inputs;
    for (const ModelLayer& layer : model.layers)
        if (layer.is<Input>())
            inputs.insert(inputs.end(), layer.outputs.begin(), layer.outputs.end());
    return inputs;
}

std::vector<int> execution_order(const Model& model, const std::vector<std::string>& outputs) {
    const std::unordered_map<std::string, int> producers = producers_of(model);
    std::vector<int> order, stack;
    std::vector<char> state(model.layers.size(), 0);  // 1: inputs asked for, 2: in the order
    for (const std::string& blob : outputs.empty() ? output_blobs(model) : outputs) {
        const auto found = producers.find(blob);
        if (found != producers.end()) stack.push_back(found->second);
        while (!stack.empty()) {
            const int index = stack.back();
            if (state[index]) {
                stack.pop_back();
                if (state[index] == 1) order.push_back(index);
                state[index] = 2;
                continue;
            }
            state[index] = 1;
            const std::vector<std::string>& inputs = model.layers[index].inputs;
            for (size_t i = inputs.size(); i-- > 0;) {
                const auto producer = producers.find(inputs[i]);
                if (producer != producers.end() && state[producer->second] == 0)
                    stack.push_back(producer->second);
            }
        }
    }
    return order;
}

int check_acyclic(const Model& model) {
    std::vector<std::string> all;
    for (const ModelLayer& layer : model.layers)
        all.insert(all.end(), layer.outputs.begin(), layer.outputs.end());
    std::set<std::string> made;
    for (int index : execution_order(model, all)) {
        const ModelLayer& layer = model.layers[index];
        for (const std::string& blob : layer.inputs) {
            if (made.count(blob)) continue;
            QUOLL_LOGE("[%s %s] its inputs depend on its own output", layer.type.c_str(),
                       layer.name.c_str());
            return kError;
        }
        made.insert(layer.outputs.begin(), layer.outputs.end());
    }
    return kOk;
}

namespace {

std::vector<Shape> shapes_of(const std::vector<std::string>& blobs, const BlobSizes& sizes) {
    std::vector<Shape> shapes;
    for (const std::string& blob : blobs) {
        const auto found = sizes.find(blob);
        shapes.push_back(found == sizes.end() ? Shape() : found->second);
    }
    return shapes;
}

// The output sizes of one layer; none if the size of an input is not known. If the operator's
// inputs may be absent, inputs behind the first that callers could give (`given`) and that have no
// size are taken to be absent.
int infer_layer(const ModelLayer& layer, const std::set<std::string>& given, const BlobSizes& sizes,
                std::vector<Shape>* tops) {
    tops->clear();
    if (layer.custom()) return kOk;
    const std::unique_ptr<Layer> op = layer.make_operator();
    if (!op) return kError;
    const std::vector<Shape> bottoms = shapes_of(layer.inputs, sizes);
    for (size_t i = 0; i < bottoms.size(); i++) {
        const bool absent = op->support_absent_inputs && i > 0 && given.count(layer.inputs[i]);
        if (bottoms[i].dims == 0 && !absent) return kOk;
    }
    const int status = infer_batch_shapes(*op, bottoms, false, tops);
    if (status != kOk) tops->clear();
    return status;
}

}  // namespace

int infer_blob_sizes(const Model& model, const BlobSizes& given, BlobSizes* sizes) {
    *sizes = given;
    const std::vector<std::string> inputs = input_blobs(model);
    const std::set<std::string> input_set(inputs.begin(), inputs.end());
    int status = kOk;
    std::vector<std::string> all;
    for (const ModelLayer& layer : model.layers)
        all.insert(all.end(), layer.outputs.begin(), layer.outputs.end());
    for (int index : execution_order(model, all)) {
        const ModelLayer& layer = model.layers[index];
        std::vector<Shape> tops;
        const int code = infer_layer(layer, input_set, *sizes, &tops);
        if (code != kOk && status == kOk) status = code;
        for (size_t i = 0; i < tops.size() && i < layer.outputs.size(); i++)
            if (tops[i].dims != 0) sizes->emplace(layer.outputs[i], tops[i]);
    }
    return status;
}

int64_t blob_bytes(const Shape& shape, int float_size) {
    if (shape.dims == 0) return 0;
    const int64_t scalar =
        shape.dtype == DType::f32 ? float_size : (int64_t)dtype_size(shape.dtype);
    int64_t channel = (int64_t)shape.w * shape.h * shape.d * scalar;
    if (shape.dims >= 3) channel = (channel + 15) / 16 * 16;  // as Mat aligns them
    return channel * shape.c * shape.n;
}

namespace {

// Lists a layer's weights by its schema.
class ListWeights : public WeightVisitor {
public:
    ListWeights(const Layer& op, const ModelLayer& from, std::vector<WeightFacts>* list)
        : op_(op), from_(from), list_(list) {}
    int status = kOk;

    void operator()(bool present, const char* name, Mat&, WeightSize size, WeightKind kind,
                    Doc) override {
        int count = 0;
        if (!present || status != kOk) return;
        status = weight_count(op_, name, size, &count);
        WeightFacts facts = {name, count, false, DType::f32, 0};
        if (const StoredWeight* stored = from_.find_weight(name)) {
            facts.stored = true;
            facts.dtype = stored->data.dtype;
            facts.file_bytes = ((int64_t)count * (int64_t)dtype_size(facts.dtype) + 3) / 4 * 4;
            if (kind == WeightKind::kTagged) facts.file_bytes += 4;
            if (!stored->table.empty()) facts.file_bytes += 4 * stored->table.w;
        }
        list_->push_back(facts);
    }

private:
    const Layer& op_;
    const ModelLayer& from_;
    std::vector<WeightFacts>* list_;
};

// Simulates the blobs of a run in light mode: which are alive, and which share memory.
class MemoryRun {
public:
    MemoryRun(const Model& model, const BlobSizes& sizes) : model_(model), sizes_(sizes) {
        for (const ModelLayer& layer : model.layers)
            for (const std::string& blob : layer.inputs) uses_[blob]++;
    }

    MemoryFacts run() {
        facts_.complete = true;
        for (int index : execution_order(model_)) run_layer(index);
        return facts_;
    }

private:
    struct Buffer {
        int64_t bytes;
        int blobs;  // that lie in it
    };

    void run_layer(int index) {
        const ModelLayer& layer = model_.layers[index];
        const bool given = layer.is<Input>();
        const bool shares = layer.prototype() && has_trait(*layer.prototype(), kSharesMemory);
        std::vector<int> freed;
        bool alone = !layer.inputs.empty() && inplace(layer);
        for (const std::string& blob : layer.inputs) {
            const bool last = --uses_[blob] == 0 && !given_.count(blob);
            const int buffer = buffer_of_[blob];
            alone &= last && buffers_[buffer].blobs == 1;
            if (last) freed.push_back(buffer);
        }
        for (size_t i = 0; i < layer.outputs.size(); i++) {
            const std::string& blob = layer.outputs[i];
            if (given) given_.insert(blob);
            const auto size = sizes_.find(blob);
            facts_.complete &= size != sizes_.end();
            const int64_t bytes = size == sizes_.end() ? 0 : blob_bytes(size->second);
            facts_.sum += bytes;
            const bool reuses = shares || (alone && i < layer.inputs.size());
            if (reuses && !layer.inputs.empty())
                place(blob, buffer_of_[layer.inputs[std::min(i, layer.inputs.size() - 1)]]);
            else
                place(blob, new_buffer(bytes));
        }
        if (live_ > facts_.peak) facts_.peak = live_, facts_.peak_layer = index;
        for (int buffer : freed)
            if (--buffers_[buffer].blobs == 0) live_ -= buffers_[buffer].bytes;
    }

    static bool inplace(const ModelLayer& layer) {
        const std::unique_ptr<Layer> op(create_layer(layer.type.c_str()));
        return op && runs_in_place(*op);
    }
    int new_buffer(int64_t bytes) {
        buffers_.push_back(Buffer{bytes, 0});
        live_ += bytes;
        return (int)buffers_.size() - 1;
    }
    void place(const std::string& blob, int buffer) {
        buffer_of_[blob] = buffer;
        buffers_[buffer].blobs++;
    }

    const Model& model_;
    const BlobSizes& sizes_;
    std::unordered_map<std::string, int> uses_, buffer_of_;
    std::set<std::string> given_;
    std::vector<Buffer> buffers_;
    int64_t live_ = 0;
    MemoryFacts facts_;
};

}  // namespace

int64_t LayerFacts::parameters() const {
    int64_t sum = 0;
    for (const WeightFacts& w : weights) sum += w.count;
    return sum;
}

int64_t LayerFacts::weight_bytes() const {
    int64_t sum = 0;
    for (const WeightFacts& w : weights) sum += w.file_bytes;
    return sum;
}

int analyse_model(const Model& model, const BlobSizes& given, ModelFacts* facts) {
    *facts = ModelFacts();
    infer_blob_sizes(model, given, &facts->sizes);
    for (const ModelLayer& layer : model.layers) {
        LayerFacts one;
        one.inputs = shapes_of(layer.inputs, facts->sizes);
        one.outputs = shapes_of(layer.outputs, facts->sizes);
        if (!layer.custom()) {
            const std::unique_ptr<Layer> op = layer.make_operator();
            if (!op) return kError;
            ListWeights list(*op, layer, &one.weights);
            op->visit_weights(list);
            QUOLL_RETURN_IF_ERROR(list.status);
            one.cost = cost_of(*op, one.inputs, one.outputs);
        }
        if (one.cost.macs > 0) facts->macs += one.cost.macs;
        if (one.cost.macs < 0) facts->macs_complete = false;
        facts->parameters += one.parameters();
        facts->weight_bytes += one.weight_bytes();
        facts->layers.push_back(one);
    }
    facts->memory = MemoryRun(model, facts->sizes).run();
    return kOk;
}

}  // namespace quoll
