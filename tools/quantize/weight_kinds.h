// Weights of fewer bits that need no data.
#ifndef QUOLL_TOOLS_QUANTIZE_WEIGHT_KINDS_H
#define QUOLL_TOOLS_QUANTIZE_WEIGHT_KINDS_H

#include <string>

#include "graph/model.h"
#include "quantize/reconstruct.h"

namespace quoll {

// Every kind that a layer may have: "float", "int8", "affine" and "a16w8" (scales, and
// zero points, from data), and
//   fp16, bf16        16-bit weights, widened at load
//   weights8          8-bit weights with a scale for each output, float arithmetic; not in ncnn
//   table8            8-bit indexes into 256 floats, float arithmetic; ncnn reads them
//   dynamic           int8 arithmetic, the scale of the input found in each run
//   block3, block4, block6, block8
//                     blocks of 64 weights of so many bits with a scale each; block4x32 and so on
//                     say the size: 16, 32, 64 or 128; with a z behind that (block4z, block4x32z)
//                     each block has a zero point too
bool is_weight_kind(const std::string& kind);
std::string weight_kind_names();

// Stores the layer's weights in that form. *why: the operator, or this layer, cannot have it, and
// is as before. input: the size of its input, dims 0 if not known. rounded: integers for the grid
// of block_grid and the factors of inputs, or null. Returns 0, or a negative code after a message.
int store_weight_kind(const std::string& kind, const Shape& input, const RoundedLayer* rounded,
                      ModelLayer* layer, std::string* why);
// The integers and scales that a kind of blocks has; false for other kinds, and for layers that
// cannot have them.
bool block_grid(const std::string& kind, const Shape& input, const ModelLayer& layer,
                WeightGrid* grid);

}  // namespace quoll

#endif
