// The weights of convolutions in the order in which shaders read them, unused places being 0.
#ifndef QUOLL_LAYER_VULKAN_CONV_WEIGHTS_H
#define QUOLL_LAYER_VULKAN_CONV_WEIGHTS_H

#include <stdint.h>

#include <vector>

#include "layer/nn/convolution.h"

namespace quoll {

// from: the weights in the order of weight_data.

// [group][tap][input vec4][4][output vec4s]
std::vector<float> tiled_weights(const Convolution& layer, const std::vector<float>& from);
// [output][tap, input vec4, 4]; a multiple of 64 for each output.
std::vector<float> matrix_weights(const Convolution& layer, const std::vector<float>& from);
// Of a planar input. matrix: [output][channel][row][groups of 4], a multiple of 64 for each output;
// else [channel][row][groups of 4][output vec4s].
std::vector<float> planar_weights(const Convolution& layer, const std::vector<float>& from,
                                  bool matrix);
// [tap][channel vec4s]
std::vector<float> depthwise_weights(const Convolution& layer, const std::vector<float>& from);

// Groups of 4 values in a row of the window.
inline int planar_row_groups(const Convolution& layer) { return (layer.kernel_w + 3) / 4; }

// Whole numbers as s8, four a word.
std::vector<uint32_t> words_of_bytes(const std::vector<float>& values);

}  // namespace quoll

#endif
