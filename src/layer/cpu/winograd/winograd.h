// Winograd's convolution F(4 x 4, 3 x 3) on channel blocks: 36 products for 16 outputs, where the
// direct algorithm takes 144.
//
// An output tile of 4 x 4 needs 6 x 6 inputs. With the interpolation points 0, +-sqrt(1/2),
// +-sqrt(2) and infinity (Toom and Cook; these points lose less precision in float than 0, +-1,
// +-2) it is
//     A^T [(G w G^T) * (B^T d B)] A     for inputs d and the 3 x 3 window w,
// where * multiplies element by element and sums over the input channels: 36 matrix products.
#ifndef QUOLL_LAYER_CPU_WINOGRAD_WINOGRAD_H
#define QUOLL_LAYER_CPU_WINOGRAD_WINOGRAD_H

#include <stddef.h>

namespace quoll {

enum { kWinogradIn = 6, kWinogradOut = 4, kWinogradPoints = 36 };

// B^T d B of one tile of one channel block. Elements are `lanes` floats; those of a row follow each
// other, rows are `row` floats apart. Point i goes to out + i * step.
typedef void (*WinogradInput)(const float* in, ptrdiff_t row, float* out, size_t step);

// clamp(A^T m A + bias + added), point i of m at in + i * step; the upper left w x h elements (1 to
// 4 each) are written, rows `row` floats apart, as those of `added`, which may be null or out.
typedef void (*WinogradOutput)(const float* in, size_t step, const float* bias, const float* added,
                               float* out, ptrdiff_t row, int w, int h, float low, float high);

// G w G^T of `count` windows of 9 floats that follow each other; point i of window p goes to
// out[i * step + p]. In double arithmetic, rounded once.
typedef void (*WinogradWeights)(const float* windows, size_t count, float* out, size_t step);

struct WinogradKernels {
#define QUOLL_WINOGRAD_WEIGHTS(name) WinogradWeights name;
#define QUOLL_WINOGRAD_INPUT(name) WinogradInput name;
#define QUOLL_WINOGRAD_OUTPUT(name) WinogradOutput name;
#include "layer/cpu/winograd/kernels.inc"
#undef QUOLL_WINOGRAD_WEIGHTS
#undef QUOLL_WINOGRAD_INPUT
#undef QUOLL_WINOGRAD_OUTPUT
};

}  // namespace quoll

#endif
