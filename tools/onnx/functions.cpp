#include "onnx/functions.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <unordered_map>

#include "onnx/limits.h"

namespace quoll {
namespace onnx_tool {

namespace {

const int kMostLevels = 32;

typedef std::map<std::string, std::string> Names;

// A node, and one more for each kilobyte of names that it gets.
int64_t node_size(const Node& node, size_t prefix) {
    size_t bytes = 0;
    for (const auto* list : {&node.inputs, &node.outputs})
        for (const std::string& name : *list) bytes += name.size() + prefix;
    return 1 + (int64_t)(bytes >> 10);
}

class Inliner {
public:
    Inliner(const Functions& functions, std::string* why) : functions_(functions), why_(why) {}

    bool run(const std::vector<Node>& nodes, int level, std::vector<Node>* out) {
        if (level > kMostLevels) {
            *why_ =
                "functions call each other in more than " + std::to_string(kMostLevels) + " levels";
            return false;
        }
        for (const Node& node : nodes) {
            const auto found = functions_.find(function_key(node.domain, node.op, node.overload));
            if (found == functions_.end()) {
                out->push_back(node);
                if (!run_subgraphs(level, &out->back())) return false;
            } else {
                // A call counts as a node, and a node with long names as several.
                const size_t prefix = node.label().size();
                for (const Node& inner : found->second.nodes)
                    Limits::spend_nodes(node_size(inner, prefix));
                Limits::spend_nodes(1);
                std::vector<Node> body = instantiate(found->second, node);
                if (!run(body, level + 1, out)) return false;
            }
        }
        return true;
    }

private:
    bool run_subgraphs(int level, Node* node) {
        for (auto& attribute : node->attributes) {
            if (!attribute.second.g) continue;
            // A copy: the subgraph is shared with the function that it stands in.
            auto graph = std::make_shared<Graph>(*attribute.second.g);
            std::vector<Node> nodes;
            if (!run(graph->nodes, level + 1, &nodes)) return false;
            graph->nodes.swap(nodes);
            attribute.second.g = graph;
        }
        return true;
    }

    std::vector<Node> instantiate(const Function& function, const Node& call) {
        const std::string prefix = call.label() + "/" + std::to_string(calls_++) + "/";
        Names names;
        for (size_t i = 0; i < function.inputs.size(); i++)
            names[function.inputs[i]] = i < call.inputs.size() ? call.inputs[i] : "";
        for (size_t i = 0; i < function.outputs.size(); i++)
            names[function.outputs[i]] = i < call.outputs.size() && !call.outputs[i].empty()
                                             ? call.outputs[i]
                                             : prefix + function.outputs[i];
        std::map<std::string, Attribute> given = call.attributes;
        given.insert(function.defaults.begin(), function.defaults.end());
        std::vector<Node> body = function.nodes;
        for (const Node& node : body)
            for (const auto* list : {&node.inputs, &node.outputs})
                for (const std::string& name : *list)
                    if (!name.empty()) names.emplace(name, prefix + name);
        for (Node& node : body) {
            node.name = prefix + node.label();
            rename_values(names, &node);
            set_attributes(given, &node);
        }
        return body;
    }

    // Attributes that stand for the call's; those that it does not give are absent. Subgraphs are
    // the node's own: rename_values() has copied them.
    static void set_attributes(const std::map<std::string, Attribute>& all, Node* node) {
        for (auto it = node->attributes.begin(); it != node->attributes.end();) {
            const std::string reference = it->second.reference;
            if (reference.empty()) {
                if (it->second.g)
                    for (Node& inner : it->second.g->nodes) set_attributes(all, &inner);
                ++it;
                continue;
            }
            const auto given = all.find(reference);
            if (given == all.end()) {
                it = node->attributes.erase(it);
            } else {
                it->second = given->second;
                ++it;
            }
        }
    }

