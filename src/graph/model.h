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
    // The number of a custom type in binary params; -1: assigned when the model is saved.
    int custom_index = -1;

    bool custom() const { return layer_to_index(type.c_str()) < 0; }
    // The operator's reference implementation without params, for questions that do not depend on
    // them; null for a custom layer. The caller does not own it.
    const Layer* prototype() const;
    // Whether the type is operator T's (one of T's if it has several).
    template <class T>
    bool is() const {
        return as<T>(prototype()) != nullptr;
    }

    // Sets a parameter by its schema name; an error, with a message, if the operator has none of
    // that name and type. An int is accepted for a float. Model::check() checks ranges.
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

    // The operator's reference implementation with these params, and with these weights as f32 or
    // s8 if `with_weights`; without a pipeline. Null, with a message, if the operator refuses them
    // or there is no such operator. Passes read fields from it:
    // as<InnerProduct>(op.get())->num_output.
    std::unique_ptr<Layer> make_operator(bool with_weights = false) const;
    // Takes over the params of an operator whose fields were changed; params that the schema does
    // not know stay.
    void set_params(Layer& op);
};

// Functions that return int return 0, or a negative code after a message in the log.
class Model {
public:
    // In file order; a layer may come before the layers that make its inputs. References stay valid
    // if layers are added at either end.
    std::deque<ModelLayer> layers;

    ModelLayer& add(const std::string& type, const std::string& name,
                    const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs);

    // A type that is not a built-in operator is kept as a custom layer. Params are checked as in
    // Net. A failed load leaves the Model empty.
    int load_param(const DataReader& dr);
    int load_param_bin(const DataReader& dr);
    // To be called after load_param. The weights of a custom layer cannot be known: it is an error
    // if bytes are left over and there are custom layers, or if `whole` says that dr has these
    // weights only. For a path, it is also checked that the weights are those that the param asks
    // for.
    int load_model(const DataReader& dr, bool whole = false);

    // For two files that are written together: save_param then says which weights belong to it, and
    // loading others fails. What a loaded param says stays until this is called again. Returns 0,
    // or an error as save_model does.
    int number_weights();

    // These check first and then write: a Model that is refused writes nothing.
    int save_param(const DataWriter& dw) const;
    int save_param_bin(const DataWriter& dw) const;
    int save_model(const DataWriter& dw) const;

#if QUOLL_STDIO
    // The same with paths. A regular file that could not be written to its end is removed.
    int load_param(const char* path);
    int load_param_bin(const char* path);
    int load_model(const char* path);
    int save_param(const char* path) const;
    int save_param_bin(const char* path) const;
    int save_model(const char* path) const;
#endif

    // Checks that files can hold all names, that each blob that is read has one producer, and that
    // the operators accept their params.
    int check() const;
    // Checks that each weight that the schemas name is there, with the right number of values, and
    // no other.
    int check_weights() const;

    // Whether the loaded param says which weights are its own.
    bool asks_for_weights() const { return weights_id_.size != 0; }
    // Checks whether weights in memory are those that the param asks for. Returns 0, or an error.
    int check_weights_id(const unsigned char* weights, size_t size) const;

    // From now on weights with the same values are written once, which ncnn cannot read. A loaded
    // param that says so has this set already.
    void share_weights();
    bool shares_weights() const { return shares_weights_; }

    // Loads a Net (whose options and custom layers are set already) with params and weights; the
    // Net keeps nothing of this Model.
    int make_net(Net* net) const;
    // The same without a copy of the weights: the Model is empty afterwards. What a weight of
    // kTagByInputs refers to has to live until then.
    int move_to_net(Net* net);

    // The index of the layer that makes a blob, -1 if none does; and the layers that read it, in
    // file order.
    int producer(const std::string& blob) const;
    std::vector<int> consumers(const std::string& blob) const;
    // Names in order of appearance, which is their order in files.
    std::vector<std::string> blob_names() const;
    // Custom types, at the index of their number in binary params; "" where there is none.
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
    // For a layer that is not a custom one; op is made from it.
    int check_weights(const ModelLayer& layer, Layer& op) const;
    int load_net(Net* net, bool copy);
};

}  // namespace quoll

#endif
