#include "layer/nn/deconvolution.h"

namespace quoll {

Layer* create_Deconvolution3D_layer() { return new Deconvolution(3, false); }

}  // namespace quoll
