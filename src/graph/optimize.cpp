#include "graph/optimize.h"

#include <math.h>

#include <algorithm>
#include <map>
#include <set>

#include "graph/layer_graph.h"
#include "layer/common/schema.h"
#include "layer/control/input.h"
#include "layer/control/memorydata.h"
#include "layer/control/split.h"
#include "quoll/log.h"

namespace quoll {

void OptimizeReport::count(const std::string& what, int times) {
    for (auto& entry : counts_) {
        if (entry.first != what) continue;
        entry.second += times;
        return;
    }
    counts_.emplace_back(what, times);
}

std::vector<std::string> OptimizeReport::lines() const {
    std::vector<std::string> lines;
    for (const auto& entry : counts_)
        lines.push_back(entry.first + " (" + std::to_string(entry.second) + ")");
    return lines;
}

namespace {

// Id of the shape hints; of no operator's own.
const int kHints = 30;
// The text with which eliminate_identity reports it.
const char kSplitLeftOut[] = "Split left out";

// The blobs that a layer's or a blob's name stands for.
int find_place(const Model& model, const std::string& name, bool inputs,
               std::vector<std::string>* blobs) {
    for (const ModelLayer& layer : model.layers) {
        if (layer.name != name) continue;
        *blobs = inputs ? layer.inputs : layer.outputs;
        if (inputs && blobs->empty()) *blobs = layer.outputs;  // it is an Input, or a constant
        if (!blobs->empty()) return kOk;
    }
    *blobs = {name};
    if (model.producer(name) >= 0) return kOk;
    QUOLL_LOGE("[Model] cut: there is no layer and no blob '%s'", name.c_str());
    return kError;
}

// A name that begins with `name` and is none of those taken; takes it.
std::string unique_name(std::string name, std::set<std::string>* taken) {
    while (!taken->insert(name).second) name += "_";
    return name;
}

std::set<std::string> layer_names(const Model& model) {
    std::set<std::string> names;
    for (const ModelLayer& layer : model.layers) names.insert(layer.name);
    return names;
}

// Makes new Input layers, at the front, give these blobs instead of the layers that made them.
void make_inputs(Model* model, const std::vector<std::string>& blobs, const BlobSizes& sizes) {
    std::set<std::string> names = layer_names(*model), taken;
    for (const std::string& blob : model->blob_names()) taken.insert(blob);
    for (const std::string& blob : blobs) {
        ModelLayer& producer = model->layers[model->producer(blob)];
        if (producer.is<Input>()) continue;
        // The old producer may have other outputs that are needed.
        std::replace(producer.outputs.begin(), producer.outputs.end(), blob,
                     unique_name(blob + "_cut", &taken));
        ModelLayer input;
        input.type = "Input";
        input.name = unique_name(blob, &names);
        input.outputs = {blob};
        const auto size = sizes.find(blob);
        if (size != sizes.end() && size->second.n == 1) {
            const Shape& s = size->second;
            input.set("w", s.w);
            if (s.dims >= 2) input.set("h", s.h);
            if (s.dims == 4) input.set("d", s.d);
            if (s.dims >= 3) input.set("c", s.c);
        }
        model->layers.push_front(input);
    }
}

// Keeps the layers whose index is in `keep`, in their order; Splits lose the outputs that are then
// without readers, except those in `outputs`.
int keep_layers(Model* model, const std::set<int>& keep, const std::vector<std::string>& outputs) {
    std::deque<ModelLayer> left;
    for (size_t i = 0; i < model->layers.size(); i++)
        if (keep.count((int)i)) left.push_back(model->layers[i]);
    const int removed = (int)(model->layers.size() - left.size());
    model->layers.swap(left);
    std::set<std::string> unread;
    for (const std::string& blob : output_blobs(*model)) unread.insert(blob);
    for (const std::string& blob : outputs) unread.erase(blob);
    for (ModelLayer& layer : model->layers) {
        if (!layer.is<Split>()) continue;
        const auto gone = [&](const std::string& blob) { return unread.count(blob) != 0; };
        layer.outputs.erase(std::remove_if(layer.outputs.begin(), layer.outputs.end(), gone),
                            layer.outputs.end());
    }
    return removed;
}

// Removes from `outputs` what does not come from `inputs`.
void keep_reached(const Model& model, const std::vector<std::string>& inputs,
                  std::vector<std::string>* outputs) {
    std::set<std::string> reached(inputs.begin(), inputs.end());
    std::vector<std::string> all;
    for (const ModelLayer& layer : model.layers)
        all.insert(all.end(), layer.outputs.begin(), layer.outputs.end());
    for (int index : execution_order(model, all)) {
        const ModelLayer& layer = model.layers[index];
        for (const std::string& blob : layer.inputs)
            if (reached.count(blob)) reached.insert(layer.outputs.begin(), layer.outputs.end());
    }
    const auto gone = [&](const std::string& blob) { return !reached.count(blob); };
    outputs->erase(std::remove_if(outputs->begin(), outputs->end(), gone), outputs->end());
}

// Gives outputs that layers also read a Split, so that no pass removes them.
void split_outputs(Model* model, const std::vector<std::string>& outputs) {
    std::set<std::string> names = layer_names(*model), taken;
    for (const std::string& blob : model->blob_names()) taken.insert(blob);
    for (const std::string& blob : outputs) {
        const std::vector<int> readers = model->consumers(blob);
        const int producer = model->producer(blob);
        if (readers.empty() || producer < 0 || model->layers[producer].is<Input>()) continue;
        ModelLayer split;
        split.type = "Split";
        split.name = unique_name(blob + "_split", &names);
        split.inputs = {unique_name(blob + "_whole", &taken)};
        split.outputs = {blob};
        std::vector<std::string>& made = model->layers[producer].outputs;
        std::replace(made.begin(), made.end(), blob, split.inputs[0]);
        for (int reader : readers) {
            for (std::string& input : model->layers[reader].inputs) {
                if (input != blob) continue;
                input = unique_name(blob + "_read", &taken);
                split.outputs.push_back(input);
            }
        }
        model->layers.insert(model->layers.begin() + producer + 1, split);
    }
}

// Blobs that the model makes.
int cut_between(Model* model, const std::vector<std::string>& from,
                const std::vector<std::string>& to, OptimizeReport* report) {
    const std::vector<int> needed = execution_order(*model, to);
    const int removed = keep_layers(model, std::set<int>(needed.begin(), needed.end()), to);
    if (removed > 0) report->count("layers outside the cut removed", removed);
    for (const std::string& blob : from) {
        const int producer = model->producer(blob);
        const bool output = std::find(to.begin(), to.end(), blob) != to.end();
        if (producer >= 0 && (output || !model->consumers(blob).empty())) continue;
        std::string ends;
        for (const std::string& end : to) ends += (ends.empty() ? "'" : ", '") + end + "'";
        QUOLL_LOGE("[Model] cut: '%s' does not lead to %s", blob.c_str(), ends.c_str());
        return kError;
    }
    return kOk;
}

}  // namespace

int cut_model(Model* model, const std::string& start, const std::string& end,
              const BlobSizes& sizes, OptimizeReport* report) {
    std::vector<std::string> from, to = output_blobs(*model);
    if (!end.empty()) QUOLL_RETURN_IF_ERROR(find_place(*model, end, false, &to));
    if (!start.empty()) {
        QUOLL_RETURN_IF_ERROR(find_place(*model, start, true, &from));
        make_inputs(model, from, sizes);
        if (end.empty()) keep_reached(*model, from, &to);
    }
    return cut_between(model, from, to, report);
}

int cut_model(Model* model, const std::vector<std::string>& inputs,
              const std::vector<std::string>& outputs, const BlobSizes& sizes,
              OptimizeReport* report) {
    std::vector<std::string> to = outputs.empty() ? output_blobs(*model) : outputs;
    for (const auto& blobs : {inputs, outputs}) {
        for (const std::string& blob : blobs) {
            if (model->producer(blob) >= 0) continue;
            QUOLL_LOGE("[Model] cut: there is no blob '%s'", blob.c_str());
            return kError;
        }
    }
    make_inputs(model, inputs, sizes);
    if (outputs.empty() && !inputs.empty()) keep_reached(*model, inputs, &to);
    QUOLL_RETURN_IF_ERROR(cut_between(model, inputs, to, report));
    split_outputs(model, outputs);
    return kOk;
}

void strip_names(Model* model, const std::vector<std::string>& kept) {
    std::set<std::string> taken(kept.begin(), kept.end());
    for (const std::string& blob : input_blobs(*model)) taken.insert(blob);
    for (const std::string& blob : output_blobs(*model)) taken.insert(blob);
    std::map<std::string, std::string> renamed;
    for (const std::string& blob : taken) renamed[blob] = blob;
    int number = 0, position = 0;
    for (const std::string& blob : model->blob_names()) {
        if (renamed.count(blob)) continue;
        while (!taken.insert(std::to_string(number)).second) number++;
        renamed[blob] = std::to_string(number);
    }
    for (ModelLayer& layer : model->layers) {
        layer.name = std::to_string(position++);
        for (std::string& blob : layer.inputs) blob = renamed[blob];
        for (std::string& blob : layer.outputs) blob = renamed[blob];
    }
}

int remove_dead_layers(Model* model, const std::vector<std::string>& kept, OptimizeReport* report) {
    std::vector<std::string> outputs;
    std::set<int> keep;
    for (const std::string& blob : output_blobs(*model))
        if (std::count(kept.begin(), kept.end(), blob) ||
            !model->layers[model->producer(blob)].is<MemoryData>())
            outputs.push_back(blob);
    if (outputs.empty()) return kOk;
    for (int index : execution_order(*model, outputs)) keep.insert(index);
    for (size_t i = 0; i < model->layers.size(); i++)
        if (model->layers[i].is<Input>()) keep.insert((int)i);
    const int removed = keep_layers(model, keep, outputs);
    if (removed > 0) report->count("layers that nothing needs removed", removed);
    return kOk;
}

namespace {

// The weights that an operator holds, by name.
class HeldWeights : public WeightVisitor {
public:
    std::vector<std::pair<std::string, Mat>> weights;
    void operator()(bool present, const char* name, Mat& field, WeightSize, WeightKind,
                    const char*) override {
        if (present) weights.emplace_back(name, field);
    }
    const void* data(const std::string& name) const {
        for (const auto& weight : weights)
            if (weight.first == name) return weight.second.data;
        return nullptr;
    }
};

HeldWeights weights_of(Layer& op) {
    HeldWeights held;
    op.visit_weights(held);
    return held;
}

// The passes' view of a Model: an operator for each layer.
class PassRun {
public:
    explicit PassRun(const Model& model) : model_(model), names_(model.blob_names()) {
        for (size_t i = 0; i < names_.size(); i++) index_of_[names_[i]] = (int)i;
    }

