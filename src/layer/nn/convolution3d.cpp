#include "layer/nn/convolution.h"

namespace quoll {

Layer* create_Convolution3D_layer() { return new Convolution(3, false); }

}  // namespace quoll
