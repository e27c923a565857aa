#include "layer/nn/convolution.h"

namespace quoll {

Layer* create_ConvolutionDepthWise_layer() { return new Convolution(2, true); }

}  // namespace quoll
