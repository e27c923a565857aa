#include "layer/cpu/dwconv/dwconv_layer.h"

namespace quoll {

Layer* create_ConvolutionDepthWise1D_fast_layer() { return new ConvolutionDepthWiseCpu(1); }

}  // namespace quoll
