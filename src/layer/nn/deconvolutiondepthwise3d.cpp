#include "layer/nn/deconvolution.h"

namespace quoll {

Layer* create_DeconvolutionDepthWise3D_layer() { return new Deconvolution(3, true); }

}  // namespace quoll
