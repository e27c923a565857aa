#include "graph/layer_graph.h"

#include <algorithm>

#include "layer/control/input.h"

namespace quoll {

LayerGraph::LayerGraph(const std::vector<Layer*>& layers,
                       const std::vector<std::string>& blob_names, const std::vector<char>& kept)
    : layers_(layers),
      new_(layers.size()),
      blob_names_(blob_names),
      kept_(kept),
      gone_(blob_names.size(), 0),
      changed_(blob_names.size(), 0),
      followed_(blob_names.size(), 1),
      producer_(blob_names.size(), -1),
      alias_(blob_names.size(), -1),
      readers_(blob_names.size()) {
    for (size_t i = 0; i < layers_.size(); i++) {
        for (int blob : layers_[i]->bottoms) readers_[blob].push_back((int)i);
        for (int blob : layers_[i]->tops) producer_[blob] = (int)i;
    }
    for (size_t blob = 0; blob < blob_names_.size(); blob++)
        if (readers_[blob].empty()) kept_[blob] = 1;
}

int LayerGraph::only_reader(int index) const {
    const Layer* layer = layers_[index];
    if (!layer || layer->tops.size() != 1) return -1;
    const int blob = layer->tops[0];
    return kept(blob) || readers_[blob].size() != 1 ? -1 : readers_[blob][0];
}

void LayerGraph::unread(int blob, int reader) {
    std::vector<int>& list = readers_[blob];
    list.erase(std::find(list.begin(), list.end(), reader));
}

void LayerGraph::set_bottoms(int index, const std::vector<int>& bottoms) {
    for (int blob : layers_[index]->bottoms) unread(blob, index);
    layers_[index]->bottoms = bottoms;
    layers_[index]->bottom_shapes.clear();
    for (int blob : bottoms) readers_[blob].push_back(index);
}

void LayerGraph::remove(int index) {
    set_bottoms(index, std::vector<int>());
    for (int blob : layers_[index]->tops)
        if (producer_[blob] == index) producer_[blob] = -1, gone_[blob] = 1;
    layers_[index]->tops.clear();
    layers_[index]->top_shapes.clear();
    layers_[index] = nullptr;
}

void LayerGraph::drop_input(int index, int input) {
    std::vector<int> bottoms = layers_[index]->bottoms;
    bottoms.erase(bottoms.begin() + input);
    set_bottoms(index, bottoms);
}

void LayerGraph::absorb(int index, int reader, bool take_inputs, const char* what) {
    Layer* layer = layers_[index];
    Layer* absorbed = layers_[reader];
    const int between = layer->tops[0], out = absorbed->tops[0];
    std::vector<int> bottoms = layer->bottoms;
    for (int blob : absorbed->bottoms)
        if (take_inputs && blob != between) bottoms.push_back(blob);
    layer->top_shapes = absorbed->top_shapes;
    remove(reader);
    if (take_inputs) set_bottoms(index, bottoms);
    layer->tops[0] = out;
    producer_[out] = index, gone_[out] = 0;
    producer_[between] = -1, gone_[between] = 1;
    count(what);
}

bool LayerGraph::bypass(int index, const char* what, Output output) {
    Layer* layer = layers_[index];
    const int in = layer->bottoms[0], from = producer_[in];
    const bool any_kept = std::any_of(layer->tops.begin(), layer->tops.end(),
                                      [this](int blob) { return kept(blob); });
    if (any_kept && output == Output::gone) return false;
    if (any_kept) {
        // The kept name can move to the producer of the input if only this layer uses that blob.
        const bool renames = layer->tops.size() == 1 && !kept(in) && readers_[in].size() == 1 &&
                             !is<Input>(from) && layers_[from]->tops.size() == 1;
        if (!renames) return false;
        absorb(from, index, false, what);
        alias_[in] = layers_[from]->tops[0];
        return true;
    }
    const std::vector<int> tops = layer->tops;
    for (int blob : tops) {
        for (int reader : readers_[blob]) {
            std::vector<int>& bottoms = layers_[reader]->bottoms;
            *std::find(bottoms.begin(), bottoms.end(), blob) = in;
            readers_[in].push_back(reader);
        }
        readers_[blob].clear();
        alias_[blob] = output == Output::gone ? -1 : in;
    }
    remove(index);
    count(what);
    return true;
}

void LayerGraph::replace(int index, std::unique_ptr<Layer> with, std::vector<int> bottoms,
                         const char* what) {
    Layer* old = layers_[index];
    with->name = old->name;
    with->tops = old->tops;
    with->top_shapes = old->top_shapes;
    set_bottoms(index, std::vector<int>());
    new_[index] = std::move(with);
    layers_[index] = new_[index].get();
    set_bottoms(index, bottoms);
    count(what);
}

bool LayerGraph::change(int blob) {
    if (kept(blob)) return false;
    changed_[blob] = 1;
    return true;
}

bool LayerGraph::stop_following(int blob) {
    if (kept(blob)) return false;
    followed_[blob] = 0;
    return true;
}

int LayerGraph::alias(int blob) const {
    while (blob >= 0 && gone_[blob] && !changed_[blob]) blob = alias_[blob];
    return blob >= 0 && changed_[blob] ? -1 : blob;
}

}  // namespace quoll