    int make_operators() {
        for (const ModelLayer& from : model_.layers) {
            std::unique_ptr<Layer> op;
            if (from.custom()) {
                op.reset(new Layer);
                op->type = from.type, op->name = from.name;
            } else {
                op = from.make_operator(true);
                if (!op) return kError;
            }
            op->bottoms.clear(), op->tops.clear();
            for (const std::string& blob : from.inputs) op->bottoms.push_back(index_of_[blob]);
            for (const std::string& blob : from.outputs) op->tops.push_back(index_of_[blob]);
            before_.push_back(weights_of(*op));
            operators_.push_back(std::move(op));
        }
        return kOk;
    }

    int run(const std::vector<std::string>& kept, OptimizeReport* report) {
        std::vector<char> kept_flags(names_.size(), 0);
        for (const std::string& blob : kept) {
            const auto found = index_of_.find(blob);
            if (found == index_of_.end()) {
                QUOLL_LOGE("[Model] there is no blob '%s' to keep", blob.c_str());
                return kError;
            }
            kept_flags[found->second] = 1;
        }
        std::vector<Layer*> layers;
        for (const auto& op : operators_) layers.push_back(op.get());
        LayerGraph graph(layers, names_, kept_flags);
        QUOLL_RETURN_IF_ERROR(
            run_passes(graph, true, [](const char* type) { return create_layer_reference(type); }));
        // Splits that are needed are added again, and the others counted then.
        for (const std::string& what : graph.report())
            if (what != kSplitLeftOut) report->count(what);
        for (size_t i = 0; i < layers.size(); i++) {
            if (graph.replaced((int)i)) {
                operators_[i] = graph.take_new_layer((int)i);
                before_[i] = HeldWeights();
                replaced_.insert((int)i);
            }
            gone_.push_back(!graph.layer((int)i));
        }
        return kOk;
    }

