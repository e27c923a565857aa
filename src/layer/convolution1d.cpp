#include "conv_reference.h"

namespace quoll {

Layer* create_Convolution1D_layer() { return new ConvolutionOperator(1, false); }

}  // namespace quoll
