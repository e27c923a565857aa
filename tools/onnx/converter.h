// What operator converters work with: the values of a graph, the layers made so far, and how
// tensors are held in Mats.
#ifndef QUOLL_TOOLS_ONNX_CONVERTER_H
#define QUOLL_TOOLS_ONNX_CONVERTER_H

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/model.h"
#include "onnx/dim.h"
#include "onnx/graph.h"

namespace quoll {
namespace onnx_tool {

// How a tensor is held in a Mat. Neighbouring axes may share an axis of the Mat: groups says how
// many do, from the outermost on; there are at most 4. With `batch`, axis 0 is the batch count n,
// and groups divide the others. Rank 0 has no groups, and one Mat axis of size 1.
struct Form {
    bool batch = false;
    std::vector<int> groups;

    static Form plain(int rank) { return Form{false, std::vector<int>((size_t)rank, 1)}; }
    static Form batched(int rank) { return Form{true, std::vector<int>((size_t)rank - 1, 1)}; }
    int rank() const;
    // Whether each axis has a Mat axis of its own.
    bool separate() const;
};
bool operator==(const Form& a, const Form& b);
inline bool operator!=(const Form& a, const Form& b) { return !(a == b); }
bool operator<(const Form& a, const Form& b);

struct BlobDims;
struct Quantized;
struct QuantizedWeight;
struct Int8Source;
struct BlockWeight;

struct Value {
    std::string name;
    ElementType type = ElementType::kUndefined;
    std::vector<Dim> shape;
    std::unique_ptr<Tensor> constant;
    // Numbers of an integer tensor of rank 0 or 1, as far as they are known.
    std::vector<Dim> content;
    bool has_content = false;
    bool bad = false;  // its node could not be converted
    // A sequence of tensors: the values that are its items; or, if a loop at run time makes them,
    // one value with all items stacked along a new axis in front. An open sequence is still being
    // made by the body of such a loop, and can only be appended to.
    bool sequence = false, open = false;
    std::vector<std::string> items;
    std::string stacked;
    // The value if the condition of the choice is not 0, and if it is 0, in case the two differ in
    // rank or one could not be made. All fields but the name and these are then without meaning.
    int choice = -1;
    std::string alternatives[2];
    Form form;  // in which the producer made it
    // The blobs of the tensor by form, with `first` axes of size 1 added in front.
    std::map<std::pair<int, Form>, std::string> blobs;
    // See quantized.h. coded: for a uint8 value, the int8 value that is less by 128.
    std::string coded;
    std::shared_ptr<const Quantized> quantized;
    std::shared_ptr<const QuantizedWeight> quantized_weight;
    std::shared_ptr<const Int8Source> int8_source;
    std::shared_ptr<const BlockWeight> block_weight;  // see block_weights.h
    std::string range_of;  // of the outputs of DynamicQuantizeLinear: its input
    bool whole = false;    // of floats: whole numbers
    std::string as_float;  // of integers: the value of whole numbers that holds the same

