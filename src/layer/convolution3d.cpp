#include "conv_reference.h"

namespace quoll {

Layer* create_Convolution3D_layer() { return new ConvolutionOperator(3, false); }

}  // namespace quoll
