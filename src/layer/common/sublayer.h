// Layers that a layer works with.
#ifndef QUOLL_LAYER_SUBLAYER_H
#define QUOLL_LAYER_SUBLAYER_H

#include <memory>

#include "quoll/layer.h"

namespace quoll {

// A BinaryOp with the name of the layer that it works for, on the reference implementation or the
// fast one. Null, with a message, where the build lacks it; `why` says what needs it.
std::unique_ptr<Layer> make_binaryop(const Layer& of, const char* why, int op_type, bool fast);

}  // namespace quoll

#endif
