#include "layer/cpu/conv/conv_layer.h"

namespace quoll {

Layer* create_Convolution3D_fast_layer() { return new ConvolutionCpu(3); }

}  // namespace quoll
