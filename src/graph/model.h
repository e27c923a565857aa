// Model: a network as its files hold it, to be read, built, changed and written. There are no
// pipelines and no fast implementations here: weights keep the storage that they were read with.
// Programs that convert, optimise and embed models work on it; Net runs what it writes.
//
//   quoll::Model model;
//   model.add("Input", "data", {}, {"data"});
//   quoll::ModelLayer& fc = model.add("InnerProduct", "fc", {"data"}, {"prob"});
//   fc.set("num_output", 10);
//   fc.set("weight_data_size", 640);
//   fc.set_weight("weight_data", weight);
//   if (model.save_param("model.param") || model.save_model("model.bin")) return 1;
//
// Everything about an operator's parameters and weights comes from its schema (schema.h).
#ifndef QUOLL_GRAPH_MODEL_H
#define QUOLL_GRAPH_MODEL_H

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/shared_weights.h"
#include "layer/common/traits.h"
#include "quoll/modelbin.h"
#include "quoll/paramdict.h"
#include "quoll/platform.h"
#include "runtime/weights_id.h"

namespace quoll {

class DataReader;
class DataWriter;
class Net;
struct ParamRecord;

// A weight under its schema name.
struct ModelWeight {
    std::string name;
    StoredWeight stored;
};

struct ModelLayer {
    std::string type, name;
    std::vector<std::string> inputs, outputs;  // names of blobs
    // By id. What the schema knows has its type, and is there only if it differs from the default;
    // what it does not know (custom layers, shape hints) is kept as it came.
    ParamDict params;
    std::vector<ModelWeight> weights;  // in any order; saving follows the schema
    // The number of a custom type in binary params; -1: given out when saving.
    int custom_index = -1;

    bool custom() const { return layer_to_index(type.c_str()) < 0; }
    // The operator in its reference implementation without params, for what they do not change;
    // null for a custom layer. It stays.
    const Layer* prototype() const;
    // The type is operator T's (one of T's where that has several).
    template <class T>
    bool is() const {
        return as<T>(prototype()) != nullptr;
    }

    // Sets a parameter by its schema name; an error, with a message, when the operator has none of
    // that name and type. An int is taken for a float. Ranges are checked by Model::check().
    int set(const char* param, int value);
    int set(const char* param, float value);
    int set(const char* param, const std::string& value);
    int set(const char* param, const char* value) { return set(param, std::string(value)); }
    int set(const char* param, const std::vector<int>& values);
    int set(const char* param, const std::vector<float>& values);

    // Null if there is none. A weight of any dims with elempack 1: f32, f16, bf16 or s8.
    const StoredWeight* find_weight(const char* weight) const;
    void set_weight(const char* weight, const Mat& values);
    void remove_weight(const char* weight);

    // The operator in its reference implementation with these params, and these weights as f32 or
    // s8 if `with_weights`; no pipeline. Null, with a message, when it refuses them or there is no
    // such operator. Passes read fields from it: as<InnerProduct>(op.get())->num_output.
    std::unique_ptr<Layer> make_operator(bool with_weights = false) const;
    // Takes the params over from an operator whose fields were changed; those that the schema does
    // not know stay.
    void set_params(Layer& op);
};

// Functions that return int give 0, or a negative code after a message in the log.
class Model {
public:
    // In file order; a layer may come before those that make its inputs. References stay valid when
    // layers are added at the ends.
    std::deque<ModelLayer> layers;

    ModelLayer& add(const std::string& type, const std::string& name,
                    const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs);

    // A type that is no built-in operator is kept as a custom layer. Params are checked as Net
    // does. A failed load leaves the Model empty.
    int load_param(const DataReader& dr);
    int load_param_bin(const DataReader& dr);
    // After load_param. A custom layer has no weights that could be known: an error if bytes are
    // left over and there are custom layers, or `whole` says that dr has these weights alone. A
    // path is also checked for being what the param asks for.
    int load_model(const DataReader& dr, bool whole = false);

    // For two files that are written together: save_param then says which weights belong to it, and
    // loading others fails. What a loaded param says stays until this is called anew. 0, or an
    // error as save_model's.
    int number_weights();

    // Check first, then write: a Model that is refused writes nothing.
    int save_param(const DataWriter& dw) const;
    int save_param_bin(const DataWriter& dw) const;
    int save_model(const DataWriter& dw) const;

#if QUOLL_STDIO
    // Paths. A regular file that could not be written to its end is removed.
    int load_param(const char* path);
    int load_param_bin(const char* path);
    int load_model(const char* path);
    int save_param(const char* path) const;
    int save_param_bin(const char* path) const;
    int save_model(const char* path) const;
#endif

    // Names that files can hold, one producer for each blob that is read, params that the operators
    // take.
    int check() const;
    // Each weight that the schemas name is there, with the right number of values, and no other.
    int check_weights() const;

    // A loaded param says which weights are its own.
    bool asks_for_weights() const { return weights_id_.size != 0; }
    // Says that weights in memory are, or are not, those that the param asks for: 0, or an error.
    int check_weights_id(const unsigned char* weights, size_t size) const;

    // Weights that have the same values are written once from now on, which ncnn cannot read; of a
    // loaded param that says so that is already so.
    void share_weights();
    bool shares_weights() const { return shares_weights_; }

    // Loads a Net (whose options and custom layers are set) with params and weights; the Net keeps
    // nothing of this Model.
    int make_net(Net* net) const;
    // The same without a copy of the weights: the Model is empty afterwards. What a weight of
    // kTagByInputs refers to has to stay until then.
    int move_to_net(Net* net);

    // Index of the layer that makes a blob, -1 if none does; those that read it, in file order.
    int producer(const std::string& blob) const;
    std::vector<int> consumers(const std::string& blob) const;
    // Names in order of appearance, which is their order in files.
    std::vector<std::string> blob_names() const;
    // Types that are no built-in operators, at their number in binary params; "" where none is.
    std::vector<std::string> custom_types() const;

private:
    WeightsId weights_id_;
    bool shares_weights_ = false;
    std::unordered_map<int, WeightNumbers> loaded_numbers_;  // by layer, for load_model
    int number_shared(std::vector<WeightNumbers>* numbers) const;
    int load_layer_weights(const DataReader& dr, bool* custom);
    int load_graph(const DataReader& dr, bool binary);
    int add_record(const ParamRecord& record, const std::vector<std::string>& blob_names);
    int save_graph(const DataWriter& dw, bool binary) const;
    int check_names() const;
    int check_blobs() const;
    // Of a layer that is no custom one, which op is made from.
    int check_weights(const ModelLayer& layer, Layer& op) const;
    int load_net(Net* net, bool copy);
};

}  // namespace quoll

#endif
