#include "layer/cpu/dwconv/dwconv.h"

#include <math.h>

#include "layer/cpu/dwconv/window_taps.h"

namespace quoll {

DwconvRowKernel select_dwconv_row(const DwconvKernels& kernels, int pack, int kernel_w,
                                  int stride_w, int dilation_w) {
    for (int i = 0; i < kDwconvPacks; i++) {
        if (kDwconvPack[i] != pack) continue;
#define QUOLL_DWCONV_ROW(name, kernel, stride) \
    if (kernel_w == kernel && stride_w == stride && dilation_w == 1) return kernels.name[i];
#include "layer/cpu/dwconv/kernels.inc"
#undef QUOLL_DWCONV_ROW
        return kernels.any[i];
    }
    return nullptr;
}

DwconvRow dwconv_row_frame(const ConvGeometry& g, int pack, float pad_value) {
    DwconvRow frame = {};
    frame.in_w = g.x.in, frame.out_w = g.x.out;
    frame.kernel_w = g.x.kernel, frame.kernel_h = g.y.kernel;
    frame.dilation_w = g.x.dilation, frame.stride_w = g.x.stride;
    frame.out_step = 1;
    frame.pad_left = g.x.before, frame.pad_value = pad_value;
    frame.low = -INFINITY, frame.high = INFINITY;
    frame.row_step = (size_t)g.y.dilation * g.x.in * pack;
    inner_outputs(g.x, &frame.x_first, &frame.x_last);
    return frame;
}

}  // namespace quoll
