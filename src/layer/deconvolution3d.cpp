#include "conv_reference.h"

namespace quoll {

Layer* create_Deconvolution3D_layer() { return new DeconvolutionOperator(3, false); }

}  // namespace quoll
