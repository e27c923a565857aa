// Which operators this library has: a small one is built with some of them.
#ifndef QUOLL_LAYER_ENABLED_H
#define QUOLL_LAYER_ENABLED_H

#include <string_view>

namespace quoll {

constexpr bool is_built(std::string_view operator_type) {
    return false
#define QUOLL_LAYER(index, type, ...) || operator_type == #type
#define QUOLL_LAYER_FAST QUOLL_LAYER
#include "enabled_layers.inc"
#undef QUOLL_LAYER
#undef QUOLL_LAYER_FAST
        ;
}

}  // namespace quoll

#endif
