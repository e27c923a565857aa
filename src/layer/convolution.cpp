#include "conv_reference.h"

namespace quoll {

Layer* create_Convolution_layer() { return new ConvolutionOperator(2, false); }

}  // namespace quoll