    // What the passes left.
    void take_layers(Model* to) {
        std::deque<ModelLayer> layers;
        for (size_t i = 0; i < operators_.size(); i++)
            if (!gone_[i]) layers.push_back(take_layer((int)i));
        to->layers.swap(layers);
    }

private:
    ModelLayer take_layer(int i) {
        Layer& op = *operators_[i];
        ModelLayer layer;
        if (replaced_.count(i))
            layer.type = op.type, layer.name = op.name;
        else
            layer = model_.layers[i];
        layer.inputs.clear(), layer.outputs.clear();
        for (int blob : op.bottoms) layer.inputs.push_back(names_[blob]);
        for (int blob : op.tops) layer.outputs.push_back(names_[blob]);
        if (layer.custom()) return layer;
        layer.set_params(op);
        // Weights that were not changed stay as they were stored.
        const HeldWeights after = weights_of(op);
        for (const auto& weight : after.weights)
            if (weight.second.data != before_[i].data(weight.first))
                layer.set_weight(weight.first.c_str(), weight.second);
        return layer;
    }

    const Model& model_;
    const std::vector<std::string> names_;
    std::unordered_map<std::string, int> index_of_;
    std::vector<std::unique_ptr<Layer>> operators_;
    std::vector<HeldWeights> before_;
    std::set<int> replaced_;
    std::vector<char> gone_;
};

// How often each blob is read.
std::unordered_map<std::string, int> reads_of(const Model& model) {
    std::unordered_map<std::string, int> reads;
    for (const ModelLayer& layer : model.layers)
        for (const std::string& blob : layer.inputs) reads[blob]++;
    return reads;
}

// Gives blobs with several readers a Split, unless they had several before.
class SplitInserter {
public:
    SplitInserter(Model* model, const std::unordered_map<std::string, int>& reads_before)
        : model_(model), names_(layer_names(*model)), reads_(reads_of(*model)) {
        for (const std::string& blob : model->blob_names()) blobs_.insert(blob);
        for (const auto& read : reads_) {
            const auto before = reads_before.find(read.first);
            if (read.second > 1 && (before == reads_before.end() || before->second < 2))
                shared_.insert(read.first);
        }
    }

