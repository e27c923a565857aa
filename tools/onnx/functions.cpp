#include "onnx/functions.h"

namespace quoll {
namespace onnx_tool {

namespace {

const int kMostLevels = 32;
// Nodes after inlining; the largest models have some ten thousand.
const size_t kMostNodes = 1 << 22;

typedef std::map<std::string, std::string> Names;

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
            const auto found = functions_.find(node.domain + "::" + node.op);
            if (found == functions_.end()) {
                out->push_back(node);
            } else {
                std::vector<Node> body = instantiate(found->second, node);
                if (!run(body, level + 1, out)) return false;
            }
            if (out->size() > kMostNodes) {
                *why_ = "functions make more than " + std::to_string(kMostNodes) + " nodes";
                return false;
            }
        }
        return true;
    }

private:
    std::vector<Node> instantiate(const Function& function, const Node& call) {
        const std::string prefix = call.label() + "/" + std::to_string(calls_++) + "/";
        Names names;
        for (size_t i = 0; i < function.inputs.size(); i++)
            names[function.inputs[i]] = i < call.inputs.size() ? call.inputs[i] : "";
        for (size_t i = 0; i < function.outputs.size(); i++)
            names[function.outputs[i]] = i < call.outputs.size() && !call.outputs[i].empty()
                                             ? call.outputs[i]
                                             : prefix + function.outputs[i];
        std::vector<Node> body = function.nodes;
        for (Node& node : body) {
            node.name = prefix + node.label();
            rename(&node, prefix, &names);
            set_attributes(&node, call);
        }
        return body;
    }

    static void rename(Node* node, const std::string& prefix, Names* names) {
        for (auto* list : {&node->inputs, &node->outputs}) {
            for (std::string& name : *list) {
                if (name.empty()) continue;
                name = names->emplace(name, prefix + name).first->second;
            }
        }
        for (auto& attribute : node->attributes) {
            if (!attribute.second.g) continue;
            // A deep copy: the subgraph is shared with the function.
            auto graph = std::make_shared<Graph>(*attribute.second.g);
            Names inner = *names;
            for (const auto& t : graph->initializers) inner[t.first] = t.first;
            for (const ValueInfo& v : graph->inputs) inner[v.name] = v.name;
            for (Node& n : graph->nodes)
                for (const std::string& o : n.outputs) inner[o] = o;
            for (Node& n : graph->nodes) rename(&n, prefix, &inner);
            for (ValueInfo& v : graph->outputs)
                if (inner.count(v.name)) v.name = inner[v.name];
            attribute.second.g = graph;
        }
    }

    // Attributes that stand for the call's; those that it does not give are absent.
    static void set_attributes(Node* node, const Node& call) {
        for (auto it = node->attributes.begin(); it != node->attributes.end();) {
            const std::string reference = it->second.reference;
            if (reference.empty()) {
                ++it;
                continue;
            }
            const auto given = call.attributes.find(reference);
            if (given == call.attributes.end()) {
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

}  // namespace

bool inline_functions(const Functions& functions, Graph* graph, std::string* why) {
    if (functions.empty()) return true;
    std::vector<Node> nodes;
    if (!Inliner(functions, why).run(graph->nodes, 0, &nodes)) return false;
    graph->nodes.swap(nodes);
    return true;
}

}  // namespace onnx_tool
}  // namespace quoll
