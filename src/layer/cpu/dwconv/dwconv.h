// Depthwise convolution kernels: each channel has its own window of weights.
//
// Row kernels take channel-blocked data, `pack` channels interleaved, one output row of one block a
// call. They read the elements under the window that lie within the input, and write out_w
// elements. The planes kernel adds up shifted views of one block, of any pack. No pointer needs
// alignment; sums are fp32 in the order bias, then weights as stored.
#ifndef QUOLL_LAYER_CPU_DWCONV_DWCONV_H
#define QUOLL_LAYER_CPU_DWCONV_DWCONV_H

#include <stddef.h>
#include <stdint.h>

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
    int group;              // channels of a group; DwconvKernels::groups alone
};
typedef void (*DwconvRowKernel)(const DwconvRow& row);

// Two neighbouring output rows of a 3x3 kernel whose two strides are the same: input row i of
// stride
// + 3 lies under kernel row i of the first and i - stride of the second. Elements are a register
// wide; padding is zero, one element at most on each side (`before`, `after`: 0 or 1). At least
// kDwconvPairOutputs a row.
struct DwconvPair {
    const void* in;              // element 0 of input row `first`, f32 or bf16
    size_t row_step;             // values from one input row to the next
    int first, last;             // the input rows that there are: first <= i < last
    const float *weight, *bias;  // as in DwconvRow
    float *out, *second;         // element 0 of both rows
    int out_w, before, after;
    float low, high;
};
typedef void (*DwconvPairKernel)(const DwconvPair& pair);
enum { kDwconvPairOutputs = 7 };

// Rows of a block laid out in `stride` planes, one for each column modulo stride: `above` rows of
// padding, `rows` of the input, `below` of padding, each `width` elements of `pack` floats, element
// i of plane p being input column i * stride + p - before, or padding. Up to kDwconvSlack floats
// behind the last plane are overwritten.
struct DwconvPackRows {
    const float* in;
    size_t row_step;  // floats from one row to the next
    int in_w, before, pack, stride;
    int above, rows, below;
    size_t width;
    float* to;
    size_t plane;  // floats from one plane to the next
    float pad_value;
};
typedef void (*DwconvPackRowsKernel)(const DwconvPackRows& r);
enum { kDwconvSlack = 16 };

// to[i][x] = from[i * pitch + x], i < rows, x < floats.
typedef void (*DwconvRowsKernel)(const float* from, size_t pitch, int rows, size_t floats,
                                 float* to);

// out[x] = bias[x % lanes] + sum of weight[t][x % lanes] * taps[t][x], x < count; each tap is
// `count` floats. lanes: of a register.
struct DwconvPlanes {
    const float* const* taps;
    const float* weight;  // [num_taps][lanes]
    int num_taps;
    const float* bias;  // [lanes]
    float* out;
    size_t count;
    float low, high;  // results are clamped to these
};
typedef void (*DwconvPlanesKernel)(const DwconvPlanes& run);

// Rows y_first <= y < y_last of a planar channel of half floats, by a 3x3 kernel whose two strides
// are the same; zeros around the image, at most one row or column on each side (`before_x`,
// `before_y`: 0 or 1). At least kDwconvPlanarOutputs a row; with stride 2 the input has at least
// two columns for each of the output. Nothing else is read or written; results are clamped.
struct DwconvPlanar {
    const uint16_t* in;
    int in_w, in_h, before_x, before_y;
    const uint16_t* weight;  // 9, then the bias; kDwconvPlanarWeights may be read
    uint16_t* out;           // of y_first
    int out_w, y_first, y_last;
    float low, high;
};
typedef void (*DwconvPlanarKernel)(const DwconvPlanar& run);
enum { kDwconvPlanarOutputs = 8, kDwconvPlanarWeights = 16 };

enum { kDwconvPacks = 3 };
const int kDwconvPack[kDwconvPacks] = {4, 8, 16};

// Row kernels for each entry of kDwconvPack, null where it exceeds a register.
struct DwconvKernels {
#define QUOLL_DWCONV_ROW(name, kernel, stride) DwconvRowKernel name[kDwconvPacks];
#include "layer/cpu/dwconv/kernels.inc"
#undef QUOLL_DWCONV_ROW
    DwconvPairKernel pair[2][2];  // [f32, bf16][stride - 1]; null with fewer than 32 registers
    DwconvPackRowsKernel pack_rows;
    DwconvPlanesKernel planes;
    DwconvRowsKernel rows;
    // A row of a block of a register's channels in groups of 4 or 8 (DwconvRow::group), fewer than
    // the block has. Weights: [kernel_h][kernel_w][group][lanes], those of a channel of each group
    // for all outputs. Dilation 1, zero padding. Null if registers have less than 8 lanes.
    DwconvRowKernel groups;
    DwconvPlanarKernel planar[2];  // [stride - 1]; of f16_kernels.h alone
};

// The fastest row kernel; null if no kernel has that pack.
DwconvRowKernel select_dwconv_row(const DwconvKernels& kernels, int pack, int kernel_w,
                                  int stride_w, int dilation_w);

}  // namespace quoll

#endif
