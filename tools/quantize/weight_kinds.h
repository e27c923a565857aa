// Weights of fewer bits that need no data.
#ifndef QUOLL_TOOLS_QUANTIZE_WEIGHT_KINDS_H
#define QUOLL_TOOLS_QUANTIZE_WEIGHT_KINDS_H

#include <string>

#include "graph/model.h"

namespace quoll {

// Every kind that a layer may have: "float" and "int8" (scales from data), and
//   fp16, bf16        16-bit weights, widened at load
//   weights8          8-bit weights with a scale for each output, float arithmetic; not in ncnn
//   table8            8-bit indexes into 256 floats, float arithmetic; ncnn reads them
//   dynamic           int8 arithmetic, the scale of the input found in each run
//   block4, block8    blocks of 64 weights of 4 or 8 bits with a scale each; block4x32 and so on
//                     say the size: 16, 32, 64 or 128
bool is_weight_kind(const std::string& kind);
std::string weight_kind_names();

// Gives the layer's weights that form. *why: the operator, or this layer, cannot have it, and is as
// before. input: the size of its input, dims 0 if not known. 0, or a negative code after a message.
int store_weight_kind(const std::string& kind, const Shape& input, ModelLayer* layer,
                      std::string* why);

}  // namespace quoll

#endif
