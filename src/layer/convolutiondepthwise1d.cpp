#include "conv_reference.h"

namespace quoll {

Layer* create_ConvolutionDepthWise1D_layer() { return new ConvolutionOperator(1, true); }

}  // namespace quoll
