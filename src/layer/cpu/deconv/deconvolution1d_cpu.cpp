#include "layer/cpu/deconv/deconv_layer.h"

namespace quoll {

Layer* create_Deconvolution1D_fast_layer() { return new DeconvolutionCpu(1); }

}  // namespace quoll
