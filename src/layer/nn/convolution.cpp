#include "layer/nn/convolution.h"

namespace quoll {

Layer* create_Convolution_layer() { return new Convolution(2, false); }

}  // namespace quoll
