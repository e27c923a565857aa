// Windows of several slices (3-D), on the kernels of rows.
#include <limits.h>
#include <string.h>

#include <algorithm>

#include "layer/cpu/dwconv/dwconv_layer.h"
#include "layer/cpu/dwconv/window_taps.h"
#include "runtime/thread_pool.h"

namespace quoll {

// The rows of all slices under a window, one behind the other, as those of a window of one slice.
// Rows outside are made of the value of the padding, or left out with their weights if it is zero.
void ConvolutionDepthWiseCpu::gather_rows(const ConvGeometry& g, const float* channel, int y, int z,
                                          float* memory, DwconvRow* row) const {
    const size_t in_row = (size_t)g.x.in * pack_, weight_row = (size_t)kernel_w * pack_;
    const int all = kernel_d * kernel_h;
    int y_first, y_last, z_first, z_last;
    const int64_t y0 = taps_inside(g.y, y, &y_first, &y_last);
    const int64_t z0 = taps_inside(g.z, z, &z_first, &z_last);
    const bool whole = pad_value != 0.f || (y_last - y_first) * (z_last - z_first) == all;
    float *rows = memory, *weights = memory + all * in_row;
    int there = 0;
    for (int kz = whole ? 0 : z_first, ends = whole ? kernel_d : z_last; kz < ends; kz++) {
        for (int ky = whole ? 0 : y_first, end = whole ? kernel_h : y_last; ky < end; ky++) {
            const bool inside = kz >= z_first && kz < z_last && ky >= y_first && ky < y_last;
            const int64_t at =
                (z0 + (int64_t)kz * dilation_d) * g.y.in + y0 + (int64_t)ky * dilation_h;
            if (inside)
                memcpy(rows, channel + at * (int64_t)in_row, in_row * sizeof(float));
            else
                std::fill_n(rows, in_row, pad_value);
            if (!whole)
                memcpy(weights, row->weight + (kz * kernel_h + ky) * weight_row,
                       weight_row * sizeof(float));
            rows += in_row, weights += weight_row, there++;
        }
    }
    row->in = memory;
    if (!whole) row->weight = memory + all * in_row;
    row->kernel_h = row->ky_last = there;
}

// Windows of several slices.
int ConvolutionDepthWiseCpu::forward_slices(const Mat& bottom, const ConvGeometry& g, Mat& top,
                                            const Option& opt) const {
    const size_t in_row = (size_t)g.x.in * pack_, out_row = (size_t)g.x.out * pack_;
    const double rows = (double)kernel_d * kernel_h;
    if (rows * (in_row + (double)kernel_w * pack_) > INT_MAX) return kUnsuitable;
    const int threads = threads_for(opt, work_of(g) * g.z.out);
    Mat in, channels;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom, pack_, opt, &in));
    in = conv_channels(*this, in);
    QUOLL_RETURN_IF_ERROR(create_conv_top(*this, g, DType::f32, pack_, opt, &top, &channels));
    Mat memory((int)(rows * (in_row + (size_t)kernel_w * pack_)), threads, 4u,
               opt.workspace_allocator);
    if (memory.empty()) return kOutOfMemory;
    DwconvRow frame = dwconv_row_frame(g, pack_, pad_value);
    frame.low = activation_.low, frame.high = activation_.high;
    frame.row_step = in_row;
    const Bands bands(channels.c, g.z.out * g.y.out, threads);
    run_tasks(bands.count(), threads, [&](int64_t task, int thread) {
        const int q = bands.item(task);
        const float* const channel = (const float*)in.data + q * in.cstep * pack_;
        for (int i = bands.begin(task), end = bands.end(task); i < end; i++) {
            DwconvRow row = frame;
            row.weight = (const float*)packed_weight_ + (size_t)q * g.maxk() * pack_;
            row.bias = (const float*)packed_bias_ + (size_t)q * pack_;
            gather_rows(g, channel, i % g.y.out, i / g.y.out, memory.row(thread), &row);
            row.out = (float*)channels.data + q * channels.cstep * pack_ + i * out_row;
            row_(row);
            activation_.finish(row.out, out_row);
        }
    });
    return kOk;
}

}  // namespace quoll
