#include "layer/nn/deconvolution.h"

namespace quoll {

Layer* create_DeconvolutionDepthWise_layer() { return new Deconvolution(2, true); }

}  // namespace quoll
