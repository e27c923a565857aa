// Padding around the input of a convolution, where its plan does not make it.
#ifndef QUOLL_LAYER_CPU_CONV_CONV_PADDING_H
#define QUOLL_LAYER_CPU_CONV_CONV_PADDING_H

#include "layer/cpu/gemm/conv_plan.h"
#include "layer/nn/convolution.h"

namespace quoll {

// Whether the input has to be padded first; shape: of this geometry.
bool must_pad(const ConvolutionFields& s, const ConvGeometry& g, const ConvShape& shape);
// The geometry on the padded input, whose axes have no padding.
void pad_axes(ConvGeometry* g);
// `in` with its padding of `value` around it, and `g` as pad_axes leaves it; or kOutOfMemory.
int pad_input(const Mat& in, float value, const Option& opt, ConvGeometry* g, Mat* padded);

}  // namespace quoll

#endif
