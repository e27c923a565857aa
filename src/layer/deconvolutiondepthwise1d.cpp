#include "conv_reference.h"

namespace quoll {

Layer* create_DeconvolutionDepthWise1D_layer() { return new DeconvolutionOperator(1, true); }

}  // namespace quoll
