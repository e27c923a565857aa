#include "layer/cpu/dwconv/dwconv_layer.h"

namespace quoll {

Layer* create_ConvolutionDepthWise_fast_layer() { return new ConvolutionDepthWiseCpu(2); }

}  // namespace quoll
