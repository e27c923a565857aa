// Weights in as few bytes as hold their values.
#ifndef QUOLL_TOOLS_ONNX_COMPACT_H
#define QUOLL_TOOLS_ONNX_COMPACT_H

#include "graph/model.h"

namespace quoll {
namespace onnx_tool {

// Stores f32 weights as f16, as indexes into a table of 256, or, in forms of our own, as bf16 or as
// bytes times scales of rows or columns, or of rows with zero points, where all their values are
// such numbers: those of models in half precision, and integers times scales that the converter
// multiplied out. No value changes. own_forms: also those that ncnn does not have. 0, or an error
// after a message.
int compact_weights(Model* model, bool own_forms);

}  // namespace onnx_tool
}  // namespace quoll

#endif
