// Convolutions of 3x3 windows at steps of 1 by Winograd's algorithm (shader/common/winograd.glsl):
// one dispatch transforms inputs, one multiplies matrices for each point of a tile, one transforms
// their sums. Weights are transformed once, on the device.
#ifndef QUOLL_LAYER_VULKAN_WINOGRAD_VULKAN_H
#define QUOLL_LAYER_VULKAN_WINOGRAD_VULKAN_H

#include "layer/nn/convolution.h"
#include "layer/vulkan/recorder.h"

namespace quoll {

struct WinogradTiling {
    int out = 0;                    // outputs of a tile along an axis, 2 or 4; 0: not so computed
    uint32_t across = 0, down = 0;  // tiles of an item
    uint32_t items = 0;             // that are computed at a time

    int points() const { return (out + 2) * (out + 2); }
    uint32_t tiles() const { return across * down * items; }
};

// `out` is 0 where the algorithm is not expected to be faster, or cannot be used.
WinogradTiling choose_winograd(const Recorder& r, const ConvGeometry& g, int items);
// Makes the weights of products: as those of a 1x1 convolution with a group for each point.
// as_rows: weights are those of conv_matrix.comp, else of conv_tiled.comp.
int prepare_winograd(Recorder& r, const ConvGeometry& g, const WinogradTiling& tiling, bool as_rows,
                     const Binding& weight, Binding* made);
// For tests and measurements: the outputs of a tile along an axis, where the algorithm can be used,
// in this thread from now on; 0: it is not used; -1: what is expected to be fastest.
void force_winograd(int out);

}  // namespace quoll

#endif
