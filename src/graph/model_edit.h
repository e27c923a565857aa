// What changes of a Model have in common: names that are free, layers that stay.
#ifndef QUOLL_GRAPH_MODEL_EDIT_H
#define QUOLL_GRAPH_MODEL_EDIT_H

#include <set>
#include <string>
#include <vector>

#include "graph/model.h"

namespace quoll {

// The first of `name`, `name_`, `name__`, ... that is not in *taken, to which it is added.
std::string unique_name(std::string name, std::set<std::string>* taken);
std::set<std::string> layer_names(const Model& model);
// Keeps the layers whose index is in `keep`, in their order, and returns how many were removed.
// Splits lose the outputs that then have no reader, except those in `outputs`.
int keep_layers(Model* model, const std::set<int>& keep, const std::vector<std::string>& outputs);

}  // namespace quoll

#endif
