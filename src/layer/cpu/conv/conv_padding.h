// Padding around the input of a convolution, for algorithms that do not handle it themselves.
#ifndef QUOLL_LAYER_CPU_CONV_CONV_PADDING_H
#define QUOLL_LAYER_CPU_CONV_CONV_PADDING_H

#include "layer/cpu/gemm/conv_plan.h"
#include "layer/nn/convolution.h"

namespace quoll {

// Whether the input has to be padded first; shape: that of this geometry.
bool must_pad(const ConvolutionFields& s, const ConvGeometry& g, const ConvShape& shape);
// Changes the geometry to that on the padded input, whose axes have no padding.
void pad_axes(ConvGeometry* g);
// Pads `in` with `value`, and changes `g` as pad_axes does; or kOutOfMemory.
int pad_input(const Mat& in, float value, const Option& opt, ConvGeometry* g, Mat* padded);

// to[x] += from[x + shift] for those of `count` and `width` values that are there.
void add_shifted(const float* from, int width, int shift, float* to, int count);

}  // namespace quoll

#endif
