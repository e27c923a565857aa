#include "layer/cpu/dwconv/dwconv_layer.h"

namespace quoll {

Layer* create_ConvolutionDepthWise3D_fast_layer() { return new ConvolutionDepthWiseCpu(3); }

}  // namespace quoll
