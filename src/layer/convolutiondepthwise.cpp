#include "conv_reference.h"

namespace quoll {

Layer* create_ConvolutionDepthWise_layer() { return new ConvolutionOperator(2, true); }

}  // namespace quoll