    const Functions& functions_;
    std::string* why_;
    int calls_ = 0;
};

// What a subgraph calls values of its own.
std::set<std::string> own_names(const Graph& graph) {
    std::set<std::string> own;
    for (const auto& t : graph.initializers) own.insert(t.first);
    for (const ValueInfo& v : graph.inputs) own.insert(v.name);
    for (const Node& n : graph.nodes)
        for (const std::string& o : n.outputs)
            if (!o.empty()) own.insert(o);
    return own;
}

// New names of the subgraph's own values that are called what a value around it becomes: reads of
// that would find them instead.
void add_hiding_names(const std::set<std::string>& reads, const std::set<std::string>& own,
                      Names* names) {
    std::set<std::string> taken = own, around;
    for (const auto& name : *names) around.insert(name.second);
    taken.insert(reads.begin(), reads.end());
    taken.insert(around.begin(), around.end());
    for (const std::string& name : own) {
        if (!around.count(name)) continue;
        std::string other = name + "_inner";
        while (!taken.insert(other).second) other += "_";
        (*names)[name] = other;
    }
}

void rename_in_subgraph(const Names& outside, Graph* graph) {
    const std::set<std::string> own = own_names(*graph);
    std::vector<std::string> all;
    for (const Node& n : graph->nodes) add_reads(n, &all);
    for (const ValueInfo& v : graph->outputs) all.push_back(v.name);
    const std::set<std::string> reads(all.begin(), all.end());
    Names names;  // of what it reads of the graphs around it
    for (const std::string& name : reads) {
        const auto found = own.count(name) ? outside.end() : outside.find(name);
        if (found != outside.end()) names.insert(*found);
    }
    add_hiding_names(reads, own, &names);
    const auto renamed = [&](const std::string& name) {
        const auto found = names.find(name);
        return found == names.end() ? name : found->second;
    };
    for (Node& n : graph->nodes) rename_values(names, &n);
    for (ValueInfo& v : graph->inputs) v.name = renamed(v.name);
    for (ValueInfo& v : graph->outputs) v.name = renamed(v.name);
    std::map<std::string, Tensor> initializers;
    for (const auto& t : graph->initializers) initializers[renamed(t.first)] = t.second;
    graph->initializers.swap(initializers);
}

}  // namespace

std::string function_key(const std::string& domain, const std::string& name,
                         const std::string& overload) {
    return domain + "::" + name + (overload.empty() ? "" : "::" + overload);
}

void rename_values(const Names& names, Node* node) {
    for (auto* list : {&node->inputs, &node->outputs}) {
        for (std::string& name : *list) {
            const auto found = names.find(name);
            if (found != names.end() && !name.empty()) name = found->second;
        }
    }
    for (auto& attribute : node->attributes) {
        if (!attribute.second.g) continue;
        auto graph = std::make_shared<Graph>(*attribute.second.g);  // others may share it
        rename_in_subgraph(names, graph.get());
        attribute.second.g = graph;
    }
}

bool inline_functions(const Functions& functions, Graph* graph, std::string* why) {
    if (functions.empty()) return true;
    std::vector<Node> nodes;
    if (!Inliner(functions, why).run(graph->nodes, 0, &nodes)) return false;
    graph->nodes.swap(nodes);
    return true;
}

void add_reads(const Node& node, std::vector<std::string>* names) {
    names->insert(names->end(), node.inputs.begin(), node.inputs.end());
    for (const auto& a : node.attributes) {
        if (!a.second.g) continue;
        for (const Node& n : a.second.g->nodes) add_reads(n, names);
        for (const ValueInfo& v : a.second.g->outputs) names->push_back(v.name);
    }
}

// Whether each node stands behind those whose outputs it reads, as nearly all files have them.
static bool is_in_order(const std::vector<const Node*>& nodes,
                        const std::unordered_map<std::string, size_t>& maker) {
    std::vector<std::string> reads;
    for (size_t i = 0; i < nodes.size(); i++) {
        reads.clear();
        add_reads(*nodes[i], &reads);
        for (const std::string& name : reads) {
            const auto found = maker.find(name);
            if (found != maker.end() && found->second >= i) return false;
        }
    }
    return true;
}

std::vector<const Node*> in_order(const std::vector<const Node*>& nodes) {
    std::unordered_map<std::string, size_t> maker;
    maker.reserve(nodes.size());
    for (size_t i = 0; i < nodes.size(); i++)
        for (const std::string& o : nodes[i]->outputs)
            if (!o.empty()) maker[o] = i;
    if (is_in_order(nodes, maker)) return nodes;
    // The first one of those that wait for nothing comes next.
    std::vector<int> waits(nodes.size(), 0);
    std::vector<std::vector<size_t>> readers(nodes.size());
    for (size_t i = 0; i < nodes.size(); i++) {
        std::vector<std::string> reads;
        add_reads(*nodes[i], &reads);
        std::set<size_t> makers;
        for (const std::string& name : reads) {
            const auto found = maker.find(name);
            if (found != maker.end() && makers.insert(found->second).second) {
                readers[found->second].push_back(i);
                waits[i]++;
            }
        }
    }
    std::priority_queue<size_t, std::vector<size_t>, std::greater<size_t>> ready;
    for (size_t i = 0; i < nodes.size(); i++)
        if (waits[i] == 0) ready.push(i);
    std::vector<const Node*> order;
    while (!ready.empty()) {
        const size_t i = ready.top();
        ready.pop();
        order.push_back(nodes[i]);
        for (size_t reader : readers[i])
            if (--waits[reader] == 0) ready.push(reader);
    }
    for (size_t i = 0; i < nodes.size(); i++)  // those that wait for one another
        if (waits[i] > 0) order.push_back(nodes[i]);
    return order;
}

}  // namespace onnx_tool
}  // namespace quoll