    void run() {
        std::deque<ModelLayer> layers;
        for (ModelLayer& layer : model_->layers) {
            layers.push_back(layer);
            for (const std::string& blob : layer.outputs)
                if (shared_.count(blob)) layers.push_back(split_of(blob));
        }
        for (ModelLayer& layer : layers) {
            for (std::string& blob : layer.inputs) {
                const auto copies = free_.find(blob);
                if (copies == free_.end() || inserted_.count(layer.name)) continue;
                blob = copies->second.back();
                copies->second.pop_back();
            }
        }
        model_->layers.swap(layers);
    }

private:
    ModelLayer split_of(const std::string& blob) {
        ModelLayer split;
        split.type = "Split";
        split.name = unique_name(blob + "_split", &names_);
        inserted_.insert(split.name);
        split.inputs = {blob};
        for (int i = 0; i < reads_[blob]; i++)
            split.outputs.push_back(unique_name(blob + "_split_" + std::to_string(i), &blobs_));
        free_[blob].assign(split.outputs.rbegin(), split.outputs.rend());
        return split;
    }

    Model* model_;
    std::set<std::string> names_, blobs_, shared_, inserted_;
    std::unordered_map<std::string, int> reads_;
    std::unordered_map<std::string, std::vector<std::string>>
        free_;  // outputs without a reader yet
};

int splits_in(const Model& model) {
    int count = 0;
    for (const ModelLayer& layer : model.layers) count += layer.is<Split>();
    return count;
}

}  // namespace

int run_graph_passes(Model* model, const std::vector<std::string>& kept, OptimizeReport* report) {
    const std::unordered_map<std::string, int> reads_before = reads_of(*model);
    const int splits_before = splits_in(*model);
    {
        PassRun passes(*model);
        QUOLL_RETURN_IF_ERROR(passes.make_operators());
        QUOLL_RETURN_IF_ERROR(passes.run(kept, report));
        Model result;
        passes.take_layers(&result);
        model->layers.swap(result.layers);
    }
    SplitInserter(model, reads_before).run();
    const int left_out = splits_before - splits_in(*model);
    if (left_out > 0) report->count(kSplitLeftOut, left_out);
    return kOk;
}

namespace {

// Stores tagged weights of floats as another type.
class StoreWeights : public WeightVisitor {
public:
    StoreWeights(ModelLayer* layer, DType dtype, OptimizeReport* report)
        : layer_(layer), dtype_(dtype), report_(report) {}
    int status = kOk;

