// A window that slides over w and h, for operators with the format's window parameters other than
// convolutions of floats: Fold, Unfold, ConvInteger.
#ifndef QUOLL_LAYER_WINDOW_FIELDS_H
#define QUOLL_LAYER_WINDOW_FIELDS_H

#include "layer/common/conv_window.h"

namespace quoll {

struct WindowFields {
    int kernel_w = 0, kernel_h = 0;
    int dilation_w = 1, dilation_h = 1;
    int stride_w = 1, stride_h = 1;
    int pad_left = 0, pad_right = 0, pad_top = 0, pad_bottom = 0;

    WindowAxis across(int w) const {
        return WindowAxis{w, 0, kernel_w, dilation_w, stride_w, 0, 0};
    }
    WindowAxis down(int h) const { return WindowAxis{h, 0, kernel_h, dilation_h, stride_h, 0, 0}; }
};

// The schema lines. least_kernel: 0 where the kernel's size may come later; least_pad: 0, or
// kPadSameLower where the SAME modes are allowed.
void window_params(WindowFields& s, ParamVisitor& v, int least_kernel, int least_pad);

}  // namespace quoll

#endif
