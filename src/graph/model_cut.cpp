// Cutting a part out of a Model.
#include <algorithm>
#include <set>

#include "graph/model_edit.h"
#include "graph/optimize.h"
#include "layer/control/input.h"
#include "quoll/log.h"

namespace quoll {

namespace {

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

// Keeps the layers between the blobs `from` and `to`. An error if `to` does not depend on one of
// `from`.
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

}  // namespace quoll
