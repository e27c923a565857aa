#include "layer/nn/deconvolution.h"

namespace quoll {

Layer* create_DeconvolutionDepthWise1D_layer() { return new Deconvolution(1, true); }

}  // namespace quoll
