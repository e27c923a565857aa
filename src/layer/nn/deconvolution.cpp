#include "layer/nn/deconvolution.h"

namespace quoll {

Layer* create_Deconvolution_layer() { return new Deconvolution(2, false); }

}  // namespace quoll
