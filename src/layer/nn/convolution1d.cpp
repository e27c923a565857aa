#include "layer/nn/convolution.h"

namespace quoll {

Layer* create_Convolution1D_layer() { return new Convolution(1, false); }

}  // namespace quoll
