#include "layer/cpu/conv/conv_layer.h"

namespace quoll {

Layer* create_Convolution_fast_layer() { return new ConvolutionCpu(2); }

}  // namespace quoll
