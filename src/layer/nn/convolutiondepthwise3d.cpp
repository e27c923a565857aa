#include "layer/nn/convolution.h"

namespace quoll {

Layer* create_ConvolutionDepthWise3D_layer() { return new Convolution(3, true); }

}  // namespace quoll
