#include "layer/cpu/dwconv/dwdeconv_layer.h"

namespace quoll {

Layer* create_DeconvolutionDepthWise3D_fast_layer() { return new DeconvolutionDepthWiseCpu(3); }

}  // namespace quoll
