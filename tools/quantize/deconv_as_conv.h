// Deconvolutions as convolutions, which have int8 forms.
#ifndef QUOLL_TOOLS_QUANTIZE_DECONV_AS_CONV_H
#define QUOLL_TOOLS_QUANTIZE_DECONV_AS_CONV_H

#include "quantize/quantize.h"

namespace quoll {

// Makes of each 2-D deconvolution that is to round its input by ranges of data a Convolution of the
// same name: of stride 1, with a channel for each of the stride x stride outputs that an input
// reaches, which a PixelShuffle puts side by side and a Crop cuts. The answers are the same. Those
// in groups, of strides or dilations that do not allow it, or that would take more than twice the
// multiplications, stay. 0, or a negative code after a message.
int deconvolutions_to_convolutions(const QuantizeOptions& options, Model* model);

}  // namespace quoll

#endif
