// If, Loop and Scan: subgraphs put in place of the node, once or once an iteration, or between the
// layers of a loop that the net runs.
#include <algorithm>
#include <functional>
#include <set>

#include "onnx/functions.h"
#include "onnx/limits.h"
#include "onnx/nodes.h"
#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

typedef std::vector<std::string> Strings;

bool run_body(Op& op, const Graph& body, const Strings& inputs, Strings* outputs) {
    Limits::spend_nodes(1 +
                        (int64_t)body.nodes.size() * (1 + (int64_t)(op.node.label().size() >> 8)));
    std::map<std::string, std::string> names;
    const std::string prefix = op.node.label() + "/";
    for (size_t i = 0; i < body.inputs.size() && i < inputs.size(); i++)
        names[body.inputs[i].name] = inputs[i];
    for (const auto& t : body.initializers) {
        if (names.count(t.first)) continue;
        names[t.first] = op.c.unique_value(prefix + t.first);
        op.c.add_constant(names[t.first], t.second);
    }
    for (const Node& node : body.nodes)
        for (const std::string& name : node.outputs)
            if (!name.empty()) names[name] = op.c.unique_value(prefix + name);
    std::vector<Problem>& problems = op.c.problems;
    const size_t before = problems.size();
    std::vector<const Node*> nodes;
    for (const Node& node : body.nodes) nodes.push_back(&node);
    for (const Node* node : in_order(nodes)) {
        Node copy = *node;
        copy.name = prefix + node->label();
        rename_values(names, &copy);
        op.c.run_node(copy);
        if (problems.size() == before) continue;
        const Problem p = problems[before];
        problems.resize(before);
        return op.fail("%s (%s): %s", p.node.c_str(), p.op.c_str(), p.reason.c_str());
    }
    for (const ValueInfo& v : body.outputs) {
        const auto found = names.find(v.name);
        const std::string name = op.c.resolve(found == names.end() ? v.name : found->second);
        const Value* made = op.c.find_value(name);
        if (!made || made->bad)
            return op.fail("its subgraph's output %s is made by nothing", v.name.c_str());
        outputs->push_back(name);
    }
    return true;
}

const Graph* subgraph(Op& op, const char* name) {
    const auto found = op.node.attributes.find(name);
    return found == op.node.attributes.end() ? nullptr : found->second.g.get();
}

