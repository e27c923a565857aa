// softmax(q k^T scale + mask) v as one layer, SDPA.
#ifndef QUOLL_TOOLS_ONNX_SDPA_H
#define QUOLL_TOOLS_ONNX_SDPA_H

#include "onnx/converter.h"

namespace quoll {
namespace onnx_tool {

// q: ... x S x E, k: ... x T x E, v: ... x T x F, with one leading axis or two, equal in all.
// mask: null, or floats whose last axes are S x T and whose leading ones broadcast to those of q.
// rows, columns: null, or in place of the mask its parts for keys on a grid, S x height and
// S x width.
struct AttentionOperands {
    Value *q, *k, *v, *mask;
    double scale;
    Value *rows = nullptr, *columns = nullptr;
};

// Whether the layer takes these.
bool is_attention(const Symbols& symbols, const AttentionOperands& o);
// Emits it; its answer is output 0.
bool convert_attention(Op& op, const AttentionOperands& o);

}  // namespace onnx_tool
}  // namespace quoll

#endif
