#include "conv_reference.h"

namespace quoll {

Layer* create_Deconvolution_layer() { return new DeconvolutionOperator(2, false); }

}  // namespace quoll
