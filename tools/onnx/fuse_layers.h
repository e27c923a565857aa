// Layers that together are others.
#ifndef QUOLL_TOOLS_ONNX_FUSE_LAYERS_H
#define QUOLL_TOOLS_ONNX_FUSE_LAYERS_H

#include "graph/model.h"

namespace quoll {
namespace onnx_tool {

// What a StridedSlice takes of an axis.
struct Range {
    int begin = 0, end = 0;
};
// False if the layer is none with constant limits along that axis alone, in steps of 1.
bool cut_along(const ModelLayer& layer, int axis, Range* range);

// Layers that are replaced stay where they are, with nothing that reads them.

// StridedSlices that together are all channels of a blob of known size, as one Slice in their
// place; how many it made.
int join_slices(Model* model);

// Products of rows of which only ranges of columns are read, as a product for each range; how many
// were there.
int split_products(Model* model);

// Puts a MultiHeadAttention where rows are projected to queries, keys and values, split into heads,
// attended to by SDPA, joined, and projected again; how many it made.
int fuse_heads(Model* model);

}  // namespace onnx_tool
}  // namespace quoll

#endif