    int rank() const { return (int)shape.size(); }
    bool is_constant() const { return constant != nullptr; }
    bool floats() const { return is_float(type); }
    bool varies() const { return choice >= 0; }
};

struct Problem {
    std::string node, op, reason;
    int opset;
};

struct Report {
    std::map<std::string, int> counts;  // what was done, how often
    std::set<std::string> notes;        // approximations, once each
};

class Op;
typedef bool (*ConvertFunction)(Op& op);
// How many inputs a node must have by the operator's definition: `count` in opsets `since` to
// `until` (0: the newest), 1 in others.
struct RequiredInputs {
    int count, since, until;
    RequiredInputs(int count = 1, int since = 0, int until = 0)
        : count(count), since(since), until(until) {}
    int in(int opset) const { return opset >= since && (until == 0 || opset <= until) ? count : 1; }
};
// Flags of OpEntry::traits.
enum OpTraits {
    kOpElementwise = 1,     // each value by itself; several inputs are spread to one shape
    kOpMovesValues = 2,     // outputs hold values of the first input, whatever they are
    kOpTakesSizes = 4,      // the inputs behind the first say sizes and places
    kOpTakesSequences = 8,  // inputs may be sequences
    kOpReshapes = 16,       // the values of the input in their order, in another shape
    kOpNormalizes = 32,     // input, scale and bias, of which the last two may be absent
    // Strings are represented by their places in a table, with which nothing can be computed:
    // inputs may be strings only if an operator moves them or asks whether they are equal.
    kOpFirstStrings = 64,
    kOpSecondStrings = 128,
    kOpOtherStrings = 256,  // the inputs behind the second
    kOpMakesStrings = 512,  // attributes and, whatever the inputs are, outputs
    kOpStrings = 64 + 128 + 256,
};
struct OpEntry {
    const char* domain;
    const char* op;
    int since, until;  // opsets with this meaning; until 0: the newest
    ConvertFunction convert;
    const char* limits;  // "" if there are none
    RequiredInputs inputs = 1;
    unsigned traits = 0;
};
// The entry for an operator, null if there is none; and all of them, sorted by name.
const OpEntry* find_op(const std::string& domain, const std::string& op, int opset);
// Why there is no entry of that name.
const char* why_missing(const std::string& domain, const std::string& op);
std::vector<const OpEntry*> all_ops();
// True if the node has a name for each input that it must have. An operator that is not in the
// table at this opset counts as one of that name that is.
bool has_required_inputs(const Node& node, int opset);
// True if an operator of that name has a trait, in any opset.
bool has_trait(const Node& node, OpTraits trait);

class Converter {
public:
    // strings: the model's strings, by which values of type string are represented as numbers.
    Converter(const std::map<std::string, int>& opsets, std::shared_ptr<StringTable> strings,
              Report* report)
        : strings(strings), opsets_(opsets), report_(report) {}

    Model model;
    Symbols symbols;
    std::shared_ptr<StringTable> strings;
    std::vector<Problem> problems;

    Value* add_value(const std::string& name);
    Value* find_value(const std::string& name) const;
    Value* add_constant(const std::string& name, const Tensor& tensor);
    // Adds an input with the sizes that the user or the file gives; emits the Input layer.
    void add_input(const std::string& name, ElementType type, const std::vector<Dim>& shape);
    // declared: its sizes in the file; null if it has none there.
    bool add_output(const std::string& name, ElementType type, const std::vector<Dim>* declared);

    void run_node(const Node& node);
    // A choice between two cases that the net makes when it runs, by the truth of a value. Nodes
    // that read a value that differs between the cases are converted for each of the two
    // (alternatives.cpp).
    int add_choice(const std::string& condition);
    bool has_choices() const { return !conditions_.empty(); }
    // Makes one value of these if they can be one blob, else alternatives; false if neither was
    // made.
    bool join(const std::string& name, int choice, const std::string (&made)[2]);
    // The value of this name under the choices that are assumed at present.
    std::string resolve(const std::string& name) const;
    // Makes one blob from alternatives whose ranks agree; false if they do not.
    bool settle(Value* v);
    // Converts a node as the newest opset defines it; false, without a problem on the list, if that
    // is impossible.
    bool run_newest(const Node& node);
    // The name of an output that another value has already; "" if there is none.
    std::string made_twice(const Node& node) const;

    int opset(const std::string& domain) const;
    void set_opset(int version) { opsets_[""] = version; }
    void count(const std::string& what) { report_->counts[what]++; }
    void note(const std::string& what) { report_->notes.insert(what); }
    Report* report() const { return report_; }
    const std::map<std::string, int>& opsets() const { return opsets_; }

    // A name that no other blob or layer has.
    std::string unique(const std::string& wish);
    // A name that no other value has, either.
    std::string unique_value(const std::string& wish);
    // Names of values that several nodes need alike, by a text of what they follow from.
    std::map<std::string, std::vector<std::string>> shared_values;
    void reserve(const std::string& name) { names_.insert(name); }
    // A value that a node of the file will make.
    void reserve_value(const std::string& name) { reserved_values_.insert(name); }
    // A layer with one output; its blob is called like `wish`.
    ModelLayer& emit(const std::string& type, const std::vector<std::string>& inputs,
                     const std::string& wish, int outputs = 1);

