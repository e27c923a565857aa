// What differs between two models.
#ifndef QUOLL_TOOLS_INFO_MODEL_DIFF_H
#define QUOLL_TOOLS_INFO_MODEL_DIFF_H

#include <string>

#include "graph/model.h"

namespace quoll {

// Layers are matched by name. Lines "- type name ..." (in a only), "+ ..." (in b only) and
// "~ type name: what" (in both, not the same). "" for models that are the same. Weights are
// compared if both models have them.
std::string diff_models(const Model& a, const Model& b, bool weights);

}  // namespace quoll

#endif
