// Pooling over 1, 2 and 3 axes, which differ only in numbers.
#ifndef QUOLL_LAYER_POOLING_H
#define QUOLL_LAYER_POOLING_H

#include "layer/common/row_channels.h"
#include "layer/common/schema.h"

namespace quoll {

// The largest value or the average of a window that slides over w (1 axis: the rows are the
// channels), over w and h, or over w, h and d. With global_pooling the window is a whole channel,
// and the output is [channels]. With adaptive_pooling output i of an axis covers the positions in *
// i / out to (in * (i + 1) + out - 1) / out, and an output size of -233 keeps that of the input.
// Otherwise the output's sizes follow from the window and pad_mode.
class Pooling : public Operator<Pooling> {
public:
    explicit Pooling(int axes);
    static void params(Pooling& s, ParamVisitor& v);
    static void weights(Pooling& s, WeightVisitor& v);
    static int shape(const Pooling& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    unsigned traits() const override {
        return is_max() && windows_hold_values() ? kChoosesValues : 0;
    }

    enum PoolMethod { PoolMethod_MAX = 0, PoolMethod_AVE = 1 };

    // The input values under a window along one axis, and how many positions an average counts.
    struct Span {
        int from, size;
        int counted;
    };
    // One axis of the window. Input position p lies at p + before of the padded axis.
    struct Axis {
        int in = 0, out = 0;
        int kernel, stride;  // 0 and 1: `out` windows of almost the same size that cover the input
        int before;          // negative: so many values are cut off
        // Padded positions that averages count, and those whose values are taken: [first, last).
        int counted_first, counted_last;
        int first, last;

        Span at(int i) const;
    };
    // Positions added before and behind an axis.
    struct Pads {
        int64_t before, after;
    };
    int geometry(const Shape& in, Axis* x, Axis* y, Axis* z) const;
    // An input with the channels in c.
    Mat channels(const Mat& blob) const { return axes == 1 ? rows_as_channels(blob) : blob; }
    bool is_max() const { return pooling_type == PoolMethod_MAX; }

    const int axes;  // 1 to 3
    int pooling_type;
    int kernel_w, kernel_h, kernel_d;
    int stride_w, stride_h, stride_d;
    int pad_left, pad_right, pad_top, pad_bottom, pad_front, pad_behind;
    int global_pooling;
    int pad_mode;  // 0 full (a tail is padded), 1 valid, 2 SAME_UPPER, 3 SAME_LOWER
    int avgpool_count_include_pad;
    int adaptive_pooling;
    int out_w, out_h, out_d;

private:
    // Of two axes; no window is empty: for those f32 and s8 have other results.
    bool windows_hold_values() const;
    int slide(const char* name, Pads given, Pads same, Axis* axis) const;
    int place(const char* name, Pads given, Pads same, int adaptive_out, Axis* axis) const;
};

}  // namespace quoll

#endif