    void operator()(bool present, const char* name, Mat&, WeightSize, WeightKind kind,
                    const char*) override {
        const StoredWeight* stored = layer_->find_weight(name);
        if (!present || status != kOk || kind != WeightKind::kTagged || !stored) return;
        if (stored->data.dtype == DType::s8 || stored->data.dtype == dtype_) return;
        const Mat wide = stored->widened();
        Mat narrow = wide;
        if (dtype_ == DType::f16 && !fits_f16(wide)) {
            QUOLL_LOGW("[%s %s] %s: values beyond 65504 do not fit into f16, it stays %s",
                       layer_->type.c_str(), layer_->name.c_str(), name,
                       dtype_name(stored->data.dtype));
            return;
        }
        if (dtype_ == DType::f16) cast_float32_to_float16(wide, narrow);
        if (dtype_ == DType::bf16) cast_float32_to_bfloat16(wide, narrow);
        if (narrow.empty()) {
            status = kOutOfMemory;
            return;
        }
        layer_->set_weight(name, narrow);
        report_->count(std::string("weights stored as ") + dtype_name(dtype_));
    }

private:
    static bool fits_f16(const Mat& values) {
        for (int i = 0; i < values.w; i++)
            if (fabsf(values[i]) > 65504.f) return false;
        return true;
    }
    ModelLayer* layer_;
    DType dtype_;
    OptimizeReport* report_;
};

bool rounds_to_int8(const ModelLayer& layer) {
    for (const ModelWeight& weight : layer.weights)
        if (weight.name.find("int8_scale") != std::string::npos) return true;
    return false;
}

}  // namespace

int store_weights(Model* model, DType dtype, OptimizeReport* report) {
    for (ModelLayer& layer : model->layers) {
        if (layer.custom() || rounds_to_int8(layer)) continue;
        const std::unique_ptr<Layer> op = layer.make_operator();
        if (!op) return kError;
        StoreWeights store(&layer, dtype, report);
        op->visit_weights(store);
        QUOLL_RETURN_IF_ERROR(store.status);
    }
    return kOk;
}

void write_shape_hints(Model* model, const BlobSizes& sizes) {
    for (ModelLayer& layer : model->layers) {
        std::vector<int> hints;
        for (const std::string& blob : layer.outputs) {
            const auto found = sizes.find(blob);
            if (found == sizes.end() || found->second.dims > 3) break;
            const Shape& s = found->second;
            hints.insert(hints.end(), {s.dims, s.w, s.h, s.c});
        }
        const std::unique_ptr<Layer> op(create_layer_reference(layer.type.c_str()));
        if (op && schema_knows(*op, kHints)) continue;
        layer.params.copy(kHints, ParamDict());
        if (hints.empty() || hints.size() != 4 * layer.outputs.size()) continue;
        Mat values(Shape((int)hints.size(), DType::s32));
        if (values.empty()) return;  // hints are not worth an error
        std::copy(hints.begin(), hints.end(), (int*)values.data);
        layer.params.set(kHints, values);
    }
}

}  // namespace quoll
