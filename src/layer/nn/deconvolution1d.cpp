#include "layer/nn/deconvolution.h"

namespace quoll {

Layer* create_Deconvolution1D_layer() { return new Deconvolution(1, false); }

}  // namespace quoll
