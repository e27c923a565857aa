// What the sources of the operators say about them, beyond what a Layer object can tell.
#ifndef QUOLL_TOOLS_DOCS_OPERATOR_SOURCES_H
#define QUOLL_TOOLS_DOCS_OPERATOR_SOURCES_H

#include <map>
#include <set>
#include <string>

struct OperatorSources {
    // The comment above the operator's class: formula, shapes, meaning of the inputs. By type.
    std::map<std::string, std::string> comments;
    std::set<std::string> vectorized;  // types with a form of their own for speed
};

// Reads the headers, sources and layer_list.inc of `folder` (src/layer). False, after a message, if
// a file cannot be read or an operator of the list has no comment.
bool read_operator_sources(const std::string& folder, OperatorSources* sources);

#endif
