// Resize kernels: weighted sums of a few values, along a row and across rows. No pointer needs
// alignment.
#ifndef QUOLL_LAYER_CPU_RESIZE_RESIZE_H
#define QUOLL_LAYER_CPU_RESIZE_RESIZE_H

#include <stddef.h>

namespace quoll {

// out[i][lane] = the sum over k of factor[i * taps + k] * row[index[i * taps + k]][lane] for i < n;
// `pack` lanes to an element.
typedef void (*ResizeRowKernel)(const float* row, const int* index, const float* factor, float* out,
                                int n);
// out[i] = the sum over k of factor[k] * rows[k][i], for i < n.
typedef void (*ResizeColumnKernel)(const float* const* rows, const float* factor, float* out,
                                   size_t n);

enum { kResizePacks = 4 };
const int kResizePack[kResizePacks] = {1, 4, 8, 16};

struct ResizeVariants {
    ResizeRowKernel row[kResizePacks];  // for each entry of kResizePack
    ResizeColumnKernel column;
};

// Sampling of an image at points, as GridSample says: its axes, and what becomes of coordinates
// beyond them (neither clamped nor reflected: zeros).
struct GridAxis {
    int size;
    bool clamps, reflects, align_corner, exact;
};
struct GridPoints {
    const float *x, *y;  // n of each, from -1 to 1 over the image
    size_t n;
    GridAxis across, down;  // the product of their sizes is at most kGridPixels
    int taps;               // along an axis: 1 nearest, 2 linear, 4 cubic
    const float* image;     // `channels` planes, image_step floats apart
    size_t image_step;
    int channels;
    float* out;  // n values of each channel, out_step floats apart
    size_t out_step;
    // Null, or where the image of each point begins, in floats behind `image`; with what an image
    // has they are at most kGridPixels.
    const float* begin;
};
// Floats are exact indexes up to here.
enum { kGridPixels = 1 << 24 };
typedef void (*GridKernel)(const GridPoints& t);

struct ResizeKernels {
    GridKernel sample_points;
#define QUOLL_RESIZE(name, taps) ResizeVariants name;
#include "layer/cpu/resize/kernels.inc"
#undef QUOLL_RESIZE
};

}  // namespace quoll

#endif
