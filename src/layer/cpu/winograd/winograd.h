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

// Computes B^T d B of one tile of one channel block. Elements are `lanes` floats; those of a row
// are contiguous, rows are `row` floats apart. Point i goes to out + i * step.
typedef void (*WinogradInput)(const float* in, ptrdiff_t row, float* out, size_t step);

// Computes f(A^T m A + bias + added), with point i of m at in + i * step. The upper left w x h
// elements (1 to 4 each) are written, rows `row` floats apart, as those of `added`, which may be
// null or out. With a slope of 1, f clamps; with another, f(x) = max(x, slope * x).
typedef void (*WinogradOutput)(const float* in, size_t step, const float* bias, const float* added,
                               float* out, ptrdiff_t row, int w, int h, float low, float high,
                               float slope);

// Computes G w G^T of `count` consecutive windows of 9 floats; point i of window p goes to out[i *
// step + p]. In double arithmetic, rounded once.
typedef void (*WinogradWeights)(const float* windows, size_t count, float* out, size_t step);

// Tiles of w x h outputs, 2, 3, 4 or 6 each, of which one convolution may have several sizes: their
// points are of one set, ids 0 to 7: 0, a, -a, b, -b, infinity, 1, -1. 6 outputs take all, 4 the
// first six, 3 all of these but 4, 2 all but 3 and 4; so weights are made once, for `points` ids
// along each axis: 6, with a = sqrt(1/2) and b = sqrt(2) as above, or 8, with a = 1/2 and b = 2.
// Point (y, x) is number y * points + x.
enum { kWinogradTilePoints = 8 };

// As WinogradInput and WinogradWeights.
typedef void (*WinogradTileInput)(const float* in, ptrdiff_t row, int w, int h, float* out,
                                  size_t step, int points);
typedef void (*WinogradTileWeights)(const float* windows, size_t count, int points, float* out,
                                    size_t step);
// The arguments of WinogradOutput; of the outputs the upper left there_w x there_h are written.
struct WinogradTile {
    const float* in;
    size_t step;
    int points, w, h;
    const float *bias, *added;
    float* out;
    ptrdiff_t row;
    int there_w, there_h;
    float low, high, slope;
};
typedef void (*WinogradTileOutput)(const WinogradTile& tile);

// Windows of 3 x 3 at steps of 2. Along an axis their outer taps read the even inputs of a tile, a
// window of two taps at steps of 1: F(4, 2) by points 0, a, -a, b and infinity, ids 0 to 4, or F(3,
// 2) by these but b, id 3, so that weights are made once. The middle tap reads the odd inputs, one
// for each output, all with the same weight: id 5. Of the 36 sets of weights, id along y * 6 + id
// along x, a set with id 5 along an axis has so many rows of products for a tile as outputs are
// there along it, of y and x together in rows. 4 x 4 outputs take 81 products, where the direct
// algorithm takes 144.
enum { kWinogradOdd = 5, kWinogradStridedIn = 9 };

struct WinogradStridedTile {
    int w, h;                         // 3 or 4
    int there_w, there_h;             // outputs there, at most these
    size_t step;                      // bytes from row to row
    ptrdiff_t sets[kWinogradPoints];  // bytes to the first row of each set
};
struct WinogradStridedOut {
    const float *bias, *added;  // as of WinogradOutput
    float* to;
    ptrdiff_t row;
    float low, high, slope;
};

// Transforms (2 w + 1) x (2 h + 1) inputs of a channel block.
typedef void (*WinogradStridedInput)(const float* in, ptrdiff_t row,
                                     const WinogradStridedTile& tile, float* out);
typedef void (*WinogradStridedOutput)(const float* sums, const WinogradStridedTile& tile,
                                      const WinogradStridedOut& out);

struct WinogradKernels {
#define QUOLL_WINOGRAD_WEIGHTS(name) WinogradWeights name;
#define QUOLL_WINOGRAD_INPUT(name) WinogradInput name;
#define QUOLL_WINOGRAD_OUTPUT(name) WinogradOutput name;
#include "layer/cpu/winograd/kernels.inc"
#undef QUOLL_WINOGRAD_WEIGHTS
#undef QUOLL_WINOGRAD_INPUT
#undef QUOLL_WINOGRAD_OUTPUT
    // Null if registers are few, or longer than a block of 4 channels, where steps of 2 gain little
    // (docs/speed-experiments.md).
    WinogradTileInput tile_input;
    WinogradTileOutput tile_output;
    WinogradTileWeights tile_weights;
    WinogradStridedInput strided_input;
    WinogradStridedOutput strided_output;
    WinogradWeights strided_weights;
};

}  // namespace quoll

#endif
