// Layers that another layer runs as part of its own work.
#ifndef QUOLL_LAYER_SUBLAYER_H
#define QUOLL_LAYER_SUBLAYER_H

#include <memory>

#include "quoll/layer.h"

namespace quoll {

// A BinaryOp with the name of the layer that uses it, of the same form (reference or fast). Null,
// with a message, if the build lacks it; `why` says what needs it.
std::unique_ptr<Layer> make_binaryop(const Layer& of, const char* why, int op_type, bool fast);

}  // namespace quoll

#endif
