#include "onnx/fuse.h"

#include <math.h>

#include <algorithm>
#include <numeric>

namespace quoll {
namespace onnx_tool {

namespace {

// Decompositions of a product that are looked at.
const size_t kMostProducts = 64;

const std::multimap<std::string, Pattern>& patterns() {
    static const std::multimap<std::string, Pattern> all = [] {
        std::multimap<std::string, Pattern> found;
        for (const auto& family :
             {activation_patterns(), norm_patterns(), attention_patterns(), layout_patterns(),
              part_patterns(), conv_patterns(), quantized_patterns()})
            for (const Pattern& p : family) found.emplace(p.last, p);
        return found;
    }();
    return all;
}

// Patterns look at the inputs that the operator must have.
bool complete(const Node& node, int opset) {
    return !node.outputs.empty() && !node.inputs.empty() && has_required_inputs(node, opset);
}

}  // namespace

Fusion::Fusion(const Graph& graph, const std::vector<std::string>& outputs,
               const std::set<std::string>& cut, Converter* converter)
    : c_(*converter) {
    count_graph(graph);
    const int opset = c_.opset("");
    makers_.reserve(graph.nodes.size());
    reading_.reserve(graph.nodes.size());
    for (const Node& node : graph.nodes)
        for (const std::string& o : node.outputs)
            if (!o.empty() && !cut.count(o) && complete(node, opset)) makers_[o] = &node;
    for (const Node& node : graph.nodes)
        for (const std::string& i : node.inputs) reading_[i].push_back(&node);
    for (const ValueInfo& v : graph.outputs) readers_[v.name]++;
    for (const std::string& o : outputs) readers_[o]++;
}

// Subgraphs read the values of the graphs around them.
void Fusion::count_graph(const Graph& graph) {
    for (const Node& node : graph.nodes) {
        count_reads(node, 1);
        for (const auto& a : node.attributes) {
            if (!a.second.g) continue;
            count_graph(*a.second.g);
            for (const ValueInfo& v : a.second.g->outputs) readers_[v.name]++;
        }
    }
}

void Fusion::count_reads(const Node& node, int by) {
    for (const std::string& i : node.inputs) readers_[i] += by;
}

bool Fusion::run(const Node& node) {
    if (!node.domain.empty()) return false;
    const auto range = patterns().equal_range(node.op);
    if (range.first == range.second || !complete(node, c_.opset("")) ||
        !c_.made_twice(node).empty())
        return false;
    bool constant = true, scalars = false;
    for (const std::string& name : node.inputs) {
        const Value* v = name.empty() ? nullptr : c_.find_value(name);
        if (!name.empty() && (!v || v->varies() || v->type == ElementType::kString)) return false;
        // Numbers that patterns have do not change the rank of anything else.
        scalars = scalars || (v && !v->is_constant() && v->rank() == 0);
        constant = constant && (!v || v->is_constant());
    }
    if (constant) return false;
    for (auto p = range.first; p != range.second; ++p) {
        Match match(*this, node, p->second.name);
        if ((!scalars || p->second.scalars) && p->second.find(match)) return true;
    }
    return false;
}

const Node* Match::maker(const std::string& value) const {
    const auto found = f_.makers_.find(value);
    if (found == f_.makers_.end()) return nullptr;
    for (size_t i = 0; i < found->second->inputs.size() && c.has_choices(); i++) {
        const Value* v = c.find_value(found->second->inputs[i]);
        if (v && v->varies()) return nullptr;
    }
    return found->second;
}

// Its value may have another root.
static bool passes_on(const Node& node) {
    return node.domain.empty() && !node.inputs.empty() &&
           (node.op == "Identity" || node.op == "Cast" || node.op == "Dropout");
}

std::string Match::root(const std::string& value) const {
    std::string name = value;
    for (int i = 0; i < 16; i++) {
        const Node* node = maker(name);
        if (!node || !passes_on(*node)) break;
        const Value *from = c.find_value(node->inputs[0]), *to = c.find_value(name);
        if (!from || !to) break;
        // A Cast to floats of few bits rounds.
        if (node->op == "Cast" && (!from->floats() || !to->floats() || is_small_float(to->type)))
            break;
        name = node->inputs[0];
    }
    return name;
}

const Node* Match::root_maker(const std::string& value) const {
    const Node* node = maker(value);
    if (!node || constant(value)) return nullptr;
    return passes_on(*node) ? maker(root(value)) : node;
}

const Node* Match::maker(const std::string& value, const char* op) const {
    const Node* node = root_maker(value);
    return node && node->domain.empty() && node->op == op ? node : nullptr;
}

const Node* Match::maker(const std::string& value, OpTraits trait) const {
    const Node* node = root_maker(value);
    return node && node->domain.empty() && has_trait(*node, trait) ? node : nullptr;
}

const Tensor* Match::constant(const std::string& name) const {
    const Value* v = name.empty() ? nullptr : c.find_value(name);
    return v && v->is_constant() && is_supported(v->type) ? v->constant.get() : nullptr;
}

bool Match::number(const std::string& name, double* v) const {
    const Tensor* t = constant(name);
    if (!t || !is_float(t->type) || t->count() != 1 || t->rank() > 1) return false;
    *v = t->float_at(0);
    // Half a unit of the last of 11 or 8 bits.
    if (t->type == ElementType::kFloat16) rounding_ = std::max(rounding_, 1. / 2048);
    if (t->type == ElementType::kBfloat16) rounding_ = std::max(rounding_, 1. / 256);
    return true;
}

bool Match::near(double have, double want) const {
    return fabs(have - want) <= rounding_ * fabs(want);
}

bool Match::is_number(const std::string& name, double v) const {
    double have = 0;
    return number(name, &have) && near(have, v);
}

bool Match::with_number(const Node* node, const char* op, double* v, std::string* x) const {
    if (!node || !node->domain.empty() || node->op != op || node->inputs.size() != 2) return false;
    const bool ordered = node->op == "Sub" || node->op == "Div" || node->op == "Pow";
    for (int i = 1; i >= (ordered ? 1 : 0); i--) {
        if (!number(node->inputs[i], v)) continue;
        const Value *one = value(node->inputs[i]), *other = value(node->inputs[1 - i]);
        if (!other || one->rank() > other->rank()) continue;
        *x = node->inputs[1 - i];
        return true;
    }
    return false;
}

bool Match::multiple(const std::string& name, const std::string& x, double* k) const {
    std::string at = name;
    *k = 1;
    for (int i = 0; i < 8; i++) {
        if (same(at, x)) return true;
        double v = 0;
        const Node* node = maker(root(at));
        if (with_number(node, "Mul", &v, &at))
            *k *= v;
        else if (with_number(node, "Div", &v, &at) && v != 0)
            *k /= v;
        else if (node && node->domain.empty() && node->op == "Neg")
            *k = -*k, at = node->inputs[0];
        else
            return false;
    }
    return false;
}

std::vector<Product> Match::products(const std::string& name, int depth) const {
    std::vector<Product> all(1);
    double v = 0;
    if (number(name, &v)) {
        all[0].factor = v;
        return all;
    }
    all[0].values.push_back(name);
    const Node* node = root_maker(name);
    if (depth == 0 || !node || !node->domain.empty()) return all;
    std::vector<Product> left(1), right(1);
    std::string x;
    if (node->op == "Mul" && node->inputs.size() == 2) {
        left = products(node->inputs[0], depth - 1);
        right = products(node->inputs[1], depth - 1);
    } else if (with_number(node, "Div", &v, &x) && v != 0) {
        left = products(x, depth - 1);
        right[0].factor = 1 / v;
    } else if (node->op == "Neg") {
        left = products(node->inputs[0], depth - 1);
        right[0].factor = -1;
    } else {
        return all;
    }
    for (const Product& l : left) {
        for (const Product& r : right) {
            if (all.size() >= kMostProducts) return all;
            all.push_back(l);
            all.back().factor *= r.factor;
            all.back().values.insert(all.back().values.end(), r.values.begin(), r.values.end());
        }
    }
    return all;
}

bool Match::power(const std::string& name, const std::string& x, int n, double* k) const {
    for (const Product& p : products(name)) {
        int exponent = 0;
        bool only = true;
        for (const std::string& v : p.values) {
            double e = 0;
            std::string base;
            if (same(v, x))
                exponent++;
            else if (with_number(maker(v, "Pow"), "Pow", &e, &base) && same(base, x) && e > 0 &&
                     e < 8 && e == floor(e))
                exponent += (int)e;
            else
                only = false;
        }
        if (!only || exponent != n) continue;
        *k = p.factor;
        return true;
    }
    return false;
}

// Min, Max, Relu and Clip with numbers, one around the other.
bool Match::clipped(const std::string& name, double* low, double* high, std::string* x) const {
    *low = -HUGE_VAL, *high = HUGE_VAL;
    std::string at = name;
    bool any = false;
    for (int i = 0; i < 4; i++) {
        const Node* node = maker(root(at));
        double v = 0, lo = -HUGE_VAL, hi = HUGE_VAL;
        if (!node || !node->domain.empty() || constant(at)) break;
        if (node->op == "Relu") {
            lo = 0, at = node->inputs[0];
        } else if (with_number(node, "Max", &v, &at)) {
            lo = v;
        } else if (with_number(node, "Min", &v, &at)) {
            hi = v;
        } else if (node->op == "Clip") {
            const auto& in = node->inputs;
            if (in.size() > 1 && !in[1].empty() && !number(in[1], &lo)) break;
            if (in.size() > 2 && !in[2].empty() && !number(in[2], &hi)) break;
            lo = node->attributes.count("min") ? attr_float(*node, "min", 0) : lo;
            hi = node->attributes.count("max") ? attr_float(*node, "max", 0) : hi;
            at = in[0];
        } else {
            break;
        }
        // What lies outside limits what is within.
        if (!any) {
            *low = lo, *high = hi;
        } else {
            const double inner_low = std::min(std::max(lo, *low), *high);
            const double inner_high = std::min(std::max(hi, *low), *high);
            *low = inner_low, *high = inner_high;
        }
        if (*low > *high) return false;
        any = true;
        *x = at;
    }
    return any;
}

const std::vector<const Node*>& Match::readers(const std::string& value) const {
    static const std::vector<const Node*> none;
    const auto found = f_.reading_.find(value);
    return found == f_.reading_.end() ? none : found->second;
}

int64_t Match::attr(const Node& node, const char* name, int64_t def) const {
    const auto found = node.attributes.find(name);
    return found == node.attributes.end() ? def : found->second.i;
}

float Match::attr_float(const Node& node, const char* name, float def) const {
    const auto found = node.attributes.find(name);
    return found == node.attributes.end() ? def : found->second.f;
}

bool Match::ints(const Node& node, const char* name, size_t input,
                 std::vector<int64_t>* values) const {
    const auto found = node.attributes.find(name);
    if (found != node.attributes.end()) {
        *values = found->second.ints;
        return true;
    }
    if (input >= node.inputs.size()) return false;
    const Tensor* t = constant(node.inputs[input]);
    if (!t || is_float(t->type)) return false;
    *values = t->ints();
    return true;
}

std::vector<int64_t> Match::order_of(const Node& transpose) const {
    const Value* x = value(transpose.inputs[0]);
    const auto found = transpose.attributes.find("perm");
    std::vector<int64_t> perm;
    if (!x) return perm;
    if (found != transpose.attributes.end()) perm = found->second.ints;
    for (int a = x->rank() - 1; perm.empty() && a >= 0; a--) perm.push_back(a);
    std::vector<int64_t> sorted = perm, all(perm.size());
    std::sort(sorted.begin(), sorted.end());
    std::iota(all.begin(), all.end(), 0);
    return sorted == all && (int)perm.size() == x->rank() ? perm : std::vector<int64_t>();
}

Node Match::node(const char* op, const std::vector<std::string>& inputs) const {
    Node n;
    n.name = last.label();
    n.op = op;
    n.inputs = inputs;
    n.outputs = last.outputs;
    return n;
}

std::string Match::add_constant(const Tensor& t) {
    return c.add_constant(c.unique_value(last.label() + "_constant"), t)->name;
}

std::string Match::add_sizes(const std::vector<Dim>& sizes) {
    if (all_known(sizes)) return add_constant(Tensor::of_ints(values_of(sizes)));
    const std::string blob = c.size_blob(sizes);
    if (blob.empty()) return "";
    std::string& name = f_.emitted_["sizes " + blob];
    if (!name.empty()) return name;
    name = c.unique_value(last.label() + "_sizes");
    Value* v = c.add_value(name);
    v->type = ElementType::kInt64;
    v->shape = {Dim((int64_t)sizes.size())};
    v->form = Form::plain(1);
    v->blobs[{0, v->form}] = blob;
    v->has_content = true, v->content = sizes;
    return name;
}

// What tells a node with one output from others; "" if that takes more than numbers.
static std::string text_of(const Node& node) {
    std::string text = node.op;
    for (const std::string& i : node.inputs) text += " " + i;
    for (const auto& a : node.attributes) {
        if (a.second.kind != Attribute::kInt && a.second.kind != Attribute::kInts) return "";
        text += " " + a.first + "=" + std::to_string(a.second.i);
        for (int64_t i : a.second.ints) text += "," + std::to_string(i);
    }
    return text;
}

std::string Match::emit(const char* op, const std::vector<std::string>& inputs,
                        const std::function<void(Node*)>& set) {
    Node n = node(op, inputs);
    n.outputs.assign(1, c.unique_value(last.label() + "_" + op));
    if (set) set(&n);
    const std::string key = text_of(n);
    if (!key.empty() && f_.emitted_.count(key)) return f_.emitted_[key];
    if (!c.run_newest(n)) return "";
    if (!key.empty()) f_.emitted_[key] = n.outputs[0];
    f_.made_.push_back(n);
    f_.count_reads(f_.made_.back(), 1);
    f_.makers_[n.outputs[0]] = &f_.made_.back();
    return n.outputs[0];
}

// Whether what a node makes of sizes ends as sizes for these nodes.
bool Match::only_sizes(const Node& node, const std::set<const Node*>& nodes, int depth) const {
    const int kDeepest = 16;
    for (const std::string& o : node.outputs) {
        if (o.empty() || constant(o)) continue;
        const Value* v = value(o);
        const auto readers = f_.readers_.find(o);
        const bool output =
            readers != f_.readers_.end() && readers->second > (int)this->readers(o).size();
        if (!v || v->floats() || v->rank() > 1 || output || depth > kDeepest) return false;
        for (const Node* reader : this->readers(o)) {
            const bool inner =
                nodes.count(reader) && has_trait(*reader, kOpTakesSizes) && reader->inputs[0] != o;
            if (!inner && !only_sizes(*reader, nodes, depth + 1)) return false;
        }
    }
    return true;
}

// All nodes that lead from the inputs to the last one, but for those that make sizes of what is
// between; false when they are read elsewhere.
bool Match::between(const std::vector<std::string>& inputs, std::set<const Node*>* nodes) const {
    const size_t kMostNodes = 256;
    std::set<std::string> ends;
    for (const std::string& name : inputs) ends.insert(root(name));
    std::vector<const Node*> open = {&last};
    std::map<std::string, int> reads;
    nodes->insert(&last);
    while (!open.empty()) {
        const Node* node = open.back();
        open.pop_back();
        for (size_t i = 0; i < node->inputs.size(); i++) {
            const std::string& name = node->inputs[i];
            if (name.empty() || constant(name) || ends.count(root(name))) continue;
            if (i > 0 && has_trait(*node, kOpTakesSizes)) continue;
            reads[name]++;
            const Node* from = maker(name);
            if (!from || nodes->size() > kMostNodes) return false;
            if (nodes->insert(from).second) open.push_back(from);
        }
    }
    for (const Node* node : *nodes) {
        if (node == &last) continue;
        for (const std::string& name : node->outputs) {
            const auto found = f_.readers_.find(name);
            int others = found == f_.readers_.end() ? 0 : found->second - reads[name];
            for (const Node* reader : readers(name))
                if (others > 0 && reader->op == "Shape") others -= only_sizes(*reader, *nodes, 0);
            if (others > 0) return false;
        }
    }
    return true;
}

bool Match::closed(const std::vector<std::string>& inputs) const {
    std::set<const Node*> nodes;
    return between(inputs, &nodes);
}

void Match::commit(const Node& node, const std::set<const Node*>& gone) {
    for (const Node* old : gone) f_.count_reads(*old, -1);
    f_.made_.push_back(node);
    f_.count_reads(f_.made_.back(), 1);
    for (const std::string& o : node.outputs)
        if (!o.empty()) f_.makers_[o] = &f_.made_.back();
    std::set<std::string> names;
    for (const Node* old : gone) names.insert(old->label());
    c.problems.erase(std::remove_if(c.problems.begin(), c.problems.end(),
                                    [&](const Problem& p) { return names.count(p.node) != 0; }),
                     c.problems.end());
    c.count(std::string("fused: ") + name_);
}

bool Match::replace(const Node& node, const std::vector<std::string>& inputs) {
    std::set<const Node*> nodes;
    if (!between(inputs, &nodes) || !c.run_newest(node)) return false;
    commit(node, nodes);
    return true;
}

bool Match::replace_open(const Node& node) {
    if (!c.run_newest(node)) return false;
    commit(node, {&last});
    return true;
}

bool Match::replace_by(const Node& node, const std::vector<std::string>& inputs,
                       const std::function<bool(Op&)>& convert) {
    std::set<const Node*> nodes;
    if (!between(inputs, &nodes)) return false;
    Op op(c, node, c.opset(""));
    if (!op.need_numbers() || !convert(op)) return false;
    commit(node, nodes);
    return true;
}

void set_int(Node* node, const char* name, int64_t value) {
    Attribute& a = node->attributes[name];
    a.kind = Attribute::kInt, a.i = value;
}

void set_float(Node* node, const char* name, float value) {
    Attribute& a = node->attributes[name];
    a.kind = Attribute::kFloat, a.f = value;
}

void set_string(Node* node, const char* name, const char* value) {
    Attribute& a = node->attributes[name];
    a.kind = Attribute::kString, a.s = value;
}

void set_ints(Node* node, const char* name, const std::vector<int64_t>& values) {
    Attribute& a = node->attributes[name];
    a.kind = Attribute::kInts, a.ints = values;
}

}  // namespace onnx_tool
}  // namespace quoll
