#include "onnx/converter.h"

#include <algorithm>

#include "graph/param_file.h"
#include "layer/control/input.h"
#include "onnx/quantized.h"
#include "onnx/run_model.h"

namespace quoll {
namespace onnx_tool {

Value* Converter::add_value(const std::string& name) {
    std::unique_ptr<Value>& slot = values_[name];
    slot.reset(new Value);
    slot->name = name;
    return slot.get();
}

Value* Converter::find_value(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? nullptr : found->second.get();
}

Value* Converter::add_constant(const std::string& name, const Tensor& tensor) {
    Value* v = add_value(name);
    v->type = tensor.type;
    v->shape = dims_of(tensor.dims);
    v->constant.reset(new Tensor(tensor));
    v->form = default_form(tensor.rank());
    if (!is_float(tensor.type) && is_supported(tensor.type) && tensor.rank() <= 1) {
        v->has_content = true;
        v->content = dims_of(tensor.ints());
    }
    return v;
}

// A name that a .param file can hold. None is that of an input or output before param_word(), by
// which these are asked for.
static std::string clean(const std::string& wish) {
    std::string name = wish.empty() ? "blob" : wish;
    for (char& ch : name)
        if ((unsigned char)ch <= 32 || ch == 127 || ch == '"' || ch == '\'') ch = '_';
    return name;
}

std::string Converter::unique(const std::string& wish) {
    const std::string base = clean(wish);
    if (names_.insert(base).second) return base;
    // Iterations of a loop ask for the same name again and again.
    int& next = next_numbers_[base];
    std::string name;
    do name = base + "_" + std::to_string(++next);
    while (!names_.insert(name).second);
    return name;
}

std::string Converter::unique_value(const std::string& wish) {
    std::string name = unique(wish);
    while (values_.count(name) || reserved_values_.count(name)) name = unique(wish);
    return name;
}

ModelLayer& Converter::emit(const std::string& type, const std::vector<std::string>& inputs,
                            const std::string& wish, int outputs) {
    std::vector<std::string> names;
    for (int i = 0; i < outputs; i++) names.push_back(unique(wish));
    std::string name = names.empty() ? unique(wish) : names[0];
    if (keep_names_ && !node_name_.empty()) {
        name = node_name_;
        for (int i = 1; !layer_names_.insert(name).second; i++)
            name = node_name_ + "_" + std::to_string(i);
    }
    return model.add(type, name, inputs, names);
}

int Converter::opset(const std::string& domain) const {
    const auto found = opsets_.find(domain);
    return found == opsets_.end() ? 1 : found->second;
}

// What the Input and Output layers keep of a tensor (layer/common/tensorspec.h).
static void set_spec(ModelLayer* layer, ElementType type, const std::vector<Dim>& shape,
                     bool batch) {
    std::vector<int> sizes;
    for (const Dim& d : shape) sizes.push_back(d.known() ? (int)d.value : -1);
    layer->set("rank", (int)shape.size());
    if (!sizes.empty()) layer->set("sizes", sizes);
    layer->set("element_type", (int)(type == ElementType::kString ? ElementType::kInt64 : type));
    if (batch) layer->set("batch", 1);
}

void Converter::add_input(const std::string& name, ElementType type,
                          const std::vector<Dim>& shape) {
    Value* v = add_value(name);
    v->type = type;
    v->shape = shape;
    const int rank = v->rank();
    const bool items = rank > 0 && !shape[0].is(0);
    v->form = is_float(type) && (rank == 3 || rank == 4) && default_batch_ && items
                  ? Form::batched(rank)
                  : default_form(rank);
    const std::string word = param_word(name);
    reserve(word);
    layer_names_.insert(word);
    ModelLayer& layer = model.add("Input", word, {}, {word});
    const std::vector<Dim> dims = mat_dims(shape, v->form);
    const int n = (int)dims.size();
    if (all_known(dims)) {
        layer.set("w", (int)dims[n - 1].value);
        if (n > 1) layer.set("h", (int)dims[n - 2].value);
        if (n > 3) layer.set("d", (int)dims[1].value);
        if (n > 2) layer.set("c", (int)dims[0].value);
    }
    set_spec(&layer, type, shape, v->form.batch);
    if (type == ElementType::kString) string_ports_.push_back(word);
    v->blobs[{0, v->form}] = word;
    add_sizes(word, shape, v->form);
}

std::string Converter::narrow(const std::string& blob, ElementType type) {
    ModelLayer& layer = emit("NarrowTo", {blob}, blob);
    layer.set("element_type", (int)type);
    // As ONNX Cast: floats of 16 bits that are too large become infinite.
    if (is_float(type) && !is_small_float(type)) layer.set("saturate", 0);
    return layer.outputs[0];
}

bool Converter::add_output(const std::string& name, ElementType type,
                           const std::vector<Dim>* declared) {
    Value* v = find_value(name);
    if (v && v->varies() && !settle(v)) return add_varying_output(name, type, v);
    if (!v || v->bad) {
        if (!v) problems.push_back({name, "output", "nothing makes it", opset("")});
        return false;
    }
    if (v->sequence) {
        problems.push_back({name, "output", "a sequence", opset("")});
        return false;
    }
    const int rank = v->rank();
    Form form = v->form;
    if (!form.separate() || (form.batch && rank > 5) || v->is_constant())
        form = form.batch && rank <= 5 ? Form::batched(rank) : default_form(rank);
    std::string from = blob(v, form);
    if (from.empty()) {
        problems.push_back({name, "output", why, opset("")});
        return false;
    }
    if (from == param_word(name)) return true;  // an input, which can be extracted as it is
    // What fusion makes may have the type that a Cast before it had.
    const ElementType as = type == ElementType::kUndefined ? v->type : type;
    if (as == ElementType::kBfloat16 && v->floats()) from = narrow(from, as);
    const std::string layer_name = unique("output_" + name);
    layer_names_.insert(layer_name);
    ModelLayer& layer = model.add("Output", layer_name, {from}, {param_word(name)});
    // One value: as many axes as the model declares.
    const bool one = declared && symbols.product(v->shape).is(1) &&
                     symbols.product(*declared).is(1) && (int)declared->size() != rank;
    set_spec(&layer, as, one ? *declared : v->shape, form.batch && !one);
    if (v->type == ElementType::kString) string_ports_.push_back(layer_name);
    outputs_.push_back(param_word(name));
    return true;
}

// Declares outputs of a node that was not converted.
bool Converter::mark_outputs(const Node& node, bool bad) {
    for (const std::string& name : node.outputs)
        if (!name.empty() && (bad || !find_value(name))) add_value(name)->bad = true;
    return false;
}

std::string Converter::made_twice(const Node& node) const {
    std::set<std::string> own;
    const bool several = node.outputs.size() > 1;
    for (const std::string& name : node.outputs)
        if (!name.empty() && (find_value(name) || (several && !own.insert(name).second)))
            return name;
    return "";
}

void Converter::run_node(const Node& given) {
    Node resolved;
    bool other = false;
    for (size_t i = 0; i < given.inputs.size() && has_choices(); i++)
        other = other || resolve(given.inputs[i]) != given.inputs[i];
    if (other) {
        resolved = given;
        for (std::string& name : resolved.inputs) name = resolve(name);
    }
    const Node& node = other ? resolved : given;
    node_name_ = clean(node.label());
    const int version = opset(node.domain);
    const std::string twice = made_twice(node);
    if (!twice.empty()) {
        problems.push_back(
            {node.label(), node.op, "its output " + twice + " is made twice", version});
        return;
    }
    if (!conditions_.empty() && run_alternatives(node)) return;
    const OpEntry* entry = find_op(node.domain, node.op, version);
    if (!entry) {
        const bool any = find_op(node.domain, node.op, 0) != nullptr;
        problems.push_back({node.label(), (node.domain.empty() ? "" : node.domain + "::") + node.op,
                            any ? "not supported in this opset" : why_missing(node.domain, node.op),
                            version});
        mark_outputs(node, true);
        return;
    }
    for (const std::string& name : node.inputs) {
        const Value* v = name.empty() ? nullptr : find_value(name);
        if (!name.empty() && !v)
            problems.push_back(
                {node.label(), node.op, "input " + name + " is made by nothing", version});
        const bool strange = v && v->is_constant() && !is_supported(v->type);
        if (strange)
            problems.push_back({node.label(), node.op,
                                "input " + name + " is a tensor " + type_name(v->type), version});
        if (!name.empty() && (!v || v->bad || strange)) {
            mark_outputs(node, true);
            return;
        }
        if (v && v->sequence && !(entry->traits & kOpTakesSequences)) {
            problems.push_back(
                {node.label(), node.op, "input " + name + " is a sequence", version});
            mark_outputs(node, true);
            return;
        }
    }
    const bool complete = !node.outputs.empty() && has_required_inputs(node, version);
    if (!complete || (node.op == "DynamicQuantizeLinear" && node.outputs.size() != 3)) {
        problems.push_back({node.label(), node.op, "it lacks inputs or outputs", version});
        mark_outputs(node, true);
        return;
    }
    if (folding_ && fold(node, *entry)) return;
    Op op(*this, node, version);
    const bool converted = op.convert(*entry);
    if (!converted) problems.push_back({node.label(), node.op, op.reason, version});
    if (converted && folding_) follow_quantized(*this, node);
    mark_outputs(node, !converted);
    if (converted) report_->counts["nodes converted"]++;
}

bool Converter::run_newest(const Node& node) {
    node_name_ = clean(node.label());
    const int kNewest = 1 << 20;
    const OpEntry* entry = find_op(node.domain, node.op, kNewest);
    if (!entry) return false;
    for (const std::string& name : node.inputs)
        if (!name.empty() && (!find_value(name) || find_value(name)->bad)) return false;
    if (folding_ && fold(node, *entry)) return true;
    Op op(*this, node, kNewest);
    if (!op.convert(*entry)) return false;
    if (folding_) follow_quantized(*this, node);
    return true;
}

// A result that the file should not hold, where its inputs have so many bytes.
bool Converter::too_large(const std::vector<Tensor>& results, size_t bytes) const {
    const size_t kSmall = 4096;
    size_t made = 0;
    for (const Tensor& t : results) made += t.count() * t.value_size();
    return compute_large_ && made > kSmall && made > 2 * bytes;
}

bool Converter::fold(const Node& node, const OpEntry& entry) {
    // A folded tensor may be larger than what it came from, read once, but not by much.
    const size_t kMostGrowth = 1 << 22, kMostRange = 1 << 12;
    if (node.inputs.empty()) return false;
    for (const auto& attribute : node.attributes)
        if (attribute.second.g) return false;  // a subgraph reads more than the node's inputs
    size_t values = 0, bytes = 0;
    std::set<const unsigned char*> counted;
    for (const std::string& name : node.inputs) {
        const Value* v = name.empty() ? nullptr : find_value(name);
        if (!name.empty() && !v->is_constant()) return false;
        if (!v || !v->constant->count() || !counted.insert(v->constant->bytes()).second) continue;
        values += v->constant->count();
        bytes += v->constant->count() * v->constant->value_size();
    }
    Report made;
    Converter scratch(opsets_, strings, &made);
    scratch.set_folding(false);
    scratch.set_default_batch(false);
    for (const std::string& name : node.inputs)
        if (!name.empty()) scratch.add_constant(name, *find_value(name)->constant);
    Op op(scratch, node, opset(node.domain));
    if (!op.convert(entry)) return false;
    std::vector<std::string> names, blobs;
    std::vector<Tensor> results;
    for (const std::string& name : node.outputs) {
        Value* v = name.empty() ? nullptr : scratch.find_value(name);
        if (!v) continue;
        if (!v->is_constant() && all_known(v->shape) &&
            (element_count(values_of(v->shape)) < 0 ||
             (size_t)element_count(values_of(v->shape)) >
                 values + (node.op == "Range" ? kMostRange : kMostGrowth)))
            return false;
        if (v->is_constant())
            results.push_back(*v->constant);
        else if (v->rank() > 4 && !all_known(v->shape))
            return false;
        else
            results.push_back(Tensor(ElementType::kUndefined, {}));
        blobs.push_back(v->is_constant() ? "" : scratch.blob(v, scratch.default_form(v->rank())));
        if (blobs.back().empty() && !v->is_constant()) return false;
        names.push_back(name);
    }
    for (const std::string& blob : blobs)
        if (!blob.empty()) scratch.outputs_.push_back(blob);
    if (!scratch.outputs_.empty()) {
        std::vector<Mat> mats;
        scratch.remove_unused();
        if (!run_layers(scratch.model, scratch.outputs_, &mats)) {
            mats.clear();
            scratch.finish();
            if (!run_model(&scratch.model, scratch.outputs_, &mats)) return false;
        }
        size_t at = 0;
        for (size_t i = 0; i < names.size(); i++) {
            if (blobs[i].empty()) continue;
            const Value* v = scratch.find_value(names[i]);
            std::vector<int64_t> dims = values_of(v->shape);
            const Shape shape = mats[at].logical_shape();
            if (!all_known(v->shape)) {
                dims.clear();
                for (int a = 0; a < shape.dims && a < v->rank(); a++) dims.push_back(shape.size(a));
            }
            if (element_count(dims) != (int64_t)((size_t)shape.w * shape.h * shape.d * shape.c))
                return false;
            results[i] = tensor_of_mat(mats[at++], v->type, dims);
        }
    }
    if (too_large(results, bytes)) return false;
    for (size_t i = 0; i < names.size(); i++) add_constant(names[i], results[i]);
    remember_weight(*this, node);
    report_->counts["nodes folded into constants"]++;
    report_->notes.insert(made.notes.begin(), made.notes.end());
    return true;
}

void Converter::finish() {
    for (ModelLayer& layer : model.layers) {
        const bool holds = std::find(string_ports_.begin(), string_ports_.end(), layer.name) !=
                           string_ports_.end();
        if (holds && strings->size()) layer.set("strings", strings->text());
    }
    if (!string_ports_.empty())
        note(
            "strings are given as numbers: places in the table of their Input or Output layer, -1 "
            "for one that is not there");
    remove_unused();
    fuse();
    remove_unused();
    insert_splits();
}

void Converter::remove_unused() {
    std::unordered_map<std::string, size_t> producer;
    for (size_t i = 0; i < model.layers.size(); i++)
        for (const std::string& blob : model.layers[i].outputs) producer[blob] = i;
    std::vector<char> used(model.layers.size(), 0);
    std::vector<std::string> open = outputs_;
    while (!open.empty()) {
        const std::string blob = open.back();
        open.pop_back();
        const auto found = producer.find(blob);
        if (found == producer.end() || used[found->second]) continue;
        used[found->second] = 1;
        const ModelLayer& layer = model.layers[found->second];
        open.insert(open.end(), layer.inputs.begin(), layer.inputs.end());
    }
    for (size_t i = 0; i < used.size(); i++) used[i] |= (char)model.layers[i].is<Input>();
    if (std::find(used.begin(), used.end(), 0) == used.end()) return;
    std::deque<ModelLayer> kept;
    for (size_t i = 0; i < used.size(); i++)
        if (used[i]) kept.push_back(std::move(model.layers[i]));
    model.layers.swap(kept);
}

void Converter::insert_splits() {
    std::unordered_map<std::string, int> readers;
    for (const ModelLayer& layer : model.layers)
        for (const std::string& blob : layer.inputs) readers[blob]++;
    for (const std::string& blob : outputs_) readers[blob] += readers.count(blob) != 0;
    if (std::none_of(readers.begin(), readers.end(), [](const auto& r) { return r.second > 1; }))
        return;
    std::deque<ModelLayer> all;
    std::unordered_map<std::string, std::vector<std::string>> copies;
    for (ModelLayer& layer : model.layers) {
        for (std::string& blob : layer.inputs) {
            const auto found = copies.find(blob);
            if (found == copies.end()) continue;
            blob = found->second.back();
            found->second.pop_back();
        }
        all.push_back(std::move(layer));
        const std::vector<std::string>& made = all.back().outputs;  // stays where it is
        for (const std::string& blob : made) {
            if (readers[blob] < 2) continue;
            ModelLayer split;
            split.type = "Split", split.name = unique("split_" + blob);
            split.inputs.push_back(blob);
            for (int i = 0; i < readers[blob]; i++)
                split.outputs.push_back(unique(blob + "_split"));
            copies[blob].assign(split.outputs.rbegin(), split.outputs.rend());
            all.push_back(std::move(split));
        }
    }
    model.layers.swap(all);
}

}  // namespace onnx_tool
}  // namespace quoll
