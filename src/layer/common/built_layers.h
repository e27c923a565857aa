// Which operators this library has, at compile time: code that looks for missing ones can be left
// out.
#ifndef QUOLL_LAYER_BUILT_LAYERS_H
#define QUOLL_LAYER_BUILT_LAYERS_H

namespace quoll {

#define QUOLL_LAYER(index, type, ...) class type;
#define QUOLL_LAYER_FAST QUOLL_LAYER
#include "layer/layer_list.inc"
#undef QUOLL_LAYER

// inline: clang would give each file a symbol of the same name.
template <class T>
inline constexpr bool kIsBuilt = false;

#define QUOLL_LAYER(index, type, ...) \
    template <>                       \
    inline constexpr bool kIsBuilt<type> = true;
#include "enabled_layers.inc"
#undef QUOLL_LAYER
#undef QUOLL_LAYER_FAST

}  // namespace quoll

#endif
