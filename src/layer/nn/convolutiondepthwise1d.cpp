#include "layer/nn/convolution.h"

namespace quoll {

Layer* create_ConvolutionDepthWise1D_layer() { return new Convolution(1, true); }

}  // namespace quoll
