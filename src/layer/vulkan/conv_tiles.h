// How convolutions are cut into tiles, and their depth among groups.
#ifndef QUOLL_LAYER_VULKAN_CONV_TILES_H
#define QUOLL_LAYER_VULKAN_CONV_TILES_H

#include <vector>

#include "gpu/features.h"

namespace quoll {

// A tile of conv_tiled.comp or conv_matrix.comp.
struct ConvTile {
    int rows, columns, depth;  // scalars: of the product, and of a step
    // conv_tiled.comp: pixels and vec4s of channels of an invocation; conv_matrix.comp: subgroups
    // along the rows, the columns and the depth.
    int m, n, k;
    int buffers;  // conv_matrix.comp: tiles in shared memory

    int subgroups() const { return m * n * k; }
};

// Groups that run one product: tiles of one kind, whose depth `splits` of them share.
struct ConvTiling {
    ConvTile tile;
    int splits;
};

// The product of a convolution: of `groups` matrices.
struct ConvProduct {
    int rows, columns, depth, groups;
};

const std::vector<ConvTile>& conv_tiles(bool matrix);
ConvTiling choose_tiling(const GpuFeatures& features, bool matrix, const ConvProduct& product);
// For measurements: what choose_tiling() says from now on; null: as it thinks.
void force_tiling(const ConvTiling* tiling);

}  // namespace quoll

#endif
