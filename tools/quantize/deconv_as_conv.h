// Deconvolutions as convolutions, which have int8 forms.
#ifndef QUOLL_TOOLS_QUANTIZE_DECONV_AS_CONV_H
#define QUOLL_TOOLS_QUANTIZE_DECONV_AS_CONV_H

#include "quantize/quantize.h"

namespace quoll {

// Replaces each 2-D deconvolution that is to round its input by measured ranges by a Convolution of
// the same name, of stride 1, with a channel for each of the stride x stride outputs that an input
// reaches. A PixelShuffle interleaves these, and a Crop cuts them. The answers are the same.
// Deconvolutions in groups, with strides or dilations that do not allow it, or that would take more
// than twice the multiplications, stay. Returns 0, or a negative code after a message.
int deconvolutions_to_convolutions(const QuantizeOptions& options, Model* model);

}  // namespace quoll

#endif
