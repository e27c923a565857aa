#include "layer/cpu/conv/conv_layer.h"

namespace quoll {

Layer* create_Convolution1D_fast_layer() { return new ConvolutionCpu(1); }

}  // namespace quoll
