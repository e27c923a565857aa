// Which operators this library has, at compile time: what a small one lacks, nothing needs to look
// for.
#ifndef QUOLL_LAYER_BUILT_LAYERS_H
#define QUOLL_LAYER_BUILT_LAYERS_H

#include <string_view>

namespace quoll {

constexpr bool has_layer(std::string_view type) {
    return false
#define QUOLL_LAYER(index, name, ...) || type == #name
#define QUOLL_LAYER_FAST QUOLL_LAYER
#include "enabled_layers.inc"
#undef QUOLL_LAYER
#undef QUOLL_LAYER_FAST
        ;
}

}  // namespace quoll

#endif
