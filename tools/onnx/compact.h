// Weights in as few bytes as hold their values.
#ifndef QUOLL_TOOLS_ONNX_COMPACT_H
#define QUOLL_TOOLS_ONNX_COMPACT_H

#include "graph/model.h"

namespace quoll {
namespace onnx_tool {

// Stores f32 weights in a smaller form that holds all their values exactly: f16; indexes into a
// table of 256; or, in forms of our own, bf16, or bytes times scales of rows or columns, or of rows
// with zero points. These are the weights of models in half precision, and integers times scales
// that the converter has multiplied out. No value changes. own_forms: also use forms that ncnn does
// not have. Returns 0, or an error after a message.
int compact_weights(Model* model, bool own_forms);

}  // namespace onnx_tool
}  // namespace quoll

#endif