    // The blob of a value in the given form, for the tensor with axes of size 1 in front up to
    // `rank` (0: its own rank); adds layers if it does not exist yet. "" after a message in *why.
    std::string blob(Value* v, const Form& form, int rank = 0);
    std::string why;

    // The sizes of the Mat's axes (without n), each of which is a product of the tensor's.
    std::vector<Dim> mat_dims(const std::vector<Dim>& shape, const Form& form);
    // Reshapes each item of a blob, if necessary. "" if the sizes are not known well enough.
    std::string regroup(const std::string& blob, const std::vector<Dim>& from,
                        const std::vector<Dim>& to, bool floats, const std::string& wish);
    // A reshape whose sizes are taken at run time from blobs that have them. "" if there are none.
    std::string regroup_at_run_time(const std::string& blob, const std::vector<Dim>& from,
                                    const std::vector<Dim>& to, const std::string& wish);
    // Where a size that is known only at run time comes from, by symbol: an axis of a blob, the
    // blob that holds the size itself, or an element of an integer value.
    struct SizeSource {
        std::string blob;
        int axis;
        bool batch;
    };
    struct Sizes {
        std::map<int, SizeSource> axes;
        std::map<int, std::string> blobs;
        std::map<int, std::pair<std::string, int>> values;
        std::map<int64_t, std::string> numbers;    // blobs of sizes that are known
        std::map<std::string, std::string> lists;  // of several sizes, by the blobs of each
    };
    const Sizes& sizes() const { return sizes_; }
    void set_sizes(const Sizes& sizes) { sizes_ = sizes; }
    // Remembers that an axis of this blob has a size that is known only at run time.
    void add_sizes(const std::string& blob, const std::vector<Dim>& shape, const Form& form);
    // Remembers that element `at` of an integer tensor of rank 0 or 1 is this size.
    void add_size_value(const Dim& size, const std::string& value, int at);
    // A size, or several consecutive ones, as a blob of s32. "" if no blob has it.
    std::string size_blob(const Dim& size);
    std::string size_blob(const std::vector<Dim>& sizes);
    // Joins blobs of sizes.
    std::string size_list(const std::vector<std::string>& parts);
    // The blob's values as this type of few bits would hold them (NarrowTo).
    std::string narrow(const std::string& blob, ElementType type);
    std::string change_ones(const std::string& blob, const std::vector<Dim>& from,
                            const std::vector<Dim>& to, const std::string& wish);
    // How tensors of a rank are held: without sharing axes if possible.
    Form default_form(int rank) const;

    // Fuses layers, removes those that no output needs, and adds a Split where a blob is read more
    // than once.
    void finish();
    void set_folding(bool on) { folding_ = on; }
    bool folding() const { return folding_; }
    // Whether constants much larger than what they are computed from are left to be computed at
    // load.
    void set_compute_large(bool on) { compute_large_ = on; }
    bool computes_large() const { return compute_large_; }
    // Whether matrices that products read may stay in the file, in its order (kTagByInputs): the
    // model is then moved into a Net before the file is unmapped.
    void set_leave_matrices(bool on) { leave_matrices_ = on; }
    bool leaves_matrices() const { return leave_matrices_; }
    void set_default_batch(bool on) { default_batch_ = on; }
    // Whether axis 0 of a tensor that has items is the batch count n, if the converter may choose.
    bool default_batch() const { return default_batch_; }
    // Whether layers are named after their nodes.
    void set_keep_names(bool on) { keep_names_ = on; }
    void keep(const Tensor& t) { kept_.push_back(t); }

private:
    friend class Op;
    std::string constant_blob(Value* v, const Form& form, const std::vector<Dim>& shape);
    std::string unbatch(Value* v, const std::string& from, const Form& to);
    std::string embatch(const std::string& from, const std::vector<Dim>& shape, const Form& source,
                        const Form& to, bool floats, const std::string& wish);
    std::string computed_size(const Dim& size);
    std::string derived_size(const Dim& size);
    bool fold(const Node& node, const OpEntry& entry);
    bool too_large(const std::vector<Tensor>& results, size_t bytes) const;
    bool mark_outputs(const Node& node, bool bad);
    bool run_alternatives(const Node& node);
    std::string join_blobs(int choice, Value* (&made)[2], std::vector<Dim>* shape, Form* form);
    bool add_varying_output(const std::string& name, ElementType type, Value* v);
    void fuse();
    std::unordered_map<std::string, BlobDims> known_dims();
    int fuse_attention();
    int remove_reshapes_to_same();
    void remove_unused();
    void insert_splits();

