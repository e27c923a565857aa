// A planar f32 Mat as channels along its outermost axis, for operators with one parameter per
// channel: w of a 1-D Mat, h of a 2-D one, c of the others.
#ifndef QUOLL_LAYER_CHANNELS_H
#define QUOLL_LAYER_CHANNELS_H

#include "layer/common/schema.h"

namespace quoll {

struct Channels {
    float* data;
    int count;
    size_t size;  // values of a channel, one after another
    size_t step;  // values from one channel to the next

    explicit Channels(Mat& m) : data(m) {
        count = m.dims == 1 ? m.w : m.dims == 2 ? m.h : m.c;
        size = m.dims == 1 ? 1 : m.dims == 2 ? m.w : (size_t)m.w * m.h * m.d;
        step = m.dims == 1 ? 1 : m.dims == 2 ? m.w : m.cstep;
    }
    float* channel(int q) const { return data + q * step; }
};

// blob[i] = f(blob[i], q) for the values of each channel q.
template <class F>
void for_each_channel_value(Mat& blob, F f) {
    const Channels channels(blob);
    for (int q = 0; q < channels.count; q++) {
        float* p = channels.channel(q);
        for (size_t i = 0; i < channels.size; i++) p[i] = f(p[i], q);
    }
}

// The shape rule of in-place operators on one float blob. channels: how long the outermost axis has
// to be, 0: any length.
int channelwise_shape(const Layer& layer, const std::vector<Shape>& in, std::vector<Shape>& out,
                      int channels);

// Does the layer take this one blob? Logs why not. For in-place forwards, which create no outputs.
int check_input(const Layer& layer, const Mat& blob);

// The number of values that LayerNorm and RMSNorm normalise together: the innermost axes, or all,
// that make up affine_size values; if none do, a row of a 1-D or 2-D blob and a channel of others.
size_t normalized_run(const Shape& shape, int affine_size);
// Their shape rule: with affine, the weights' affine_size values are those of a run.
int normalized_shape(const Layer& layer, int affine, int affine_size, const std::vector<Shape>& in,
                     std::vector<Shape>& out);

// The values in this shape.
Mat like_shape(const Mat& values, const Shape& shape, Allocator* allocator);
// f(row) on all values of the blob in one row, in place: for runs longer than a channel.
template <class F>
int as_one_row(Mat& blob, const Option& opt, F f) {
    const Shape shape = blob.logical_shape();
    Mat row = blob.reshape((int)shape.total(), opt.blob_allocator);
    if (row.empty()) return kOutOfMemory;
    QUOLL_RETURN_IF_ERROR(f(row));
    blob = like_shape(row, shape, opt.blob_allocator);
    return blob.empty() ? kOutOfMemory : kOk;
}

// x = (x - mean) / sqrt(variance + eps) over `runs` runs of `size` values, `step` apart; mean and
// variance are those of all these values.
void normalize_runs(float* data, int runs, size_t size, size_t step, float eps);

}  // namespace quoll

#endif
