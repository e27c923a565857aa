// Pooling kernels: the largest value, but at least `scale`; or the sum times `scale`; of windows
// inside the input. NaN if a window contains one. Sums are fp32. A window without elements gives
// `scale`, or 0. No pointer needs alignment.
#ifndef QUOLL_LAYER_CPU_POOL_POOL_H
#define QUOLL_LAYER_CPU_POOL_POOL_H

#include <stddef.h>
#include <stdint.h>

namespace quoll {

// `count` windows of rows x columns elements, each `pack` interleaved floats.
struct PoolWindows {
    const float* in;  // the first element of the first window
    size_t row_step;  // floats from one row to the next
    int rows, columns;
    int stride;  // elements from one window to the next
    float* out;  // [count][pack], no overlap with the input
    int count;
    float scale;
};
typedef void (*PoolWindowsKernel)(const PoolWindows& w);

// Planar data. out[x] = the largest value, or the sum, of in[y * row_step + x], y < rows, x < n.
typedef void (*PoolRowsKernel)(const float* in, size_t row_step, int rows, float* out, size_t n);
// The largest value but at least scale, or the sum times scale, of n floats.
typedef float (*PoolRunKernel)(const float* in, size_t n, float scale);

struct PoolPlanarKernels {
    PoolRowsKernel rows;
    PoolWindowsKernel across;  // pack 1 and one row
    PoolRunKernel run;
};

// Maxima of 16-bit floats are found among keys: integers in the same order, with every NaN above
// the rest. `nans`: how many NaNs of one sign the type has.
enum { kBf16Nans = 0x7f, kF16Nans = 0x3ff };
// out[x] = the largest key of in[y * row_step + x], y < rows, x < n; rows > 0.
typedef void (*PoolKeyRows)(const uint16_t* in, size_t row_step, int rows, int nans, int16_t* out,
                            size_t n);
// The value with the largest key of each of `count` windows of one row and `columns` > 0 elements.
struct PoolKeyWindows {
    const int16_t* in;
    int columns, stride;  // elements
    uint16_t* out;
    int count, pack, nans;
};
typedef void (*PoolKeyAcross)(const PoolKeyWindows& w);

enum { kPoolPacks = 3 };
const int kPoolPack[kPoolPacks] = {4, 8, 16};

// Kernels for each entry of kPoolPack, null where it exceeds a register.
struct PoolKernels {
#define QUOLL_POOL(name, operation, columns, stride) PoolWindowsKernel name[kPoolPacks];
#include "layer/cpu/pool/kernels.inc"
#undef QUOLL_POOL
    PoolPlanarKernels planar_max, planar_average;
    PoolKeyRows key_rows;
    PoolKeyAcross key_across;
};

// The fastest kernel for windows of `columns` columns; null if none has that pack.
PoolWindowsKernel select_pool_windows(const PoolKernels& kernels, bool max, int pack, int columns,
                                      int stride);

}  // namespace quoll

#endif
