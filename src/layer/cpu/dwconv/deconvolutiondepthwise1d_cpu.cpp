#include "layer/cpu/dwconv/dwdeconv_layer.h"

namespace quoll {

Layer* create_DeconvolutionDepthWise1D_fast_layer() { return new DeconvolutionDepthWiseCpu(1); }

}  // namespace quoll
