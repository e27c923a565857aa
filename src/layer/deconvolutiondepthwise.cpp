#include "conv_reference.h"

namespace quoll {

Layer* create_DeconvolutionDepthWise_layer() { return new DeconvolutionOperator(2, true); }

}  // namespace quoll
