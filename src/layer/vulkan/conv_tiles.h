// How convolutions and products of matrices are cut into tiles, and their depth among groups.
#ifndef QUOLL_LAYER_VULKAN_CONV_TILES_H
#define QUOLL_LAYER_VULKAN_CONV_TILES_H

#include <vector>

#include "layer/vulkan/recorder.h"

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

// At most, for each tile.
const int kMostSplits = 16;

// Groups that run one product: tiles of one kind, whose depth `splits` of them share.
struct ConvTiling {
    ConvTile tile;
    int splits;
};

// A product, of `groups` pairs of matrices.
struct ConvProduct {
    int rows, columns, depth, groups;
};

const std::vector<ConvTile>& conv_tiles(bool matrix);
// The tiling of the recorder's next dispatch: the tuned one, or else the one of least expected
// cost. shader: which of the shaders that share tiles computes the product.
ConvTiling choose_tiling(Recorder& r, Shader shader, bool matrix, const ConvProduct& product);
// The specialisation constants of common/matrix.glsl, 5 and the following. int8: of twice the
// depth, in as many bytes.
Words tile_constants(const ConvTile& tile, const MatrixUnits& units, bool int8 = false);
// Whether common/matrix.glsl stores a tile in one part.
bool stores_at_once(const ConvTile& tile);
// Among how many groups conv_window.comp divides `chunks` of 64 channels for each of its small
// tiles.
uint32_t window_splits(const GpuDevice& device, uint32_t tiles, uint32_t chunks);
// Adds the bindings of common/split.glsl for `tiles`. any: what is bound where they are not needed:
// a constant, or something that the dispatch writes, since a shader that divides nothing may still
// write it.
void add_split(Recorder& r, const ConvTiling& tiling, uint32_t tiles, const Binding& any,
               std::vector<Binding>* bindings);
// Whether conv_lanes.comp computes a convolution.
bool takes_lanes(const Recorder& r, const ConvProduct& p);
// For tests: whether small convolutions are computed so, too, in this thread from now on.
void force_lanes(bool all);
// For measurements: what choose_tiling() returns in this thread from now on; null: its own choice.
void force_tiling(const ConvTiling* tiling);

}  // namespace quoll

#endif
