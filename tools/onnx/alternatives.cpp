// Values whose rank is known only at run time: the branches of an If, or a Squeeze that takes away
// an axis if its size is 1. Each node that reads one is converted for either case, until the
// results are alike and can be one blob again; what is made for a case is computed only when it is
// chosen.
#include <algorithm>

#include "graph/param_file.h"
#include "onnx/converter.h"
#include "onnx/functions.h"

namespace quoll {
namespace onnx_tool {

int Converter::add_choice(const std::string& condition) {
    const auto found = std::find(conditions_.begin(), conditions_.end(), condition);
    if (found != conditions_.end()) return (int)(found - conditions_.begin());
    conditions_.push_back(condition);
    return (int)conditions_.size() - 1;
}

std::string Converter::resolve(const std::string& name) const {
    std::string now = name;
    for (const Value* v = find_value(now); v && v->varies(); v = find_value(now)) {
        const auto found = assumed_.find(v->choice);
        if (found == assumed_.end()) break;
        now = v->alternatives[found->second];
    }
    return now;
}

namespace {

bool same_tensor(const Tensor& a, const Tensor& b) {
    return a.type == b.type && a.dims == b.dims &&
           std::equal(a.bytes(), a.bytes() + a.count() * a.value_size(), b.bytes());
}

// Whether one blob may stand for both, and nothing is lost that is known of only one.
bool alike(const Value& a, const Value& b) {
    if (a.sequence || b.sequence || a.varies() || b.varies() || a.is_constant() ||
        b.is_constant() || a.has_content || b.has_content || a.rank() != b.rank() ||
        mat_type(a.type) != mat_type(b.type))
        return false;
    for (int d = 0; d < a.rank(); d++)
        if (!same(a.shape[(size_t)d], b.shape[(size_t)d]) &&
            (a.shape[(size_t)d].known() || b.shape[(size_t)d].known()))
            return false;
    return true;
}

}  // namespace

// "" if they cannot be one blob. A null one could not be made.
std::string Converter::join_blobs(int choice, Value* (&made)[2], std::vector<Dim>* shape,
                                  Form* form) {
    Value* condition = find_value(resolve(conditions_[(size_t)choice]));
    if (!condition || condition->varies()) return "";
    Value* const one = made[0] && (!made[0]->is_constant() || !made[1]) ? made[0] : made[1];
    *form = one->is_constant() ? default_form(one->rank()) : one->form;
    *shape = one->shape;
    const std::string truth = blob(condition, Form::plain(condition->rank()));
    std::string from[2];
    for (int k = 0; k < 2; k++) {
        from[k] = made[k] ? blob(made[k], *form) : truth;
        if (from[k].empty() || truth.empty()) return "";
        for (size_t d = 0; made[k] && d < shape->size(); d++)
            if (!same((*shape)[d], made[k]->shape[d])) (*shape)[d] = symbols.fresh();
    }
    ModelLayer& layer = emit("Select", {truth, from[0], from[1]}, one->name);
    if (!made[0] || !made[1]) layer.set("only", made[0] ? 1 : 2);
    return layer.outputs[0];
}

bool Converter::settle(Value* v) {
    if (!v->varies()) return true;
    Value* made[2];
    for (int k = 0; k < 2; k++) {
        made[k] = find_value(v->alternatives[k]);
        if (made[k] && made[k]->bad) made[k] = nullptr;
        if (made[k] && (made[k]->sequence || !settle(made[k]))) return false;
    }
    if (!made[0] && !made[1]) return false;
    if (made[0] && made[1] &&
        (made[0]->rank() != made[1]->rank() || mat_type(made[0]->type) != mat_type(made[1]->type)))
        return false;
    std::vector<Dim> shape;
    Form form;
    const std::string joined = join_blobs(v->choice, made, &shape, &form);
    if (joined.empty()) return false;
    v->choice = -1;
    v->type = (made[0] ? made[0] : made[1])->type;
    v->shape = shape, v->form = form;
    v->blobs[{0, form}] = joined;
    add_sizes(joined, shape, form);
    return true;
}

bool Converter::join(const std::string& name, int choice, const std::string (&made)[2]) {
    Value* values[2];
    for (int k = 0; k < 2; k++) {
        values[k] = find_value(made[k]);
        if (values[k] && values[k]->bad) values[k] = nullptr;
    }
    if (!values[0] && !values[1]) return false;
    if (values[0] && values[1] && values[0]->is_constant() && values[1]->is_constant() &&
        same_tensor(*values[0]->constant, *values[1]->constant)) {
        add_constant(name, *values[0]->constant);
        return true;
    }
    Value* v = add_value(name);
    v->choice = choice;
    for (int k = 0; k < 2; k++) v->alternatives[k] = made[k];
    const Value* one = values[0] ? values[0] : values[1];
    const bool guarded = (!values[0] || !values[1]) && !one->is_constant() && !one->has_content &&
                         !one->sequence && !one->varies();
    if (guarded || (values[0] && values[1] && alike(*values[0], *values[1]))) settle(v);
    return true;
}

bool Converter::run_alternatives(const Node& node) {
    std::vector<std::string> reads;
    add_reads(node, &reads);
    int choice = -1;
    for (const std::string& name : reads) {
        const Value* v = name.empty() ? nullptr : find_value(resolve(name));
        if (v && !v->bad && v->varies()) choice = v->choice;
    }
    if (choice < 0) return false;
    Node copies[2] = {node, node};
    std::vector<Problem> found;
    for (int k = 0; k < 2; k++) {
        for (std::string& output : copies[k].outputs)
            if (!output.empty()) output = unique_value(output + (k ? "/else" : "/then"));
        assumed_[choice] = k;
        const size_t before = problems.size();
        run_node(copies[k]);
        found.insert(found.end(), problems.begin() + (ptrdiff_t)before, problems.end());
        problems.resize(before);
        assumed_.erase(choice);
    }
    bool bad = false;
    for (size_t i = 0; i < node.outputs.size(); i++) {
        if (node.outputs[i].empty()) continue;
        if (join(node.outputs[i], choice, {copies[0].outputs[i], copies[1].outputs[i]})) continue;
        add_value(node.outputs[i])->bad = bad = true;
    }
    if (bad && !found.empty()) problems.push_back(found[0]);
    if (!bad && !found.empty())
        note("for one outcome of the condition " + conditions_[(size_t)choice] +
             ", which is known only at run time, the model cannot be converted and will not run (" +
             found[0].node + ": " + found[0].reason + ")");
    return true;
}

// Alternatives of different ranks as they are: the Output layer's array has the axes of the blob.
bool Converter::add_varying_output(const std::string& name, ElementType type, Value* v) {
    Value* made[2];
    for (int k = 0; k < 2; k++) {
        made[k] = find_value(v->alternatives[k]);
        if (!made[k] || made[k]->sequence || !settle(made[k]) || made[k]->rank() > 4) {
            problems.push_back({name, "output", "its rank is known only at run time", opset("")});
            return false;
        }
    }
    Value* condition = find_value(conditions_[(size_t)v->choice]);
    std::vector<std::string> from = {blob(condition, Form::plain(condition->rank()))};
    for (Value* alternative : made)
        from.push_back(blob(alternative, Form::plain(alternative->rank())));
    if (std::count(from.begin(), from.end(), "") > 0) {
        problems.push_back({name, "output", why, opset("")});
        return false;
    }
    const std::string chosen = emit("Select", from, name + "/chosen").outputs[0];
    const std::string layer_name = unique("output_" + name);
    layer_names_.insert(layer_name);
    ModelLayer& layer = model.add("Output", layer_name, {chosen}, {param_word(name)});
    layer.set("rank", std::min(made[0]->rank(), made[1]->rank()));
    layer.set("any_rank", 1);
    layer.set("element_type", (int)(type == ElementType::kUndefined ? made[0]->type : type));
    outputs_.push_back(param_word(name));
    return true;
}

}  // namespace onnx_tool
}  // namespace quoll
