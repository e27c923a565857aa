#include "layer/cpu/deconv/deconv_layer.h"

namespace quoll {

Layer* create_Deconvolution3D_fast_layer() { return new DeconvolutionCpu(3); }

}  // namespace quoll
