// Which taps of a window lie within the input. `before` of an axis may be negative here: the first
// window then begins inside the input.
#ifndef QUOLL_LAYER_CPU_DWCONV_WINDOW_TAPS_H
#define QUOLL_LAYER_CPU_DWCONV_WINDOW_TAPS_H

#include <algorithm>

#include "layer/common/conv_window.h"
#include "layer/cpu/dwconv/dwconv.h"

namespace quoll {

// The outputs of a window axis whose taps all lie within the input: first <= i < last.
inline void inner_outputs(const WindowAxis& axis, int* first, int* last) {
    const int64_t room = (int64_t)axis.in - axis.extent() + axis.before;
    const int64_t padded = std::max<int64_t>(0, axis.before);
    *first = (int)std::min<int64_t>(axis.out, (padded + axis.stride - 1) / axis.stride);
    *last = room < 0 ? *first
                     : (int)std::max<int64_t>(*first,
                                              std::min<int64_t>(axis.out, room / axis.stride + 1));
}

// a / b rounded down. Most dilations are 1, and a 64-bit division takes as long as a row of 7.
inline int64_t divide(int64_t a, int b) { return b == 1 ? a : a / b; }

// The taps of output i that lie within the input: first <= k < last. Returns the position of tap 0,
// which may be negative.
inline int64_t taps_inside(const WindowAxis& axis, int i, int* first, int* last) {
    const int64_t start = (int64_t)i * axis.stride - axis.before;
    const int d = axis.dilation;
    const int64_t low = start >= 0 ? 0 : divide(-start + d - 1, d);
    const int64_t high = start >= axis.in ? 0 : divide(axis.in - 1 - start, d) + 1;
    *first = (int)std::min<int64_t>(low, axis.kernel);
    *last = (int)std::max<int64_t>(*first, std::min<int64_t>(high, axis.kernel));
    return start;
}

// The part that does not depend on the row; results are not clamped.
DwconvRow dwconv_row_frame(const ConvGeometry& g, int pack, float pad_value);

}  // namespace quoll

#endif
