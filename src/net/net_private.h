// Internals that net.cpp, net_load.cpp and extractor.cpp share.
#ifndef QUOLL_NET_PRIVATE_H
#define QUOLL_NET_PRIVATE_H

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/shared_weights.h"
#include "plan/execution_plan.h"
#include "plan/run_buffers.h"
#include "quoll/datareader.h"
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

// How a layer is destroyed: by the function that was registered for it, or by delete.
struct LayerDestroyer {
    layer_destroyer_func destroyer = nullptr;
    void* userdata = nullptr;
    void operator()(Layer* layer) const {
        if (destroyer)
            destroyer(layer, userdata);
        else
            delete layer;
    }
};

// Whether the graph passes have folded the layer away: it then has no blobs any more.
inline bool is_folded(const Layer& layer) { return layer.bottoms.empty() && layer.tops.empty(); }

// Where the weights of a loaded model can be read a second time.
struct WeightSource {
    std::string path;
    int64_t path_size = 0, path_time = 0;
    std::unique_ptr<DataReader> reader;
};

struct Net::Private : NetGraph {
    explicit Private(Net* net) : owner(net) {}
    ~Private() { clear(); }

    Net* const owner;                        // who is asked for layers
    std::vector<LayerDestroyer> destroyers;  // of layers
    LayerDestroyer new_destroyer;            // of the layer that a registered creator made last
    std::vector<CustomLayer> custom_layers;
    std::unordered_map<std::string, int> blob_of_name;
    std::vector<int> input_indexes, output_indexes;
    std::vector<const char*> input_names, output_names;
    std::vector<char> kept;  // blobs of keep_blob
    // For each blob, the blob that has its values since the passes ran: itself, another one, or -1.
    std::vector<int> alias;
    std::vector<char> followed;       // LayerGraph's, by blob; empty: all
    int vulkan_device = -1;           // of set_vulkan_device
    std::shared_ptr<Backend> vulkan;  // of use_vulkan_compute, one of backends while loaded
    bool records = false;             // there are layers that record themselves on the device
    WeightsId weights_id;             // of those that the param asks for
    std::unordered_map<int, WeightNumbers> shared_weights;  // by layer
    std::atomic<bool> weights_loaded{false};
    bool without_weights = false;  // weights_loaded because there are none to load
    std::mutex late_loading;       // what Extractors make on demand: those, and:
    // The same net without fusion, for blobs that were fused away; the same net with its weights on
    // the host, for layers that have to run there (NetGraph::off_host); and what both are made
    // from.
    std::shared_ptr<Private> unfused, on_host;
    std::atomic<bool> runs_on_host{false};  // on_host is there
    bool keeps_weights = false;             // made of another: nothing leaves the host
    std::vector<unsigned char> unfused_param;
    bool unfused_is_binary = false;
    bool layers_may_differ = false;  // the application may have changed them: no copy is the same
    WeightSource source;
    ExecutionPlans plans;
    // Serves Extractors that were given no allocators: the system's allocator would map and unmap
    // large blobs anew in every run. Extractors share it, so that it lives as long as the last of
    // them.
    std::shared_ptr<RunBuffers> buffers = std::make_shared<RunBuffers>();

    const CustomLayer* find_custom_layer(const char* type) const;
    const CustomLayer* find_custom_layer(int stored) const;
    Layer* make(const CustomLayer* custom);
    // Null when no such layer exists.
    Layer* new_layer(const std::string& type, const Option& opt, LayerDestroyer* destroyer);
    // By the type index of a binary param.
    Layer* new_stored_layer(int stored, const Option& opt, LayerDestroyer* destroyer);
    // Appends a layer read from a param file.
    void add_layer(Layer* layer, const LayerDestroyer& destroyer);
    int set_producer(int blob, int layer);
    int load_graph(const DataReader& dr, bool binary, const Option& opt);
    // Loads the graph from records instead of a param file, with the names of all blobs. Such a net
    // cannot be loaded a second time for what was fused away.
    int load_records(const std::vector<ParamRecord>& records,
                     const std::vector<std::string>& names);
    void add_blobs(const std::vector<std::string>& names);
    int load_layer(const ParamRecord& record, const Option& opt);
    int load_layer_params(Layer* layer, const ParamDict& pd, const Option& opt);
    // Checks producers and cycles, collects consumers, inputs and outputs.
    int finish_graph();
    int check_acyclic() const;
    // To be called once, after load_graph; on failure everything is unloaded. whole: the source has
    // to hold these weights and nothing else.
    int load_model(const ModelBin& mb, const DataReader& dr, bool whole, const Option& opt);
    // Weights of a path, with what `source` needs to read it again.
    int load_model_file(const char* path, const Option& opt);
    // True if the net can run: load_model has succeeded, or there is nothing to load.
    bool is_ready(const Option& opt);
    // `given`: the application gives the blob's values instead of extracting them.
    bool is_fused_away(int blob, bool given) const;
    // Make `unfused` and `on_host`; null after a message. May be called from any thread.
    std::shared_ptr<Private> unfuse();
    std::shared_ptr<Private> bring_to_host();
    std::shared_ptr<Private> load_copy(bool fused) const;
    int load_again(const Private& from, bool fused);
    template <class Load>
    int load(const char* what, const Load& load);
    int load_weights(const ModelBin& mb, const DataReader& dr, bool whole, const Option& opt);
    int load_layer_weights(const ModelBin& mb);
    int load_no_weights(const Option& opt);
    int prepare_layers(const Option& opt);
    int run_graph_passes(const Option& opt);
    enum SizesTold : char { kInputsUnknown, kInputsDoNotFit, kTold };
    // Infers sizes from those that are known. Returns for each layer whether they could be told; if
    // not, those of `hints` are used, if any.
    std::vector<SizesTold> infer_sizes(std::vector<Shape>* shapes,
                                       const std::vector<Shape>* hints) const;
    void infer_missing_hints();
    // The GPU that these options ask for, -1 if there is none.
    int device_index(const Option& opt) const;
    void add_vulkan(const Option& opt);
    int prepare_backends(const Option& opt);
    int prepare_backend(Backend& backend, const Option& opt);
    bool may_leave_host(const Option& opt) const;
    void match_weights(bool tell);
    int create_pipelines(const Option& opt);
    int upload_custom_layers(const Option& opt);
    void clear();
};

// "; did you mean a, b or c?" with the names nearest to `name`, or "".
std::string suggest_names(const std::string& name, const std::vector<std::string>& candidates);

}  // namespace quoll

#endif