namespace {

// Nodes that unrolling may make. Decoders of some hundred steps stay below it.
const int64_t kMostNodes = 1 << 15;

// A single truth or number that is known; false if it is not.
bool known_number(const Value* v, int64_t* value) {
    if (!v) return false;
    if (v->is_constant() && v->constant->count() == 1) {
        *value = v->constant->int_at(0);
        return true;
    }
    if (!v->has_content || v->content.size() != 1 || !v->content[0].known()) return false;
    *value = v->content[0].value;
    return true;
}

// Both branches, of which the one that is chosen at run time will be computed.
bool choose_at_run_time(Op& op, const Graph& yes, const Graph& no) {
    Strings made[2];
    const bool one = run_body(op, yes, {}, &made[0]), other = run_body(op, no, {}, &made[1]);
    if (!one && !other) return false;
    if (one != other) {
        // The other branch is refused when it is chosen.
        op.c.note("the branch of If " + op.node.label() + " for a condition that is " +
                  (one ? "false" : "true") + " cannot be converted and will not run (" + op.reason +
                  ")");
        made[one].assign(made[!one].size(), "");
        op.reason.clear();
    }
    const std::string condition = op.plain(op.in(0));
    if (condition.empty()) return false;
    const int choice = op.c.add_choice(op.node.inputs[0]);
    for (int i = 0; i < op.outputs(); i++) {
        if ((size_t)i >= std::min(made[0].size(), made[1].size()))
            return op.fail("branches of %zu and %zu outputs", made[0].size(), made[1].size());
        Value *a = op.c.find_value(made[0][i]), *b = op.c.find_value(made[1][i]);
        const bool differ = !a || !b || !op.c.settle(a) || !op.c.settle(b) ||
                            a->rank() != b->rank() || mat_type(a->type) != mat_type(b->type);
        if (differ && !(a && a->sequence) && !(b && b->sequence)) {
            if (op.wants(i) &&
                !op.c.join(op.node.outputs[i], choice, {made[0][(size_t)i], made[1][(size_t)i]}))
                return op.fail("its branches make nothing");
            continue;
        }
        if (!a || !b || a->sequence || b->sequence)
            return op.fail(
                "its branches give sequences, and the condition %s is known only at run "
                "time",
                op.node.inputs[0].c_str());
        const Form form = a->is_constant() ? b->form : a->form;
        const std::string from[2] = {op.blob(a, form), op.blob(b, form)};
        if (from[0].empty() || from[1].empty()) return false;
        std::vector<Dim> shape = a->shape;
        for (size_t d = 0; d < shape.size(); d++)
            if (!same(shape[d], b->shape[d])) shape[d] = Dim();
        op.set(i, a->type, shape, form,
               op.emit("Select", {condition, from[0], from[1]}, i).outputs[0]);
    }
    op.c.count("conditions left to run time");
    return true;
}

bool if_else(Op& op) {
    const Graph *yes = subgraph(op, "then_branch"), *no = subgraph(op, "else_branch");
    if (!yes || !no) return op.fail("it lacks a branch");
    int64_t condition = 0;
    if (!known_number(op.in(0), &condition)) return choose_at_run_time(op, *yes, *no);
    Strings outputs;
    if (!run_body(op, condition ? *yes : *no, {}, &outputs)) return false;
    if ((int)outputs.size() < op.outputs())
        return op.fail("a branch of %zu outputs", outputs.size());
    for (int i = 0; i < op.outputs(); i++) op.alias(i, op.c.find_value(outputs[i]));
    op.c.count("branches of If chosen");
    return true;
}

// The parts of each iteration one behind the other along a new axis.
std::string stack(Nodes& nodes, const Strings& parts, int64_t axis) {
    Strings rows;
    for (const std::string& part : parts)
        rows.push_back(nodes.add("Unsqueeze", {part, nodes.ints({axis})}));
    return rows.size() == 1 ? rows[0] : nodes.add("Concat", rows, {{"axis", attribute_of(axis)}});
}

// What a scan that never runs gives.
bool no_rows(Op& op, int output, const ValueInfo& declared) {
    std::vector<int64_t> dims(1, 0);
    if (!declared.has_shape || !is_supported(declared.type))
        return op.fail("no iteration, and the type of %s is not said", declared.name.c_str());
    for (const DimInfo& d : declared.shape) dims.push_back(std::max<int64_t>(0, d.value));
    op.set_constant(output, Tensor(declared.type, dims));
    return true;
}

// The body of a loop as values of the outer graph: from the number of the iteration, the condition
// and the carried values to whether it goes on, the carried values and what it adds.
typedef std::function<bool(const Strings& inputs, Strings* outputs)> Body;

struct LoopPlan {
    std::string count, condition;  // values; "": no limit, true
    Strings states;
    std::vector<char>
        unread;  // of each: the body takes nothing from it, and puts another in its place
    size_t scans;
    Body body;
    // Which output each carried value and scan is.
    std::vector<int> outputs;
    // Scans from this one on are sequences to which every iteration appends.
    size_t first_sequence;
};

std::string plain_number(Op& op, const std::string& name, ElementType type, int64_t missing) {
    if (!name.empty()) return op.plain(op.c.find_value(name));
    Tensor number(type, {});
    number.set_int(0, missing);
    return op.plain(op.c.add_constant(op.c.unique_value(op.node.label() + "/constant"), number));
}

// The values that an iteration begins with, carried ones of the given shapes; their names.
bool start_loop(Op& op, const LoopPlan& p, const std::vector<std::vector<Dim>>& shapes,
                Strings* names, std::string* token) {
    const std::string label = op.node.label();
    Strings inputs = {plain_number(op, p.count, ElementType::kInt64, 2147483647),
                      plain_number(op, p.condition, ElementType::kBool, 1)};
    for (const std::string& state : p.states) inputs.push_back(op.plain(op.c.find_value(state)));
    for (const std::string& blob : inputs)
        if (blob.empty()) return false;
    const ModelLayer& layer =
        op.c.emit("LoopStart", inputs, label + "/start", (int)inputs.size() + 1);
    const Strings blobs = layer.outputs;
    *token = blobs[0];
    for (size_t i = 1; i < blobs.size(); i++) {
        Value* v = op.c.add_value(op.c.unique_value(label + "/iteration"));
        v->type = i == 1   ? ElementType::kInt64
                  : i == 2 ? ElementType::kBool
                           : op.c.find_value(p.states[i - 3])->type;
        if (i > 2) v->shape = shapes[i - 3];
        v->form = Form::plain(v->rank());
        v->blobs[{0, v->form}] = blobs[i];
        op.c.add_sizes(blobs[i], v->shape, v->form);
        names->push_back(v->name);
    }
    return true;
}

bool is_one_value(const std::vector<Dim>& shape) {
    return std::all_of(shape.begin(), shape.end(),
                       [](const Dim& d) { return d.known() && d.value == 1; });
}

// Sizes that differ from one iteration to the next become unknown ones. 1: all are as assumed, 0:
// not yet, -1: op.fail().
int settle_shapes(Op& op, const LoopPlan& p, const std::set<int>& own, Strings* outputs,
                  std::vector<std::vector<Dim>>* shapes) {
    bool settled = true;
    for (size_t i = 0; i < p.states.size(); i++) {
        Value* v = op.c.find_value((*outputs)[1 + i]);
        if (v->sequence) return op.fail("%s becomes a sequence", p.states[i].c_str()), -1;
        std::vector<Dim>& assumed = (*shapes)[i];
        const Value* state = op.c.find_value(p.states[i]);
        const bool made = op.c.settle(v);
        const bool other_rank = made && v->shape.size() != assumed.size();
        // What nobody reads has the rank of what comes out, a single value before the first
        // iteration.
        if (other_rank && p.unread[i] && is_one_value(assumed)) {
            assumed.assign(v->shape.size(), Dim());
            settled = false;
            continue;
        }
        // Exporters do not tell a value from an array of one.
        if (other_rank && assumed.empty() && is_one_value(v->shape)) {
            (*outputs)[1 + i] = Nodes(op).add("Squeeze", {(*outputs)[1 + i]});
            v = op.c.find_value((*outputs)[1 + i]);
        }
        if (!made || !v || v->shape.size() != assumed.size() ||
            mat_type(v->type) != mat_type(state->type))
            return op.fail("%s changes its rank or type from one iteration to the next",
                           p.states[i].c_str()),
                   -1;
        for (size_t d = 0; d < assumed.size(); d++) {
            if (same(v->shape[d], assumed[d]) || own.count(assumed[d].symbol)) continue;
            assumed[d] = Dim();
            settled = false;
        }
    }
    return settled ? 1 : 0;
}

// A size outside the loop: symbols that the loop brought along mean nothing there.
Dim outside(const Dim& d, int symbols) { return d.known() || d.symbol < symbols ? d : Dim(); }

bool end_loop(Op& op, const LoopPlan& p, const std::string& token, const Strings& outputs,
              const std::vector<std::vector<Dim>>& shapes, int symbols) {
    const size_t states = p.states.size();
    Strings inputs(1, token);
    std::vector<int> ranks, types, sizes;
    for (size_t i = 0; i < outputs.size(); i++) {
        Value* v = op.c.find_value(outputs[i]);
        inputs.push_back(op.plain(v));
        if (inputs.back().empty()) return false;
        if (i <= states) continue;
        if (v->rank() > 3)
            return op.fail("%s, of rank %d, cannot be stacked", v->name.c_str(), v->rank());
        ranks.push_back(v->rank());
        types.push_back(is_float(v->type) ? 0 : std::min(cast_code(v->type), 5));
        for (const Dim& d : v->shape) sizes.push_back(d.known() ? (int)d.value : 0);
    }
    const int count = (int)outputs.size() - 1;
    ModelLayer& layer = op.emit("LoopEnd", inputs, 0, count);
    if (p.scans) {
        layer.set("scans", (int)p.scans);
        layer.set("ranks", ranks);
        layer.set("types", types);
        if (!sizes.empty()) layer.set("sizes", sizes);
    }
    const Strings blobs = layer.outputs;
    for (size_t i = 0; i < (size_t)count; i++) {
        const Value* v = op.c.find_value(outputs[1 + i]);
        std::vector<Dim> shape;
        if (i >= states) shape.push_back(Dim());
        for (const Dim& d : i < states ? shapes[i] : v->shape) shape.push_back(outside(d, symbols));
        const Form form = Form::plain((int)shape.size());
        const int output = p.outputs[i];
        if (!op.wants(output)) continue;
        if (i < states + p.first_sequence) {
            op.set(output, v->type, shape, form, blobs[i]);
            continue;
        }
        Value* all = op.c.add_value(op.c.unique_value(op.node.label() + "/stacked"));
        for (Dim& d : shape)
            if (d.symbol == 0) d = op.c.symbols.fresh();
        all->type = v->type, all->shape = shape, all->form = form;
        all->blobs[{0, form}] = blobs[i];
        op.c.add_sizes(blobs[i], shape, form);
        Value* list = op.c.add_value(op.node.outputs[(size_t)output]);
        list->sequence = true, list->stacked = all->name;
    }
    op.c.count("loops run by the net");
    return true;
}

// The body once, between layers that run it again and again.
bool loop_at_run_time(Op& op, const LoopPlan& p) {
    std::vector<std::vector<Dim>> shapes;
    for (const std::string& state : p.states) {
        const Value* v = op.c.find_value(state);
        if (v->rank() > 4) return op.fail("it carries %s of rank %d", state.c_str(), v->rank());
        shapes.push_back(v->shape);
    }
    const int symbols = op.c.symbols.count();
    std::set<int> own;
    const Converter::Sizes known = op.c.sizes();
    for (;;) {
        for (std::vector<Dim>& shape : shapes) {
            for (Dim& d : shape) {
                if (d.symbol != 0) continue;
                d = op.c.symbols.fresh();
                own.insert(d.symbol);
            }
        }
        Strings inputs, outputs;
        std::string token;
        if (!start_loop(op, p, shapes, &inputs, &token) || !p.body(inputs, &outputs)) return false;
        if (outputs.size() != 1 + p.states.size() + p.scans)
            return op.fail("a body of %zu outputs", outputs.size());
        const int settled = settle_shapes(op, p, own, &outputs, &shapes);
        const bool ended = settled > 0 && end_loop(op, p, token, outputs, shapes, symbols);
        // Blobs of the body tell sizes to nothing else.
        op.c.set_sizes(known);
        if (settled != 0) return ended;
    }
}

// The node of a body that makes a value of it; null: it is handed to the body.
const Node* maker_of(const Graph& body, const std::string& name) {
    const auto found = std::find_if(body.nodes.begin(), body.nodes.end(), [&](const Node& n) {
        return std::find(n.outputs.begin(), n.outputs.end(), name) != n.outputs.end();
    });
    return found == body.nodes.end() ? nullptr : &*found;
}

// What a value of a body is, nodes that change nothing left out.
std::string source_of(const Graph& body, std::string name) {
    for (size_t hops = 0; hops <= body.nodes.size(); hops++) {
        const Node* maker = maker_of(body, name);
        if (!maker || maker->op != "Identity" || maker->inputs.size() != 1) break;
        name = maker->inputs[0];
    }
    return name;
}

// Carried value i comes out of each iteration as it went in.
bool is_invariant(const Graph& body, size_t i) {
    return 1 + i < body.outputs.size() && 2 + i < body.inputs.size() &&
           source_of(body, body.outputs[1 + i].name) == body.inputs[2 + i].name;
}

// No iteration ends the loop, or each would: its condition is the one before, or a constant.
bool same_condition(const Graph& body) {
    const std::string source = source_of(body, body.outputs[0].name);
    if (source == body.inputs[1].name || body.initializers.count(source)) return true;
    const Node* maker = maker_of(body, source);
    return maker && maker->op == "Constant";
}

// An unrolled loop: what it gives at the end. 1: done, 0: how often it runs is not known, -1:
// op.fail().
int unroll(Op& op, const Graph& body, size_t states, int64_t count, int64_t going, Strings* state,
           std::vector<Strings>* rows) {
    const int64_t most = kMostNodes / (int64_t)std::max<size_t>(1, body.nodes.size());
    const bool steady = count > most && same_condition(body);
    Tensor truth(ElementType::kBool, {});
    truth.set_int(0, 1);
    for (int64_t i = 0; i < count && going; i++) {
        if (i >= most || (steady && i > 0)) return 0;
        Strings inputs = {op.c.unique_value(op.node.label() + "/iteration"),
                          op.c.unique_value(op.node.label() + "/condition")};
        op.c.add_constant(inputs[0], Tensor::of_ints({i}, true));
        op.c.add_constant(inputs[1], truth);
        inputs.insert(inputs.end(), state->begin(), state->end());
        Strings outputs;
        if (!run_body(op, body, inputs, &outputs)) return -1;
        if (!known_number(op.c.find_value(outputs[0]), &going)) return 0;
        state->assign(outputs.begin() + 1, outputs.begin() + 1 + (ptrdiff_t)states);
        for (size_t k = 0; k < rows->size(); k++) (*rows)[k].push_back(outputs[1 + states + k]);
    }
    return 1;
}

// The names that the nodes of a body read, and those that come out of it.
std::set<std::string> names_read(const Graph& body) {
    Strings names;
    for (const Node& node : body.nodes) add_reads(node, &names);
    for (const ValueInfo& output : body.outputs) names.push_back(output.name);
    return std::set<std::string>(names.begin(), names.end());
}

// A loop at run time. Values that it hands on unchanged are read by the body as any other of the
// graph, so that weights among them stay constants. Sequences that it carries begin empty, and each
// iteration appends one item: they are scans.
bool loop_of_unknown_length(Op& op, const Graph& body, const Strings& carried, size_t scans) {
    LoopPlan plan;
    plan.count = op.has(0) ? op.node.inputs[0] : "";
    plan.condition = op.has(1) ? op.node.inputs[1] : "";
    const std::set<std::string> read = names_read(body);
    std::vector<int> sequences;
    std::vector<char> fixed(carried.size(), 0);
    for (size_t i = 0; i < carried.size(); i++) {
        const Value* v = op.c.find_value(carried[i]);
        if (!v->sequence && is_invariant(body, i)) {
            fixed[i] = 1;
            if (op.wants((int)i)) op.alias((int)i, op.c.find_value(carried[i]));
        } else if (!v->sequence) {
            plan.states.push_back(carried[i]);
            plan.unread.push_back(!read.count(body.inputs[2 + i].name));
            plan.outputs.push_back((int)i);
        } else if (!v->items.empty() || v->open || !v->stacked.empty()) {
            return op.fail("it carries the sequence %s, which is not empty", v->name.c_str());
        } else {
            sequences.push_back((int)i);
        }
    }
    plan.first_sequence = scans;
    plan.scans = scans + sequences.size();
    for (size_t k = 0; k < scans; k++) plan.outputs.push_back((int)(carried.size() + k));
    plan.outputs.insert(plan.outputs.end(), sequences.begin(), sequences.end());
    plan.body = [&](const Strings& inputs, Strings* outputs) {
        Strings all(inputs.begin(), inputs.begin() + 2), made, items;
        size_t next = 2;
        for (size_t i = 0; i < carried.size(); i++) {
            const std::string& name = carried[i];
            if (!op.c.find_value(name)->sequence) {
                all.push_back(fixed[i] ? name : inputs[next++]);
                continue;
            }
            Value* open = op.c.add_value(op.c.unique_value(name + "/open"));
            open->sequence = open->open = true;
            all.push_back(open->name);
        }
        if (!run_body(op, body, all, &made)) return false;
        outputs->push_back(made[0]);
        for (size_t i = 0; i < carried.size(); i++) {
            const Value* v = op.c.find_value(made[1 + i]);
            if (!op.c.find_value(carried[i])->sequence) {
                if (!fixed[i]) outputs->push_back(made[1 + i]);
            } else if (!v->open || v->items.size() != 1) {
                return op.fail("an iteration appends %zu items to %s, expected one",
                               v->items.size(), carried[i].c_str());
            } else {
                items.push_back(v->items[0]);
            }
        }
        outputs->insert(outputs->end(), made.begin() + 1 + (ptrdiff_t)carried.size(), made.end());
        outputs->insert(outputs->end(), items.begin(), items.end());
        return true;
    };
    return loop_at_run_time(op, plan);
}

bool loop(Op& op) {
    const Graph* body = subgraph(op, "body");
    if (!body) return op.fail("it lacks a body");
    const int states = std::max(0, op.inputs() - 2);
    if ((int)body->inputs.size() != states + 2 || (int)body->outputs.size() < states + 1)
        return op.fail("a body of %zu inputs and %zu outputs for %d states", body->inputs.size(),
                       body->outputs.size(), states);
    const size_t scans = body->outputs.size() - 1 - (size_t)states;
    if (op.outputs() > states + (int)scans)
        return op.fail("%d outputs of a body with %zu", op.outputs(), body->outputs.size());
    int64_t count = INT64_MAX, going = 1;
    Strings state(op.node.inputs.begin() + std::min(2, op.inputs()), op.node.inputs.end());
    std::vector<Strings> rows(scans);
    const bool known = (!op.has(0) || known_number(op.in(0), &count)) &&
                       (!op.has(1) || known_number(op.in(1), &going));
    const int unrolled = known ? unroll(op, *body, (size_t)states, count, going, &state, &rows) : 0;
    if (unrolled < 0) return false;
    if (unrolled == 0) {
        state.assign(op.node.inputs.begin() + std::min(2, op.inputs()), op.node.inputs.end());
        return loop_of_unknown_length(op, *body, state, scans);
    }
    Nodes nodes(op);
    for (int i = 0; i < op.outputs(); i++) {
        if (!op.wants(i)) continue;
        if (i < states) {
            op.alias(i, op.c.find_value(state[i]));
        } else if (rows[i - states].empty()) {
            if (!no_rows(op, i, body->outputs[1 + (size_t)i])) return false;
        } else if (!nodes.set(i, stack(nodes, rows[i - states], 0))) {
            return false;
        }
    }
    op.c.count("loops unrolled");
    return true;
}

struct ScanPlan {
    const Graph* body;
    int states, scans, results;
    std::vector<int64_t> in_axes, in_back, out_axes, out_back;
};

// The values that iteration `at` of `length` takes, behind the states, through the body.
bool scan_once(Op& op, Nodes& nodes, const ScanPlan& p, const Strings& values, Strings inputs,
               const std::string& at, const std::string& last, Strings* outputs) {
    for (int k = 0; k < p.scans; k++) {
        const std::string place = p.in_back[k] ? nodes.add("Sub", {last, at}) : at;
        inputs.push_back(nodes.add("Gather", {values[p.states + k], place},
                                   {{"axis", attribute_of(p.in_axes[k])}}));
        if (inputs.back().empty()) return false;
    }
    op.c.set_opset(op.opset);
    const bool made = run_body(op, *p.body, inputs, outputs);
    op.c.set_opset(20);
    return made;
}

// The same as run_scan() for a length that is known only at run time: a loop, whose results lie one
// behind the other.
bool scan_at_run_time(Op& op, Nodes& nodes, const ScanPlan& p, const Strings& values,
                      Strings* results) {
    const std::string one = nodes.constant(Tensor::of_ints({1}, true));
    const std::string axis = nodes.constant(Tensor::of_ints({p.in_axes[0]}, true));
    LoopPlan plan;
    plan.count = nodes.add("Gather", {nodes.add("Shape", {values[p.states]}), axis});
    const std::string last = nodes.add("Sub", {plan.count, one});
    plan.states.assign(values.begin(), values.begin() + p.states);
    plan.unread.assign(plan.states.size(), 0);
    plan.first_sequence = plan.scans = (size_t)p.results;
    Node inner = op.node;
    inner.outputs.clear();
    for (int i = 0; i < p.states + p.results; i++) {
        plan.outputs.push_back(i);
        inner.outputs.push_back(op.c.unique_value(op.node.label() + "/result"));
    }
    plan.body = [&](const Strings& inputs, Strings* outputs) {
        const Strings state(inputs.begin() + 2, inputs.end());
        outputs->assign(1, inputs[1]);
        Strings made;
        if (!scan_once(op, nodes, p, values, state, inputs[0], last, &made)) return false;
        outputs->insert(outputs->end(), made.begin(), made.end());
        return true;
    };
    Op loop(op.c, inner, op.opset);
    if (!nodes.ok() || !loop_at_run_time(loop, plan))
        return op.reason.empty() ? op.fail("%s", loop.reason.c_str()) : false;
    results->assign(inner.outputs.begin(), inner.outputs.begin() + p.states);
    for (int k = 0; k < p.results; k++) {
        std::string rows = inner.outputs[(size_t)(p.states + k)];
        if (p.out_back[k])
            rows = nodes.add("Slice", {rows, nodes.ints({-1}), nodes.ints({INT64_MIN + 1}),
                                       nodes.ints({0}), nodes.ints({-1})});
        const int64_t rank = nodes.ok() ? nodes.value(rows)->rank() : 0;
        const int64_t to = p.out_axes[k] + (p.out_axes[k] < 0 ? rank : 0);
        std::vector<int64_t> perm;
        for (int64_t a = 1; a < rank; a++) perm.push_back(a);
        if (to < 0 || to >= rank) return op.fail("axis %lld", (long long)p.out_axes[k]);
        perm.insert(perm.begin() + (ptrdiff_t)to, 0);
        results->push_back(to ? nodes.transpose(rows, perm) : rows);
    }
    return nodes.ok();
}

// One run over the sequences of `values`: states first. Gives final states and stacked results.
bool run_scan(Op& op, Nodes& nodes, const ScanPlan& p, const Strings& values, Strings* results) {
    int64_t length = -1;
    for (int k = 0; k < p.scans; k++) {
        const Value* v = nodes.value(values[p.states + k]);
        int axis = 0;
        if (!op.axis(p.in_axes[k], v->rank(), &axis)) return false;
        if (!v->shape[axis].known()) return scan_at_run_time(op, nodes, p, values, results);
        length = v->shape[axis].value;
    }
    if (length < 1 || length > kMostNodes / (int64_t)std::max<size_t>(1, p.body->nodes.size()))
        return scan_at_run_time(op, nodes, p, values, results);
    Strings state(values.begin(), values.begin() + p.states);
    std::vector<Strings> rows((size_t)p.results);
    const std::string last = nodes.constant(Tensor::of_ints({length - 1}, true));
    for (int64_t i = 0; i < length; i++) {
        Strings outputs;
        const std::string at = nodes.constant(Tensor::of_ints({i}, true));
        if (!scan_once(op, nodes, p, values, state, at, last, &outputs)) return false;
        state.assign(outputs.begin(), outputs.begin() + p.states);
        for (int k = 0; k < p.results; k++) rows[k].push_back(outputs[p.states + k]);
    }
    results->assign(state.begin(), state.end());
    for (int k = 0; k < p.results; k++) {
        if (p.out_back[k]) std::reverse(rows[k].begin(), rows[k].end());
        int64_t axis = p.out_axes[k];
        if (axis < 0) axis += nodes.value(rows[k][0])->rank() + 1;
        results->push_back(stack(nodes, rows[k], axis));
    }
    return nodes.ok();
}

std::vector<int64_t> padded(std::vector<int64_t> values, int count) {
    values.resize((size_t)count);
    return values;
}

bool scan(Op& op) {
    ScanPlan p;
    p.body = subgraph(op, "body");
    const int first = op.opset < 9 ? 1 : 0;  // opset 8: sequence lengths, and a batch axis
    if (!p.body) return op.fail("it lacks a body");
    p.scans = (int)op.attr("num_scan_inputs", 0);
    p.states = op.inputs() - first - p.scans;
    p.results = (int)p.body->outputs.size() - p.states;
    if (p.scans < 1 || p.states < 0 || p.results < 0 ||
        (int)p.body->inputs.size() != p.states + p.scans || op.outputs() > p.states + p.results)
        return op.fail("%d inputs for a body of %zu and %zu", op.inputs(), p.body->inputs.size(),
                       p.body->outputs.size());
    if (first && op.has(0)) return op.fail("sequence_lens");
    p.in_axes = padded(op.attr_ints("scan_input_axes"), p.scans);
    p.in_back = padded(op.attr_ints(first ? "directions" : "scan_input_directions"), p.scans);
    p.out_axes = padded(op.attr_ints("scan_output_axes"), p.results);
    p.out_back = padded(op.attr_ints("scan_output_directions"), p.results);
    Nodes nodes(op);
    const Strings values(op.node.inputs.begin() + first, op.node.inputs.end());
    std::vector<Strings> results(1);
    if (!first) {
        if (!run_scan(op, nodes, p, values, &results[0])) return false;
    } else {
        const Dim items = op.in(1)->rank() ? op.in(1)->shape[0] : Dim();
        if (!items.known() || items.value < 1 || items.value > 64)
            return op.fail("a batch of unknown size");
        results.resize((size_t)items.value);
        for (int64_t b = 0; b < items.value; b++) {
            Strings item;
            for (const std::string& v : values)
                item.push_back(
                    nodes.add("Gather", {v, nodes.constant(Tensor::of_ints({b}, true))}));
            if (!nodes.ok() || !run_scan(op, nodes, p, item, &results[b])) return false;
        }
    }
    for (int i = 0; i < op.outputs(); i++) {
        Strings items;
        for (const Strings& r : results) items.push_back(r[i]);
        if (op.wants(i) && !nodes.set(i, first ? stack(nodes, items, 0) : items[0])) return false;
    }
    op.c.count("scans");
    return true;
}

}  // namespace

OpTable control_ops() {
    return {
        {"", "If", 1, 0, if_else, "", 1, kOpMakesStrings},
        {"", "Loop", 1, 0, loop,
         "unrolled where the trip count is known; otherwise carried values of one rank, at most 4 "
         "(a single value that nobody reads takes the rank of what replaces it)",
         0, kOpTakesSequences | kOpOtherStrings | kOpMakesStrings},
        {"", "Scan", 8, 0, scan,
         "unrolled where the length is known; otherwise states of rank at most 4", 0,
         kOpStrings | kOpMakesStrings},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
