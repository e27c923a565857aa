#include "conv_reference.h"

namespace quoll {

Layer* create_DeconvolutionDepthWise3D_layer() { return new DeconvolutionOperator(3, true); }

}  // namespace quoll
