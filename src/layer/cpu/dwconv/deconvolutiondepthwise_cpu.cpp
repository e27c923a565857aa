#include "layer/cpu/dwconv/dwdeconv_layer.h"

namespace quoll {

Layer* create_DeconvolutionDepthWise_fast_layer() { return new DeconvolutionDepthWiseCpu(2); }

}  // namespace quoll
