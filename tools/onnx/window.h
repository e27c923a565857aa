// The attributes of sliding windows.
#ifndef QUOLL_TOOLS_ONNX_WINDOW_H
#define QUOLL_TOOLS_ONNX_WINDOW_H

#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

// Sizes of the spatial axes from the outermost on.
struct Window {
    enum AutoPad { kExplicit, kSameUpper, kSameLower, kValid };
    int axes = 0;  // 1 to 3
    std::vector<int64_t> kernel, stride, dilation, before, behind;
    AutoPad auto_pad = kExplicit;

    int64_t extent(int axis) const { return (kernel[axis] - 1) * dilation[axis] + 1; }
    bool padded_alike() const { return before == behind; }
    // "pad_left" and so on, "kernel_w" and so on, of layers that name their axes.
    void set_sizes(ModelLayer* layer, bool with_dilation) const;
    void set_pads(ModelLayer* layer) const;
};

// Reads attributes for an x of rank 3 to 5; kernel: sizes to take where kernel_shape is not given.
bool read_window(Op& op, const Value* x, const std::vector<int64_t>& kernel, Window* w);
// The padding of SAME modes as numbers, where sizes are known, and nothing is dilated or `dilated`
// windows are padded so.
void resolve_same(const Value* x, bool dilated, Window* w);
// With the padding of auto_pad where sizes are known; the output's size.
Dim window_size(Op& op, const Window& w, int axis, const Dim& size, bool ceil_mode);

}  // namespace onnx_tool
}  // namespace quoll

#endif
