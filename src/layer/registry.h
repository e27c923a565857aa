// What is known of the built-in operators by their names.
#ifndef QUOLL_LAYER_REGISTRY_H
#define QUOLL_LAYER_REGISTRY_H

namespace quoll {

class Layer;

// The operator's reference form without parameters, made once; null if there is none of that name.
const Layer* layer_prototype(const char* type);

// The folder of layer/cpu that the operator's fast form is in; null if it has the reference only.
const char* layer_kernel_family(const char* type);

}  // namespace quoll

#endif
