// Model-local functions.
#ifndef QUOLL_TOOLS_ONNX_FUNCTIONS_H
#define QUOLL_TOOLS_ONNX_FUNCTIONS_H

#include "onnx/graph.h"

namespace quoll {
namespace onnx_tool {

struct Function {
    std::vector<std::string> inputs, outputs;
    std::vector<Node> nodes;
};
typedef std::map<std::string, Function> Functions;  // by "domain::name"

// Puts the nodes of functions in place of the nodes that call them, functions within functions
// included. False, with a message, when a function calls itself or grows without bound.
bool inline_functions(const Functions& functions, Graph* graph, std::string* why);

// Gives a node's inputs and outputs other names, and those that its subgraphs take from outside;
// names that the map lacks stay.
void rename_values(const std::map<std::string, std::string>& names, Node* node);

}  // namespace onnx_tool
}  // namespace quoll

#endif
