#include "conv_reference.h"

namespace quoll {

Layer* create_Deconvolution1D_layer() { return new DeconvolutionOperator(1, false); }

}  // namespace quoll
