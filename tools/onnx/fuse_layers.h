// Layers that together are others.
#ifndef QUOLL_TOOLS_ONNX_FUSE_LAYERS_H
#define QUOLL_TOOLS_ONNX_FUSE_LAYERS_H

#include <string>
#include <unordered_map>
#include <vector>

#include "graph/model.h"
#include "onnx/converter.h"

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

// A Reshape of one input that neither reorders values nor moves the batch axis.
bool is_plain_reshape(const ModelLayer& layer);

// The sizes of a blob; with `batch`, the first is the number of its items.
struct BlobDims {
    bool batch = false;
    std::vector<Dim> dims;
};
typedef std::unordered_map<std::string, BlobDims> KnownDims;

// How a blob holds the tensor [length][items][width]: rows of several items side by side.
struct Sequences {
    enum Form {
        kNone,
        kBatch,  // a batch of `length` Mats [items][width]
        kAxes,   // [length][items][width]
        kRows,   // [length * items][width]
    };
    Form form = kNone;
    Dim length, items;
    int width = 0;
};
// The form that a blob of these sizes has for sequences of that length, of so many items.
Sequences sequences_of(const BlobDims& blob, const Dim& length, const Dim& items, Symbols* symbols);

// A MultiHeadAttention whose rows are those of several items, or of one that is not alone in its
// blob. Its inputs and its output are sequences, though it computes item by item: by_items() puts
// right what it reads and makes.
struct SequenceAttention {
    std::string output;
    Sequences made;
    std::vector<Sequences> inputs;  // without the mask
    // Of a mask of each head of each item; 0 if it is of all alike.
    int mask_heads = 0, mask_rows = 0, mask_columns = 0;
};

// Puts a MultiHeadAttention where rows are projected to queries, keys and values, split into heads,
// attended to by SDPA, joined, and projected again; how many it made. *sequences: those of them
// for by_items(); if it is null, none is made.
int fuse_heads(Model* model, const KnownDims& known, Symbols* symbols,
               std::vector<SequenceAttention>* sequences);

// Attention of sequences, and the layers between that treat each row alike, on batches of items
// [length][width]: axes are exchanged where sequences enter and leave such layers. False, with
// nothing changed, if a blob is read as sequences of several lengths.
bool by_items(Converter* converter, const KnownDims& known, const std::vector<std::string>& outputs,
              const std::vector<SequenceAttention>& attentions);

}  // namespace onnx_tool
}  // namespace quoll

#endif
