// The graph passes on a Model: an operator for each layer, and Splits as ncnn requires them.
#include <deque>
#include <memory>
#include <set>
#include <unordered_map>

#include "graph/layer_graph.h"
#include "graph/model_edit.h"
#include "graph/optimize.h"
#include "layer/common/schema.h"
#include "layer/control/split.h"
#include "quoll/log.h"

namespace quoll {

namespace {

// The text with which eliminate_identity reports it.
const char kSplitLeftOut[] = "Split left out";

// The weights that an operator holds, by name.
class HeldWeights : public WeightVisitor {
public:
    std::vector<std::pair<std::string, Mat>> weights;
    void operator()(bool present, const char* name, Mat& field, WeightSize, WeightKind,
                    Doc) override {
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

}  // namespace quoll
