// What is known of the built-in operators' fast forms.
#ifndef QUOLL_LAYER_REGISTRY_H
#define QUOLL_LAYER_REGISTRY_H

namespace quoll {

// The folder of layer/cpu that the operator's fast form is in; null if it has the reference only.
const char* layer_kernel_family(const char* type);

}  // namespace quoll

#endif
