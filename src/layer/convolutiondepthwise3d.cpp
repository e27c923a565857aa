#include "conv_reference.h"

namespace quoll {

Layer* create_ConvolutionDepthWise3D_layer() { return new ConvolutionOperator(3, true); }

}  // namespace quoll
