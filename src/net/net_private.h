// Internals that net.cpp, net_load.cpp and extractor.cpp share.
#ifndef QUOLL_NET_PRIVATE_H
#define QUOLL_NET_PRIVATE_H

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/shared_weights.h"
#include "plan/execution_plan.h"
#include "plan/run_buffers.h"
#include "quoll/net.h"
#include "runtime/weights_id.h"

namespace quoll {

struct ParamRecord;

struct CustomLayer {
    std::string type;  // empty when registered by index
    int index;         // -1 when registered by type
    layer_creator_func creator;
    layer_destroyer_func destroyer;
    void* userdata;
};

inline void destroy_layer(Layer* layer, layer_destroyer_func destroyer) {
    if (destroyer)
        destroyer(layer, layer->userdata);
    else
        delete layer;
}

// A layer that the graph passes folded away: it has no blobs any more.
inline bool is_folded(const Layer& layer) { return layer.bottoms.empty() && layer.tops.empty(); }

struct Net::Private : NetGraph {
    std::vector<layer_destroyer_func> destroyers;  // of layers; null: delete
    std::vector<CustomLayer> custom_layers;
    std::unordered_map<std::string, int> blob_of_name;
    std::vector<int> input_indexes, output_indexes;
    std::vector<const char*> input_names, output_names;
    std::vector<char> kept;  // blobs of keep_blob
    // For each blob the one that holds its values since the passes ran: itself, another, or -1.
    std::vector<int> alias;
    int vulkan_device = -1;           // -1: the default one
    std::shared_ptr<Backend> vulkan;  // of use_vulkan_compute, one of backends while loaded
    WeightsId weights_id;             // of those that the param asks for
    std::unordered_map<int, WeightNumbers> shared_weights;  // by layer
    bool weights_loaded = false;
    ExecutionPlans plans;
    // Serves Extractors that were given no allocators: the system's allocator would map and unmap
    // large blobs anew in every run. Extractors share it, so that it outlives the last of them.
    std::shared_ptr<RunBuffers> buffers = std::make_shared<RunBuffers>();

    // Null, with a message, when no such layer exists.
    Layer* new_layer(const std::string& type, const Option& opt, layer_destroyer_func* destroyer);
    // By the type index of a binary param.
    Layer* new_stored_layer(int stored, const Option& opt, layer_destroyer_func* destroyer);
    // Appends a layer read from a param file.
    void add_layer(Layer* layer, layer_destroyer_func destroyer);
    int set_producer(int blob, int layer);
    int load_graph(const DataReader& dr, bool binary, const Option& opt);
    int load_layer(const ParamRecord& record, const Option& opt);
    int load_layer_params(Layer* layer, const ParamDict& pd);
    // Checks producers and cycles, collects consumers, inputs and outputs.
    int finish_graph();
    int check_acyclic() const;
    // Once, after load_graph; on failure everything is unloaded. `whole`: the source holds these
    // weights and nothing else.
    int load_model(const ModelBin& mb, const DataReader& dr, bool whole, const Option& opt);
    template <class Load>
    int load(const char* what, const Load& load);
    int load_weights(const ModelBin& mb, const DataReader& dr, bool whole, const Option& opt);
    int load_layer_weights(const ModelBin& mb);
    int run_graph_passes(const Option& opt);
    enum SizesTold : char { kInputsUnknown, kInputsDoNotFit, kTold };
    // Sizes that follow from those that are known, for each layer whether they could be told; where
    // not, those of `hints`, if any.
    std::vector<SizesTold> infer_sizes(std::vector<Shape>* shapes,
                                       const std::vector<Shape>* hints) const;
    void infer_missing_hints();
    void add_vulkan(const Option& opt);
    int prepare_backends(const Option& opt);
    int prepare_backend(Backend& backend, const Option& opt) const;
    int create_pipelines(const Option& opt);
    void clear();
};

// "; did you mean a, b or c?" with the names nearest to `name`, or "".
std::string suggest_names(const std::string& name, const std::vector<std::string>& candidates);

}  // namespace quoll

#endif