    std::map<std::string, int> opsets_;
    Report* report_;
    std::unordered_map<std::string, std::unique_ptr<Value>> values_;
    std::unordered_set<std::string> names_, reserved_values_;
    std::vector<std::string> string_ports_;              // Input and Output layers of strings
    std::unordered_map<std::string, int> next_numbers_;  // of names that are taken
    Sizes sizes_;
    std::vector<std::string> conditions_;  // of choices
    std::map<int, int> assumed_;           // which of two, by choice
    std::vector<Tensor> kept_;
    std::vector<std::string> outputs_;
    bool folding_ = true, leave_matrices_ = false, compute_large_ = false, default_batch_ = true,
         keep_names_ = false;
    std::string node_name_;  // of the node that is being converted
    std::set<std::string> layer_names_;
};

// A node being converted. Converters return false after fail().
class Op {
public:
    Op(Converter& c, const Node& node, int opset) : c(c), node(node), opset(opset) {}

    Converter& c;
    const Node& node;
    const int opset;
    std::string reason;

    bool fail(const char* format, ...) __attribute__((format(printf, 2, 3)));
    // Converts by this entry; fails if there are strings where it cannot have them.
    bool convert(const OpEntry& entry) {
        return take_strings(entry.traits) && entry.convert(*this) && make_strings(entry.traits);
    }
    // Fails if an input is strings.
    bool need_numbers() { return take_strings(0); }

    int inputs() const { return (int)node.inputs.size(); }
    int outputs() const { return (int)node.outputs.size(); }
    Value* in(int i) const;  // null if it is absent
    bool has(int i) const { return in(i) != nullptr; }
    bool wants(int i) const { return i < outputs() && !node.outputs[i].empty(); }

    bool has_attr(const char* name) const { return node.attributes.count(name) != 0; }
    int64_t attr(const char* name, int64_t def) const;
    float attr_float(const char* name, float def) const;
    std::string attr_string(const char* name, const char* def) const;
    std::vector<int64_t> attr_ints(const char* name) const;
    std::vector<float> attr_floats(const char* name) const;

    // The numbers of an input that must be known at conversion; false after fail().
    bool ints(int i, const char* what, std::vector<int64_t>* values);
    // An attribute of old opsets that later became an input; *given: whether there is one.
    bool attr_or_input(const char* name, int i, std::vector<int64_t>* values, bool* given);
    // An axis in [0, rank); false after fail().
    bool axis(int64_t value, int rank, int* axis);

    // The value's blob in the given form; "" after fail().
    std::string blob(Value* v, const Form& form, int rank = 0);
    // The same in the form that it has; a constant gets the usual form.
    std::string blob(Value* v);
    Form form_of(Value* v);
    // The same in plain form; the rank is at most 4.
    std::string plain(Value* v);
    // The same in batched form: axis 0 is n, the others are axes of the Mat.
    std::string batched(Value* v);
    // A form in which `axis` has a Mat axis (*mat_axis) of its own.
    Form axis_form(Value* v, int axis, int* mat_axis);

    // Adds a layer; its first output is named after the node's output `i`.
    ModelLayer& emit(const char* type, const std::vector<std::string>& inputs, int i = 0,
                     int count = 1);
    // Converts `blob`, of values of `type`, to f32, and f32 values back to `type` (truncated to
    // whole numbers); adds layers unless the type is a float.
    std::string as_f32(const std::string& blob, ElementType type);
    std::string from_f32(const std::string& blob, ElementType type);
    // Declares an output.
    Value* set(int i, ElementType type, const std::vector<Dim>& shape, const Form& form,
               const std::string& blob);
    Value* set_constant(int i, const Tensor& tensor);
    // The input under another name.
    Value* alias(int i, Value* v);
    void set_content(int i, const std::vector<Dim>& content);

private:
    bool take_strings(unsigned traits);
    bool make_strings(unsigned traits);
};

}  // namespace onnx_tool
}  // namespace quoll

#endif
