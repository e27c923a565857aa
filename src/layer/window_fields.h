// A window that slides over w and h, for operators that have the format's window parameters without
// those of a convolution's weights: Fold, Unfold, ConvInteger.
#ifndef QUOLL_LAYER_WINDOW_FIELDS_H
#define QUOLL_LAYER_WINDOW_FIELDS_H

#include "conv_window.h"

namespace quoll {

struct WindowFields {
    int kernel_w, kernel_h;
    int dilation_w, dilation_h;
    int stride_w, stride_h;
    int pad_left, pad_right, pad_top, pad_bottom;

    WindowFields()
        : kernel_w(0),
          kernel_h(0),
          dilation_w(1),
          dilation_h(1),
          stride_w(1),
          stride_h(1),
          pad_left(0),
          pad_right(0),
          pad_top(0),
          pad_bottom(0) {}

    WindowAxis across(int w) const {
        return WindowAxis{w, 0, kernel_w, dilation_w, stride_w, 0, 0};
    }
    WindowAxis down(int h) const { return WindowAxis{h, 0, kernel_h, dilation_h, stride_h, 0, 0}; }
};

// The schema lines. least_pad: 0, or kPadSameLower where the SAME modes are allowed.
void window_params(WindowFields& s, ParamVisitor& v, int least_pad);

}  // namespace quoll

#endif
