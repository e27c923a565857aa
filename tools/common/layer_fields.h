// Parameters of a layer by their names, whatever the operator.
#ifndef QUOLL_TOOLS_LAYER_FIELDS_H
#define QUOLL_TOOLS_LAYER_FIELDS_H

#include "quoll/net.h"

namespace quoll {

// The value of an integer parameter as the operator's schema names it ("kernel_w"), or `missing`.
int int_field(Layer* layer, const char* name, int missing = 0);

}  // namespace quoll

#endif
