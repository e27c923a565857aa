// Depthwise convolution kernels: each channel has its own window of weights.
//
// Row kernels take channel-blocked data, `pack` channels interleaved, one output row of one block a
// call. They read the elements under the window that lie within the input, and write out_w
// elements. The planar kernel adds up shifted rows of one channel. No pointer needs alignment; sums
// are fp32 in the order bias, then weights as stored.
#ifndef QUOLL_LAYER_CPU_DWCONV_DWCONV_H
#define QUOLL_LAYER_CPU_DWCONV_DWCONV_H

#include <stddef.h>

namespace quoll {

struct DwconvRow {
    const float* in;      // element 0 of the input row under kernel row ky_first
    size_t row_step;      // floats from there to the input row under the next kernel row
    const float* weight;  // [kernel_h][kernel_w][pack]
    const float* bias;    // [pack]
    float* out;           // element 0, no overlap with the others
    size_t out_step;      // elements from one output to the next
    int in_w, out_w;
    int kernel_w, kernel_h, dilation_w, stride_w;
    int pad_left;           // may be negative: the first window begins inside the input
    int ky_first, ky_last;  // kernel rows within the input: ky_first <= ky < ky_last
    int x_first, x_last;    // outputs whose columns all lie within the input
    float pad_value;        // of the input outside
    float low, high;        // results are clamped to these
};
typedef void (*DwconvRowKernel)(const DwconvRow& row);

// out[x] = bias + sum of weight[t] * taps[t][x], x < count; each tap is `count` floats.
struct DwconvPlanarRow {
    const float* const* taps;
    const float* weight;
    int num_taps;
    float bias;
    float* out;
    int count;
    float low, high;
};
typedef void (*DwconvPlanarKernel)(const DwconvPlanarRow& row);

enum { kDwconvPacks = 3 };
const int kDwconvPack[kDwconvPacks] = {4, 8, 16};

// Row kernels for each entry of kDwconvPack, null where it exceeds a register.
struct DwconvKernels {
#define QUOLL_DWCONV_ROW(name, kernel, stride) DwconvRowKernel name[kDwconvPacks];
#include "layer/cpu/dwconv/kernels.inc"
#undef QUOLL_DWCONV_ROW
    DwconvPlanarKernel planar;
};

// The fastest row kernel; null if no kernel has that pack.
DwconvRowKernel select_dwconv_row(const DwconvKernels& kernels, int pack, int kernel_w,
                                  int stride_w, int dilation_w);

}  // namespace quoll

#endif
