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

// Puts the nodes of functions in place of the nodes that call them, functions within functions
// included. False, with a message, when a function calls itself; LimitError (limits.h) when they
// grow without bound.
bool inline_functions(const Functions& functions, Graph* graph, std::string* why);

// Gives a node's inputs and outputs other names, and those that its subgraphs take from outside;
// names that the map lacks stay.
void rename_values(const std::map<std::string, std::string>& names, Node* node);

// Adds the names that a node reads, and that its subgraphs may read from outside.
void add_reads(const Node& node, std::vector<std::string>* names);

// The nodes so that each comes after those that make what it, or a subgraph of it, reads; otherwise
// as they are. ONNX asks for that order, but not every exporter has it.
std::vector<const Node*> in_order(const std::vector<const Node*>& nodes);

}  // namespace onnx_tool
}  // namespace quoll

#endif
