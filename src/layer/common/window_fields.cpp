#include "layer/common/window_fields.h"

namespace quoll {

void window_params(WindowFields& s, ParamVisitor& v, int least_kernel, int least_pad) {
    // Larger values can only be mistakes; the bound keeps products within 64 bits.
    const double most = 1 << 24;
    const Range kernel = between(least_kernel, most), positive = between(1, most);
    const Range pad = between(least_pad, most);
    v(1, "kernel_w", s.kernel_w, 0, "kernel width", kernel);
    v(11, "kernel_h", s.kernel_h, s.kernel_w, "kernel height", kernel);
    v(2, "dilation_w", s.dilation_w, 1, "step between kernel columns", positive);
    v(12, "dilation_h", s.dilation_h, s.dilation_w, "step between kernel rows", positive);
    v(3, "stride_w", s.stride_w, 1, "step of the window", positive);
    v(13, "stride_h", s.stride_h, s.stride_w, "step of the window down", positive);
    v(4, "pad_left", s.pad_left, 0,
      least_pad < 0 ? "columns; -233 SAME_UPPER, -234 SAME_LOWER (all four)" : "columns", pad);
    v(15, "pad_right", s.pad_right, s.pad_left, "columns", pad);
    v(14, "pad_top", s.pad_top, s.pad_left, "rows", pad);
    v(16, "pad_bottom", s.pad_bottom, s.pad_top, "rows", pad);
}

}  // namespace quoll
