// Input rows of a channel block laid out so that the outputs of a depthwise convolution are one
// long row: padded, and split by row and column modulo stride into planes of equal pitch. Every tap
// is then a shifted view of a plane, whatever the width of the image or of the block.
#ifndef QUOLL_LAYER_CPU_DWCONV_PHASE_PLANES_H
#define QUOLL_LAYER_CPU_DWCONV_PHASE_PLANES_H

#include <stdint.h>

#include <algorithm>

#include "layer/common/conv_window.h"
#include "layer/cpu/dwconv/dwconv.h"

namespace quoll {

class PhasePlanes {
public:
    // For bands of at most so many rows of outputs; blocks of `pack` channels.
    PhasePlanes(const ConvGeometry& g, int pack, int band)
        : x_(g.x),
          y_(g.y),
          pack_(pack),
          width_(g.x.out + (int64_t)(g.x.extent() - 1) / g.x.stride),
          rows_(band + (int64_t)(g.y.extent() - 1) / g.y.stride) {}
    // False for paddings so wide, or strides so long, that the planes would dwarf the data.
    bool sensible() const {
        return width_ * x_.stride <= 16 * ((int64_t)x_.in + x_.out + 256) &&
               rows_ * y_.stride <= 16 * ((int64_t)y_.in + y_.out + 256) &&
               (double)width_ * x_.stride * rows_ * y_.stride * pack_ < 1 << 28;
    }
    size_t row_floats() const { return (size_t)width_ * pack_; }
    size_t floats() const { return row_floats() * rows_ * x_.stride * y_.stride + kDwconvSlack; }

    // The rows of the input under outputs y0 <= y < y1.
    void rows_under(int y0, int y1, int* first, int* last) const {
        *first = (int)std::max<int64_t>(0, row_of(y0));
        *last = (int)std::min<int64_t>(y_.in, row_of(y1 - 1) + y_.extent());
        *last = std::max(*first, *last);
    }
    // Lays them out; `from`: the first of them, in f32.
    void load(DwconvPackRowsKernel pack_rows, const float* from, int y0, int y1, float pad_value,
              float* planes) const {
        int first, last;
        rows_under(y0, y1, &first, &last);
        DwconvPackRows r = {};
        r.pack = pack_, r.stride = x_.stride, r.width = (size_t)width_;
        r.before = x_.before, r.in_w = x_.in;
        r.plane = rows_ * row_floats();
        r.row_step = (size_t)y_.stride * x_.in * pack_;
        r.pad_value = pad_value;
        const int64_t top = row_of(y0);
        for (int phase = 0; phase < y_.stride; phase++) {
            // Rows of this phase before the input begins, within it, and behind it.
            const auto rows_before = [&](int64_t y) {
                const int64_t count = (y - top - phase + y_.stride - 1) / y_.stride;
                return std::min(rows_, std::max<int64_t>(0, count));
            };
            const int64_t above = rows_before(first), inside = rows_before(last);
            r.above = (int)above, r.rows = (int)std::max<int64_t>(0, inside - above);
            r.below = (int)(rows_ - r.above - r.rows);
            r.in = from + (top + phase + above * y_.stride - first) * x_.in * pack_;
            r.to = planes + phase * x_.stride * r.plane;
            pack_rows(r);
        }
    }
    // The value by which tap (ky, kx) of output 0 is multiplied; that of output i of row j follows
    // at j * row_floats() + i * pack.
    const float* tap(const float* planes, int ky, int kx) const {
        const int64_t row = (int64_t)ky * y_.dilation, column = (int64_t)kx * x_.dilation;
        const int64_t plane = row % y_.stride * x_.stride + column % x_.stride;
        return planes + (plane * rows_ + row / y_.stride) * row_floats() +
               column / x_.stride * pack_;
    }

private:
    int64_t row_of(int y) const { return (int64_t)y * y_.stride - y_.before; }

    const WindowAxis x_, y_;
    const int pack_;
    const int64_t width_, rows_;  // of a plane
};

}  // namespace quoll

#endif
