// Model-local functions.
#ifndef QUOLL_TOOLS_ONNX_FUNCTIONS_H
#define QUOLL_TOOLS_ONNX_FUNCTIONS_H

#include "onnx/graph.h"

namespace quoll {
namespace onnx_tool {

struct Function {
    std::vector<std::string> inputs, outputs;
    std::vector<Node> nodes;
    std::map<std::string, Attribute> defaults;  // of attributes that a call need not give
};
typedef std::map<std::string, Function> Functions;  // by function_key()

std::string function_key(const std::string& domain, const std::string& name,
                         const std::string& overload);

// Replaces nodes that call functions by the functions' nodes, functions within functions included.
// False, with a message, if a function calls itself; LimitError (limits.h) if they grow without
// bound.
bool inline_functions(const Functions& functions, Graph* graph, std::string* why);

// Renames a node's inputs and outputs, and the values that its subgraphs take from outside; names
// that the map lacks stay.
void rename_values(const std::map<std::string, std::string>& names, Node* node);

// Adds the names that a node reads, and that its subgraphs may read from outside.
void add_reads(const Node& node, std::vector<std::string>* names);

// The nodes in an order in which each comes after those that make what it, or one of its subgraphs,
// reads; otherwise in their old order. ONNX requires such an order, but not every exporter produces
// it.
std::vector<const Node*> in_order(const std::vector<const Node*>& nodes);

}  // namespace onnx_tool
}  // namespace quoll

#endif
