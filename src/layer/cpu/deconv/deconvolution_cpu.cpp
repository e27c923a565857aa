#include "layer/cpu/deconv/deconv_layer.h"

namespace quoll {

Layer* create_Deconvolution_fast_layer() { return new DeconvolutionCpu(2); }

}  // namespace quoll
